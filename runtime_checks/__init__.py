"""Guards, recorders and a stand-in device that see at run time what makes the host wait for the GPU.

Importing this package does not import torch: each name is loaded when it is first asked for, so that a pytest plugin or a program that
only marks places with `allow` or `step` starts as fast as without it.
"""
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.runtime_checks.events import EventKind as EventKind
    from hostlint.runtime_checks.events import Frame as Frame
    from hostlint.runtime_checks.events import HostEvent as HostEvent
    from hostlint.runtime_checks.permissions import allow as allow

_HOMES = {
    "EventKind": "events",
    "Frame": "events",
    "HostEvent": "events",
    "allow": "permissions",
}

__all__ = ["EventKind", "Frame", "HostEvent", "allow"]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
