"""What protection and recording of collections cost: times a loop of 10,000 small torch ops with and without; prints one JSON object."""
from __future__ import annotations

import gc
import json
import platform
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import date

import torch

from hostlint.runtime_checks import record_allocator, record_gc, request_gc

OPS = 10_000
ROUNDS = 15
PER_REQUEST = 10  # ops between entering a region and leaving it, where each request is one


def loop(around: Callable[[], AbstractContextManager[object]], every: int) -> float:
    """Seconds for the ops, in regions of `every` ops each."""
    x = torch.ones(8)
    began = time.perf_counter()
    for _ in range(OPS // every):
        with around():
            for _ in range(every):
                x = x + 1.0
    return time.perf_counter() - began


def ratio(around: Callable[[], AbstractContextManager[object]], every: int = OPS) -> float:
    """The median over rounds of with to without; the two alternate, so that a busy machine slows both."""
    loop(around, every)
    return round(statistics.median(loop(around, every) / loop(nullcontext, every) for _ in range(ROUNDS)), 3)


def seconds_per_collection(around: Callable[[], AbstractContextManager[object]], count: int = 2_000) -> float:
    gc.collect()
    with around():
        began = time.perf_counter()
        for _ in range(count):
            gc.collect(0)
        return (time.perf_counter() - began) / count


def main() -> None:
    bare = seconds_per_collection(nullcontext)
    print(
        json.dumps(
            {
                "python": platform.python_version(),
                "torch": torch.__version__,
                "date": date.today().isoformat(),
                "ops": OPS,
                "request_gc": ratio(request_gc.defer),
                f"request_gc, a region every {PER_REQUEST} ops": ratio(request_gc.defer, PER_REQUEST),
                "record_gc": ratio(record_gc),
                "record_allocator": ratio(record_allocator),
                "record_gc_us_per_collection": round((seconds_per_collection(record_gc) - bare) * 1e6, 1),
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
