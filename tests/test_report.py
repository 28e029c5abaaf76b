"""Every form of a report, from made-up findings: what it holds, that it is well formed, and that no text can break it."""
from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from hostlint.errors import UsageError
from hostlint.fingerprint import Fingerprints
from hostlint.model import (
    Applicability,
    ChainLink,
    Confidence,
    Edit,
    FileError,
    Finding,
    Fix,
    Heat,
    HeatLevel,
    ScanResult,
    Severity,
    Span,
    Summary,
)
from hostlint.report.base import FORMATS, TOOL, Report, render
from hostlint.rule import Rule
from hostlint.sources import Sources

TRAIN = "def train(model):\n    for x in batches:\n        total += step(model, x)\n"
STEP = "def step(model, x):\n\treturn 'ö', model(x).sum().item(\n\t)\n"
MAKE = Callable[..., Report]

LOSS = Finding(
    code="HL101",
    name="device-item",
    path="pkg/step.py",
    span=Span(2, 14, 3, 3),
    message="`item()` waits: 100%, <now>\nread it later",
    severity=Severity.WARNING,
    confidence=Confidence.LIKELY,
    function="step",
    heat=Heat(HeatLevel.CALL, (ChainLink("train.py", 2, "train"), ChainLink("train.py", 3, "train"))),
    kind_evidence="`model(x)` is the output of a module",
    fix=Fix(Applicability.REVIEW, "keep it on the device", (Edit(Span(2, 30, 3, 3), ""),)),
    statement=(2, 3),
)
UPLOAD = Finding(
    code="HL201",
    name="pageable-constructor",
    path="train.py",
    span=Span(3, 9, 3, 32),
    message="uploads; make it once",
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    function="train",
    heat=Heat(HeatLevel.LOOP),
    kind_evidence="built from a list",
    statement=(3, 3),
)
NOTE = Finding(
    code="HL901",
    name="unused-suppression",
    path="train.py",
    span=Span(1, 1, 1, 4),
    message="nothing to suppress",
    severity=Severity.NOTE,
    confidence=Confidence.CERTAIN,
    function="<module>",
    heat=Heat(HeatLevel.COLD),
    kind_evidence="",
    statement=(1, 1),
)
BROKEN = FileError("a:b, c.py", 7, "cannot be parsed: 'x' \x1b & more")
RULES = tuple(
    Rule(code, name, f"{name} in short", (), None, (), severity, f"# {name}\n")
    for code, name, severity in (
        ("HL101", "device-item", Severity.WARNING),
        ("HL102", "device-scalar-cast", Severity.WARNING),
        ("HL201", "pageable-constructor", Severity.ERROR),
        ("HL901", "unused-suppression", Severity.NOTE),
    )
)


@pytest.fixture
def make(tmp_path: Path) -> MAKE:
    def made(*findings: Finding, errors: tuple[FileError, ...] = (), coloured: bool = False, against_baseline: bool = False) -> Report:
        sources = Sources(tmp_path, {"pkg/step.py": STEP, "train.py": TRAIN})
        summary = Summary(files=2, lines=6, findings=len(findings), suppressed=1, baselined=3)
        result = ScanResult(findings, errors, summary)
        return Report(result, sources, Fingerprints(tmp_path, sources), RULES, against_baseline, coloured)

    return made


def test_full(make: MAKE) -> None:
    assert render(make(LOSS, UPLOAD), "full").splitlines() == [
        "warning[HL101 device-item]: `item()` waits: 100%, <now>",
        "read it later",
        " --> pkg/step.py:2:14 in step",
        "  |",
        "2 |     return 'ö', model(x).sum().item(",
        "  |                 ^^^^^^^^^^^^^^^^^^^^",
        "3 |     )",
        "  |     ^",
        "  = hot: runs once per step: train.py:2 in train → train.py:3 in train",
        "  = why: `model(x)` is the output of a module (likely)",
        "  = help: keep it on the device (fix to review; `hostlint rule HL101` says more)",
        "",
        "error[HL201 pageable-constructor]: uploads",
        " --> train.py:3:9 in train",
        "  |",
        "3 |         total += step(model, x)",
        "  |         ^^^^^^^^^^^^^^^^^^^^^^^",
        "  = hot: runs in a step loop",
        "  = why: built from a list (certain)",
        "  = help: make it once (`hostlint rule HL201` says more)",
        "",
        "Found 2 findings in 2 files (1 suppressed, 3 in the baseline).",
    ]


def test_full_says_what_could_not_be_read(make: MAKE) -> None:
    text = render(make(errors=(BROKEN,)), "full")
    assert "error: cannot be parsed: 'x' \ufffd & more\n" in text
    assert "  --> a:b, c.py:7\n" in text
    assert text.endswith("No findings, 1 error in 2 files (1 suppressed, 3 in the baseline).\n")


def test_full_of_a_finding_without_more_to_say(make: MAKE) -> None:
    assert render(make(NOTE), "full").splitlines()[:-2] == [
        "note[HL901 unused-suppression]: nothing to suppress",
        " --> train.py:1:1 in <module>",
        "  |",
        "1 | def train(model):",
        "  | ^^^",
        "  = help: `hostlint rule HL901` says more",
    ]


def test_concise(make: MAKE) -> None:
    assert render(make(LOSS, UPLOAD, NOTE), "concise").splitlines() == [
        "pkg/step.py:2:14: HL101 device-item `item()` waits: 100%, <now> read it later",
        "train.py:3:9: HL201 pageable-constructor uploads; make it once",
        "train.py:1:1: HL901 unused-suppression nothing to suppress",
    ]


def test_colours_are_the_only_difference(make: MAKE) -> None:
    plain, coloured = (render(make(LOSS, UPLOAD, coloured=on), "full") for on in (False, True))
    assert "\x1b[" not in plain
    assert "\x1b[1;33mwarning\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_wide_characters_are_underlined_cell_by_cell(make: MAKE, tmp_path: Path) -> None:
    report = make(UPLOAD)
    sources = Sources(tmp_path, {"train.py": '\n\nx = "漢字" + loss.item()\n'})
    wide = replace(UPLOAD, span=Span(3, 12, 3, 23))
    lines = render(replace(report, sources=sources, result=ScanResult((wide,))), "full").splitlines()
    assert lines[3] == '3 | x = "漢字" + loss.item()'
    assert lines[4] == "  |              ^^^^^^^^^^^"


def test_a_finding_over_many_lines_shows_its_first_five(make: MAKE, tmp_path: Path) -> None:
    sources = Sources(tmp_path, {"train.py": "f(\n" + "".join(f"    a{number},\n" for number in range(2, 12)) + "\n)\n"})
    tall = replace(UPLOAD, span=Span(1, 1, 13, 2))
    lines = render(replace(make(), sources=sources, result=ScanResult((tall,))), "full").splitlines()
    assert [line.split("|")[0].strip() for line in lines[2:14]] == ["", "1", "", "2", "", "3", "", "4", "", "5", "", "..."]
    assert lines[4:7] == ["   | ^^", " 2 |     a2,", "   |     ^^^"]


def test_a_very_long_line_is_cut_around_the_finding(make: MAKE, tmp_path: Path) -> None:
    sources = Sources(tmp_path, {"train.py": f"\n\n{'a' * 500}loss.item(){'b' * 500}\n"})
    long = replace(UPLOAD, span=Span(3, 501, 3, 512))
    lines = render(replace(make(), sources=sources, result=ScanResult((long,))), "full").splitlines()
    assert "loss.item()" in lines[3]
    assert len(lines[3]) < 180
    assert lines[4].index("^") == lines[3].index("loss")
    assert lines[4].count("^") == len("loss.item()")


def test_json_is_version_1_of_the_contract(make: MAKE) -> None:
    report = json.loads(render(make(LOSS, errors=(BROKEN,)), "json"))
    assert report == {
        "version": 1,
        "tool": TOOL,
        "findings": [
            {
                "code": "HL101",
                "name": "device-item",
                "path": "pkg/step.py",
                "line": 2,
                "column": 14,
                "end_line": 3,
                "end_column": 3,
                "message": LOSS.message,
                "severity": "warning",
                "confidence": "likely",
                "function": "step",
                "heat": {
                    "level": "call",
                    "chain": [{"path": "train.py", "line": 2, "function": "train"}, {"path": "train.py", "line": 3, "function": "train"}],
                },
                "kind_evidence": LOSS.kind_evidence,
                "fix": {
                    "applicability": "review",
                    "message": "keep it on the device",
                    "edits": [{"line": 2, "column": 30, "end_line": 3, "end_column": 3, "text": ""}],
                },
                "confirmed": None,
            }
        ],
        "unpredicted": [],
        "errors": [{"path": "a:b, c.py", "line": 7, "message": BROKEN.message}],
        "summary": {"files": 2, "lines": 6, "findings": 1, "suppressed": 1, "baselined": 3},
    }


def test_json_lines_are_the_same_objects(make: MAKE) -> None:
    report = make(LOSS, UPLOAD, errors=(BROKEN,))
    whole = json.loads(render(report, "json"))
    assert [json.loads(line) for line in render(report, "json-lines").splitlines()] == [*whole["findings"], {"error": whole["errors"][0]}]


def test_github(make: MAKE) -> None:
    assert render(make(LOSS, NOTE, errors=(BROKEN,)), "github").splitlines() == [
        (
            "::warning title=hostlint (HL101 device-item),file=pkg/step.py,line=2,endLine=3,col=14,endColumn=3"
            "::pkg/step.py:2:14: HL101 `item()` waits: 100%25, <now>%0Aread it later"
        ),
        (
            "::notice title=hostlint (HL901 unused-suppression),file=train.py,line=1,endLine=1,col=1,endColumn=4"
            "::train.py:1:1: HL901 nothing to suppress"
        ),
        "::error title=hostlint,file=a%3Ab%2C c.py,line=7::a:b, c.py:7: cannot be parsed: 'x' \x1b & more",
    ]


GITLAB = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "minLength": 1},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": "^[^/]"},
                    "lines": {"type": "object", "required": ["begin"], "properties": {"begin": {"type": "integer", "minimum": 1}}},
                },
            },
        },
    },
}


def test_gitlab(make: MAKE) -> None:
    issues = json.loads(render(make(LOSS, LOSS, UPLOAD, NOTE, errors=(BROKEN,)), "gitlab"))
    jsonschema.validate(issues, GITLAB)
    assert [(issue["check_name"], issue["severity"]) for issue in issues] == [
        ("HL101", "major"),
        ("HL101", "major"),
        ("HL201", "critical"),
        ("HL901", "info"),
        ("input-error", "blocker"),
    ]
    assert issues[0]["location"] == {"path": "pkg/step.py", "lines": {"begin": 2, "end": 3}}
    assert len({issue["fingerprint"] for issue in issues}) == 5


def test_junit(make: MAKE) -> None:
    suites = ET.fromstring(render(make(LOSS, UPLOAD, errors=(BROKEN,)), "junit").encode())  # noqa: S314  our own text
    (suite,) = suites
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "2", "1")
    cases = list(suite)
    assert [case.get("name") for case in cases][:2] == [
        "HL101 device-item at pkg/step.py:2:14",
        "HL201 pageable-constructor at train.py:3:9",
    ]
    failure = cases[0].find("failure")
    assert failure is not None
    assert failure.get("type") == "warning"
    assert "<now>" in (failure.text or "")
    error = cases[2].find("error")
    assert error is not None
    assert error.get("message") == "cannot be parsed: 'x' \ufffd & more"


def test_junit_has_a_passed_case_only_where_there_is_nothing(make: MAKE) -> None:
    suites = ET.fromstring(render(make(LOSS), "junit").encode())  # noqa: S314  our own text
    assert [[child.tag for child in case] for case in suites[0]] == [["failure"]]


def test_junit_of_nothing_is_a_passed_case(make: MAKE) -> None:
    suites = ET.fromstring(render(make(), "junit").encode())  # noqa: S314  our own text
    assert suites.get("tests") == "1"
    assert [len(case) for case in suites[0]] == [0]


@pytest.fixture(scope="session")
def sarif_schema() -> object:
    """The required parts of SARIF 2.1.0 for what hostlint writes; every object is closed, so a misspelt property shows."""
    return json.loads((Path(__file__).parent / "sarif_subset.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("findings", [(), (LOSS,), (LOSS, UPLOAD, NOTE)])
def test_sarif_is_valid(make: MAKE, sarif_schema: dict[str, object], findings: tuple[Finding, ...]) -> None:
    document = json.loads(render(make(*findings, errors=(BROKEN,), against_baseline=True), "sarif"))
    jsonschema.validate(document, sarif_schema)


def test_sarif(make: MAKE) -> None:
    document = json.loads(render(make(LOSS, LOSS, UPLOAD, errors=(BROKEN,)), "sarif"))
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["HL101", "HL201"]
    assert rules[0]["help"]["markdown"] == "# device-item\n"
    first, second, upload = run["results"]
    assert (first["ruleId"], first["level"], upload["ruleIndex"], upload["level"]) == ("HL101", "warning", 1, "error")
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "pkg/step.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 2, "startColumn": 14, "endLine": 3, "endColumn": 3}
    steps = first["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["location"]["physicalLocation"]["region"]["startLine"] for step in steps] == [2, 3, 2]
    assert first["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"] == {"text": ""}
    assert first["partialFingerprints"] != second["partialFingerprints"]
    assert "baselineState" not in first
    assert "codeFlows" not in upload
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    notification = invocation["toolExecutionNotifications"][0]
    assert notification["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%3Ab%2C%20c.py"


def test_sarif_against_a_baseline_says_that_they_are_new(make: MAKE) -> None:
    document = json.loads(render(make(LOSS, against_baseline=True), "sarif"))
    assert [result["baselineState"] for result in document["runs"][0]["results"]] == ["new"]


def test_statistics(make: MAKE) -> None:
    report = make(LOSS, UPLOAD, UPLOAD, errors=(BROKEN,))
    assert render(report, "full", statistics=True).splitlines() == [
        "2  HL201  pageable-constructor",
        "1  HL101  device-item",
        "1 file could not be read",
    ]
    assert json.loads(render(report, "json", statistics=True)) == [
        {"code": "HL201", "name": "pageable-constructor", "count": 2},
        {"code": "HL101", "name": "device-item", "count": 1},
    ]
    with pytest.raises(UsageError, match="--statistics"):
        render(report, "sarif", statistics=True)


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_result_gives_the_same_bytes(make: MAKE, form: str) -> None:
    first, second = (render(make(LOSS, UPLOAD, NOTE, errors=(BROKEN,)), form) for _ in range(2))
    assert first == second
    assert first.endswith("\n")
