"""A record as the JSON report shows it: the findings with their verdicts, and the events that no finding explains."""
from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from hostlint.report.base import TOOL
from hostlint.report.json_report import VERSION

if TYPE_CHECKING:
    from hostlint.confirm.record import Event, Record


def render(record: Record, coloured: bool) -> str:
    document = {
        "version": VERSION,
        "tool": TOOL,
        "findings": list(record.findings),
        "unpredicted": [event_object(record.events[number]) for number in record.unpredicted],
        "errors": [],
        "summary": {"files": len(record.digests), "findings": len(record.findings), "steps": record.steps, "exit": record.exit},
    }
    return json.dumps(document, indent=1) + "\n"


def event_object(event: Event) -> dict[str, object]:
    """An event by itself: where, what, how often, and the libraries' frames below it."""
    return {
        "kind": event.kind,
        "call": event.call,
        **asdict(event.place),
        "stack": [asdict(frame) for frame in event.stack],
        "count": event.count,
        "waits": event.waits,
        "blocked_ms": None if event.blocked_s is None else round(event.blocked_s * 1e3, 3),
        "bytes": event.bytes,
        "threads": list(event.threads),
        "ranks": event.ranks,
    }
