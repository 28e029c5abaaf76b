"""The terminal's report of a run, word for word, and the command that renders a record again in each of its forms."""
from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostlint.confirm.naming import as_seen
from hostlint.confirm.record import Event, Loop, Mark, Pass, Place, Process, Record, write
from hostlint.report.confirm_text import LONG, render
from hostlint.report.confirm_words import amount, command, milliseconds, seconds, short

ROOT = Path(__file__).resolve().parent.parent
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def event(line: int, count: int, kind: str = "read", call: str = "Tensor.item", **given: Any) -> Event:
    settings: dict[str, Any] = {
        "place": Place("sub/train.py", line, "train"), "stack": (), "fact": None, "allowed": None, "waits": count, "blocked_s": None,
        "bytes": 0, "threads": ("MainThread",), "ranks": {"": count}, "most": count, **given,
    }  # fmt: skip
    return Event(kind=kind, call=call, count=count, **settings)


def finding(line: int, verdict: str, count: int = 0, blocked_ms: float | None = None, **given: Any) -> dict[str, Any]:
    confirmed = {"verdict": verdict, "count": count, "steps": 4, "per_step": count / 4, "blocked_ms": blocked_ms, "why": None}
    return {
        "code": "HL101", "name": "device-item", "path": "train.py", "line": line, "column": 1, "end_line": line, "end_column": 9,
        "message": "waits", "severity": "warning", "confidence": "certain", "function": "train", "heat": {"level": "loop", "chain": []},
        "kind_evidence": "", "fix": None, "confirmed": {"ranks": None, **confirmed, **given},
    }  # fmt: skip


PROCESS = Process(7, 1, "started", "", ("/opt/bin/python3", "train.py"), "3.11.7", 0.0, torch="2.13.0", device="simulated")
INSIDE = (Place("/opt/lib/python3.11/site-packages/lib/ops.py", 8, "gather"), Place("sub/train.py", 9, "train"))


def record(**given: Any) -> Record:
    settings: dict[str, Any] = {
        "device": "simulated", "exit": 0, "processes": (PROCESS,), "paths": {"train.py": "sub/train.py"}, "digests": {"sub/train.py": ""},
        "events": (
            event(6, 1200), event(9, 8, "upload", "Tensor.to", stack=INSIDE), event(2, 1, "upload", "Tensor.cuda"),
            event(5, 3, "collect", "automatic collection", blocked_s=0.25),
            event(0, 1, "collect", "gc.collect", blocked_s=9.0, place=Place("<no Python frame>", 0, "<unknown>")),
        ),
        "findings": (finding(6, "confirmed", 1200), finding(20, "no-wait"), finding(30, "not-reached")),
        "explained": ((0,), (), (), (), ()), "unpredicted": (1,), "setup": (2,), **given,
    }  # fmt: skip
    return Record(("train.py", "--lr", "3"), **settings)


def test_a_report_in_full() -> None:
    assert render(as_seen(record()), False).splitlines() == [
        "python train.py --lr 3  (simulated device: no times, torch 2.13.0)",
        "",
        "verdict    per step  count  place                 finding",
        "confirmed       300  1,200  train.py:6 in train   HL101 device-item",
        "no-wait                     train.py:20 in train  HL101 device-item",
        "",
        "No finding explains (a hole in the rules, or a heat that the scan does not see):",
        "  8 x train.py:9 in train: upload Tensor.to",
        "      inside lib/ops.py:8 in gather",
        "",
        "Outside the steps:",
        "  1 x train.py:2 in train: upload Tensor.cuda",
        "",
        "The host waited 1,200 times at 1 place with a finding, 300 a step.",
        "3 findings: 1 confirmed, 1 no-wait, 1 not-reached.",
        "1 place in the steps waited without a finding.",
        "Cyclic garbage was collected 3 times, 250.0 ms together.",
    ]


def test_times_and_ranks_where_they_are_known() -> None:
    ranks = (replace(PROCESS, rank="0", device="cuda", gpu="NVIDIA H200"), replace(PROCESS, rank="1", pid=8, device="cuda"))
    waits = event(6, 12, blocked_s=1.5, ranks={"0": 8, "1": 4})
    found = finding(6, "confirmed", 12, 1500.0, ranks={"0": 8, "1": 4})
    made = record(device="cuda", processes=ranks, events=(waits,), findings=(found,), explained=((0,),), unpredicted=(), setup=())
    text = render(as_seen(made), False)
    assert text.splitlines()[0] == "python train.py --lr 3  (NVIDIA H200, torch 2.13.0, 2 processes)"
    assert "confirmed         3     12  1,500 ms  train.py:6 in train (rank 0: 8, rank 1: 4)  HL101 device-item" in text
    assert "The host waited 12 times at 1 place with a finding, 3 a step, 1,500 ms in all.\n" in text
    assert "Every wait of the steps in the scanned files has its finding, or a reason.\n" in text


def test_collections_in_the_steps_are_told_apart() -> None:
    """Two passes of two seconds; a collection before them, one in each, and one after them."""
    marks = (Mark(0, 2.5, 0.0, 0), *(Mark(3, start, 0.1, 0) for start in (1.0, 3.0, 5.5, 6.5)))
    looping = replace(PROCESS, threads=("MainThread",), marks=marks, passes=(Pass(0, 2.0), Pass(0, 4.0)))
    loops = (Loop("sub/train.py", 5, 2),)
    text = render(record(processes=(looping,), loops=loops), False)
    assert text.endswith("Cyclic garbage was collected 3 times, 250.0 ms together, 2 of them in the steps.\n")
    quiet = replace(looping, marks=marks[:2])
    assert "together, none of them in the steps.\n" in render(record(processes=(quiet,), loops=loops), False)


def test_a_run_that_did_not_go_well_says_so_first() -> None:
    failed = replace(PROCESS, failed="no CUDA device here", torch="")
    lines = render(record(exit=-15, processes=(failed,)), False).splitlines()
    assert lines[1:3] == [
        "The program was ended by signal 15; what it did until then is below.", "Process 7 was not recorded: no CUDA device here",
    ]  # fmt: skip
    assert "The program ended with status 3; what it did until then is below." in render(record(exit=3), False)
    assert "Every wait" not in render(record(processes=(failed,), unpredicted=()), False)


def test_long_lists_are_cut_and_say_so() -> None:
    made = record(findings=tuple(finding(line, "confirmed", 4) for line in range(1, 100)), explained=((),) * 5)
    text = render(made, False)
    assert text.count("HL101 device-item") == LONG
    assert f"and {99 - LONG} more (--html FILE shows all)" in text
    many = tuple(event(line, 1, place=Place("/x/site-packages/lib.py", line, "f")) for line in range(1, 13))
    joined = {"library": tuple(range(12)), "unpredicted": (), "setup": (), "explained": ()}
    assert "  and 7 more\n" in render(record(events=many, findings=(), **joined), False)


def test_what_a_program_is_called_cannot_move_the_cursor() -> None:
    assert "\x1b" not in render(record(findings=(finding(6, "\x1b[2J"),), events=(), explained=(), unpredicted=(), setup=()), False)


def test_words() -> None:
    assert [amount(number) for number in (None, 2.0, 0.5, 1 / 3)] == ["-", "2", "0.5", "0.33"]
    assert [milliseconds(number) for number in (None, 0.0123, 12.34, 12345.6)] == ["-", "0.012 ms", "12.3 ms", "12,346 ms"]
    times = {0.0: "0 µs", 5e-6: "5.00 µs", 1.5e-3: "1.50 ms", 0.0472: "47.2 ms", 0.5: "500 ms", 2.25: "2.25 s"}
    assert [seconds(number) for number in times] == list(times.values())
    paths = {
        "/a/lib/python3.11/site-packages/x/y.py": "x/y.py", "C:\\Lib\\site-packages\\json\\a.py": "json/a.py",
        "/usr/lib/python3/dist-packages/z.py": "z.py", "/usr/lib/python3.12/json/b.py": "json/b.py", "/home/site/c.py": "/home/site/c.py",
    }  # fmt: skip
    assert [short(path) for path in paths] == list(paths.values())
    assert command(("/opt/bin/python3.12", "/home/train.py")) == "python3.12 /home/train.py"
    assert command(("/home/train.py",)) == "/home/train.py"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    marked = replace(PROCESS, threads=("MainThread",), marks=(Mark(0, 1.0, 0.0, 0), Mark(1, 2.0, 0.0, 0)))
    (tmp_path / "run.json").write_text(write(record(processes=(marked,))))
    return tmp_path


def test_a_record_is_rendered_in_every_form(hostlint: Run, kept: Path) -> None:
    assert hostlint("report", "run.json").stdout == render(as_seen(record()), False)
    document = json.loads(hostlint("report", "run.json", "--output-format", "json").stdout)
    assert [(one["path"], one["line"], one["stack"][1]["path"]) for one in document["unpredicted"]] == [("train.py", 9, "train.py")]
    trace = json.loads(hostlint("report", "run.json", "--output-format", "trace").stdout)
    assert [one["args"]["place"] for one in trace["traceEvents"] if one["ph"] == "X"] == ["train.py:6 in train", "train.py:9 in train"]
    page = hostlint("report", "run.json", "--output-format", "html").stdout
    assert page.startswith("<!DOCTYPE html>\n<html")
    assert "<code>python train.py --lr 3</code>" in page


def test_a_page_beside_the_report(hostlint: Run, kept: Path) -> None:
    done = hostlint("report", "run.json", "--html", "page.html")
    assert done.stdout == render(as_seen(record()), False)
    assert (kept / "page.html").read_text() == hostlint("report", "run.json", "--output-format", "html").stdout
    assert hostlint("report", "run.json", "--html", "nowhere/page.html").returncode == 2


@pytest.mark.parametrize("name", ["train", "decode"])
def test_the_examples_in_docs_are_what_a_scan_finds(hostlint: Run, tmp_path: Path, name: str) -> None:
    folder = ROOT / "docs" / "confirm"
    told = re.findall(r"^confirmed .* (\w+\.py):(\d+) in \S+ +(HL\d+) ", (folder / f"{name}-simulated.txt").read_text(), re.MULTILINE)
    (tmp_path / "hostlint.toml").write_text("")
    (tmp_path / f"{name}.py").write_bytes((folder / f"{name}.py").read_bytes())
    found = json.loads(hostlint("scan", "--no-cache", "--output-format", "json").stdout)["findings"]
    assert sorted(told) == sorted((one["path"], str(one["line"]), one["code"]) for one in found)
    for file in folder.glob(f"{name}-simulated.*"):
        assert not re.search(r"site-packages|[\"' >]/(?!/)\w+/", file.read_text(encoding="utf-8")), file
    trace = json.loads((folder / f"{name}-simulated.trace.json").read_text())
    assert {one["args"]["standing"] for one in trace["traceEvents"] if one["ph"] == "X"} == {"explained", "setup", "collection"}
