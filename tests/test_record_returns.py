"""A kept record comes back: `scan --record` and `fix --record`, with records made by hand."""
from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from hostlint.confirm.grade import graded, urgency
from hostlint.confirm.join import Confirmed, Verdict
from hostlint.confirm.record import Event, Loop, Place, Process, Record, write
from hostlint.fix.rounds import Fixer, Wanted
from hostlint.model import Applicability, Confidence, Edit, Finding, Fix, Heat, HeatLevel, ScanResult, Severity, Span
from hostlint.project import SourceFile
from hostlint.scan import Outcome
from hostlint.settings import Options, resolve
from hostlint.sources import Sources

Run = Callable[..., "subprocess.CompletedProcess[str]"]
TRAIN = """\
import torch


class Trainer:
    def evaluate(self, model, batches):
        for batch in batches: print(model(batch.cuda(non_blocking=True)).sum().item())

    def train(self, model, optimizer, batches):
        for batch in batches:
            loss = model(batch).mean() * torch.tensor(0.5, device="cuda")
            loss.backward()
            optimizer.step()
            print(loss.item())
            if loss.isnan():
                break
"""
READ, UPLOAD, TEST = ("HL101", 13), ("HL201", 10), ("HL103", 14)
PROCESS = Process(1, 0, "started", "", ("train.py",), "3.11.7", 0.0, torch="2.13.0", device="cuda", watching=True)


def event(line: int, kind: str = "read", call: str = "Tensor.item", path: str = "train.py") -> Event:
    place = Place(path, line, "Trainer.train")
    return Event(kind, call, place, (place,), None, None, 6, 6, 0.003, 0, ("MainThread",), {"": 6}, 6)


def record(**given: Any) -> Record:
    """Three steps, in each of which the read of line 13 waits twice; line 10 ran, line 14 did not."""
    settings: dict[str, Any] = {
        "events": (event(13), event(11, "data-dependent-size", "Tensor.nonzero"), event(6)), "loops": (Loop("train.py", 10, 3),),
        "watched": {"train.py": tuple(range(1, 16))}, "ran": {"train.py": (6, 10, 13)}, "processes": (PROCESS,),
        "digests": {"train.py": blake2b(TRAIN.encode(), digest_size=16).hexdigest()}, **given,
    }  # fmt: skip
    return Record(("train.py",), "cuda", 0, **settings)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "hostlint.toml").write_text("")
    (tmp_path / "train.py").write_text(TRAIN)
    keep(tmp_path, record())
    return tmp_path


def keep(folder: Path, made: Record) -> None:
    (folder / "run.json").write_text(write(made))


def scanned(hostlint: Run, *arguments: str, **given: Any) -> dict[str, Any]:
    done = hostlint("scan", "--no-cache", "--output-format", "json", *arguments, **given)
    read: dict[str, Any] = json.loads(done.stdout)
    return {**read, "status": done.returncode, "stderr": done.stderr}


def by_place(report: dict[str, Any]) -> dict[tuple[str, int], dict[str, Any]]:
    return {(one["code"], one["line"]): one for one in report["findings"]}


def test_findings_get_verdicts_and_severities_from_the_run(hostlint: Run, project: Path) -> None:
    plain = by_place(scanned(hostlint))
    assert {place: one["confirmed"] for place, one in plain.items()} == dict.fromkeys((READ, UPLOAD, TEST))
    assert {one["severity"] for one in plain.values()} & {"note"} == set()
    report = scanned(hostlint, "--record", "run.json")
    found = by_place(report)
    assert {place: one["confirmed"]["verdict"] for place, one in found.items()} == {
        READ: "confirmed", UPLOAD: "no-wait", TEST: "not-reached",
    }  # fmt: skip
    assert {place: one["severity"] for place, one in found.items()} == {READ: plain[READ]["severity"], UPLOAD: "note", TEST: "note"}
    told = found[READ]["confirmed"]
    assert (told["count"], told["steps"], told["per_step"], told["blocked_ms"]) == (6, 3, 2.0, 3.0)
    assert report["status"] == 1
    assert report["stderr"] == ""


def test_what_no_finding_explains_is_reported_and_what_a_cool_one_explains_is_not(hostlint: Run, project: Path) -> None:
    """The read of `evaluate` has a finding that is too cool to be shown."""
    (only,) = scanned(hostlint, "--record", "run.json")["unpredicted"]
    assert (only["path"], only["line"], only["call"], only["count"], only["blocked_ms"]) == ("train.py", 11, "Tensor.nonzero", 6, 3.0)


def test_a_run_that_reached_nothing_fails_nothing(hostlint: Run, project: Path) -> None:
    keep(project, record(events=(), ran={}))
    assert scanned(hostlint)["status"] == 1
    assert scanned(hostlint, "--record", "run.json")["status"] == 0
    assert scanned(hostlint, "--record", "run.json", "--fail-on", "note")["status"] == 1


def test_reports_for_people_tell_the_verdicts(hostlint: Run, project: Path) -> None:
    full = hostlint("scan", "--no-cache", "--record", "run.json").stdout
    assert "   = run: confirmed, 6 times, 2 a step, 3.0 ms\n" in full
    assert "   = run: not-reached, it did not run\n" in full
    assert "unpredicted: Tensor.nonzero (data-dependent-size) 6 times in the run, and no finding explains it\n --> train.py:11 in" in full
    assert full.endswith("Found 3 findings in 1 file. By the run: 1 confirmed, 1 no-wait, 1 not-reached.\n")
    concise = hostlint("scan", "--no-cache", "--record", "run.json", "--output-format", "concise").stdout.splitlines()
    assert [line.rpartition(" [")[2] for line in concise[:-1]] == [
        "no-wait, it ran and did not make the host wait]", "confirmed, 6 times, 2 a step, 3.0 ms]", "not-reached, it did not run]",
    ]  # fmt: skip
    (sarif,) = json.loads(hostlint("scan", "--no-cache", "--record", "run.json", "--output-format", "sarif").stdout)["runs"]
    assert [one["properties"]["run"].partition(",")[0] for one in sarif["results"]] == ["no-wait", "confirmed", "not-reached"]
    assert concise[-1] == "train.py:11:1: unpredicted data-dependent-size Tensor.nonzero, 6 times in the run"


def test_a_file_that_changed_since_the_run_is_not_measured(hostlint: Run, project: Path) -> None:
    (project / "train.py").write_text(f"# one line more\n{TRAIN}")
    plain, report = scanned(hostlint), scanned(hostlint, "--record", "run.json")
    assert {one["confirmed"]["verdict"] for one in report["findings"]} == {"not-measured"}
    assert [one["severity"] for one in report["findings"]] == [one["severity"] for one in plain["findings"]]
    assert report["unpredicted"] == []
    assert "changed since the run, so not measured: train.py" in report["stderr"]


def test_an_editors_text_counts_as_what_it_is(hostlint: Run, project: Path) -> None:
    arguments = ("--record", "run.json", "--stdin-filename", "train.py", "-")
    same = scanned(hostlint, *arguments, stdin=TRAIN)
    other = scanned(hostlint, *arguments, stdin=TRAIN.replace("0.5", "0.25"))
    assert [by_place(report)[READ]["confirmed"]["verdict"] for report in (same, other)] == ["confirmed", "not-measured"]


def test_a_record_of_something_else_says_so(hostlint: Run, project: Path) -> None:
    keep(project, record(events=(), watched={}, digests={"other.py": "0"}))
    report = scanned(hostlint, "--record", "run.json")
    assert "run.json is the record of a run of other files" in report["stderr"]
    assert {one["confirmed"]["verdict"] for one in report["findings"]} == {"not-measured"}


def test_paths_are_those_of_the_scan(hostlint: Run, project: Path) -> None:
    (project / "deep").mkdir()
    report = scanned(hostlint, "--record", "../run.json", "..", cwd=project / "deep")
    assert [(one["path"], one["confirmed"]["verdict"]) for one in report["findings"] if one["line"] == 13] == [("../train.py", "confirmed")]
    assert [one["path"] for one in report["unpredicted"]] == ["../train.py"]


def test_a_baseline_is_subtracted_too(hostlint: Run, project: Path) -> None:
    done = hostlint("baseline", "write", "--no-cache", "--baseline", "known")
    assert done.returncode == 0, done.stderr
    report = scanned(hostlint, "--record", "run.json", "--baseline", "known")
    assert (report["findings"], report["summary"]["baselined"], report["summary"]["findings"]) == ([], 3, 0)


@pytest.mark.parametrize(("file", "words"), [("nowhere.json", "cannot read nowhere.json"), ("train.py", "train.py is no record")])
def test_what_is_no_record_is_an_error(hostlint: Run, project: Path, file: str, words: str) -> None:
    for command in ("scan", "fix"):
        done = hostlint(command, "--no-cache", "--record", file)
        assert (done.returncode, words in done.stderr) == (2, True)
    assert (project / "train.py").read_text() == TRAIN


def test_fix_names_what_was_confirmed_first_and_remembers_it_when_lines_have_moved(hostlint: Run, project: Path) -> None:
    """The upload is mended; what is left of the file is still what the run spoke of."""
    done = hostlint("fix", "--no-cache", "--record", "run.json", "--exit-zero")
    assert "torch.full((), 0.5, device=" in (project / "train.py").read_text()
    lines = done.stdout.splitlines()
    assert [(line.split(" ")[1], line.rpartition(" [")[2]) for line in lines[:3]] == [
        ("fixed", "no-wait, it ran and did not make the host wait]"),
        ("HL101", "confirmed, 6 times, 2 a step, 3.0 ms]"),
        ("HL103", "not-reached, it did not run]"),
    ]


def finding(code: str, text: str, found: str, new: str, verdict: Verdict | None) -> Finding:
    start = text.index(found) + 1
    span = Span(1, start, 1, start + len(found))
    fix = Fix(Applicability.EXACT, f"write {new}", (Edit(span, new),))
    confirmed = None if verdict is None else Confirmed(verdict)
    return Finding(code, "a-rule", "mod.py", span, "waits", Severity.WARNING, Confidence.CERTAIN, "f", Heat(HeatLevel.LOOP), "", fix,
                   confirmed=confirmed)  # fmt: skip


@pytest.mark.parametrize(
    ("verdicts", "result"),
    [
        ((None, None), "outer(y)\n"),
        ((Verdict.NO_WAIT, Verdict.CONFIRMED), "outer(good)\n"),
        ((Verdict.NOT_REACHED, Verdict.NO_WAIT), "outer(good)\n"),
        ((Verdict.REDONE, Verdict.NOT_MEASURED), "outer(y)\n"),
    ],
)
def test_of_two_fixes_that_overlap_the_confirmed_one_goes_in(verdicts: tuple[Verdict | None, Verdict | None], result: str) -> None:
    """`bad(x)` becomes `y` or `good`: either takes the other's place away."""
    file, before = Path("/nowhere/mod.py"), "outer(bad(x))\n"

    def scan(texts: Mapping[Path, str], only: object = None) -> Outcome:
        text = texts.get(file, before)
        found = [("HL101", "bad(x)", "y", verdicts[0]), ("HL102", "bad(x)", "good", verdicts[1])]
        findings = tuple(finding(code, text, piece, new, verdict) for code, piece, new, verdict in found if piece in text)
        settings = resolve(Options(working=Path("/nowhere"), paths=(file,), isolated=True, cache=False))
        source = SourceFile("mod.py", file, True, "mod", text)
        return Outcome(ScanResult(findings), settings, Sources(Path("/nowhere"), {"mod.py": text}), (source,))

    fixed = Fixer(scan, Wanted(), before.encode()).run()
    assert [one.text for one in fixed.files] == [result]


@pytest.mark.parametrize(
    ("code", "before", "verdict", "after"),
    [
        ("HL301", Severity.NOTE, Verdict.REDONE, Severity.WARNING),
        ("HL101", Severity.ERROR, Verdict.CONFIRMED, Severity.ERROR),
        ("HL101", Severity.WARNING, Verdict.CONFIRMED, Severity.WARNING),
        ("HL101", Severity.ERROR, Verdict.NO_WAIT, Severity.NOTE),
        ("HL101", Severity.WARNING, Verdict.NOT_REACHED, Severity.NOTE),
        ("HL101", Severity.ERROR, Verdict.NOT_MEASURED, Severity.ERROR),
        ("HL501", Severity.ERROR, Verdict.NOT_REACHED, Severity.ERROR),
        ("HL501", Severity.NOTE, Verdict.CONFIRMED, Severity.WARNING),
    ],
)
def test_severities(code: str, before: Severity, verdict: Verdict, after: Severity) -> None:
    plain = replace(finding(code, "bad", "bad", "good", None), severity=before)
    given = graded(plain, Confirmed(verdict))
    assert (given.severity, given.confirmed) == (after, Confirmed(verdict))
    assert given == replace(plain, severity=after)  # a verdict is no part of what a finding is


def test_what_is_urgent_comes_first() -> None:
    order = sorted(Verdict, key=lambda one: urgency(finding("HL101", "bad", "bad", "good", one)))
    assert order[:2] == [Verdict.CONFIRMED, Verdict.REDONE]
    assert order[-1] is Verdict.NOT_REACHED
