"""Cyclic collections kept out of requests: one owner for the process, which switches automatic collection off while any request runs."""
from __future__ import annotations

import gc
import inspect
import os
import threading
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TypeVar, cast

WINDOW_S = 30.0  # unbroken overlap of regions after which the garbage of requests should be collected

Function = TypeVar("Function", bound=Callable[..., object])


class RequestCollector:
    """What `request_gc` is: the one owner of the collector's state. Do not make another; two would restore over each other.

    Only automatic collection stops: reference counting and `gc.collect()` go on, thresholds and frozen objects are left alone.

    `gc.enable()` inside a region takes effect at once; a region that is entered later switches collection off again, and it is on after
    the last. `gc.disable()` inside a region ends with the last region where collection was on before: it cannot be told from the
    save-and-restore pair of a library, which finds collection off here and would leave it off for good.

    In a forked child no region is active, not even that of the thread that forked: the state is what it was before the first region, and
    leaving an inherited region changes nothing. A child is as a rule a worker that never returns into its parent's `with` blocks, and a
    collector that nobody switches on again is a leak.
    """

    def __init__(self) -> None:
        self.clock: Callable[[], float] = time.monotonic  # seconds; a test puts its own here
        self._lock = threading.RLock()  # a finalizer that runs while it is held may enter a region
        self._regions = 0
        self._life = 0  # grows with each fork: regions of an earlier life are not ours to leave
        self._enable_after = False
        self._off_since = 0.0
        self._warmed_up = False

    def defer(self) -> Region:
        """Automatic collection is off for the body, or for each call of the decorated function, in all threads.

        Regions nest and overlap, over threads too; when the last one is left, also by an exception, the state is what it was before the
        first, and a collection that is overdue comes right then. An async function holds its region until it returns, while it awaits
        too. Generators are refused with TypeError: one that is dropped half-way would leave the collector off; put
        `with request_gc.defer():` around their steps.
        """
        return Region(self)

    def needs_collection_window(self) -> bool:
        """Whether regions have overlapped without a gap for 30 seconds, with collection on before: the garbage of all these requests waits.

        Ask when a request is admitted; if true, let the requests that run finish first. Once the last has left its region, the collector
        runs as it would have. False where collection was off before the regions.
        """
        with self._lock:
            return self._regions > 0 and self._enable_after and self.clock() - self._off_since >= WINDOW_S

    def mark_warmup(self) -> None:
        """Notes that a warm-up has run, whose garbage `collect_after_warmup` will collect."""
        with self._lock:
            self._warmed_up = True

    def collect_after_warmup(self) -> bool:
        """Runs one full collection if a warm-up was marked since the last one and no region is active; whether it did.

        Where a region is active, the mark stays: call it again later, as before the first real request.
        """
        with self._lock:
            if self._regions or not self._warmed_up:
                return False
            self._warmed_up = False
        gc.collect()  # without the lock: a finalizer may wait for a thread that enters a region
        return True

    def _enter(self) -> int:
        with self._lock:
            self._regions += 1
            if gc.isenabled():
                self._off_since = self.clock()
                self._enable_after = True
                gc.disable()
            return self._life

    def _leave(self, life: int) -> None:
        with self._lock:
            if life != self._life:
                return
            self._regions -= 1
            if self._regions == 0:
                self._restore()

    def _restore(self) -> None:
        if self._enable_after:
            self._enable_after = False
            gc.enable()

    def _before_fork(self) -> None:
        self._lock.acquire()  # so that no other thread is half-way through a change when the memory is copied

    def _after_fork_in_parent(self) -> None:
        self._lock.release()

    def _after_fork_in_child(self) -> None:
        self._life += 1
        self._regions = 0
        self._warmed_up = False
        self._restore()
        self._lock.release()


class Region:
    """One stretch without automatic collection: a context manager that may be entered again, also by several threads, and a decorator."""

    __slots__ = ("_entered", "_owner")

    def __init__(self, owner: RequestCollector) -> None:
        self._owner = owner
        self._entered: list[int] = []

    def __enter__(self) -> None:
        self._entered.append(self._owner._enter())

    def __exit__(self, *exception: object) -> None:
        self._owner._leave(self._entered.pop())

    def __call__(self, function: Function) -> Function:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"request_gc.defer() cannot hold a region over the pauses of a generator: {function.__qualname__}")
        held = self._over_awaits(function) if inspect.iscoroutinefunction(function) else self._over_call(function)
        return cast("Function", held)

    def _over_call(self, function: Callable[..., object]) -> Callable[..., object]:
        @wraps(function)
        def held(*args: object, **kwargs: object) -> object:
            with self._owner.defer():
                return function(*args, **kwargs)

        return held

    def _over_awaits(self, function: Callable[..., object]) -> Callable[..., object]:
        @wraps(function)
        async def held(*args: object, **kwargs: object) -> object:
            with self._owner.defer():
                return await cast("Callable[..., Awaitable[object]]", function)(*args, **kwargs)

        return held


request_gc = RequestCollector()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=request_gc._before_fork,
        after_in_parent=request_gc._after_fork_in_parent,
        after_in_child=request_gc._after_fork_in_child,
    )
