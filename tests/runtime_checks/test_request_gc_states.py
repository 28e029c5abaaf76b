"""`request_gc` restores the state of before: in 1,000 random nestings with exceptions and threads, and in 1,000 forks."""
from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostlint.runtime_checks import request_gc


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    was = gc.isenabled()
    yield
    (gc.enable if was else gc.disable)()


@dataclass(frozen=True)
class Step:
    how: str  # "with", "function", "async" or "thread"
    fails: bool
    inner: tuple[Step, ...]


STEPS = st.recursive(
    st.builds(Step, st.sampled_from(["with", "function", "async", "thread"]), st.booleans(), st.just(())),
    lambda inner: st.builds(
        Step, st.sampled_from(["with", "function", "async", "thread"]), st.booleans(), st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=6,
)


class Scenario:
    """Runs steps; threads are joined only at the end, so that their regions outlast those that started them."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.wrong: list[Step] = []

    def run(self, step: Step) -> None:
        if step.how == "thread":
            self.threads.append(threading.Thread(target=self._in_region, args=(step,)))
            self.threads[-1].start()
        else:
            self._in_region(step)

    def _in_region(self, step: Step) -> None:
        with suppress(ZeroDivisionError):
            if step.how == "function":
                request_gc.defer()(self._body)(step)
            elif step.how == "async":
                self._drive(step)
            else:
                with request_gc.defer():
                    self._body(step)

    def _drive(self, step: Step) -> None:
        @request_gc.defer()
        async def body() -> None:
            self._body(step)

        with suppress(StopIteration):
            body().send(None)

    def _body(self, step: Step) -> None:
        for inner in step.inner:
            self.run(inner)
        if gc.isenabled():
            self.wrong.append(step)
        if step.fails:
            raise ZeroDivisionError


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, min_size=1, max_size=3), st.booleans())
def test_random_nestings_restore_the_state(steps: list[Step], enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    scenario = Scenario()
    for step in steps:
        scenario.run(step)
    for thread in scenario.threads:
        thread.join()
    assert scenario.wrong == []
    assert gc.isenabled() is enabled


FORKS = """
import gc, os, random, signal, sys, threading
from contextlib import ExitStack, suppress
from hostlint.runtime_checks import request_gc

assert "torch" not in sys.modules
dice = random.Random(20260101)
defer = request_gc.defer
own = defer()  # what a child enters while it is still in the regions of its parent

def check(what):
    if not what:
        raise AssertionError

def child(enabled):
    signal.alarm(20)
    check(gc.isenabled() is enabled)
    check(not request_gc.needs_collection_window())
    with defer(), defer():
        check(not gc.isenabled())
    check(gc.isenabled() is enabled)

def nest(depth, enabled, fails):
    with defer():
        if depth:
            nest(depth - 1, enabled, fails)
        else:
            pid = os.fork()
            if pid == 0:
                child(enabled)
                own.__enter__()
                raise KeyError("out through the parent's regions")
            check(not gc.isenabled())
            check(os.waitpid(pid, 0)[1] == 0)
            if fails:
                raise ZeroDivisionError
        check(not gc.isenabled())

def holder(entered, leave):
    with defer():
        entered.set()
        leave.wait()

def one(enabled):
    (gc.enable if enabled else gc.disable)()
    leave, threads = threading.Event(), []
    for _ in range(dice.choice((0, 0, 1, 2))):
        entered = threading.Event()
        threads.append(threading.Thread(target=holder, args=(entered, leave)))
        threads[-1].start()
        entered.wait()
    try:
        with suppress(ZeroDivisionError):
            nest(dice.randrange(4), enabled, dice.random() < 0.5)
    except KeyError:
        off = not gc.isenabled()
        own.__exit__(None, None, None)
        os._exit(0 if off and gc.isenabled() is enabled else 1)
    except AssertionError:
        os._exit(1)
    check(gc.isenabled() is (enabled and not threads))
    leave.set()
    for thread in threads:
        thread.join()
    check(gc.isenabled() is enabled)

for _ in range(COUNT):
    one(dice.random() < 0.7)

gc.enable()
stop = threading.Event()
def hammer():
    while not stop.is_set():
        with defer():
            pass
hammers = [threading.Thread(target=hammer) for _ in range(2)]
sys.setswitchinterval(1e-6)
for each in hammers:
    each.start()
for _ in range(60):
    pid = os.fork()
    if pid == 0:
        try:
            child(True)
        except AssertionError:
            os._exit(1)
        os._exit(0)
    check(os.waitpid(pid, 0)[1] == 0)
stop.set()
for each in hammers:
    each.join()
check(gc.isenabled())
print("all", COUNT)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_random_forks_restore_the_state_in_parent_and_child() -> None:
    """In a process without torch, where forks are quick; 1,000 of them, out of nested regions, beside regions of other threads."""
    program = FORKS.replace("COUNT", "1000")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "all 1000\n"), done.stderr
