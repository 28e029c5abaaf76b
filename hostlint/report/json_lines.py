"""One JSON object a line: the findings as in the JSON report, then the errors as `{"error": …}`."""
from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hostlint.report.json_report import error_object, finding_object

if TYPE_CHECKING:
    from hostlint.report.base import Report


def render(report: Report) -> str:
    objects = [finding_object(finding) for finding in report.result.findings]
    objects += [{"error": error_object(error)} for error in report.result.errors]
    return "".join(json.dumps(one) + "\n" for one in objects)
