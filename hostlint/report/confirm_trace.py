"""What a run showed in the Trace Event Format, which Perfetto opens: an event where the host was held, an instant where a step began.

Times are microseconds after the first process began. On the stand-in it is not known how long
a call holds the host: its events have no length.
"""
from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostlint.confirm.standing import Standings
from hostlint.report.base import TOOL
from hostlint.report.confirm_html_steps import Steps
from hostlint.report.confirm_words import command, machine, place

if TYPE_CHECKING:
    from hostlint.confirm.record import Process, Record

Object = dict[str, object]


def render(record: Record, coloured: bool) -> str:
    document = {
        "traceEvents": [*_metadata(record), *sorted(_events(record), key=_order)],
        "displayTimeUnit": "ms",
        "otherData": {"tool": TOOL, "program": f"python {command(record.program)}", "machine": ", ".join(machine(record))},
    }
    return json.dumps(document, indent=None, separators=(",", ":")) + "\n"


def _order(event: Object) -> tuple[float, float]:
    """By time; of what begins together the longer first, since it holds the other."""
    start, length = event["ts"], event.get("dur", 0.0)
    return (float(str(start)), -float(str(length)))


def _metadata(record: Record) -> Iterator[Object]:
    for pid, process in _numbered(record):
        name = " ".join(filter(None, (f"rank {process.rank}" if process.rank else "", command(process.arguments))))
        labels = process.failed or " ".join(filter(None, (process.how, process.gpu or process.device)))
        yield _named("process_name", pid, 0, {"name": name or "python"})
        yield _named("process_labels", pid, 0, {"labels": labels})
        for tid, thread in enumerate(process.threads, 1):
            yield _named("thread_name", pid, tid, {"name": thread})


def _named(name: str, pid: int, tid: int, args: Object) -> Object:
    return {"name": name, "ph": "M", "pid": pid, "tid": tid, "args": args}


def _numbered(record: Record) -> Iterator[tuple[int, Process]]:
    """Each process with a number of its own: a program that replaces itself keeps its pid, and the system gives old ones out again."""
    used: set[int] = set()
    for process in record.processes:
        number = process.pid
        while number in used:
            number += 1_000_000
        used.add(number)
        yield number, process


def _events(record: Record) -> Iterator[Object]:
    if not record.processes:
        return
    origin = min(process.began_s for process in record.processes)
    standings = Standings(record)
    told = [_arguments(record, standings, number) for number in range(len(record.events))]
    steps = Steps(record)
    for number, (pid, process) in enumerate(_numbered(record)):
        for count, begin in enumerate(steps.begins(number), 1):
            yield {"name": f"step {count}", "cat": "step", "ph": "i", "s": "p", "ts": _micro(begin - origin), "pid": pid, "tid": 1}
        for mark in process.marks:
            if mark.event < 0:
                continue
            event = record.events[mark.event]
            yield {
                "name": event.call, "cat": f"{event.kind},{standings.of(mark.event).value}", "ph": "X",
                "ts": _micro(process.began_s + mark.start_s - origin), "dur": _micro(mark.blocked_s),
                "pid": pid, "tid": mark.thread + 1, "args": told[mark.event],
            }  # fmt: skip


def _arguments(record: Record, standings: Standings, number: int) -> Object:
    """What a viewer shows of an event that is clicked."""
    event = record.events[number]
    found = [record.findings[one] for one in standings.findings(number)]
    args: Object = {"kind": event.kind, "place": place(event), "standing": standings.of(number).value}
    if found:
        args["findings"] = [f"{one['code']} {one['name']}" for one in found]
    if event.allowed is not None:
        args["allowed"] = event.allowed
    if event.blocked_s is None:
        args["blocked"] = "not known on a stand-in"
    return args


def _micro(time_s: float) -> float:
    return round(time_s * 1e6, 3)
