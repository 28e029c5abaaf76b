"""Look-alikes with the fault that stands beside them: in each program the marked lines are found, and no other line is.

`# expect: HL101` must carry a finding of that rule at the default heat; `# ok: reason` and lines without a mark must be silent.
"""
from __future__ import annotations

import re
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parent / "neighbours").glob("*.py"))
EXPECTED = re.compile(r"#\s*expect:\s*(HL\d+)$")


@pytest.mark.parametrize("path", PROGRAMS, ids=[path.stem for path in PROGRAMS])
def test_only_the_fault_is_found(path: Path) -> None:
    from hostlint.model import HeatLevel
    from hostlint.scan import scan_text

    text = path.read_text(encoding="utf-8")
    findings, errors = scan_text(text, path.name)
    assert errors == []
    found = {(f.span.line, f.code): f.kind_evidence for f in findings if f.heat.level >= HeatLevel.CALL}
    wanted = {(number, mark[1]) for number, line in enumerate(text.splitlines(), 1) if (mark := EXPECTED.search(line))}
    assert wanted
    assert found.keys() - wanted == set(), found
    assert wanted - found.keys() == set()
