"""The join: each finding gets a verdict from what a run showed, and each event of the scanned files a finding, or none."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.confirm.record import Event, Record
    from hostlint.model import Finding

# What a family of rules speaks of. Wrong cures (HL5) wait in ways of all kinds.
_WAITS = frozenset({"read", "data-dependent-size", "hidden-wait", "explicit-sync", "upload"})
_SPEAKS_OF = {
    "HL1": _WAITS, "HL2": _WAITS, "HL3": frozenset({"upload"}), "HL4": frozenset({"flush", "collect", "explicit-sync"}),
    "HL5": _WAITS, "HL9": frozenset(),
}  # fmt: skip
_EVERYTHING = _WAITS | _SPEAKS_OF["HL4"]  # what a user's own rules may speak of
# Kinds of which a place that ran without an event is no sign: what they speak of shows elsewhere, or later.
_SHOWN_ELSEWHERE = frozenset({"collector-off", "unguarded-collections"})

SELDOM = 4  # what happens in fewer than every fourth step is not the step's


class Verdict(Enum):
    CONFIRMED = "confirmed"
    REDONE = "redone"
    NO_WAIT = "no-wait"
    NOT_REACHED = "not-reached"
    NOT_MEASURED = "not-measured"


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What a run says of one finding."""

    verdict: Verdict
    count: int = 0
    steps: int = 0  # of the loop that heats the finding, or as marked by the program; 0: not known
    blocked_s: float | None = None
    why: str = ""  # of not-measured
    ranks: Mapping[str, int] = field(default_factory=dict)  # of a distributed run: rank -> count

    @property
    def per_step(self) -> float | None:
        return self.count / self.steps if self.steps else None


@dataclass(frozen=True)
class Join:
    """`paths` gives the record's name for a finding's file; `loops` the first line of the body of the loop that heats a finding."""

    record: Record
    findings: tuple[Finding, ...]
    paths: Mapping[str, str]
    loops: Mapping[Finding, tuple[str, int]]
    changed: frozenset[str]  # paths, as findings name them, of files that are not as they were scanned
    facts: Mapping[str, frozenset[str]]  # a rule's code -> the scan's words for what it speaks of
    outside_loops: frozenset[int] = frozenset()  # events none of whose frames, from their place outwards, stands in a loop

    @cached_property
    def explained(self) -> dict[int, tuple[Finding, ...]]:
        """For each event of the record, by number, the findings that it bears out."""
        return {number: self._findings_of(event) for number, event in enumerate(self.record.events)}

    @cached_property
    def alone(self) -> tuple[int, ...]:
        """Events that no finding explains and nothing allows, most frequent first."""
        events = self.record.events
        found = [n for n, findings in self.explained.items() if not findings and events[n].kind != "collect" and events[n].allowed is None]
        return tuple(sorted(found, key=lambda number: -events[number].count))

    @property
    def unpredicted(self) -> tuple[int, ...]:
        """Those that the scanned files make themselves, in the steps: holes in the rules."""
        return tuple(number for number in self.alone if self._is_own(self.record.events[number]) and not self._is_setup(number))

    @property
    def setup(self) -> tuple[int, ...]:
        """Those that they make outside the steps: a model that is moved to the device, a result that is read at the end."""
        return tuple(number for number in self.alone if self._is_own(self.record.events[number]) and self._is_setup(number))

    @property
    def library(self) -> tuple[int, ...]:
        """Those inside code that was not scanned."""
        return tuple(n for n in self.alone if not self._is_own(self.record.events[n]))

    def _is_own(self, event: Event) -> bool:
        """Whether the call stands in a scanned file itself, and not in a library that such a file calls."""
        inner = event.stack[0] if event.stack else event.place
        return inner.path in self._names

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.paths.values())

    def _is_setup(self, number: int) -> bool:
        event = self.record.events[number]
        steps = self.record.steps or max((loop.count for loop in self.record.loops), default=0)
        return number in self.outside_loops or event.most == 1 or event.most * SELDOM <= steps

    def confirmed(self, finding: Finding) -> Confirmed:
        reason = self._not_measured(finding)
        if reason:
            return Confirmed(Verdict.NOT_MEASURED, why=reason)
        steps = self._steps(finding)
        events = [self.record.events[number] for number, found in self.explained.items() if finding in found]
        if events:
            times = [event.blocked_s for event in events if event.blocked_s is not None]
            count = sum(event.waits or event.count for event in events)
            return Confirmed(Verdict.CONFIRMED, count, steps, sum(times) if times else None, ranks=self._ranks(events))
        again = sum(one.again for one in self.record.repeats if self._at(finding, one.path, one.line)) if self._is_redone(finding) else 0
        if again:
            return Confirmed(Verdict.REDONE, again, steps)
        return self._without_events(finding, steps)

    def _ranks(self, events: Iterable[Event]) -> dict[str, int]:
        """How often each rank of a distributed run was at it."""
        ranks = self.record.ranks
        return {rank: sum(event.ranks.get(rank, 0) for event in events) for rank in ranks} if len(ranks) > 1 else {}

    def _without_events(self, finding: Finding, steps: int) -> Confirmed:
        ran = self.record.ran.get(self.paths[finding.path], ())
        if any(finding.span.line <= line <= finding.span.end_line for line in ran):
            silent = self._says_nothing(finding)
            return Confirmed(Verdict.NOT_MEASURED, why=silent) if silent else Confirmed(Verdict.NO_WAIT, steps=steps)
        if not any(process.watching for process in self.record.processes):
            return Confirmed(Verdict.NOT_MEASURED, why="another tool traces the program, so it is not known which lines ran")
        return Confirmed(Verdict.NOT_REACHED)

    def _says_nothing(self, finding: Finding) -> str:
        """Why it means nothing that no event came of a place that ran; empty where it does."""
        if finding.code.startswith("HL5"):
            return "no count of waits shows whether a result is right"
        if self.facts.get(finding.code, frozenset()) & _SHOWN_ELSEWHERE:
            return "what it speaks of shows in other places"
        if self._is_redone(finding) and not any(self._at(finding, one.path, one.line) for one in self.record.repeats):
            return "no torch call stands there whose arguments could be compared"
        return ""

    def _not_measured(self, finding: Finding) -> str:
        path = self.paths.get(finding.path)
        if path is None or finding.span.line not in self.record.watched.get(path, ()):
            return "the run did not watch this line"
        if finding.path in self.changed:
            return "the file has changed since it was scanned for the run"
        if not self.record.measured:
            return next((one.failed for one in self.record.processes if one.failed), "the program did not import torch")
        return ""

    def _steps(self, finding: Finding) -> int:
        marked = sum(process.steps for process in self.record.processes)  # of all ranks, as the counts are
        if marked:
            return marked
        loop = self.loops.get(finding)
        return sum(one.count for one in self.record.loops if loop == (one.path, one.line))

    def _findings_of(self, event: Event) -> tuple[Finding, ...]:
        near = [finding for finding in self._by_path.get(event.place.path, ()) if self._bears_out(event, finding)]
        exact = [finding for finding in near if event.fact in self.facts.get(finding.code, frozenset())]
        return tuple(exact or near)

    def _bears_out(self, event: Event, finding: Finding) -> bool:
        inside = finding.span.line <= event.place.line <= finding.span.end_line
        return inside and event.kind in _SPEAKS_OF.get(finding.code[:3], _EVERYTHING)

    @cached_property
    def _by_path(self) -> dict[str, list[Finding]]:
        found: dict[str, list[Finding]] = {}
        for finding in self.findings:
            if finding.path in self.paths:
                found.setdefault(self.paths[finding.path], []).append(finding)
        return found

    def _at(self, finding: Finding, path: str, line: int) -> bool:
        return self.paths[finding.path] == path and finding.span.line <= line <= finding.span.end_line

    @staticmethod
    def _is_redone(finding: Finding) -> bool:
        return finding.code.startswith("HL3")

