"""The page's tables: the findings with their verdicts and source, and the events that no shown finding explains."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hostlint.report.confirm_html_elements import Markup, join, tag
from hostlint.report.confirm_html_pages import inline
from hostlint.report.confirm_words import amount, milliseconds, place, plural, short

if TYPE_CHECKING:
    from hostlint.confirm.record import Event, Place, Record
    from hostlint.report.confirm_html_source import Code

MOST_ROWS = 300  # of a table
MOST_FRAMES = 12  # of a stack
VERDICTS = {  # the worst first, with what they mean
    "confirmed": "it waited",
    "redone": "it did the same work again",
    "redundant": "it waited, but for nothing that was not due anyway",
    "no-wait": "it ran and did not wait",
    "not-reached": "it did not run",
    "not-measured": "this run cannot tell",
}


def findings_table(record: Record, code: Code, timed: bool, pages: Sequence[str]) -> Markup:
    """One body a finding, so that a table that is sorted keeps what belongs together; `pages` are the codes whose rules' page is there."""
    heads = [("verdict", "text"), ("per step", "number"), ("count", "number"), ("blocked", "number"), ("place", "text"), ("rule", "text")]
    chosen = [head for head in heads if timed or head[0] != "blocked"]
    bodies = [_finding(number, one, code, timed, pages) for number, one in enumerate(record.findings[:MOST_ROWS])]
    return _table("findings", chosen, bodies, len(record.findings))


def events_table(name: str, numbers: Sequence[int], record: Record, code: Code, timed: bool) -> Markup:
    heads = [("kind", "text"), ("call", "text"), ("count", "number"), ("blocked", "number"), ("place", "text")]
    chosen = [head for head in heads if timed or head[0] != "blocked"]
    bodies = [_event(number, record, code, timed) for number in numbers[:MOST_ROWS]]
    return _table(name, chosen, bodies, len(numbers))


def _table(name: str, heads: Sequence[tuple[str, str]], bodies: Sequence[Markup], many: int) -> Markup:
    cells = [tag("th", tag("button", title, type="button"), scope="col", class_=kind) for title, kind in heads]
    table = tag("table", tag("thead", tag("tr", *cells)), *bodies, id=name)
    more = tag("p", f"{many - len(bodies):,} more are in the record.", class_="note") if many > len(bodies) else ""
    return join([tag("div", table, class_="scroll"), more])


def _finding(number: int, finding: dict[str, Any], code: Code, timed: bool, pages: Sequence[str]) -> Markup:
    confirmed = finding["confirmed"]
    verdict = confirmed["verdict"]
    order = list(VERDICTS).index(verdict) if verdict in VERDICTS else len(VERDICTS)
    blocked = confirmed["blocked_ms"]
    cells = [
        tag("td", tag("span", verdict, class_=f"verdict {verdict}", title=VERDICTS.get(verdict)), data_key=order),
        _number("per step", confirmed["per_step"], amount(confirmed["per_step"] or None)),
        _number("count", confirmed["count"], f"{confirmed['count']:,}" if confirmed["count"] else "-"),
        _number("blocked", blocked, milliseconds(blocked)) if timed else "",
        tag("td", tag("b", f"{finding['path']}:{finding['line']}"), _function(finding["function"]), data_key=_sortable(finding)),
        tag("td", _rule(finding, pages), data_key=finding["code"]),
    ]
    detail = tag("td", _details(finding, code), colspan=sum(bool(cell) for cell in cells))
    return tag("tbody", tag("tr", *cells), tag("tr", detail, class_="detail"), id=f"f{number}")


def _details(finding: dict[str, Any], code: Code) -> Markup:
    """The finding's line, which opens to what there is to say."""
    what, _, instead = finding["message"].partition("; ")
    source = code.finding(finding)
    shown = (tag("summary", source[0]), tag("p", inline(what), class_="message"), source[1]) if source else (tag("summary", inline(what)),)
    return tag("details", *shown, tag("dl", *(part for fact in _facts(finding, instead) for part in fact)))


def _facts(finding: dict[str, Any], instead: str) -> Iterator[tuple[Markup, Markup]]:
    confirmed, fix = finding["confirmed"], finding["fix"]
    if confirmed["why"]:
        yield tag("dt", "not measured"), tag("dd", confirmed["why"])
    if confirmed["ranks"]:
        yield tag("dt", "ranks"), tag("dd", ", ".join(f"rank {rank}: {count:,}" for rank, count in confirmed["ranks"].items()))
    if fix is not None:
        yield tag("dt", "fix"), tag("dd", inline(f"{fix['message']} ({fix['applicability']})"))
    elif instead:
        yield tag("dt", "instead"), tag("dd", inline(instead))
    if finding["kind_evidence"]:
        yield tag("dt", "why"), tag("dd", inline(f"{finding['kind_evidence']} ({finding['confidence']})"))
    chain = [f"{link['path']}:{link['line']} in {link['function']}" for link in finding["heat"]["chain"]]
    yield tag("dt", "heat"), tag("dd", " → ".join([finding["heat"]["level"], *chain]))


def _rule(finding: dict[str, Any], pages: Sequence[str]) -> Markup:
    words = f"{finding['code']} {finding['name']}"
    return tag("a", words, href=f"#rule-{finding['code']}") if finding["code"] in pages else tag("span", words)


def _event(number: int, record: Record, code: Code, timed: bool) -> Markup:
    event = record.events[number]
    blocked = None if event.blocked_s is None else event.blocked_s * 1e3
    key = f"{event.place.path}:{event.place.line:09}"
    cells = [
        tag("td", event.kind, data_key=event.kind),
        tag("td", tag("code", event.call), data_key=event.call),
        _number("count", event.count, f"{event.count:,}"),
        _number("blocked", blocked, milliseconds(blocked)) if timed else "",
        tag("td", tag("b", place(event).partition(" in ")[0]), _function(event.place.function if event.place.line else ""), data_key=key),
    ]
    detail = tag("td", _around(event, record, code), colspan=sum(bool(cell) for cell in cells))
    return tag("tbody", tag("tr", *cells), tag("tr", detail, class_="detail"), id=f"e{number}")


def _around(event: Event, record: Record, code: Code) -> Markup:
    """The event's line, which opens to the lines around it and the way to the call; nothing where there is nothing to say."""
    line, block = code.place(event.place.path, event.place.line) or (None, Markup(""))
    notes = "; ".join(_notes(event, record))
    frames = [tag("li", _frame(frame)) for frame in event.stack[:MOST_FRAMES]]
    if len(event.stack) > MOST_FRAMES:
        frames.append(tag("li", f"and {len(event.stack) - MOST_FRAMES} more"))
    if not (line or frames or notes):
        return Markup("")
    way = [tag("p", "The first time, from the innermost frame outwards:", class_="note"), tag("ol", *frames)] if frames else []
    said = tag("p", notes, class_="message") if notes else ""
    return tag("details", tag("summary", line or _innermost(event)), said, block, *way)


def _innermost(event: Event) -> Markup:
    return tag("span", f"inside {_frame(event.stack[0])}" if event.stack else "more", class_="function")


def _notes(event: Event, record: Record) -> Iterator[str]:
    if event.allowed is not None:
        yield f"allowed: {event.allowed}"
    if len(record.ranks) > 1:
        yield ", ".join(f"rank {rank}: {event.ranks.get(rank, 0):,}" for rank in record.ranks)
    if len(event.threads) > 1:
        yield plural(len(event.threads), "thread")
    if event.bytes:
        yield f"{event.bytes:,} bytes"


def _frame(frame: Place) -> str:
    return f"{short(frame.path)}:{frame.line} in {frame.function}"


def _function(name: str) -> Markup:
    return tag("span", f" in {name}", class_="function") if name else Markup("")


def _number(label: str, key: float | None, words: str) -> Markup:
    """`label` stands before it where the page is too narrow for columns."""
    return tag("td", words, class_="number", data_key=-1 if key is None else key, data_label=None if words == "-" else label)


def _sortable(finding: dict[str, Any]) -> str:
    return f"{finding['path']}:{finding['line']:09}"
