"""What a run of `fix` says: a line for each finding that was mended and each that is left, and the numbers."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hostlint.confirm.grade import urgency
from hostlint.model import Applicability, FileError, Finding
from hostlint.report.style import SEVERITY_STYLES, Line, write
from hostlint.report.verdict import verdict

if TYPE_CHECKING:
    from hostlint.fix.rounds import Left, Result, Wanted


@dataclass(frozen=True, slots=True)
class Told:
    """A result, and what became of writing it. `unwritten`: why a file was not written, by path."""

    result: Result
    wanted: Wanted
    dry: bool = False
    unwritten: Mapping[str, str] = field(default_factory=dict)

    def written(self, unwritten: Mapping[str, str]) -> Told:
        return replace(self, unwritten=unwritten)

    @property
    def mended(self) -> list[Finding]:
        return [finding for finding in self.result.mended if finding.path not in self.unwritten]

    @property
    def errors(self) -> list[FileError]:
        return [*self.result.errors, *(FileError(path, 1, reason) for path, reason in self.unwritten.items())]

    @property
    def is_failing(self) -> bool:
        """Whether a finding is left that is as severe as `--fail-on`; one in a file that could not be written is an error already."""
        least = self.result.outcome.settings.fail_on.rank
        return any(one.finding.severity.rank >= least for one in self.result.left)


def render(told: Told, coloured: bool) -> str:
    return write(_lines(told), coloured)


def _lines(told: Told) -> Iterator[Line]:
    verb = "would fix" if told.dry else "fixed"
    for finding in sorted(told.mended, key=urgency):
        message = finding.fix.message if finding.fix is not None else ""
        yield [(_place(finding), ""), (verb, "green"), (f" {finding.code} {finding.name}: {message}{_run(finding)}", "")]
    for left in sorted(told.result.left, key=lambda one: urgency(one.finding)):
        style = SEVERITY_STYLES[left.finding.severity.value]
        message = left.finding.message.partition("; ")[0]
        words = f" {left.finding.name} {message}{_why_left(left)}{_run(left.finding)}"
        yield [(_place(left.finding), ""), (left.finding.code, style), (words, "")]
    yield [(_numbers(told, verb), "")]


def _place(finding: Finding) -> str:
    return f"{finding.path}:{finding.span.line}:{finding.span.column}: "


def _run(finding: Finding) -> str:
    return f" [{verdict(finding.confirmed)}]" if finding.confirmed is not None else ""


def _why_left(left: Left) -> str:
    if left.withheld:
        return f" (fix withheld: {left.withheld})"
    if left.finding.fix is not None and left.finding.fix.applicability is Applicability.REVIEW:
        return f" (--review: {left.finding.fix.message})"
    return ""


def _numbers(told: Told, verb: str) -> str:
    """`fixed 3 findings in 2 files; 5 left (2 with --review)`."""
    mended = told.mended
    files = {finding.path for finding in mended}
    done = f"{verb} {_plural(len(mended), 'finding')}" + (f" in {_plural(len(files), 'file')}" if files else "")
    more = sum(_could_be_reviewed(left) for left in told.result.left) if not told.wanted.review else 0
    notes = [f"{more} with --review"] if more else []
    notes += [f"{told.result.baselined} more in the baseline"] if told.result.baselined else []
    errors = f"; {_plural(len(told.errors), 'error')}" if told.errors else ""
    return f"{done}; {len(told.result.left)} left" + (f" ({', '.join(notes)})" if notes else "") + errors


def _could_be_reviewed(left: Left) -> bool:
    fix = left.finding.fix
    return fix is not None and fix.applicability is Applicability.REVIEW and not left.withheld


def _plural(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
