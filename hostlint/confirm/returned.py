"""A kept record that comes back: what it says of the findings of a scan, and of the scans of a file that is being mended."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hostlint import baseline
from hostlint.confirm.confirm import join
from hostlint.confirm.grade import graded
from hostlint.confirm.join import Verdict
from hostlint.confirm.merge import shown
from hostlint.confirm.naming import as_named
from hostlint.confirm.watch import Watch
from hostlint.sources import decode
from hostlint.suppress import OWN_FAMILY

if TYPE_CHECKING:
    from hostlint.confirm.join import Confirmed, Join
    from hostlint.confirm.record import Event, Record
    from hostlint.fingerprint import Fingerprint, Fingerprints
    from hostlint.model import Finding
    from hostlint.project import SourceFile
    from hostlint.scan import Outcome
    from hostlint.settings import Settings


@dataclass(frozen=True, slots=True)
class Judged:
    """A scan with the record's verdicts. Paths of events are those of the scan."""

    outcome: Outcome
    unpredicted: tuple[Event, ...]
    known: int  # how many of the scanned files the record knows
    changed: tuple[str, ...]  # those of them that are not as they were


@dataclass
class Returned:
    """Joins one record with scans, one after the other: what a first one said of a place holds for later ones, in which files differ."""

    record: Record
    _said: dict[Fingerprint, list[Confirmed]] = field(default_factory=dict)

    def judge(self, everything: Outcome, settings: Settings, subtract: bool) -> Judged:
        """`everything` is a scan at any heat and confidence, of which `settings` say what is shown."""
        made = self._join(everything)
        outcome = _narrowed(everything, settings, subtract)
        findings = self._graded(outcome.result.findings, made, outcome.fingerprints)
        known = [path for path, name in made.paths.items() if name in self.record.digests]
        changed = made.changed.intersection(known)
        lost = {made.paths[path] for path in changed}
        events = [self.record.events[number] for number in made.unpredicted]
        seen = as_named(replace(self.record, events=tuple(one for one in events if one.place.path not in lost)), made.paths).events
        return Judged(replace(outcome, result=replace(outcome.result, findings=findings)), seen, len(known), tuple(sorted(changed)))

    def _join(self, everything: Outcome) -> Join:
        root, working = everything.settings.root, everything.settings.working
        findings = (*everything.result.findings, *everything.suppressed)
        watch = Watch(working, tuple(file.file for file in everything.given), findings)
        paths = {file.path: shown(watch.real(file.path), root.resolve()) for file in everything.given}
        rewritten = [file.path for file in everything.given if not _is_on_disk(file)]
        return join(self.record, findings, watch, paths, root, rewritten)

    def _graded(self, findings: Sequence[Finding], made: Join, fingerprints: Fingerprints) -> tuple[Finding, ...]:
        first = not self._said
        left = {fingerprint: list(verdicts) for fingerprint, verdicts in self._said.items()}

        def judged(finding: Finding) -> Finding:
            if finding.code.startswith(OWN_FAMILY):  # no run bears out what is said about comments
                return finding
            fingerprint, confirmed = fingerprints.of(finding), made.confirmed(finding)
            if first:
                self._said.setdefault(fingerprint, []).append(confirmed)
            elif confirmed.verdict is Verdict.NOT_MEASURED and left.get(fingerprint):
                confirmed = left[fingerprint].pop(0)
            return graded(finding, confirmed)

        return tuple(map(judged, findings))


def _narrowed(everything: Outcome, settings: Settings, subtract: bool) -> Outcome:
    """What a scan with these settings would have given."""
    result = everything.result
    findings = tuple(filter(settings.wants, result.findings))
    suppressed = tuple(filter(settings.wants, everything.suppressed))
    known: tuple[Finding, ...] = ()
    if settings.baseline and subtract:
        findings, known = baseline.subtract(findings, baseline.load(settings.baseline), everything.fingerprints)
    summary = replace(result.summary, findings=len(findings), suppressed=len(suppressed), baselined=len(known))
    return replace(everything, result=replace(result, findings=findings, summary=summary), settings=settings, suppressed=suppressed)


def _is_on_disk(file: SourceFile) -> bool:
    """Whether the text that was scanned is the file's own."""
    if file.text is None:
        return True
    try:
        return decode(file.file.read_bytes()) == file.text
    except (OSError, SyntaxError, UnicodeDecodeError):
        return False
