"""Each run of the cyclic collector as an event: where it hit, for how long, and whether anybody asked for it."""
from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from types import FrameType

from hostlint.facts.kinds import FactKind
from hostlint.runtime_checks.events import EventKind, Frame, HostEvent
from hostlint.runtime_checks.frames import stack_from, user_frame
from hostlint.runtime_checks.patches import Patch
from hostlint.runtime_checks.permissions import allowed_reason
from hostlint.runtime_checks.sinks import emit, listeners


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection(HostEvent):
    """One cyclic collection. Its place is what the thread was running then, which need not be what made the garbage."""

    generation: int  # the oldest one that was looked through: 2 is everything
    collected: int  # objects that were unreachable and freed
    uncollectable: int
    automatic: bool  # False where somebody called gc.collect()

    @property
    def seconds(self) -> float:
        return self.blocked_s or 0.0

    @property
    def frame(self) -> Frame:
        """The frame that it hit, of the user's code where there is one."""
        return user_frame(self.stack)

    def __str__(self) -> str:
        return (
            f"{self.call} of generation {self.generation} at {self.place} in {self.function}"
            f" ({self.thread}; {self.seconds * 1000:.2f} ms, {self.collected} objects)"
        )


class _Thread(threading.local):
    asked: bool = False  # this thread is inside gc.collect()


class _Running:
    """The collection that is going on: the interpreter never runs two at a time."""

    start_s: float | None = None
    automatic: bool = False


_thread = _Thread()
_running = _Running()
_lock = threading.RLock()  # never taken inside the callback, which can run anywhere, also while the lock is held
_users = 0


@contextmanager
def collecting() -> Iterator[None]:
    """While any such body runs, each collection of the process is emitted as a `Collection` to who listens in the thread that it hit.

    Costs nothing between collections. A listener is called inside the collection: it must take no lock that its thread may hold already.
    """
    with _EXPLICIT.applied():
        _hook(1)
        try:
            yield
        finally:
            _hook(-1)


def _hook(change: int) -> None:
    global _users  # noqa: PLW0603  one hook serves all
    with _lock:
        _users += change
        if _users and _on_phase not in gc.callbacks:
            gc.callbacks.append(_on_phase)
        elif not _users:
            with suppress(ValueError):  # somebody emptied the list
                gc.callbacks.remove(_on_phase)


def _on_phase(phase: str, info: dict[str, int]) -> None:
    if phase == "start":
        _running.automatic = _is_automatic()
        _running.start_s = time.perf_counter()
        return
    now, start = time.perf_counter(), _running.start_s
    _running.start_s = None
    if start is not None and listeners():  # a hook that came during a collection sees only its end
        emit(_event(sys._getframe().f_back, start, now - start, info))


def _is_automatic() -> bool:
    """The interpreter starts by itself only when it is allowed to and young objects exceed their threshold; nothing says so directly."""
    if _thread.asked or not gc.isenabled():
        return False
    limit = gc.get_threshold()[0]
    return 0 < limit < gc.get_count()[0]


def _event(frame: FrameType | None, start_s: float, spent_s: float, info: dict[str, int]) -> Collection:
    stack = stack_from(frame)
    hit = user_frame(stack)
    return Collection(
        EventKind.COLLECT,
        hit.path,
        hit.line,
        hit.function,
        stack,
        "automatic collection" if _running.automatic else "gc.collect",
        threading.current_thread().name,
        start_s,
        spent_s,
        fact=None if _running.automatic else FactKind.COLLECTION,
        allowed=allowed_reason(EventKind.COLLECT),
        generation=info["generation"],
        collected=info["collected"],
        uncollectable=info["uncollectable"],
        automatic=_running.automatic,
    )


def _asked_for(original: Callable[..., object]) -> Callable[..., object]:
    @wraps(original)
    def collect(*args: object, **kwargs: object) -> object:
        _thread.asked = True
        try:
            return original(*args, **kwargs)
        finally:
            _thread.asked = False

    return collect


_EXPLICIT = Patch(gc, "collect", _asked_for)
