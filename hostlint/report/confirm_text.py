"""What a run showed, for a terminal: verdicts worst first, what no finding explains, and the sentences that say where one stands."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hostlint.confirm.standing import Standing, Standings
from hostlint.report.confirm_html_steps import Steps
from hostlint.report.confirm_words import amount, command, ending, machine, milliseconds, place, plural, short
from hostlint.report.style import GUTTER, Line, cells, write

if TYPE_CHECKING:
    from hostlint.confirm.record import Event, Record

_STYLES = {"confirmed": "bold red", "redone": "bold yellow", "no-wait": "green"}
_SHOWN = ("confirmed", "redone", "redundant", "no-wait")
_NUMBERS = frozenset({"per step", "count", "blocked"})
LONG, SHORT = 40, 5  # rows that are shown of what matters, and of what matters less


def render(record: Record, coloured: bool) -> str:
    return write(_lines(record), coloured)


def _lines(record: Record) -> Iterator[Line]:
    yield [(f"python {command(record.program)}", "bold"), (f"  ({', '.join(machine(record))})", "")]
    for problem in problems(record):
        yield [(problem, "bold red")]
    yield []
    yield from _findings([one for one in record.findings if one["confirmed"]["verdict"] in _SHOWN])
    yield from _events("No finding explains (a hole in the rules, or a heat that the scan does not see):", record.unpredicted, record, LONG)
    yield from _events("Outside the steps:", record.setup, record, SHORT)
    yield from _events("Inside code that was not scanned:", record.library, record, SHORT)
    for number, sentence in enumerate(conclusions(record)):
        yield [(sentence, "bold" if number == 0 else "")]


def problems(record: Record) -> Iterator[str]:
    """What a reader has to know before anything else."""
    if ending(record):
        yield ending(record)
    for process in record.processes:
        if process.failed:
            yield f"Process {process.pid} was not recorded: {process.failed}"
    if not any(process.torch or process.failed for process in record.processes):
        yield "The program did not import torch: nothing was recorded."


def _findings(findings: Sequence[dict[str, Any]]) -> Iterator[Line]:
    if not findings:
        return
    yield from _table([_row(one) for one in findings[:LONG]])
    if len(findings) > LONG:
        yield [(f"and {len(findings) - LONG} more (--html FILE shows all)", GUTTER)]
    yield []


def _row(finding: dict[str, Any]) -> dict[str, str]:
    """By column; what is not known is empty."""
    confirmed = finding["confirmed"]
    function = f" in {finding['function']}" if finding["function"] else ""
    return {
        "verdict": confirmed["verdict"],
        "per step": amount(confirmed["per_step"]) if confirmed["count"] else "",
        "count": f"{confirmed['count']:,}" if confirmed["count"] else "",
        "blocked": "" if confirmed["blocked_ms"] is None else milliseconds(confirmed["blocked_ms"]),
        "place": f"{finding['path']}:{finding['line']}{function}{_ranks(confirmed['ranks'])}",
        "finding": f"{finding['code']} {finding['name']}",
    }


def _ranks(counts: dict[str, int] | None) -> str:
    """Which rank waits, where they differ."""
    if not counts or len(set(counts.values())) == 1:
        return ""
    return f" ({', '.join(f'rank {rank}: {count}' for rank, count in counts.items())})"


def _table(rows: Sequence[dict[str, str]]) -> Iterator[Line]:
    """Columns as wide as what is in them, numbers to the right; a column in which nothing stands is left out."""
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    widths = {name: max(map(cells, (name, *(row[name] for row in rows)))) for name in names}
    yield [(f"{_padded(name, name, widths)}  " if name != names[-1] else name, GUTTER) for name in names]
    for row in rows:
        styles = {"verdict": _STYLES.get(row["verdict"], "")}
        line = [(_padded(name, row[name], widths), styles.get(name, "")) for name in names]
        yield [piece for padded in line[:-1] for piece in (padded, ("  ", ""))] + [(line[-1][0].rstrip(), "")]


def _padded(name: str, text: str, widths: dict[str, int]) -> str:
    blanks = " " * (widths[name] - cells(text))
    return f"{blanks}{text}" if name in _NUMBERS else f"{text}{blanks}"


def _events(title: str, numbers: Sequence[int], record: Record, limit: int) -> Iterator[Line]:
    if not numbers:
        return
    yield [(title, "bold")]
    shown = [record.events[number] for number in numbers[:limit]]
    width = max(len(f"{event.count:,}") for event in shown)
    for event in shown:
        yield from _event(event, record, width)
    if len(numbers) > limit:
        yield [(f"  and {len(numbers) - limit} more", GUTTER)]
    yield []


def _event(event: Event, record: Record, width: int) -> Iterator[Line]:
    blocked = f", {milliseconds(event.blocked_s * 1e3)}" if event.blocked_s is not None else ""
    yield [(f"  {event.count:>{width},} x {place(event)}: {event.kind} {event.call}{blocked}", "")]
    margin = " " * (width + 5)
    inner = event.stack[0] if event.stack else None
    if inner is not None and inner != event.place:
        yield [(f"{margin}inside {short(inner.path)}:{inner.line} in {inner.function}", GUTTER)]
    if len(record.ranks) > 1:
        yield [(f"{margin}{', '.join(f'rank {rank}: {event.ranks.get(rank, 0)}' for rank in record.ranks)}", GUTTER)]


def conclusions(record: Record) -> Iterator[str]:
    """Sentences with the numbers, the one that matters most first."""
    if record.findings or record.unpredicted:
        yield _waits(record)
    verdicts = [one["confirmed"]["verdict"] for one in record.findings]
    counted = [(verdict, verdicts.count(verdict)) for verdict in (*_SHOWN, "not-reached", "not-measured")]
    told = ", ".join(f"{number} {verdict}" for verdict, number in counted if number)
    yield f"{plural(len(verdicts), 'finding')}: {told}." if told else "No findings."
    if record.unpredicted:
        yield f"{plural(len(record.unpredicted), 'place')} in the steps waited without a finding."
    elif record.measured:
        yield "Every wait of the steps in the scanned files has its finding, or a reason."
    collections = [event for event in record.events if event.kind == "collect" and event.place.line]
    if collections:
        spent = sum(event.blocked_s or 0.0 for event in collections)
        times = plural(sum(event.count for event in collections), "time")
        within = Steps(record).collections()
        steps = "" if within is None else f", {within or 'none'} of them in the steps"
        yield f"Cyclic garbage was collected {times}, {milliseconds(spent * 1e3)} together{steps}."


def _waits(record: Record) -> str:
    """How often the host waited where something can be done about it."""
    standings = Standings(record)
    events = [(number, record.events[number]) for number in standings.having(Standing.EXPLAINED)]
    if not events:
        return "The host waited at no finding."
    times = sum(event.waits or event.count for _, event in events)
    told = [f"The host waited {plural(times, 'time')} at {plural(len({event.place for _, event in events}), 'place')} with a finding"]
    per_step = sum((event.waits or event.count) / steps for number, event in events if (steps := _steps(record, standings, number)))
    if per_step:
        told.append(f"{amount(per_step)} a step")
    blocked = [event.blocked_s for _, event in events if event.blocked_s is not None]
    if blocked:
        told.append(f"{milliseconds(sum(blocked) * 1e3)} in all")
    return f"{', '.join(told)}."


def _steps(record: Record, standings: Standings, number: int) -> int:
    """The steps of the finding that explains an event; 0 where they are not known."""
    return next((steps for one in standings.findings(number) if (steps := record.findings[one]["confirmed"]["steps"])), 0)
