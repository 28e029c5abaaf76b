"""Guards, recorders and a stand-in device that see at run time what makes the host wait for the GPU.

Importing this package does not import torch: each name is loaded when it is first asked for, so that a pytest plugin or a program that
only marks places with `allow` or `step` starts as fast as without it.
"""
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.runtime_checks.allocator import forbid_cache_flush as forbid_cache_flush
    from hostlint.runtime_checks.allocator import record_allocator as record_allocator
    from hostlint.runtime_checks.counted_uploads import CountedUploads as CountedUploads
    from hostlint.runtime_checks.cuda_sync import assert_no_cuda_sync as assert_no_cuda_sync
    from hostlint.runtime_checks.cuda_sync import no_cuda_sync as no_cuda_sync
    from hostlint.runtime_checks.events import EventKind as EventKind
    from hostlint.runtime_checks.events import Frame as Frame
    from hostlint.runtime_checks.events import HostEvent as HostEvent
    from hostlint.runtime_checks.forbidden_syncs import forbid_host_syncs as forbid_host_syncs
    from hostlint.runtime_checks.gc_events import Collection as Collection
    from hostlint.runtime_checks.gc_records import forbid_gc as forbid_gc
    from hostlint.runtime_checks.gc_records import record_gc as record_gc
    from hostlint.runtime_checks.permissions import allow as allow
    from hostlint.runtime_checks.record_ops import RecordOps as RecordOps
    from hostlint.runtime_checks.recorder import record_host_events as record_host_events
    from hostlint.runtime_checks.request_collector import request_gc as request_gc
    from hostlint.runtime_checks.simulated import SimulatedDeviceWarning as SimulatedDeviceWarning
    from hostlint.runtime_checks.simulated import simulate_cuda as simulate_cuda
    from hostlint.runtime_checks.steps import step as step
    from hostlint.runtime_checks.sync_on_read import SyncOnRead as SyncOnRead

_HOMES = {
    "Collection": "gc_events",
    "CountedUploads": "counted_uploads",
    "EventKind": "events",
    "Frame": "events",
    "HostEvent": "events",
    "RecordOps": "record_ops",
    "SimulatedDeviceWarning": "simulated",
    "SyncOnRead": "sync_on_read",
    "allow": "permissions",
    "assert_no_cuda_sync": "cuda_sync",
    "forbid_cache_flush": "allocator",
    "forbid_gc": "gc_records",
    "forbid_host_syncs": "forbidden_syncs",
    "no_cuda_sync": "cuda_sync",
    "record_allocator": "allocator",
    "record_gc": "gc_records",
    "record_host_events": "recorder",
    "request_gc": "request_collector",
    "simulate_cuda": "simulated",
    "step": "steps",
}

__all__ = [
    "Collection",
    "CountedUploads",
    "EventKind",
    "Frame",
    "HostEvent",
    "RecordOps",
    "SimulatedDeviceWarning",
    "SyncOnRead",
    "allow",
    "assert_no_cuda_sync",
    "forbid_cache_flush",
    "forbid_gc",
    "forbid_host_syncs",
    "no_cuda_sync",
    "record_allocator",
    "record_gc",
    "record_host_events",
    "request_gc",
    "simulate_cuda",
    "step",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{home}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(f"{__name__}.{name} needs torch: pip install 'hostlint[runtime]'", name="torch") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
