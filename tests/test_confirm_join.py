"""The join of a record and a scan, on records made by hand."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from hostlint.confirm.join import Join, Verdict
from hostlint.confirm.record import Event, Loop, Mark, Pass, Place, Process, Record, Repeat, read, write
from hostlint.errors import UsageError
from hostlint.model import ChainLink, Confidence, Finding, Heat, HeatLevel, Severity, Span

PROCESS = Process(1, 0, "started", "", ("a.py",), "3.11.7", 0.0, torch="2.13.0", device="cuda", watching=True)
FACTS = {"HL101": frozenset({"item"}), "HL102": frozenset({"scalar-cast"}), "HL404": frozenset({"collector-off"})}


def finding(code: str, line: int, end: int | None = None) -> Finding:
    heat = Heat(HeatLevel.LOOP, (ChainLink("a.py", 2, "f"),))
    span = Span(line, 5, end or line, 20)
    return Finding(code, "a-rule", "a.py", span, "waits", Severity.WARNING, Confidence.CERTAIN, "f", heat, "")


def event(kind: str, line: int, count: int = 10, **given: object) -> Event:
    settings: dict[str, object] = {
        "call": "Tensor.item", "stack": (), "fact": None, "allowed": None, "waits": count, "blocked_s": None, "bytes": 0,
        "threads": ("MainThread",), "ranks": {"": count}, "most": count, "path": "a.py", **given,
    }  # fmt: skip
    path = settings.pop("path")
    assert isinstance(path, str)
    return Event(kind=kind, place=Place(path, line, "f"), count=count, **settings)  # type: ignore[arg-type]


def record(events: Iterable[Event] = (), **given: object) -> Record:
    settings: dict[str, object] = {
        "loops": (Loop("a.py", 3, 10),), "watched": {"a.py": tuple(range(1, 100))}, "ran": {"a.py": (7,)}, "processes": (PROCESS,), **given,
    }  # fmt: skip
    return Record(("a.py",), "cuda", 0, tuple(events), **settings)  # type: ignore[arg-type]


def join(made: Record, *findings: Finding, changed: Iterable[str] = ()) -> Join:
    loops = dict.fromkeys(findings, ("a.py", 3))
    return Join(made, findings, {"a.py": "a.py"}, loops, frozenset(changed), FACTS)


@pytest.mark.parametrize(
    ("code", "kind", "verdict"),
    [
        ("HL101", "read", Verdict.CONFIRMED),
        ("HL101", "upload", Verdict.CONFIRMED),
        ("HL201", "upload", Verdict.CONFIRMED),
        ("HL401", "flush", Verdict.CONFIRMED),
        ("HL401", "read", Verdict.NO_WAIT),
        ("HL101", "collect", Verdict.NO_WAIT),
        ("HL302", "read", Verdict.NOT_MEASURED),  # no torch call stands there
        ("HL302", "upload", Verdict.CONFIRMED),
        ("HL501", "read", Verdict.CONFIRMED),
        ("HL501", "flush", Verdict.NOT_MEASURED),  # a race is one without a wait, too
        ("HL404", "read", Verdict.NOT_MEASURED),
        ("HL901", "read", Verdict.NO_WAIT),
        ("OWN101", "read", Verdict.CONFIRMED),  # a user's own rule
        ("OWN101", "flush", Verdict.CONFIRMED),
    ],
)
def test_an_event_confirms_findings_of_its_family(code: str, kind: str, verdict: Verdict) -> None:
    found = finding(code, 7)
    assert join(record([event(kind, 7)]), found).confirmed(found).verdict is verdict


def test_an_event_inside_an_expression_of_several_lines_confirms_it() -> None:
    found = finding("HL101", 7, 9)
    made = join(record([event("read", 8, 20, waits=40, blocked_s=0.5)]), found)
    confirmed = made.confirmed(found)
    assert (confirmed.count, confirmed.steps, confirmed.per_step, confirmed.blocked_s) == (40, 10, 4.0, 0.5)
    assert made.unpredicted == ()


def test_of_two_findings_on_a_line_the_one_that_speaks_of_the_call_is_confirmed() -> None:
    item, cast = finding("HL101", 7), finding("HL102", 7)
    made = join(record([event("read", 7, fact="item")]), item, cast)
    assert (made.confirmed(item).verdict, made.confirmed(cast).verdict) == (Verdict.CONFIRMED, Verdict.NO_WAIT)
    unknown = join(record([event("read", 7, fact="tolist")]), item, cast)
    assert {unknown.confirmed(one).verdict for one in (item, cast)} == {Verdict.CONFIRMED}


def test_a_line_that_ran_without_an_event_does_not_wait_and_one_that_did_not_run_was_not_reached() -> None:
    ran, not_run = finding("HL101", 7), finding("HL101", 12)
    made = join(record(), ran, not_run)
    assert (made.confirmed(ran).verdict, made.confirmed(not_run).verdict) == (Verdict.NO_WAIT, Verdict.NOT_REACHED)


def test_repeated_calls_make_redone_work() -> None:
    found, other = finding("HL302", 7), finding("HL101", 7)
    made = join(record(repeats=(Repeat("a.py", 7, "Tensor.float", 10, 9),)), found, other)
    assert (made.confirmed(found).verdict, made.confirmed(found).count) == (Verdict.REDONE, 9)
    assert made.confirmed(other).verdict is Verdict.NO_WAIT
    once = join(record(repeats=(Repeat("a.py", 7, "Tensor.float", 10, 0),)), found)
    assert once.confirmed(found).verdict is Verdict.NO_WAIT


@pytest.mark.parametrize(
    ("given", "changed", "words"),
    [
        ({"watched": {"a.py": (8,)}}, (), "did not watch"),
        ({}, ("a.py",), "has changed"),
        ({"processes": ()}, (), "did not import torch"),
        ({"processes": (Process(1, 0, "started", "", (), "", 0.0, failed="no CUDA device"),)}, (), "no CUDA device"),
    ],
)
def test_what_could_not_be_measured_says_why(given: dict[str, object], changed: tuple[str, ...], words: str) -> None:
    found = finding("HL101", 7)
    confirmed = join(record([event("read", 7)], **given), found, changed=changed).confirmed(found)
    assert confirmed.verdict is Verdict.NOT_MEASURED
    assert words in confirmed.why


def test_without_line_events_a_place_is_not_said_to_be_unreached() -> None:
    found = finding("HL101", 12)
    blind = Process(1, 0, "started", "", (), "3.11.7", 0.0, torch="2.13.0", device="cuda", watching=False)
    assert join(record(processes=(blind,)), found).confirmed(found).verdict is Verdict.NOT_MEASURED


def test_events_without_a_finding_are_holes_unless_they_lie_outside_the_steps_are_allowed_or_are_not_ours() -> None:
    events = [
        event("read", 30),
        event("read", 31, 1),
        event("read", 32, 2),
        event("read", 33, allowed="meant"),
        event("read", 34, path="/lib/site-packages/x.py"),
        event("collect", 35),
        event("read", 37, 5, stack=(Place("/lib/y.py", 3, "g"), Place("a.py", 37, "f"))),
        event("upload", 36, 99),
    ]
    made = join(record(events))
    assert [made.record.events[number].place.line for number in made.unpredicted] == [36, 30]
    assert [made.record.events[number].place.line for number in made.setup] == [32, 31]
    assert [made.record.events[number].place.line for number in made.library] == [34, 37]


def test_what_happens_often_but_in_no_loop_of_the_program_lies_outside_the_steps() -> None:
    made = replace(join(record([event("upload", 30), event("upload", 31)])), outside_loops=frozenset({1}))
    assert (made.unpredicted, made.setup) == ((0,), (1,))


def test_steps_that_the_program_marks_count_before_the_loops() -> None:
    found = finding("HL101", 7)
    marked = Process(1, 0, "started", "", (), "", 0.0, torch="2.13.0", device="cuda", watching=True, steps=5)
    assert join(record([event("read", 7)], processes=(marked,)), found).confirmed(found).per_step == 2.0


def test_each_rank_has_its_own_steps() -> None:
    """Two ranks of five marked steps, each of which waits once in each of them: once a step, not twice."""
    ranks = [Process(1, 0, "started", rank, (), "", 0.0, torch="2.13.0", device="cuda", watching=True, steps=5) for rank in "01"]
    found = finding("HL101", 7)
    made = join(record([event("read", 7, ranks={"0": 5, "1": 5})], processes=tuple(ranks)), found)
    assert made.confirmed(found).per_step == 1.0
    assert made.record.steps == 5


def test_ranks_are_told_apart_only_in_distributed_runs() -> None:
    found = finding("HL101", 7)
    ranks = tuple(Process(n, 0, "started", str(n), (), "", 0.0, torch="2.13.0", device="cuda", watching=True) for n in range(2))
    made = join(record([event("read", 7, ranks={"1": 10})], processes=ranks), found)
    assert made.confirmed(found).ranks == {"0": 0, "1": 10}
    assert join(record([event("read", 7)]), found).confirmed(found).ranks == {}


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    marks, passes = (Mark(0, 0.5, 0.25, 1), Mark(-1, 0.75, 0.0, 0)), (Pass(0, 0.25),)
    marked = Process(1, 0, "forked", "3", ("a.py",), "3.11.7", 2.5, threads=("MainThread", "other"), marks=marks, passes=passes)
    known = {"unpredicted": (0,), "setup": (0,), "explained": ((0, 2),), "paths": {"../a.py": "a.py"}}
    made = record([event("read", 7, stack=(Place("b.py", 1, "g"),), blocked_s=0.5)], processes=(marked,), **known)
    file = tmp_path / "record.json"
    file.write_text(write(made))
    assert read(file) == made


def test_a_missing_record_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        read(tmp_path / "nowhere.json")
