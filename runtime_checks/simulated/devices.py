"""Devices as programs name them: what means the device, what the host, and what is neither's business."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from hostlint.runtime_checks.simulated.places import CPU, CUDA

DEVICES = 1


@contextmanager
def default_device_kept() -> Iterator[None]:
    """A default device that the body sets ends with it."""
    before = _default_context()
    try:
        yield
    finally:
        if _default_context() is not before:
            torch.set_default_device(None if before is None else before.device)


def _default_context() -> Any:
    return getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)


def as_device(value: object) -> torch.device | None:
    """`"cuda"`, `"cuda:0"`, 0 and torch.device("cuda") as the one device there is; other devices as they are; None for what is no device.

    Raises RuntimeError for a second device, which this machine has not either.
    """
    if isinstance(value, torch.device):
        found = value
    elif isinstance(value, str):
        found = torch.device(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        found = torch.device("cuda", value)
    else:
        return None
    if found.type != "cuda":
        return found
    if (found.index or 0) >= DEVICES:
        raise RuntimeError(f"CUDA error: invalid device ordinal: the stand-in has {DEVICES} device, cuda:{found.index} was asked for")
    return CUDA


def real(device: torch.device) -> torch.device:
    """The device that holds the numbers."""
    return CPU if device.type == "cuda" else device
