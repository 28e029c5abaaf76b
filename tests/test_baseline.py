"""Known findings stay known through edits elsewhere, and no others do."""
from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hostlint.baseline import dump, load, subtract
from hostlint.errors import ConfigError
from hostlint.fingerprint import Fingerprints, normalised
from hostlint.model import Confidence, Finding, Heat, HeatLevel, Severity, Span
from hostlint.sources import Sources


def finding(line: int, statement: tuple[int, int], code: str = "HL101", function: str = "f") -> Finding:
    span, heat = Span(line, 1, line, 2), Heat(HeatLevel.LOOP)
    return Finding(code, "x", "pkg/a.py", span, "", Severity.WARNING, Confidence.CERTAIN, function, heat, "", None, statement)


def fingerprints(root: Path, text: str) -> Fingerprints:
    (root / "pkg").mkdir(exist_ok=True)
    (root / "pkg" / "a.py").write_text(text, encoding="utf-8")
    return Fingerprints(root, Sources(root))


def test_a_statement_is_known_again_wherever_it_moves_and_however_it_is_laid_out(tmp_path: Path) -> None:
    before = fingerprints(tmp_path, "x = f(a.item(), 'b  c')\n").of(finding(1, (1, 1)))
    after = fingerprints(tmp_path, "import os\n\n\nx = f(  # why\n    a.item(),\n    'b  c')\n").of(finding(5, (4, 6)))
    assert before == after
    assert fingerprints(tmp_path, "x = f(a.item(), 'b c')\n").of(finding(1, (1, 1))) != before
    assert fingerprints(tmp_path, "x = f(b.item(), 'b  c')\n").of(finding(1, (1, 1))) != before


def test_rule_function_and_file_are_part_of_it(tmp_path: Path) -> None:
    make = fingerprints(tmp_path, "x\n")
    base = make.of(finding(1, (1, 1)))
    assert base.path == "pkg/a.py"
    assert make.of(finding(1, (1, 1), code="HL102")) != base
    assert make.of(finding(1, (1, 1), function="g")) != base


def test_paths_are_the_projects_wherever_one_stands(tmp_path: Path) -> None:
    make = fingerprints(tmp_path, "x\n")
    inside = Fingerprints(tmp_path, Sources(tmp_path / "pkg"))
    found = finding(1, (1, 1))
    moved = Finding(**{name: getattr(found, name) for name in Finding.__slots__} | {"path": "a.py"})
    assert inside.of(moved) == make.of(found)


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("a = 1 # x", "a=1"),
        ("a = '# x'", "a='# x'"),
        ('a = "it\'s # x" # y', 'a="it\'s # x"'),
        ('a = """x\n  # y"""', 'a="""x\n  # y"""'),
        ("a = 'x\\'  # y' + b", "a='x\\'  # y'+b"),
    ],
)
def test_normalised(source: str, left: str) -> None:
    assert normalised(source) == left


def test_a_count_lets_that_many_through(tmp_path: Path) -> None:
    make = fingerprints(tmp_path, "x\nx\nx\n")
    three = [finding(line, (line, line)) for line in (1, 2, 3)]
    known = Counter({make.of(three[0]): 2})
    new, old = subtract(three, known, make)
    assert [found.span.line for found in old] == [1, 2]
    assert [found.span.line for found in new] == [3]
    assert known == Counter({make.of(three[0]): 2})


def test_the_file_is_sorted_lines_and_reads_back(tmp_path: Path) -> None:
    make = fingerprints(tmp_path, "x\ny\n")
    known = {make.of(finding(2, (2, 2), code="HL201")): 1, make.of(finding(1, (1, 1))): 3}
    text = dump(known)
    assert text == dump(dict(reversed(known.items())))
    assert [line[:16] for line in text.splitlines()] == ['{"code": "HL101"', '{"code": "HL201"']
    (tmp_path / "known.jsonl").write_text(text, encoding="utf-8")
    assert load(tmp_path / "known.jsonl") == Counter(known)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", ":1: not a line of JSON"),
        ("\n[]", ":2: an entry has"),
        ('{"code": "HL101", "path": "a", "function": "f"}', "statement"),
        ('{"code": "HL101", "path": "a", "function": "f", "statement": "s", "count": 0}', "`count` must be"),
    ],
)
def test_a_broken_baseline(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "known.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "known.jsonl")
    assert words in str(caught.value)


def test_no_baseline_at_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load(tmp_path / "known.jsonl")
