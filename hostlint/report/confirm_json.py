"""A record as the JSON report shows it: the findings with their verdicts, and the events that no finding explains."""
from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hostlint.report.base import TOOL
from hostlint.report.json_report import VERSION, event_object

if TYPE_CHECKING:
    from hostlint.confirm.record import Record


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
