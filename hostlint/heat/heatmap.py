"""The heat of every function and place of a project, with the chain of calls that shows it."""
from __future__ import annotations

import gc
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from hostlint.facts.schema import FunctionFlag, RegionKind
from hostlint.heat import owners, seldom
from hostlint.heat.callgraph import CallGraph
from hostlint.heat.entries import Entries
from hostlint.heat.loops import StepLoops
from hostlint.heat.nature import Nature, is_unused, nature_of, region_limits, repeats
from hostlint.heat.quiet import is_passed_over, quiet_modules
from hostlint.heat.spread import Allowed, Reached
from hostlint.model import ChainLink, Heat, HeatLevel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostlint.heat.callgraph import Edge
    from hostlint.index import FunctionId, ProjectIndex


class HeatMap:
    def __init__(self, index: ProjectIndex, hot: Sequence[str] = (), cold: Sequence[str] = ()) -> None:
        self._index = index
        self.graph = CallGraph(index)
        self.loops = StepLoops(self.graph)
        self._forced = dict.fromkeys(fid for fid in _functions(index) if self._is_forced(fid, hot))
        self._natures = {fid: self._nature(fid, cold) for fid in _functions(index)}
        self._heats: dict[FunctionId, Heat] = {}
        self._region_limits: dict[FunctionId, tuple[HeatLevel, ...]] = {}
        entries = Entries(index, self.loops)
        self.graph.serves_only = entries.serves_only
        self._cool_passing(entries)
        steps = {
            fid: None
            for fid, nature in self._natures.items()
            if nature is Nature.ANY and (fid in self.graph.hooks or (entries.is_step(fid) and not self._is_part_of_seldom(fid)))
        }
        steps = {fid: None for fid in steps if fid in self._forced or not is_passed_over(self.graph, fid)}
        stops = {fid for fid in self._natures if fid not in steps and fid not in self._forced and entries.is_whole_request(fid)}
        readers = {fid for fid in steps if fid not in self._forced and entries.reads_request(fid)}
        self._natures.update(dict.fromkeys(readers, Nature.ONCE))
        steps = {fid: None for fid in steps if fid not in readers}
        quiet = quiet_modules(self.graph, self.loops, self._natures, entries, steps, stops) - self._forced.keys()
        self._natures.update(dict.fromkeys(quiet, Nature.ONCE))
        starts = {*steps, *self._forced} - quiet
        open_ended = {fid for fid in self._natures if fid in starts or fid in self.graph.escaping or entries.is_request(fid)} - quiet
        self._allowed = Allowed(self.graph, self._natures, open_ended)
        made = {fid for fid in self._natures if owners.is_made_in_steps(index, fid) and not self._matches(fid, cold)}
        reached = Reached(self.graph, self.loops, self._natures, self._allowed, stops, made=made)
        reached.spread([fid for fid in steps if fid not in quiet], self._forced)
        self._ways, self._rounds = reached.ways, reached.rounds

    def _cool_passing(self, entries: Entries) -> None:
        """Hooks that the same function puts in place and takes away are no steps, unless it does so in each step."""
        for hook, (fid, region) in self.graph.passing.items():
            places = [(fid, region), *((edge.caller, edge.region) for edge in self.graph.edges_in(fid))]
            if hook in self.graph.hooks or any(self.loops.surrounding(*place) or entries.is_step(place[0]) for place in places):
                continue
            self._natures[hook] = min(self._natures[hook], Nature.ONCE)

    def _is_part_of_seldom(self, fid: FunctionId) -> bool:
        """A loss or the like that only evaluations, calibrations and their kin are seen to compute."""
        edges = [edge for edge in self.graph.edges_in(fid) if edge.caller != fid and not is_unused(self._index.files[edge.caller[0]])]
        known = bool(edges) and fid not in self.graph.escaping and all(edge.certain and edge.call_index >= 0 for edge in edges)
        return known and self._index.function(fid).owner < 0 and all(self._natures[edge.caller] <= Nature.ONCE for edge in edges)

    def function(self, fid: FunctionId) -> Heat:
        """The heat of a function's body outside its loops and guards."""
        if fid not in self._heats:
            self._heats[fid] = self._function(fid)
        return self._heats[fid]

    def site(self, fid: FunctionId, region: int) -> Heat:
        """The heat of a place in a region of the function."""
        regions = self._index.function(fid).regions
        if fid not in self._region_limits:
            self._region_limits[fid] = region_limits(regions, self.graph.serves_only)
        limit = min(self._region_limits[fid][region], self._limit(fid), HeatLevel.REQUEST if self._times(fid) else HeatLevel.LOOP)
        inner = region
        while inner and not self.is_step_loop(fid, inner):
            if regions[inner].kind == RegionKind.ROUND:
                return Heat(min(limit, HeatLevel.REQUEST))
            inner = regions[inner].parent
        heat = self._loop(fid, inner) if inner else self.function(fid)
        return heat if heat.level <= limit else Heat(limit)

    def is_step_loop(self, fid: FunctionId, region: int) -> bool:
        """A loop that is a step loop by itself, or any loop of a function that steps reach."""
        if self._index.function(fid).regions[region].kind != RegionKind.LOOP:
            return False
        if fid in self._ways or (fid in self._rounds and repeats(self._index.function(fid).regions[region])):
            return True
        return self._allowed[fid] is HeatLevel.LOOP and self.loops.is_step(fid, region)

    def _is_forced(self, fid: FunctionId, patterns: Sequence[str]) -> bool:
        return bool(self._index.function(fid).flags & FunctionFlag.HOT) or self._matches(fid, patterns)

    def _matches(self, fid: FunctionId, patterns: Sequence[str]) -> bool:
        if not patterns or not fid[1]:
            return False
        name = f"{self._index.files[fid[0]].module}:{self._index.function(fid).qualname}"
        return any(fnmatchcase(name, pattern) for pattern in patterns)

    def _nature(self, fid: FunctionId, cold: Sequence[str]) -> Nature:
        if self._matches(fid, cold):
            return Nature.COLD
        return nature_of(self._index.function(fid), self._index.files[fid[0]])

    def _limit(self, fid: FunctionId) -> HeatLevel:
        return HeatLevel.LOOP if fid in self._ways else self._allowed[fid]

    def _times(self, fid: FunctionId) -> bool:
        """Whether the function waits for the device on purpose, to time what it calls."""
        function, file = self._index.function(fid), self._index.files[fid[0]]
        return seldom.times(function.name, file.classes[function.owner].name if function.owner >= 0 else "", file.module)

    def _function(self, fid: FunctionId) -> Heat:
        if fid in self._ways:
            return Heat(HeatLevel.CALL, self._chain(fid))
        if fid[1] == 0:
            return Heat(HeatLevel.COLD)
        return Heat(min(HeatLevel.REQUEST, self._allowed[fid]))

    def _loop(self, fid: FunctionId, loop: int) -> Heat:
        own = self._link(fid, self._index.function(fid).regions[loop].line)
        if (fid in self._ways or fid in self._rounds) and not self.loops.is_step(fid, loop):
            return Heat(HeatLevel.LOOP, (*self._chain(fid), own))
        return Heat(HeatLevel.LOOP, (own,))

    def _chain(self, fid: FunctionId) -> tuple[ChainLink, ...]:
        """From the hot loop (or the conventional entry) to the function, a link for every call."""
        links: list[ChainLink] = []
        edge, loop = self._way(fid)
        while edge is not None:
            links.append(self._link(edge.caller, edge.line))
            if loop:
                links.append(self._link(edge.caller, self._index.function(edge.caller).regions[loop].line))
                return tuple(reversed(links))
            fid = edge.caller
            edge, loop = self._way(fid)
        links.append(self._link(fid, self._index.function(fid).line))
        return tuple(reversed(links))

    def _way(self, fid: FunctionId) -> tuple[Edge | None, int]:
        return self._ways[fid] if fid in self._ways else self._rounds[fid]

    def _link(self, fid: FunctionId, line: int) -> ChainLink:
        return ChainLink(self._index.files[fid[0]].path, line, self._index.function(fid).qualname)


def _functions(index: ProjectIndex) -> Iterator[FunctionId]:
    for file, outline in enumerate(index.files):
        for function in outline.functions:
            yield (file, function.index)


def compute_heat(index: ProjectIndex, hot: Sequence[str] = (), cold: Sequence[str] = ()) -> HeatMap:
    """The heat of a whole project; `hot` and `cold` are patterns of `module:qualified.name` that overrule what the scan finds."""
    collecting = gc.isenabled()
    gc.disable()  # millions of tuples are made and none is garbage: without this half of the time goes into collections
    try:
        return HeatMap(index, hot, cold)
    finally:
        if collecting:
            gc.enable()
