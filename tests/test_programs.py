"""Whole small programs of many fields: every marked line is found, and no other line is.

`# expect: pattern` must carry a finding, `# ok: reason` is a look-alike, on `# neutral: reason` either verdict is right. Lines without a
mark must stay silent too.
"""
from __future__ import annotations

import re
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
MARK = re.compile(r"#\s*(expect|ok|neutral):\s*(.*)$")
UPLOADS = {"host-upload", "pin-in-loop"}
EITHER = {"tensor-of-tensors"}
READS = {
    "item", "scalar-cast", "truth-test", "host-copy", "tolist", "format-read", "index-read", "scalar-arg", "nonzero", "mask-index",
    "data-dep-shape", "hidden-sync", "validate-args", "explicit-sync",
}  # fmt: skip


def families(patterns: str) -> set[str]:
    """The families of which one must flag a line with these patterns; empty where they are none of HL1 and HL2."""
    right: set[str] = set()
    for pattern in (part.strip() for part in patterns.split(",")):
        assert pattern in READS | UPLOADS | EITHER, f"unknown pattern {pattern}"
        right |= {"HL1"} if pattern in READS else {"HL2"} if pattern in UPLOADS else {"HL1", "HL2"}
    return right


def marks(text: str) -> dict[int, tuple[str, str]]:
    return {number: (found[1], found[2]) for number, line in enumerate(text.splitlines(), 1) if (found := MARK.search(line))}


@pytest.mark.parametrize("path", PROGRAMS, ids=[path.stem for path in PROGRAMS])
def test_program(path: Path) -> None:
    from hostlint.scan import scan_text

    text = path.read_text(encoding="utf-8")
    findings, errors = scan_text(text, path.name)
    assert errors == []
    marked = marks(text)
    differences = [
        f"{number}: {patterns} is missing"
        for number, (verdict, patterns) in marked.items()
        if verdict == "expect" and not any(f.span.line <= number <= f.span.end_line and f.code[:3] in families(patterns) for f in findings)
    ]
    for finding in findings:
        lines = range(finding.span.line, finding.span.end_line + 1)
        if not any(marked.get(line, ("", ""))[0] in ("expect", "neutral") for line in lines):
            differences.append(f"{finding.span.line}: {finding.code} {finding.name} is not wanted ({finding.kind_evidence})")
    assert differences == []


def test_half_of_the_programs_are_clean_and_all_patterns_occur() -> None:
    verdicts = [marks(path.read_text(encoding="utf-8")).values() for path in PROGRAMS]
    clean = [not any(verdict == "expect" for verdict, _ in lines) for lines in verdicts]
    assert len(clean) >= 30
    assert sum(clean) * 2 >= len(clean)
    wanted = {part.strip() for lines in verdicts for verdict, words in lines if verdict == "expect" for part in words.split(",")}
    assert wanted >= READS | UPLOADS | EITHER
    assert all(families(words) for lines in verdicts for verdict, words in lines if verdict == "expect")
