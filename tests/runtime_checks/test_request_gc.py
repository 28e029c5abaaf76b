"""`request_gc`: no automatic collection while a request runs, and the state of before afterwards, whatever happened."""
from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from hostlint.runtime_checks import request_gc


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Collections come often, and the collector is afterwards as it was."""
    was, thresholds = gc.isenabled(), gc.get_threshold()
    gc.enable()
    gc.set_threshold(200, 5, 5)
    yield
    gc.set_threshold(*thresholds)
    (gc.enable if was else gc.disable)()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    now = [1000.0]
    monkeypatch.setattr(request_gc, "clock", lambda: now[0])

    def advance(seconds: float) -> None:
        now[0] += seconds

    return advance


class Node:
    """An object that refers to itself: only a cyclic collection frees it."""

    def __init__(self) -> None:
        self.itself = self


def garbage(count: int) -> None:
    for _ in range(count):
        Node()


def starts_while(busy: Callable[[], bool], body: Callable[[], None]) -> tuple[int, int]:
    """How many collections began while `busy()`, and how many in all."""
    seen = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(busy())

    gc.callbacks.append(note)
    try:
        body()
    finally:
        gc.callbacks.remove(note)
    return sum(seen), len(seen)


def serve(threads: int, requests: int, protected: bool) -> tuple[int, int]:
    running = [False] * threads

    def worker(number: int) -> None:
        for _ in range(requests):
            region = request_gc.defer()
            if protected:
                region.__enter__()
            running[number] = True
            garbage(60)
            running[number] = False
            if protected:
                region.__exit__(None, None, None)
            garbage(1)

    def body() -> None:
        workers = [threading.Thread(target=worker, args=(number,)) for number in range(threads)]
        for each in workers:
            each.start()
        for each in workers:
            each.join()
        garbage(300)

    return starts_while(lambda: any(running), body)


def test_thousand_requests_on_four_threads_see_no_collection() -> None:
    inside, total = serve(threads=4, requests=250, protected=True)
    assert inside == 0
    assert total > 0  # collections come between requests
    assert gc.isenabled()
    inside, _ = serve(threads=4, requests=250, protected=False)
    assert inside > 100  # the same requests, unprotected


def test_reference_counts_and_explicit_collections_go_on() -> None:
    with request_gc.defer():
        plain = type("Plain", (), {})()
        cyclic = Node()
        gone, waiting = weakref.ref(plain), weakref.ref(cyclic)
        del plain, cyclic
        assert gone() is None
        garbage(1000)
        assert waiting() is not None
        gc.collect()
        assert waiting() is None


def test_thresholds_and_frozen_objects_are_left_alone() -> None:
    thresholds, frozen = gc.get_threshold(), gc.get_freeze_count()
    with request_gc.defer():
        assert (gc.get_threshold(), gc.get_freeze_count()) == (thresholds, frozen)
    request_gc.mark_warmup()
    request_gc.collect_after_warmup()
    assert (gc.get_threshold(), gc.get_freeze_count()) == (thresholds, frozen)


def test_window_is_needed_after_thirty_seconds_of_unbroken_overlap(clock: Callable[[float], None]) -> None:
    first, second = request_gc.defer(), request_gc.defer()
    assert not request_gc.needs_collection_window()
    first.__enter__()
    clock(20)
    second.__enter__()
    first.__exit__(None, None, None)
    clock(9.5)
    assert not request_gc.needs_collection_window()
    clock(0.5)
    assert request_gc.needs_collection_window()
    second.__exit__(None, None, None)
    assert not request_gc.needs_collection_window()
    with request_gc.defer():
        assert not request_gc.needs_collection_window()  # the gap starts the count anew
        clock(30)
        assert request_gc.needs_collection_window()


def test_no_window_is_needed_where_collection_was_off_before(clock: Callable[[float], None]) -> None:
    gc.disable()
    with request_gc.defer():
        clock(100)
        assert not request_gc.needs_collection_window()


def test_garbage_of_the_warmup_is_collected_once_and_only_when_quiet() -> None:
    gc.disable()
    node = Node()
    left = weakref.ref(node)
    del node
    assert request_gc.collect_after_warmup() is False  # no warm-up was marked
    request_gc.mark_warmup()
    entered, leave = threading.Event(), threading.Event()

    def request() -> None:
        with request_gc.defer():
            entered.set()
            leave.wait()

    other = threading.Thread(target=request)
    other.start()
    entered.wait()
    assert request_gc.collect_after_warmup() is False
    assert left() is not None
    leave.set()
    other.join()
    assert request_gc.collect_after_warmup() is True
    assert left() is None
    assert request_gc.collect_after_warmup() is False


def test_a_finalizer_may_wait_for_a_thread_that_enters_a_region() -> None:
    class Waits(Node):
        def __del__(self) -> None:
            thread = threading.Thread(target=request_gc.defer()(list), daemon=True)
            thread.start()
            thread.join(timeout=20)
            finished.append(not thread.is_alive())

    finished: list[bool] = []
    gc.disable()
    Waits()
    request_gc.mark_warmup()
    assert request_gc.collect_after_warmup()
    assert finished == [True]


def test_switching_on_inside_holds_until_the_next_region_and_after_the_last() -> None:
    gc.disable()
    with request_gc.defer():
        gc.enable()
        with request_gc.defer():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_saving_and_restoring_inside_does_not_leave_the_collector_off() -> None:
    with request_gc.defer():
        was = gc.isenabled()
        gc.disable()
        if was:
            gc.enable()
    assert gc.isenabled()


def test_decorated_function_is_the_same_but_for_the_collector() -> None:
    @request_gc.defer()
    def handle(value: int, *, twice: bool = False) -> tuple[int, bool]:
        """Its own words."""
        return value * (2 if twice else 1), gc.isenabled()

    assert handle(21, twice=True) == (42, False)
    assert (handle.__name__, handle.__doc__) == ("handle", "Its own words.")
    assert gc.isenabled()


def test_one_region_object_serves_again_and_nested() -> None:
    region = request_gc.defer()
    for _ in range(2):
        with region:
            with region:
                assert not gc.isenabled()
            assert not gc.isenabled()
        assert gc.isenabled()


def test_async_function_holds_its_region_while_it_awaits_and_until_it_is_cancelled() -> None:
    states = []

    @request_gc.defer()
    async def request(forever: asyncio.Event) -> None:
        await forever.wait()

    async def main() -> None:
        task = asyncio.create_task(request(asyncio.Event()))
        await asyncio.sleep(0)
        states.append(gc.isenabled())
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        states.append(gc.isenabled())

    asyncio.run(main())
    assert states == [False, True]


def test_generators_are_refused() -> None:
    def tokens() -> Iterator[int]:
        yield 1

    async def stream() -> object:
        yield 1

    for function in (tokens, stream):
        with pytest.raises(TypeError, match=function.__name__):
            request_gc.defer()(function)


def test_the_collector_side_is_imported_without_torch() -> None:
    program = (
        "import sys\n"
        "from hostlint.runtime_checks import forbid_gc, record_gc, request_gc\n"
        "with request_gc.defer(), record_gc(), forbid_gc(): pass\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
