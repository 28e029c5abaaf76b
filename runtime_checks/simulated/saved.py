"""Files: tensors of the device are saved as such, and come back to the device or to where `map_location` says."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import serialization

from hostlint.runtime_checks.simulated.devices import as_device

_FIRST = 0  # before torch's own, which would look for a driver


def _location(storage: Any) -> str | None:
    return "cuda:0" if getattr(storage, "hostlint_on_device", False) else None


def _restored(storage: Any, location: str) -> Any:
    if not location.startswith("cuda"):
        return None
    as_device(location)
    storage.hostlint_on_device = True
    return storage



@contextmanager
def files_have_places() -> Iterator[None]:
    entry = (_FIRST, _location, _restored)
    registry = serialization._package_registry
    registry.insert(0, entry)
    try:
        yield
    finally:
        registry.remove(entry)


def storage_to_device(self: Any, device: object = None, non_blocking: bool = False, **_: object) -> Any:
    """`storage.cuda()`, as functions given to `map_location` call it."""
    as_device("cuda" if device is None else device)
    with torch._C.DisableTorchFunction():
        copy = self.clone()
    copy.hostlint_on_device = True
    return copy
