"""From evaluated functions to findings: which sites wait, how hot they are, what the rules say of them and how they mend them."""
from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from hostlint.facts.fact import Fact
from hostlint.facts.kinds import FactKind
from hostlint.facts.spans import Places
from hostlint.fix.outline import Outline
from hostlint.fix.place import Place
from hostlint.model import FileError, Finding, Heat, HeatLevel, Span
from hostlint.optional_ways import OptionalWays
from hostlint.registry import all_for_kind
from hostlint.severity import severity_of
from hostlint.values.host_copies import HostCopies
from hostlint.values.host_counters import READS
from hostlint.values.known import Known
from hostlint.values.redone import Redone
from hostlint.values.waits import may_be_wrong, meetings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import libcst as cst

    from hostlint.index import FunctionId, ProjectIndex
    from hostlint.rule import Rule
    from hostlint.values.evaluator import Caller, Evaluator
    from hostlint.values.judging import Meeting


COUNTED = "; only the host counts it up (line {line}), so a Python number beside it tells the same without a wait"
BESIDE = "; `{copy}` may hold the same on the host"
TILES = re.compile(r"(^|_)tiled?_(en|de)code|(en|de)code_(in_)?tile[sd]?(_|$)|(^|_)blend_[vhtz](_|$)|(^|_)tiled_(forward|apply)(_|$)")


class HeatSource(Protocol):
    """How hot a function, or a region of it, is."""

    def function(self, fid: FunctionId) -> Heat: ...
    def site(self, fid: FunctionId, region: int) -> Heat: ...
    def is_step_loop(self, fid: FunctionId, region: int) -> bool: ...


class CallSource(Protocol):
    """The calls of a function."""

    def edges_in(self, fid: FunctionId) -> Sequence[Caller]: ...


class TextSource(Protocol):
    """The text of a file."""

    def __call__(self, file: int) -> str: ...


@dataclass(frozen=True, slots=True)
class Project:
    """The evaluator's view of the project: who calls a function, and whether it stands on a step's path."""

    calls: CallSource
    heat: HeatSource

    def callers(self, fid: FunctionId) -> Sequence[Caller]:
        return [edge for edge in self.calls.edges_in(fid) if edge.call_index >= 0]

    def is_hot(self, fid: FunctionId, region: int = 0) -> bool:
        return self.heat_of(fid, region).level >= HeatLevel.CALL

    def heat_of(self, fid: FunctionId, region: int) -> Heat:
        return self.heat.site(fid, region) if region else self.heat.function(fid)


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found in one file."""

    findings: tuple[Finding, ...]
    errors: tuple[FileError, ...]
    rests_on: int = 0  # the files whose graphs were looked into, a bit each


@dataclass(frozen=True, slots=True)
class _Found:
    """A fact, and the values at its place for those who word a fix."""

    fact: Fact
    known: Known


class Judge:
    """Judges files one by one; what it worked out of a function serves all files that ask. `fixes`: the rules are asked for theirs too."""

    def __init__(self, index: ProjectIndex, evaluator: Evaluator, heat: HeatSource, text_of: TextSource, fixes: bool = False) -> None:
        self._index = index
        self._evaluator = evaluator
        self._heat = heat
        self._text_of = text_of
        self._fixes = fixes
        self._redone = Redone(evaluator, heat)
        self._ways = OptionalWays(evaluator)

    def file(self, file: int, at_least: HeatLevel) -> Judged:
        """All findings of one file at that heat or above, in order, one for each place and cause."""
        self._evaluator.trim()
        self._evaluator.files = 0
        found = [one for function in self._index.files[file].functions for one in self._function((file, function.index), at_least)]
        found += list(self._work_redone(file, max(at_least, HeatLevel.CALL), found))
        if not found:
            return Judged((), (), self._evaluator.files)
        words, copies = Words(self._text_of(file), self._fixes), HostCopies(self._index.files[file])
        findings, errors = self._worded(words, [self._noted(one, words, copies) for one in found])
        return Judged(tuple(sorted(findings, key=lambda finding: finding.sort_key)), tuple(errors), self._evaluator.files)

    def _worded(self, words: Words, found: Sequence[_Found]) -> tuple[Collection[Finding], list[FileError]]:
        findings: dict[tuple[str, Span], Finding] = {}
        errors: list[FileError] = []
        for one in found:
            fact = one.fact
            for rule in all_for_kind(fact.kind):
                finding = None
                try:
                    finding = words.finding(fact, rule)
                    mended = words.mended(finding, fact, rule, one.known) if finding is not None else None
                except Exception as error:  # noqa: BLE001 - a rule that crashes is an error of that rule, not of the scan
                    what = "the fix of the rule" if finding is not None else "the rule"
                    errors.append(FileError(fact.path, fact.span.line, f"{what} {rule.name} failed: {error!r}"))
                    mended = finding
                if mended is not None:
                    findings.setdefault((mended.code, mended.span), mended)
        return findings.values(), errors

    def _function(self, fid: FunctionId, at_least: HeatLevel) -> Iterator[_Found]:
        graph = self._evaluator.graph_of(fid)
        if not graph.sites:
            return
        hot = {region: self._site(fid, region) for region in {site.region for site in graph.sites}}
        cool = all(heat.level < at_least for heat in hot.values())
        if cool and self._index.function(fid).name != "__init__" and not may_be_wrong(graph):
            return
        outline = self._index.function(fid)
        path = self._index.files[fid[0]].path
        frame = self._evaluator.frame(fid)
        for meeting in meetings(frame):
            heat = self._of_use(fid) if meeting.at_use else hot[meeting.site.region]
            heat = in_tiles(heat, outline.qualname) if meeting.kind is FactKind.LAUNCH_LOOP else heat
            if meeting.wrong and (heat.level == HeatLevel.REQUEST or meeting.kind is FactKind.COLLECTOR_OFF):
                heat = Heat(HeatLevel.CALL)
            if heat.level >= at_least:
                yield _Found(_fact(path, outline.qualname, meeting, heat), Known(frame, meeting.site.node))

    def _work_redone(self, file: int, at_least: HeatLevel, waits: Sequence[_Found]) -> Iterator[_Found]:
        """What is computed again though it could be kept; a place that waits is reported for that alone."""
        outline = self._index.files[file]
        places = Places(self._text_of, file)
        for function in outline.functions:
            hot = partial(self._is_hot, (file, function.index), at_least)
            for meeting in self._redone.meetings((file, function.index), hot, places):
                heat = meeting.heat or in_tiles(self._site((file, function.index), meeting.site.region), function.qualname)
                if heat.level < at_least and meeting.heat is not None:
                    continue
                if meeting.wrong and heat.level == HeatLevel.REQUEST:
                    heat = Heat(HeatLevel.CALL)
                fact = _fact(outline.path, function.qualname, meeting, heat)
                if not any(overlap(fact.span, wait.fact.span) for wait in waits):
                    yield _Found(fact, Known(self._evaluator.frame((file, function.index)), meeting.site.node))

    def _noted(self, one: _Found, words: Words, copies: HostCopies) -> _Found:
        """A read of what only the host counts up, or of what the host has beside it: its finding says so."""
        fact, frame = one.fact, one.known.frame
        if frame is None or fact.kind not in READS:
            return one
        line = self._redone.counted_at(frame.fid, fact.span.line, fact.span.column)
        copy = "" if line else copies.beside(frame.outline, fact.subject, words.statement(fact.statement))
        note = COUNTED.format(line=line) if line else BESIDE.format(copy=copy) if copy else ""
        return replace(one, fact=replace(fact, note=note)) if note else one

    def _is_hot(self, fid: FunctionId, at_least: HeatLevel, region: int) -> bool:
        return self._site(fid, region).level >= at_least

    def _site(self, fid: FunctionId, region: int) -> Heat:
        """How hot a region is; what an optional argument decides is cool unless a call decides it so."""
        heat = self._heat.site(fid, region)
        return heat if heat.level <= HeatLevel.REQUEST or self._ways.is_open(fid, region, heat) else Heat(HeatLevel.REQUEST)

    def _of_use(self, fid: FunctionId) -> Heat:
        """How hot an object is that this function makes and the other methods of its class use."""
        owner = self._index.owner(fid)
        methods = self._index.klass(owner).methods if owner is not None else ()
        users = [(owner[0], method) for name, method in methods if name != "__init__"] if owner is not None else []
        heats = [self._heat.site(user, region) for user in users for region in range(len(self._index.function(user).regions))]
        return max([*heats, self._heat.function(fid)], key=lambda heat: heat.level)


def _fact(path: str, function: str, meeting: Meeting, heat: Heat) -> Fact:
    site = meeting.site
    return Fact(
        kind=meeting.kind,
        path=path,
        function=function,
        span=Span(site.line, site.column, site.end_line, site.end_column),
        statement=(site.first_line, site.last_line),
        call=meeting.call,
        subject=site.subject,
        evidence=meeting.evidence,
        confidence=meeting.confidence,
        heat=heat,
        measured=meeting.measured,
        detail=meeting.detail,
        repeated=meeting.repeated,
    )


def in_tiles(heat: Heat, function: str) -> Heat:
    """What cuts a picture into tiles and blends them does so once a request, when the picture is encoded or decoded: the function itself or
    who calls it. What a layer does in each tile is as hot as the layer."""
    names = [function, *(link.function for link in heat.chain[-2:])]
    tiled = heat.level > HeatLevel.REQUEST and any(TILES.search(name.rpartition(".")[2]) for name in names)
    return Heat(HeatLevel.REQUEST) if tiled else heat


def overlap(one: Span, other: Span) -> bool:
    """Whether two places share a character."""
    starts, ends = [(span.line, span.column) for span in (one, other)], [(span.end_line, span.end_column) for span in (one, other)]
    return max(starts) < min(ends)


class Words:
    """Has the rules word the facts of one file, each with the concrete syntax of its expression."""

    def __init__(self, text: str, fixes: bool = False) -> None:
        self._outline = Outline(text)
        self._fixes = fixes

    def mended(self, finding: Finding, fact: Fact, rule: Rule, known: Known) -> Finding:
        """The finding with the rule's fix, where fixes are wanted and the rule has one."""
        if not self._fixes or rule.fix is None:
            return finding
        fact = replace(fact, source=self.statement(fact.statement))
        return replace(finding, fix=rule.fix(Place(fact, self._expression(fact.span), self._outline, known)))

    def finding(self, fact: Fact, rule: Rule) -> Finding | None:
        if rule.check is None:
            return None
        fact, node = replace(fact, source=self.statement(fact.statement)), self._expression(fact.span)
        problem = rule.check(fact, node)
        if problem is None:
            return None
        return Finding(
            code=rule.code,
            name=rule.name,
            path=fact.path,
            span=fact.span,
            message=problem.message + fact.note,
            severity=severity_of(rule, fact),
            confidence=fact.confidence,
            function=fact.function,
            heat=fact.heat,
            kind_evidence=fact.evidence,
            statement=fact.statement,
            parts=fact.repeated.others if fact.repeated is not None else (),
        )

    def _expression(self, span: Span) -> cst.BaseExpression:
        """The concrete syntax of the expression at that place."""
        import libcst as cst

        # in parentheses, so that an expression may go on over lines as it does in its file
        return cst.parse_expression(f"({self._outline.source(span)}\n)")

    def statement(self, lines: tuple[int, int]) -> str:
        """The source of those lines."""
        first, last = lines
        return "\n".join(self._outline.lines[first - 1 : last])
