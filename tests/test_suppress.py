"""Which findings a suppression covers, and what is said about suppressions themselves."""
from __future__ import annotations

from datetime import date
from textwrap import dedent

import pytest

from hostlint.comments import parse
from hostlint.model import Confidence, Finding, Heat, HeatLevel, Severity, Span
from hostlint.suppress import Catalogue, Outcome, apply

NAMES = {
    "HL101": "device-item",
    "HL102": "device-cast",
    "HL201": "upload-constructor",
    "HL901": "unused-suppression",
    "HL902": "suppression-without-reason",
    "HL903": "expired-suppression",
    "HL904": "malformed-comment",
}
TODAY = date(2027, 3, 1)


def expand(selector: str) -> frozenset[str]:
    found = frozenset(code for code, name in NAMES.items() if selector in ("ALL", name) or code.startswith(selector))
    if not found:
        raise ValueError(f"unknown rule {selector!r}")
    return found


RULES = Catalogue(expand, lambda code: (NAMES[code], Severity.WARNING))


def finding(code: str, line: int, statement: tuple[int, int] = (0, 0)) -> Finding:
    span = Span(line, 5, line, 9)
    heat = Heat(HeatLevel.COLD)
    return Finding(code, NAMES[code], "a.py", span, "", Severity.WARNING, Confidence.POSSIBLE, "f", heat, "", None, statement)


def run(text: str, *findings: Finding, enabled: str = "ALL", today: date = TODAY) -> Outcome:
    return apply(findings, {"a.py": parse(dedent(text).lstrip("\n"))}, expand(enabled), today, RULES)


def kept(outcome: Outcome) -> list[tuple[str, int]]:
    return sorted((found.code, found.span.line) for found in outcome.kept)


def covered(outcome: Outcome) -> list[tuple[str, int]]:
    return sorted((found.code, found.span.line) for found in outcome.suppressed)


@pytest.mark.parametrize("selector", ["device-item", "HL101", "HL1", "HL2, HL101", "ALL"])
def test_names_codes_and_families(selector: str) -> None:
    outcome = run(f"x = a.item()  # hostlint: ignore[{selector}] why\n", finding("HL101", 1), enabled="HL101")
    assert covered(outcome) == [("HL101", 1)]
    assert kept(outcome) == []


def test_any_line_of_the_statement() -> None:
    text = """
        x = f(
            a.item(),
            b.item(),  # hostlint: ignore[HL101] why
        )
        y = a.item()
    """
    outcome = run(text, finding("HL101", 2, (1, 4)), finding("HL101", 3, (1, 4)), finding("HL101", 5, (5, 5)), finding("HL201", 2, (1, 4)))
    assert covered(outcome) == [("HL101", 2), ("HL101", 3)]
    assert kept(outcome) == [("HL101", 5), ("HL201", 2)]


@pytest.mark.parametrize("line", [1, 2, 3])
def test_its_first_and_its_last_line_belong_to_a_statement(line: int) -> None:
    lines = ["x = f(", "    a.item()", ")", "y = 1", ""]
    lines[line - 1] += "  # hostlint: ignore[HL101] why"
    assert kept(run("\n".join(lines), finding("HL101", 2, (1, 3)), finding("HL201", 4, (4, 4)))) == [("HL201", 4)]


def test_alone_above_the_statement() -> None:
    text = """
        # hostlint: ignore[HL101] why
        x = f(
            a.item(),
        )
        y = a.item()
    """
    outcome = run(text, finding("HL101", 3, (2, 4)), finding("HL101", 5, (5, 5)))
    assert covered(outcome) == [("HL101", 3)]
    assert kept(outcome) == [("HL101", 5)]


def test_the_whole_file() -> None:
    outcome = run("# hostlint: ignore-file[HL1] a converter\nx\n", finding("HL101", 2), finding("HL102", 9), finding("HL201", 2))
    assert covered(outcome) == [("HL101", 2), ("HL102", 9)]
    assert kept(outcome) == [("HL201", 2)]


def test_unused() -> None:
    outcome = run("x = 1  # hostlint: ignore[HL101, HL201] why\n", finding("HL101", 1))
    (unused,) = outcome.kept
    assert (unused.code, unused.name, unused.span.line, unused.span.column) == ("HL901", "unused-suppression", 1, 8)
    assert "`HL201`" in unused.message
    assert "HL101" not in unused.message


def test_unused_is_judged_for_enabled_rules_only() -> None:
    text = "x = 1  # hostlint: ignore[HL101] why\n"
    assert kept(run(text, enabled="HL2")) == []
    assert kept(run("x = 1  # hostlint: ignore[HL1] why\n", enabled="HL101")) == []
    assert kept(run(text, enabled="HL101")) == [("HL901", 1)]


def test_without_a_reason_it_holds_and_is_reported() -> None:
    outcome = run("x = a.item()  # hostlint: ignore[HL101]\n", finding("HL101", 1))
    assert covered(outcome) == [("HL101", 1)]
    assert kept(outcome) == [("HL902", 1)]


def test_cold_wants_a_reason_too() -> None:
    assert kept(run("def f():  # hostlint: cold\n    pass\n")) == [("HL902", 1)]
    assert kept(run("def f():  # hostlint: cold at import\n    pass\n")) == []


@pytest.mark.parametrize(("today", "holds"), [(date(2027, 2, 28), True), (date(2027, 3, 1), True), (date(2027, 3, 2), False)])
def test_it_holds_until_its_date_and_the_day_is_part_of_it(today: date, holds: bool) -> None:
    outcome = run("x = a.item()  # hostlint: ignore[HL101] why until=2027-03-01\n", finding("HL101", 1), today=today)
    assert kept(outcome) == ([] if holds else [("HL101", 1), ("HL903", 1)])


def test_malformed_and_unknown() -> None:
    outcome = run("x = 1  # hostlint: ignore[HL700] why\ny = 1  # hostlint: igmore[HL101]\n")
    assert kept(outcome) == [("HL904", 1), ("HL904", 2)]
    assert "HL700" in outcome.kept[1].message or "HL700" in outcome.kept[0].message


def test_findings_about_suppressions_can_be_suppressed_by_name_only() -> None:
    named = run("# hostlint: ignore-file[HL902] we never say why\nx = a.item()  # hostlint: ignore[HL101]\n", finding("HL101", 2))
    assert covered(named) == [("HL101", 2), ("HL902", 2)]
    assert kept(named) == []
    swept = run("x = a.item()  # hostlint: ignore[ALL]\n", finding("HL101", 1))
    assert kept(swept) == [("HL902", 1)]
    unused = run("# hostlint: ignore-file[HL901] kept for other versions\nx = 1  # hostlint: ignore[HL101] why\n")
    assert (covered(unused), kept(unused)) == ([("HL901", 2)], [])


def test_no_suppression_is_its_own_excuse() -> None:
    assert kept(run("x = 1  # hostlint: ignore[HL902]\n")) == [("HL902", 1)]


ALLOW = """
    {imported}
    def f(x):
        with {call}:
            a = x.item()
            if a:
                b = float(x)
        c = x.item()
"""


@pytest.mark.parametrize(
    ("imported", "call"),
    [
        ("from hostlint.runtime_checks import allow", 'allow("why", rules=["device-item", "HL102"])'),
        ("from hostlint.runtime_checks import allow as permit", 'permit("why", ("HL1",))'),
        ("from hostlint import runtime_checks as rc", 'rc.allow("why")'),
        ("import hostlint.runtime_checks", 'hostlint.runtime_checks.allow(reason="why", rules=["HL1"]) as scope, other()'),
    ],
)
def test_allow_blocks(imported: str, call: str) -> None:
    text = ALLOW.format(imported=imported, call=call)
    findings = [finding("HL101", 4, (4, 4)), finding("HL102", 6, (6, 6)), finding("HL101", 7, (7, 7))]
    outcome = run(text, *findings)
    assert covered(outcome) == [("HL101", 4), ("HL102", 6)]
    assert kept(outcome) == [("HL101", 7)]


def test_an_allow_block_is_never_unused_for_it_may_serve_the_run() -> None:
    text = ALLOW.format(imported="from hostlint.runtime_checks import allow", call='allow("why")')
    assert kept(run(text)) == []


def test_an_allow_block_without_reason_or_with_computed_rules() -> None:
    imported = "from hostlint.runtime_checks import allow"
    (fault,) = run(ALLOW.format(imported=imported, call='é(), allow("", rules=["HL1"])')).kept
    assert (fault.code, fault.span) == ("HL902", Span(3, 15, 3, 39))
    assert kept(run(ALLOW.format(imported=imported, call="allow(WHY)"))) == []
    outcome = run(ALLOW.format(imported=imported, call='allow("why", rules=RULES)'), finding("HL101", 4, (4, 4)))
    assert kept(outcome) == [("HL101", 4), ("HL904", 3)]


def test_another_allow_is_none_of_ours() -> None:
    text = ALLOW.format(imported="from firewall import allow  # not hostlint", call='allow("why")')
    assert kept(run(text, finding("HL101", 4, (4, 4)))) == [("HL101", 4)]
