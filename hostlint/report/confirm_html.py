"""What a run showed, as one page that needs nothing else: a step as a picture, the findings with their verdicts, what none explains."""
from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from hostlint.confirm.standing import Standing, Standings
from hostlint.report.base import TOOL
from hostlint.report.confirm_html_elements import Markup, document, raw, tag
from hostlint.report.confirm_html_pages import page, rules_of
from hostlint.report.confirm_html_picture import Pictures
from hostlint.report.confirm_html_rows import MOST_ROWS, events_table, findings_table
from hostlint.report.confirm_html_source import Code
from hostlint.report.confirm_html_steps import Steps, is_timed
from hostlint.report.confirm_text import conclusions, problems
from hostlint.report.confirm_words import command, machine, plural

if TYPE_CHECKING:
    from hostlint.confirm.record import Process, Record

_FOLDER = Path(__file__).parent / "page"
_SECTIONS = (  # what else happened, the most telling first: title, what it means, which events, whether it begins open
    (Standing.HIDDEN, "Known, not shown", "Their findings are suppressed, or too cool or too unsure for this report.", False),
    (Standing.SETUP, "Outside the steps", "Once a process, or far more seldom than steps.", False),
    (Standing.ALLOWED, "Allowed", "The program says why: an allow() stands around them.", False),
    (Standing.LIBRARY, "Inside code that was not scanned", "Libraries, mostly. --scan PATH takes a folder in.", False),
    (Standing.COLLECTION, "Collections of garbage", "Python's cyclic collector held the host there.", False),
)


def render(record: Record, coloured: bool) -> str:
    style, script = ((_FOLDER / name).read_text(encoding="utf-8") for name in ("confirm.css", "confirm.js"))
    title = f"hostlint confirm: {command(record.program)}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        raw("style", style),
    )
    return document(tag("html", head, tag("body", *_body(record), raw("script", script)), lang="en"))


def _policy(script: str) -> str:
    """Nothing is loaded, and no script but the page's own runs, whatever a program's texts hold."""
    seal = b64encode(sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{seal}'; base-uri 'none'; form-action 'none'"


def _body(record: Record) -> Iterator[Markup]:
    standings, timed, code = Standings(record), is_timed(record), Code(record)
    rules = rules_of(finding["code"] for finding in record.findings)
    pages = [rule.code for rule in rules]
    yield tag("header", *_header(record))
    yield tag("main", *filter(None, (
        _picture(record, standings),
        _section("Findings", "findings-title", findings_table(record, code, timed, pages)) if record.findings else "",
        _unpredicted(record, code, timed),
        *_others(record, standings, code, timed),
        _processes(record.processes),
        tag("section", tag("h2", "Rules"), *map(page, rules)) if rules else "",
    )))  # fmt: skip
    yield tag("footer", f"Made by {TOOL}. This page loads nothing.")


def _header(record: Record) -> Iterator[Markup]:
    yield tag("h1", tag("span", "hostlint confirm "), tag("code", f"python {command(record.program)}"))
    yield tag("p", " · ".join(machine(record)), class_="facts")
    for problem in problems(record):
        yield tag("p", problem, class_="problem")
    yield tag("ul", *(tag("li", sentence) for sentence in conclusions(record)), class_="conclusions")


def _section(title: str, name: str, *content: str) -> Markup:
    return tag("section", tag("h2", title, id=name), *content, aria_labelledby=name)


def _picture(record: Record, standings: Standings) -> Markup | str:
    steps = Steps(record).worth_showing()
    if not steps:
        return ""
    others = (number for standing in Standing if standing is not Standing.EXPLAINED for number in standings.having(standing)[:MOST_ROWS])
    rows = {*(f"f{number}" for number in range(min(len(record.findings), MOST_ROWS))), *(f"e{number}" for number in others)}
    return _section("A step of the host", "step-title", Pictures(record, standings, rows).draw(steps))


def _unpredicted(record: Record, code: Code, timed: bool) -> Markup | str:
    if not record.unpredicted:
        return ""
    told = tag("p", "In the steps of the scanned files: a hole in the rules, or a heat that the scan does not see.", class_="note")
    return _section("No finding explains", "unpredicted-title", told, events_table("unpredicted", record.unpredicted, record, code, timed))


def _others(record: Record, standings: Standings, code: Code, timed: bool) -> Iterator[Markup]:
    for standing, title, meaning, begins_open in _SECTIONS:
        numbers = standings.having(standing)
        if numbers:
            count = sum(record.events[number].count for number in numbers)
            summary = tag("summary", tag("h2", title), f" {plural(len(numbers), 'place')}, {plural(count, 'time')}")
            timed_here = timed or standing is Standing.COLLECTION
            table = events_table(standing.value, numbers, record, code, timed_here)
            yield tag("section", tag("details", summary, tag("p", meaning, class_="note"), table, open=begins_open))


def _processes(processes: Sequence[Process]) -> Markup:
    heads = ("process", "rank", "began", "python", "torch", "device", "steps", "what ran")
    rows = [tag("tr", *(tag("td", cell) for cell in _process(one))) for one in processes[:MOST_ROWS]]
    table = tag("table", tag("thead", tag("tr", *(tag("th", head, scope="col") for head in heads))), tag("tbody", *rows))
    summary = tag("summary", tag("h2", "Processes"), f" {plural(len(processes), 'process', 'es')}")
    return tag("section", tag("details", summary, tag("div", table, class_="scroll")))


def _process(one: Process) -> tuple[str, ...]:
    device = one.failed or " ".join(filter(None, (one.device, one.gpu)))
    steps = f"{one.steps:,}" if one.steps else ""
    return (str(one.pid), one.rank, one.how, one.python, one.torch or "not imported", device, steps, command(one.arguments))
