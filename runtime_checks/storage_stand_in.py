"""What stands for the storage of a device tensor that a CPU tensor plays: its sizes and addresses, but not its bytes."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from hostlint.facts.kinds import FactKind
from hostlint.runtime_checks.calls import Verdict
from hostlint.runtime_checks.events import EventKind
from hostlint.runtime_checks.host_reads import refuse

_READERS = frozenset({"tolist", "cpu", "__reduce__", "__reduce_ex__", "_write_file"})


class StorageStandIn:
    """Passes everything on to the storage, except what reads bytes: that is a host read, and raises."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> Any:
        if name in _READERS:
            _refuse(name)
        found = getattr(self._storage, name)
        return _taking_stand_ins(found) if callable(found) else found

    def __getitem__(self, index: Any) -> Any:
        _refuse("__getitem__")
        return self._storage[index]

    def __iter__(self) -> Iterator[Any]:
        _refuse("__iter__")
        return iter(self._storage)

    def __len__(self) -> int:
        return len(self._storage)


def _taking_stand_ins(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any) -> Any:
        return method(*(arg._storage if isinstance(arg, StorageStandIn) else arg for arg in args))

    return call


def _refuse(name: str) -> None:
    call = f"UntypedStorage.{name}"
    read = Verdict(EventKind.READ, FactKind.TOLIST, call, "reads the bytes one by one", measured=False, silent=False)
    refuse("SyncOnRead", read)
