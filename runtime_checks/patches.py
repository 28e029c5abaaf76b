"""Attributes that are replaced while somebody needs them, and put back only where nobody has replaced them since."""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_MISSING = object()


@dataclass
class Patch:
    """One replaced attribute of a module or class. Users are counted: the first sets it, the last puts the original back.

    `replacement` gets the original and returns what stands in its place. If someone else has replaced the attribute meanwhile, theirs
    stays, and ours, still called by it, only passes through.
    """

    owner: object
    name: str
    replacement: Callable[[Callable[..., object]], Callable[..., object]]
    _users: int = 0
    _own: object = None
    _was: object = _MISSING  # what stood in the owner's own dictionary
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def in_use(self) -> bool:
        return self._users > 0

    @contextmanager
    def applied(self) -> Iterator[None]:
        self.apply()
        try:
            yield
        finally:
            self.remove()

    def apply(self) -> None:
        with self._lock:
            if self._users == 0:
                self._was = vars(self.owner).get(self.name, _MISSING)
                self._own = self.replacement(getattr(self.owner, self.name, None))  # type: ignore[arg-type]  # None where it is new
                setattr(self.owner, self.name, self._own)
            self._users += 1

    def remove(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users or vars(self.owner).get(self.name) is not self._own:
                return
            if self._was is _MISSING:
                delattr(self.owner, self.name)
            else:
                setattr(self.owner, self.name, self._was)
            self._own = self._was = None
