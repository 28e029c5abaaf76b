"""Work spread over processes that share what the parent has built so far; in this process where that is not to be had or not worth it."""
from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")
R = TypeVar("R")

_work: Callable[[object], object] | None = None


def _run(item: object) -> object:
    assert _work is not None
    return _work(item)


def spread(work: Callable[[T], R], items: Sequence[T], jobs: int, tick: Callable[[int], None] | None = None) -> Iterator[R]:
    """`work` over the items, in their order. Children are forked, so that `work` may refer to anything; results are pickled."""
    global _work  # noqa: PLW0603 - the one way to hand a closure to a forked child
    if jobs < 2 or len(items) < 2 or "fork" not in multiprocessing.get_all_start_methods():
        yield from _counted(map(work, items), tick)
        return
    _work = work  # type: ignore[assignment]  # items reach it as objects, and are what `work` takes
    try:
        with multiprocessing.get_context("fork").Pool(min(jobs, len(items))) as pool:
            yield from _counted(pool.imap(_run, items), tick)  # type: ignore[misc]  # _run hands on what `work` returns
    finally:
        _work = None


def _counted(results: Iterator[R], tick: Callable[[int], None] | None) -> Iterator[R]:
    for done, result in enumerate(results, 1):
        if tick is not None:
            tick(done)
        yield result


def chunks(items: Sequence[T], weight: Callable[[T], int], target: int) -> list[list[T]]:
    """The items in order, in runs of about the target weight, so that a process gets enough work for the price of a message."""
    runs: list[list[T]] = [[]]
    total = 0
    for item in items:
        runs[-1].append(item)
        total += weight(item)
        if total >= target:
            runs.append([])
            total = 0
    return [run for run in runs if run]
