"""The cyclic collections of a stretch of code: as a list, or forbidden."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hostlint.runtime_checks.complaints import complain_of
from hostlint.runtime_checks.gc_events import Collection, collecting
from hostlint.runtime_checks.sinks import listening
from hostlint.runtime_checks.threads import carried_into_threads

if TYPE_CHECKING:
    from hostlint.runtime_checks.events import HostEvent


class _Collections:
    def __init__(self) -> None:
        self.found: list[Collection] = []

    def add(self, event: HostEvent) -> None:
        if isinstance(event, Collection):
            self.found.append(event)


@contextmanager
def record_gc(*, every_thread: bool = False) -> Iterator[list[Collection]]:
    """Yields a list that grows by each cyclic collection of this thread or task and of threads started inside: generation, seconds, objects
    collected and uncollectable, thread, the frame that it hit, automatic or asked for.

    A collection in another thread holds this one up too, as long as threads share one interpreter lock: `every_thread` lists those as
    well. Whether one was automatic is deduced: `gc.collect()` is known for certain, a collection that C code asks for while more young
    objects are alive than the threshold allows passes for automatic. Costs a call before and after each collection, nothing in between.
    Not seen: what reference counting frees, and its time; collections of other processes.
    """
    sink = _Collections()
    with collecting(), carried_into_threads(), listening(sink, every_thread=every_thread):
        yield sink.found


@contextmanager
def forbid_gc(*, every_thread: bool = False) -> Iterator[None]:
    """The body runs to its end; then AssertionError names each collection that hit it, automatic or asked for, unless `allow` was around.

    Enter it inside `request_gc.defer()`, not around: leaving the region brings the overdue collection. Threads and limits are those of
    `record_gc`. Where the body itself raises, its exception goes out and nothing else is said.
    """
    with record_gc(every_thread=every_thread) as found:
        yield
    complain_of(found, "cyclic collection(s)")
