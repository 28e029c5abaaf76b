"""What every form of a report starts from."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

from hostlint.errors import UsageError
from hostlint.version import VERSION

if TYPE_CHECKING:
    from hostlint.confirm.record import Event
    from hostlint.fingerprint import Fingerprints
    from hostlint.model import ScanResult
    from hostlint.rule import Rule
    from hostlint.sources import Sources

TOOL = f"hostlint {VERSION}"
# Name on the command line -> module that holds `render`; imported only when asked for.
FORMATS = {
    "full": "full",
    "concise": "concise",
    "json": "json_report",
    "json-lines": "json_lines",
    "github": "github",
    "gitlab": "gitlab",
    "junit": "junit",
    "sarif": "sarif",
}
FOR_PEOPLE = frozenset({"full", "concise"})
WITH_FIXES = frozenset({"full", "json", "json-lines", "sarif"})  # forms that show how a finding can be mended


@dataclass(frozen=True, slots=True)
class Report:
    """A result with what is needed to show it."""

    result: ScanResult
    sources: Sources
    fingerprints: Fingerprints
    rules: tuple[Rule, ...]
    against_baseline: bool = False
    coloured: bool = False
    unpredicted: tuple[Event, ...] = ()  # of a run that the findings are joined with


Render = Callable[[Report], str]


def render(report: Report, form: str, statistics: bool = False) -> str:
    """The report's text, with its last newline."""
    if statistics:
        return _statistics(report, form)
    return cast("Render", import_module(f"hostlint.report.{FORMATS[form]}").render)(report)


def _statistics(report: Report, form: str) -> str:
    from hostlint.report import statistics

    if form in FOR_PEOPLE:
        return statistics.render(report)
    if form == "json":
        return statistics.render_json(report)
    raise UsageError(f"--statistics has the output formats full, concise and json, not {form}")
