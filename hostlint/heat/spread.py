"""Carries heat over the call graph: how much heat a function's callers allow it, and the shortest way from a hot place to it."""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.schema import RegionKind
from hostlint.heat import owners
from hostlint.heat.callgraph import SEVERAL
from hostlint.heat.nature import Nature, in_rounds, is_unused, region_limits, repeats
from hostlint.model import HeatLevel

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from hostlint.facts.schema import Region
    from hostlint.heat.callgraph import CallGraph, Edge
    from hostlint.heat.loops import StepLoops
    from hostlint.index import FunctionId

CONVENTION = 3  # how many calls a chain from a loop that is seen may be longer than one from a conventional entry
_GUESSED = 2  # calls that one counts for where only a name speaks for the callee
_ANY_OF_MANY = CONVENTION + 1  # ... where it is any of a base class's many, so that a forward's own entry is shown before it
_LIMITS = {Nature.COLD: HeatLevel.COLD, Nature.ONCE: HeatLevel.REQUEST, Nature.RARE: HeatLevel.LOOP, Nature.ANY: HeatLevel.LOOP}


class Allowed:
    """The most heat that a function's callers allow: a helper that only `__init__` calls is as cold as that."""

    def __init__(self, graph: CallGraph, natures: Mapping[FunctionId, Nature], entries: Container[FunctionId]) -> None:
        self._graph = graph
        self._levels: dict[FunctionId, HeatLevel] = {}
        waiting: dict[HeatLevel, list[FunctionId]] = {level: [] for level in HeatLevel}
        for fid, nature in natures.items():
            if fid in entries or not any(self._counts(edge) for edge in graph.edges_in(fid)):
                waiting[HeatLevel.COLD if nature is Nature.RARE else _LIMITS[nature]].append(fid)
        self._natures = natures
        for level in sorted(waiting, reverse=True):
            self._spread(level, waiting)
        for fid, nature in natures.items():  # cycles that nothing enters
            self._levels.setdefault(fid, _LIMITS[nature])

    def __getitem__(self, fid: FunctionId) -> HeatLevel:
        return self._levels[fid]

    def _counts(self, edge: Edge) -> bool:
        return edge.caller != edge.callee and not is_unused(self._graph.index.files[edge.caller[0]])

    def _spread(self, level: HeatLevel, waiting: dict[HeatLevel, list[FunctionId]]) -> None:
        queue = waiting[level]
        while queue:
            fid = queue.pop()
            if fid in self._levels:
                continue
            self._levels[fid] = level
            limits = region_limits(self._graph.index.function(fid).regions, self._graph.serves_only)
            for edge in self._graph.edges_out(fid):
                if edge.callee not in self._levels:
                    waiting[min(level, limits[edge.region], _LIMITS[self._natures[edge.callee]])].append(edge.callee)


class Reached:
    """The functions that steps reach, each with the edge (or nothing, for an entry) that the shortest way to it ends in.

    What only a generation of results reaches is in `rounds`: in it the loops over rows are hot, and what they call.
    """

    def __init__(
        self,
        graph: CallGraph,
        loops: StepLoops,
        natures: Mapping[FunctionId, Nature],
        allowed: Allowed,
        stops: Container[FunctionId],
        silent: Container[FunctionId] = (),
        made: Container[FunctionId] = (),
    ) -> None:
        self._graph = graph
        self._loops = loops
        self._stops = stops
        self._silent = silent  # functions whose own loops heat nothing
        self._made = made  # what makes objects that steps want anew
        self._natures = natures
        self._allowed = allowed
        # The last edge of the way, and the step loop that it lies in (0: its function is hot, or there is no edge).
        self.ways: dict[FunctionId, tuple[Edge | None, int]] = {}
        self.rounds: dict[FunctionId, tuple[Edge | None, int]] = {}
        self._buckets: list[list[tuple[FunctionId, Edge | None, int, bool]]] = []

    def spread(self, entries: Iterable[FunctionId], forced: Iterable[FunctionId]) -> None:
        for fid in forced:
            self._push(0, fid, None, 0)
        for fid in self._natures:
            if self._allowed[fid] is HeatLevel.LOOP and fid not in self._silent:
                self._seed(fid)
        for fid in entries:
            self._push(CONVENTION, fid, None, 0)
        distance = 0
        while distance < len(self._buckets):
            for fid, edge, loop, in_round in self._buckets[distance]:
                if fid not in self.ways and not (in_round and fid in self.rounds):
                    (self.rounds if in_round else self.ways)[fid] = (edge, loop)
                    self._extend(fid, distance, in_round)
            distance += 1

    def _push(self, distance: int, fid: FunctionId, edge: Edge | None, loop: int, in_round: bool = False) -> None:
        while len(self._buckets) <= distance:
            self._buckets.append([])
        self._buckets[distance].append((fid, edge, loop, in_round))

    def _seed(self, fid: FunctionId) -> None:
        """The calls that step loops of this function make."""
        kinds = self._loops.kinds(fid)
        if not any(self._loops.is_step(fid, loop) for loop in kinds):
            return
        regions = self._graph.index.function(fid).regions
        limits, rounds = region_limits(regions, self._graph.serves_only), in_rounds(regions)
        for edge in self._graph.edges_out(fid):
            loop = self._loops.surrounding(fid, edge.region)
            if loop and limits[edge.region] is HeatLevel.LOOP and self._may_heat(edge):
                self._push(_length(edge), edge.callee, edge, loop, rounds[edge.region])

    def _extend(self, fid: FunctionId, distance: int, in_round: bool) -> None:
        regions = self._graph.index.function(fid).regions
        limits, rounds = region_limits(regions, self._graph.serves_only), in_rounds(regions)
        for edge in self._graph.edges_out(fid):
            if limits[edge.region] is HeatLevel.LOOP and edge.callee not in self.ways and self._may_heat(edge):
                loop = _row_loop(regions, edge.region) if in_round else 0
                behind = rounds[edge.region] or (in_round and not loop)
                self._push(distance + _length(edge), edge.callee, edge, loop, behind)

    def _may_heat(self, edge: Edge) -> bool:
        if edge.callee in self._stops:
            return False
        nature = self._natures[edge.callee]
        if nature is Nature.ANY or (nature is Nature.RARE and edge.certain):
            return True
        return edge.callee in self._made and edge.certain and self._makes(edge)

    def _makes(self, edge: Edge) -> bool:
        """Whether the call makes a new object, also where its caller brought one; what sets an object up anew, or makes one to
        keep it in an attribute, is asked for seldom, and which of its objects a builder makes for a step is not known."""
        caller = self._graph.index.function(edge.caller)
        if edge.call_index < 0 or owners.builds(caller.name):
            return False
        chain = caller.calls[edge.call_index].chain
        if (chain.endswith("__") and edge.caller not in self._made) or owners.keeps(self._graph.index, edge.caller, chain):
            return False
        region = edge.region
        while region and caller.regions[region].kind not in (RegionKind.FALLBACK, RegionKind.OPTION):
            region = caller.regions[region].parent
        return not region


def _length(edge: Edge) -> int:
    if edge.among >= SEVERAL:
        return _ANY_OF_MANY
    return 1 if edge.certain else _GUESSED


def _row_loop(regions: Sequence[Region], region: int) -> int:
    """The innermost loop over rows around a region, 0 where there is none."""
    while region and not repeats(regions[region]):
        region = regions[region].parent
    return region
