"""Files: tensors of the device are saved as such, and come back to the device or to where `map_location` says."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any

import torch
from torch import serialization

from hostlint.facts.kinds import FactKind
from hostlint.runtime_checks.calls import Verdict, known_wait
from hostlint.runtime_checks.events import EventKind
from hostlint.runtime_checks.simulated.devices import as_device
from hostlint.runtime_checks.simulated.places import place_of
from hostlint.runtime_checks.simulated.reports import report

_EVIDENCE = "each storage is copied"
_SAVED = Verdict(EventKind.HIDDEN_WAIT, FactKind.HIDDEN_WAIT, "torch.save", _EVIDENCE, measured=False, silent=False)
_LOADED = Verdict(EventKind.UPLOAD, FactKind.BLOCKING_UPLOAD, "torch.load", _EVIDENCE, measured=False, silent=False)
_FIRST = 0  # before torch's own, which would look for a driver


def _location(storage: Any) -> str | None:
    if not getattr(storage, "hostlint_on_device", False):
        return None
    report(_SAVED, storage.nbytes())
    return "cuda:0"


def _restored(storage: Any, location: str) -> Any:
    if not location.startswith("cuda"):
        return None
    as_device(location)
    report(_LOADED, storage.nbytes())
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


def reading_storage(original: Callable[..., Any]) -> Callable[..., Any]:
    """A method of storages that copies all bytes to the host."""

    @wraps(original)
    def read(self: Any, *args: object, **kwargs: object) -> Any:
        verdict = None
        if getattr(self, "hostlint_on_device", False):
            verdict = known_wait(torch.Tensor.cpu if original.__name__ == "cpu" else torch.Tensor.tolist, (), {}, place_of)
        if verdict is not None:
            report(replace(verdict, call=f"UntypedStorage.{original.__name__}"), self.nbytes())
        result = original(self, *args, **kwargs)
        return self.clone() if result is self and verdict is not None else result

    return read


def storage_to_device(self: Any, device: object = None, non_blocking: bool = False, **_: object) -> Any:
    """`storage.cuda()`, as functions given to `map_location` call it."""
    as_device("cuda" if device is None else device)
    with torch._C.DisableTorchFunction():
        copy = self.clone()
    copy.hostlint_on_device = True
    return copy
