"""How many findings each rule has, the most frequent first."""
from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from hostlint.report.style import write

if TYPE_CHECKING:
    from hostlint.report.base import Report


def render(report: Report) -> str:
    rows = _rows(report)
    width = max((len(str(count)) for _, _, count in rows), default=0)
    lines = [[(f"{count:>{width}}  ", ""), (code, "bold"), (f"  {name}", "")] for code, name, count in rows]
    errors = len(report.result.errors)
    if errors:
        lines.append([(f"{errors} {'file' if errors == 1 else 'files'} could not be read", "bold red")])
    return write(lines, report.coloured)


def render_json(report: Report) -> str:
    return json.dumps([{"code": code, "name": name, "count": count} for code, name, count in _rows(report)], indent=1) + "\n"


def _rows(report: Report) -> list[tuple[str, str, int]]:
    counts = Counter((finding.code, finding.name) for finding in report.result.findings)
    return [(code, name, count) for (code, name), count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
