"""What the caching allocator did in a stretch of code: flushes of its cache, and how often it had to ask the device for memory."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from hostlint.runtime_checks.complaints import complain_of
from hostlint.runtime_checks.events import EventKind, HostEvent
from hostlint.runtime_checks.flush_events import cuda_in_use
from hostlint.runtime_checks.flush_events import flushing as flushing
from hostlint.runtime_checks.sinks import listening
from hostlint.runtime_checks.threads import carried_into_threads


@dataclass(frozen=True, slots=True)
class AllocatorCounts:
    """Over all CUDA devices and all threads; None where CUDA is not in use, or where this torch does not count it."""

    retries: int | None = None  # allocations that failed at first: the allocator flushed its cache, with a wait, and tried again
    out_of_memory: int | None = None
    device_allocations: int | None = None  # cudaMalloc and the like
    device_frees: int | None = None
    segments: int | None = None  # blocks of memory that were taken from the device


@dataclass(slots=True)
class AllocatorRecord:
    flushes: list[HostEvent] = field(default_factory=list)  # grows while the body runs
    counts: AllocatorCounts = AllocatorCounts()  # known when the body has ended

    @property
    def seconds(self) -> float:
        """Time spent in flushes of the cache."""
        return sum(flush.blocked_s or 0.0 for flush in self.flushes)

    @property
    def bytes_given_back(self) -> int | None:
        """By all flushes; None where that is known of none."""
        known = [flush.bytes for flush in self.flushes if flush.bytes is not None]
        return sum(known) if known else None

    def add(self, event: HostEvent) -> None:
        if event.kind is EventKind.FLUSH:
            self.flushes.append(event)


@contextmanager
def record_allocator(*, every_thread: bool = False) -> Iterator[AllocatorRecord]:
    """Yields a record of the flushes of this thread or task and of threads started inside (of all threads with `every_thread`), each with
    its place, seconds and bytes given back, and after the body of what the CUDA allocator counted meanwhile, in all threads.

    `torch.cuda.empty_cache` is seen under every name, so are those of `torch.accelerator`, xpu, mps and mtia. Without CUDA flushes are
    listed and numbers are None. Reading the allocator's counters waits for nothing. Where the body resets them, counts are of what came
    after. Not seen: flushes by libraries below Python, and of the cache of pinned memory.
    """
    record, before = AllocatorRecord(), _counted()
    try:
        with flushing(), carried_into_threads(), listening(record, every_thread=every_thread):
            yield record
    finally:
        record.counts = _difference(before, _counted())


@contextmanager
def forbid_cache_flush(*, every_thread: bool = False) -> Iterator[None]:
    """The body runs to its end; then AssertionError names each flush in it, unless `allow` was around.

    Threads and limits are those of `record_allocator`; what the allocator flushes itself when memory runs out is counted there, not
    forbidden here. Where the body itself raises, its exception goes out and nothing else is said.
    """
    with record_allocator(every_thread=every_thread) as record:
        yield
    complain_of(record.flushes, "flush(es) of the allocator's cache")


_KEYS = {
    "retries": "num_alloc_retries",
    "out_of_memory": "num_ooms",
    "device_allocations": "num_device_alloc",
    "device_frees": "num_device_free",
    "segments": "segment.all.allocated",
}


def _counted() -> Counter[str]:
    """The counters, summed over devices; empty where CUDA is not in use (yet)."""
    total: Counter[str] = Counter()
    if cuda_in_use():
        for device in range(torch.cuda.device_count()):
            stats = torch.cuda.memory_stats(device)
            total.update({key: stats[key] for key in _KEYS.values() if key in stats})
    return total


def _difference(before: Counter[str], after: Counter[str]) -> AllocatorCounts:
    return AllocatorCounts(**{name: _since(before[key], after[key]) for name, key in _KEYS.items() if key in after})


def _since(before: int, after: int) -> int:
    return after - before if after >= before else after
