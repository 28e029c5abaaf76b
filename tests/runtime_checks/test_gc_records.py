"""`record_gc` and `forbid_gc`: every collection of a region, with its place, in whichever thread it hit."""
from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from gc import collect as collect_bound_early

import pytest

from hostlint.runtime_checks import HostEvent, allow, forbid_gc, record_gc, request_gc
from hostlint.runtime_checks.gc_events import Collection, collecting
from hostlint.runtime_checks.sinks import listening


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    was, thresholds = gc.isenabled(), gc.get_threshold()
    gc.collect(1)
    gc.disable()  # only what a test asks for
    yield
    gc.set_threshold(*thresholds)
    (gc.enable if was else gc.disable)()


class Node:
    def __init__(self) -> None:
        self.itself = self


def garbage(count: int) -> None:
    for _ in range(count):
        Node()


def here() -> int:
    return sys._getframe(1).f_lineno


def test_explicit_collection_is_described() -> None:
    garbage(10)
    began = time.perf_counter()
    with record_gc() as found:
        line = here() + 1
        gc.collect(1)
    took = time.perf_counter() - began
    (one,) = found
    assert (one.generation, one.automatic, one.uncollectable) == (1, False, 0)
    assert one.collected >= 10  # some versions of Python count their dictionaries too
    assert 0 < one.seconds < took
    assert began < one.start_s < began + took
    assert (one.path, one.line, one.function.rpartition(".")[2]) == (__file__, line, "test_explicit_collection_is_described")
    assert (one.frame.path, one.frame.line) == (__file__, line)
    assert one.thread == threading.current_thread().name
    assert str(one.kind) == "collect"


def test_automatic_collections_are_those_that_the_interpreter_reports() -> None:
    reported = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            reported.append((info["generation"], info["collected"]))

    gc.set_threshold(100, 3, 3)
    gc.callbacks.append(note)
    with record_gc() as found:
        gc.enable()
        garbage(3000)
        gc.disable()
    gc.callbacks.remove(note)
    assert len(reported) > 20
    assert [(one.generation, one.collected) for one in found] == reported
    assert {one.automatic for one in found} == {True}
    assert {one.call for one in found} == {"automatic collection"}
    assert {one.function.rpartition(".")[2] for one in found} <= {"__init__", "garbage"}


def test_what_was_asked_for_is_told_from_what_came_by_itself() -> None:
    gc.enable()
    gc.set_threshold(100_000, 50, 50)
    with record_gc() as found:
        collect_bound_early(0)
        gc.collect(0)
        gc.set_threshold(100, 50, 50)
        garbage(150)
        gc.set_threshold(0)
        garbage(150)
        collect_bound_early(0)
    automatic = [one.automatic for one in found]
    assert (automatic[:2], automatic[-1]) == ([False, False], False)
    assert set(automatic[2:-1]) == {True}


def test_what_was_asked_for_is_known_while_young_objects_exceed_their_threshold() -> None:
    def lower(phase: str, info: dict[str, int]) -> None:
        gc.set_threshold(1, 50, 50)

    gc.set_threshold(100_000, 50, 50)
    gc.callbacks.append(lower)
    with record_gc() as found:
        garbage(150)
        gc.enable()
        gc.collect(0)
        gc.disable()
        garbage(150)
        collect_bound_early(0)
    gc.callbacks.remove(lower)
    assert (found[0].automatic, found[-1].automatic) == (False, False)


def test_place_is_the_users_and_library_frames_are_kept_aside() -> None:
    library: dict[str, Callable[[], int]] = {}
    code = compile("import gc\ndef tidy():\n    return gc.collect()\n", "/opt/site-packages/tidying/core.py", "exec")
    exec(code, library)  # noqa: S102  code that claims to be installed
    with record_gc() as found:
        line = here() + 1
        library["tidy"]()
    (one,) = found
    assert (one.path, one.line) == (__file__, line)
    assert (one.stack[0].path, one.stack[0].line, one.stack[0].function) == ("/opt/site-packages/tidying/core.py", 3, "tidy")


def run_in_thread(body: Callable[[], object], name: str) -> None:
    thread = threading.Thread(target=body, name=name)
    thread.start()
    thread.join()


class Elsewhere:
    """A thread that runs before a region begins and collects when it is told to."""

    def __init__(self) -> None:
        self._wanted, self._done = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="elsewhere")
        self._thread.start()

    def _run(self) -> None:
        self._wanted.wait()
        gc.collect(0)
        self._done.set()

    def collect(self) -> None:
        self._wanted.set()
        self._done.wait()
        self._thread.join()


def test_threads_started_inside_are_followed_and_their_threads_too() -> None:
    with record_gc() as found:
        run_in_thread(lambda: run_in_thread(lambda: gc.collect(0), "inner"), "outer")
    assert [one.thread for one in found] == ["inner"]


def test_threads_from_before_are_listed_only_on_demand() -> None:
    before, on_demand = Elsewhere(), Elsewhere()
    with record_gc() as found:
        before.collect()
    assert found == []
    with record_gc(every_thread=True) as found:
        on_demand.collect()
    assert [one.thread for one in found] == ["elsewhere"]


def test_forbid_gc_reports_threads_from_before_only_on_demand() -> None:
    before, on_demand = Elsewhere(), Elsewhere()
    with forbid_gc():
        before.collect()
    with pytest.raises(AssertionError, match="elsewhere"), forbid_gc(every_thread=True):
        on_demand.collect()


def test_another_task_of_the_same_loop_is_not_recorded() -> None:
    async def main() -> list[Collection]:
        recording, collected = asyncio.Event(), asyncio.Event()

        async def other() -> None:
            await recording.wait()
            gc.collect(0)
            collected.set()

        task = asyncio.create_task(other())
        with record_gc() as found:
            recording.set()
            await collected.wait()
            gc.collect(1)
        await task
        return found

    assert [one.generation for one in asyncio.run(main())] == [1]


def test_records_nest_and_everything_is_put_back() -> None:
    callbacks, original = list(gc.callbacks), gc.collect
    with pytest.raises(KeyError), record_gc() as outer:
        gc.collect(0)
        with record_gc() as inner:
            gc.collect(1)
        gc.collect(2)
        raise KeyError
    assert [one.generation for one in inner] == [1]
    assert [one.generation for one in outer] == [0, 1, 2]
    assert gc.callbacks == callbacks
    assert gc.collect is original
    gc.collect()
    assert len(outer) == 3


def test_a_record_that_begins_inside_a_collection_sees_nothing_of_it() -> None:
    class Recorded(Node):
        def __del__(self) -> None:
            found.append(stack.enter_context(record_gc()))

    found: list[list[Collection]] = []
    with ExitStack() as stack:
        Recorded()
        gc.collect()
        assert found == [[]]
        gc.collect(0)
        assert [one.generation for one in found[0]] == [0]


def test_listeners_get_an_event_with_the_reason_that_allows_it() -> None:
    class Sink:
        def __init__(self) -> None:
            self.events: list[HostEvent] = []

        def add(self, event: HostEvent) -> None:
            self.events.append(event)

    sink = Sink()
    with collecting(), listening(sink):
        gc.collect(0)
        with allow("between two requests"):
            gc.collect(0)
        with allow("another family", rules=["HL1"]):
            gc.collect(0)
    assert [(event.kind, event.call, event.allowed) for event in sink.events] == [
        ("collect", "gc.collect", None),
        ("collect", "gc.collect", "between two requests"),
        ("collect", "gc.collect", None),
    ]


def test_forbid_gc_reports_every_place_after_the_body() -> None:
    ran = []
    with pytest.raises(AssertionError) as caught, forbid_gc():
        first = here() + 1
        gc.collect(0)
        with allow("the cache was dropped", rules=["HL4"]):
            gc.collect(1)
        gc.enable()
        gc.set_threshold(100, 5, 5)
        garbage(150)
        gc.disable()
        ran.append("to the end")
    lines = str(caught.value).splitlines()
    assert ran == ["to the end"]
    assert lines[0].startswith(f"{len(lines) - 1} cyclic")
    assert f"gc.collect of generation 0 at {__file__}:{first} in " in lines[1]
    assert len(lines) > 2
    assert all(f"automatic collection of generation 0 at {__file__}:" in line for line in lines[2:])


def test_forbid_gc_is_silent_without_a_collection() -> None:
    gc.enable()
    gc.set_threshold(100, 5, 5)
    with request_gc.defer(), forbid_gc():
        garbage(1000)


def test_forbid_gc_follows_threads_and_nests() -> None:
    with pytest.raises(AssertionError, match=r"^2 cyclic"), forbid_gc():
        gc.collect(0)
        with pytest.raises(AssertionError, match=r"^1 cyclic[^\n]*\n.*worker"), forbid_gc():
            run_in_thread(lambda: gc.collect(0), "worker")


def test_forbid_gc_lets_the_bodys_own_exception_out() -> None:
    with pytest.raises(ZeroDivisionError), forbid_gc():
        gc.collect(0)
        raise ZeroDivisionError


def test_threads_inherit_what_is_allowed() -> None:
    with forbid_gc(), allow("a worker tidies up"):
        run_in_thread(lambda: gc.collect(0), "worker")
