"""Counts of a recorded process: exact, bounded, and safe however the process ends."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from hostlint.runtime_checks.confirm import counters
from hostlint.runtime_checks.confirm.counters import Counters, read_processes
from hostlint.runtime_checks.confirm.plan import Plan

ABOUT = {"kind": "read", "path": "a.py", "line": 3}


def opened(folder: Path, warmup: int = 0) -> Counters:
    made = Counters(folder, warmup)
    made.open({"pid": os.getpid()})
    return made


def test_what_is_counted_comes_back(tmp_path: Path) -> None:
    made = opened(tmp_path)
    for number in range(5):
        made.add(made.tally("here", ABOUT), 10.0 + number, waits=2, blocked_s=0.25, size=4, mark=True)
    made.add(made.tally("there", {**ABOUT, "line": 9}), 20.0)
    made.say({"ran": ["a.py", 3]})
    (process,) = read_processes(tmp_path)
    here, there = process.slots
    assert (here.count, here.waits, here.blocked_s, here.bytes, here.first_s, here.last_s) == (5, 10, 1.25, 20, 10.0, 14.0)
    assert (here.about["line"], there.about["line"], there.count) == (3, 9, 1)
    assert process.timeline == tuple((0, 10.0 + number, 0.25) for number in range(5))
    assert process.notes == ({"ran": ["a.py", 3]},)
    assert process.about == {"pid": os.getpid()}


def test_warm_up_leaves_out_the_first_calls_at_each_place(tmp_path: Path) -> None:
    made = opened(tmp_path, warmup=3)
    for number in range(5):
        made.add(made.tally("here", ABOUT), float(number))
    made.add(made.tally("there", ABOUT), 9.0)
    (process,) = read_processes(tmp_path)
    assert [(slot.count, slot.first_s) for slot in process.slots] == [(2, 3.0), (0, 0.0)]


def test_places_and_marks_without_end_take_bounded_room_and_every_count_is_kept(tmp_path: Path) -> None:
    made = opened(tmp_path)
    places = counters.SLOTS + 500
    for place in range(places):
        made.add(made.tally(place, ABOUT), 1.0, mark=True)
    assert len(made._tallies) < counters.SLOTS
    assert sum(file.stat().st_size for file in tmp_path.glob("*.counts")) == counters.SLOT.size * counters.SLOTS
    (process,) = read_processes(tmp_path)
    assert sum(slot.count for slot in process.slots) == places
    assert process.slots[-1].about["kind"] == "others"
    assert len(process.timeline) <= counters.MARKS


def test_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom hostlint.runtime_checks.confirm.counters import Counters\n"
        "made = Counters(Path(sys.argv[1]))\nmade.open({'pid': os.getpid()})\n"
        "for number in range(1000):\n    made.add(made.tally('here', {'kind': 'read'}), float(number))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    (process,) = read_processes(tmp_path)
    assert [(slot.count, slot.last_s) for slot in process.slots] == [(1000, 999.0)]


def test_threads_that_count_at_once_lose_nothing(tmp_path: Path) -> None:
    made = opened(tmp_path)

    def count(name: str) -> None:
        for _ in range(2000):
            made.add(made.tally(("here", name), {**ABOUT, "thread": name}), 1.0)

    threads = [threading.Thread(target=count, args=(str(number),)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (process,) = read_processes(tmp_path)
    assert {str(slot.about["thread"]): slot.count for slot in process.slots} == {str(number): 2000 for number in range(16)}


def test_a_forked_child_counts_for_itself(tmp_path: Path) -> None:
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom hostlint.runtime_checks.confirm.counters import Counters\n"
        "made = Counters(Path(sys.argv[1]))\nmade.open({'who': 'parent'})\nmade.add(made.tally('here', {'kind': 'read'}), 1.0)\n"
        "child = os.fork()\n"
        "if child == 0:\n    made.open({'who': 'child'})\n    made.add(made.tally('here', {'kind': 'read'}), 2.0)\n    os._exit(0)\n"
        "os.waitpid(child, 0)\nmade.add(made.tally('here', {'kind': 'read'}), 3.0)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    found = {str(process.about["who"]): [slot.count for slot in process.slots] for process in read_processes(tmp_path)}
    assert found == {"parent": [2], "child": [1]}


def test_a_line_that_was_not_finished_is_left_out(tmp_path: Path) -> None:
    made = opened(tmp_path)
    made.add(made.tally("here", ABOUT), 1.0)
    (texts,) = tmp_path.glob("*.texts")
    with texts.open("ab") as stream:
        stream.write(b'{"slot": 1, "kind": "re')
    (process,) = read_processes(tmp_path)
    assert [slot.count for slot in process.slots] == [1]


def test_a_plan_comes_back_as_it_was(tmp_path: Path) -> None:
    plan = Plan("simulated", 2, ("/p/a.py",), {"/p/a.py": [3, 4]}, {"/p/a.py": [(7, 6, 6)]}, {"/p/a.py": [(3, 4)]})
    plan.write(tmp_path)
    assert Plan.read(tmp_path) == plan


def test_counting_costs_no_more_as_the_counts_grow(tmp_path: Path) -> None:
    """Ten times the events write to the same slot: the files do not grow."""
    made = opened(tmp_path)
    sizes = []
    for events in (1000, 10_000):
        for _ in range(events):
            made.add(made.tally("here", ABOUT), time.perf_counter())
        sizes.append(sum(file.stat().st_size for file in tmp_path.iterdir()))
    assert sizes[0] == sizes[1]
