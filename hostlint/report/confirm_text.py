"""What a run showed, for a terminal: verdicts worst first, what no finding explains, and one sentence that says where one stands."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hostlint.report.style import GUTTER, Line, cells, write

if TYPE_CHECKING:
    from hostlint.confirm.record import Event, Record

_STYLES = {"confirmed": "bold red", "redone": "bold yellow", "no-wait": "green"}
_SHOWN = ("confirmed", "redone", "no-wait")
SHORT = 5  # places that are shown of what matters less


def render(record: Record, coloured: bool) -> str:
    return write(_lines(record), coloured)


def _lines(record: Record) -> Iterator[Line]:
    yield [(f"{headline(record)}", "bold")]
    yield from _problems(record)
    yield []
    rows = [_row(one) for one in record.findings if one["confirmed"]["verdict"] in _SHOWN]
    if rows:
        yield from _table((("verdict", "per step", "count", "blocked", "place", "finding"), *rows))
        yield []
    yield from _unpredicted(record)
    for sentence in conclusions(record):
        yield [(sentence, "")]


def headline(record: Record) -> str:
    """What ran, on what."""
    first = next((process for process in record.processes if process.torch), None)
    facts = [record.gpu or f"{record.device} device"]
    if first is not None:
        facts.append(f"torch {first.torch}")
    if record.steps:
        facts.append(plural(record.steps, "step"))
    if len(record.processes) > 1:
        facts.append(plural(len(record.processes), "process", "es"))
    return f"python {' '.join(record.program)} ({', '.join(facts)})"


def _problems(record: Record) -> Iterator[Line]:
    if record.exit < 0:
        yield [(f"The program was ended by signal {-record.exit}; what it did until then is below.", "bold red")]
    elif record.exit:
        yield [(f"The program ended with status {record.exit}; what it did until then is below.", "bold red")]
    for process in record.processes:
        if process.failed:
            yield [(f"Process {process.pid} was not recorded: {process.failed}", "bold red")]
    if not any(process.torch or process.failed for process in record.processes):
        yield [("The program did not import torch: nothing was recorded.", "bold red")]


def _row(finding: dict[str, Any]) -> tuple[str, ...]:
    confirmed = finding["confirmed"]
    function = f" in {finding['function']}" if finding["function"] else ""
    return (
        confirmed["verdict"],
        amount(confirmed["per_step"]),
        str(confirmed["count"] or "-"),
        milliseconds(confirmed["blocked_ms"]),
        f"{finding['path']}:{finding['line']}{function}{_ranks(confirmed['ranks'])}",
        f"{finding['code']} {finding['name']}",
    )


def _ranks(counts: dict[str, int] | None) -> str:
    """Which rank waits, where they differ."""
    if not counts or len(set(counts.values())) == 1:
        return ""
    return f" ({', '.join(f'rank {rank}: {count}' for rank, count in counts.items())})"


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[Line]:
    """Columns as wide as what is in them; numbers to the right."""
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        line: Line = []
        for index, (text, width) in enumerate(zip(row, widths, strict=True)):
            blanks = " " * (width - cells(text))
            padded = f"{blanks}{text}" if index in (1, 2, 3) else f"{text}{blanks}"
            style = GUTTER if number == 0 else _STYLES.get(text, "") if index == 0 else ""
            line.append((f"{padded}  " if index < len(row) - 1 else text, style))
        yield line


def _unpredicted(record: Record) -> Iterator[Line]:
    """What no finding explains: in the steps, outside them, and in code that was not scanned."""
    yield from _events("No finding explains (a hole in the rules, or a heat that the scan does not see):", record.unpredicted, record)
    yield from _events("Outside the steps:", record.setup, record, SHORT)
    yield from _events("Inside code that was not scanned:", record.library, record, SHORT)


def _events(title: str, numbers: Sequence[int], record: Record, limit: int | None = None) -> Iterator[Line]:
    if not numbers:
        return
    yield [(title, "bold")]
    for number in numbers[:limit]:
        yield from _event(record.events[number], record)
    if limit is not None and len(numbers) > limit:
        yield [(f"  and {len(numbers) - limit} more", "")]
    yield []


def _event(event: Event, record: Record) -> Iterator[Line]:
    blocked = f", {milliseconds(event.blocked_s * 1e3)}" if event.blocked_s is not None else ""
    yield [(f"  {event.count} x {event.kind} {event.call}{blocked} at {event.place.path}:{event.place.line} in {event.place.function}", "")]
    inner = event.stack[0] if event.stack else None
    if inner is not None and inner != event.place:
        yield [(f"      inside {inner.path}:{inner.line} in {inner.function}", GUTTER)]
    if len(record.ranks) > 1:
        yield [(f"      {', '.join(f'rank {rank}: {event.ranks.get(rank, 0)}' for rank in record.ranks)}", GUTTER)]


def conclusions(record: Record) -> Iterator[str]:
    """Sentences with the numbers."""
    collections = [event for event in record.events if event.kind == "collect"]
    if collections:
        spent = sum(event.blocked_s or 0.0 for event in collections)
        yield f"{plural(sum(event.count for event in collections), 'collection')} of cyclic garbage took {milliseconds(spent * 1e3)}."
    verdicts = [one["confirmed"]["verdict"] for one in record.findings]
    counted = [(verdict, verdicts.count(verdict)) for verdict in (*_SHOWN, "not-reached", "not-measured")]
    told = ", ".join(f"{number} {verdict}" for verdict, number in counted if number)
    yield f"{plural(len(verdicts), 'finding')}: {told}." if told else "No findings."
    if record.measured and not record.unpredicted:
        yield "Every wait of the steps in the scanned files has its finding, or a reason."


def amount(number: float | None) -> str:
    return "-" if number is None else f"{number:.2f}".rstrip("0").rstrip(".")


def milliseconds(number: float | None) -> str:
    return "-" if number is None else f"{number:.1f} ms" if number >= 1 else f"{number:.3f} ms"


def plural(number: int, word: str, ending: str = "s") -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}{ending}"
