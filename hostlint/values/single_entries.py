"""Memos of one entry that are asked for two things in turn, so that each question finds the other's answer and throws it away."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from hostlint.facts.graph import Op, SiteKind, operands
from hostlint.facts.kinds import FactKind
from hostlint.facts.schema import RegionKind
from hostlint.model import Confidence, HeatLevel
from hostlint.values.detail import External, Function
from hostlint.values.judging import Meeting
from hostlint.values.loops import VIEWS
from hostlint.values.rebuilt import site_of
from hostlint.values.turns import Source, Turn, Turns
from hostlint.values.waits import meetings as waits_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hostlint.facts.graph import Site
    from hostlint.facts.schema import FunctionOutline
    from hostlint.facts.spans import Places
    from hostlint.index import FunctionId
    from hostlint.model import Heat
    from hostlint.values.constancy import Constancy, StepLoops
    from hostlint.values.evaluator import Evaluator
    from hostlint.values.per_step import StepConstancy

COST = "not measured: all that the memo was to save, at every call"
KEEPER = re.compile(r"(^|\.)lru_cache$")
FEW = 3  # launches that are worth a note
CALLS_DEEP = 2


class Cost(NamedTuple):
    """What a miss does: places where the host waits or uploads, and operations that are launched."""

    waits: int
    launches: int


class SingleEntries:
    """Finds them by what keeps them: a decorator, or an attribute that holds the last key."""

    def __init__(self, evaluator: Evaluator, constancy: Constancy, heats: StepLoops, steps: StepConstancy) -> None:
        self._evaluator = evaluator
        self._index = evaluator.index
        self._heats = heats
        self._turns = Turns(evaluator, constancy, steps)

    def meetings(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        outline = self._index.function(fid)
        if any(KEEPER.search(decorator.removesuffix("()")) for decorator in outline.decorators):
            yield from self._decorated(fid, outline, places)
        elif any(region.kind == RegionKind.MEMO for region in outline.regions):
            yield from self._by_hand(fid, outline, is_hot, places)

    def _decorated(self, fid: FunctionId, outline: FunctionOutline, places: Places) -> Iterator[Meeting]:
        cost = self._cost(fid, None)
        first = int(outline.owner >= 0)
        sources = [Source(place, False) for place in range(first, len(outline.params))]
        if not sources or not _is_dear(cost):
            return
        site = self._decorator(fid, outline, places)
        turn = self._turns.of(fid, sources, places) if site is not None else None
        if site is not None and turn is not None:
            heat = self._heats.site(turn.fid, turn.region)
            if heat.level >= HeatLevel.CALL:
                yield self._told(fid, site, turn, cost, "maxsize", heat)

    def _decorator(self, fid: FunctionId, outline: FunctionOutline, places: Places) -> Site | None:
        """`lru_cache(maxsize=1)` above the function."""
        parent = (fid[0], outline.parent)
        calls = self._index.function(parent).calls
        above = [call for call in calls if KEEPER.search(call.chain) and call.line <= outline.line and call.node >= 0]
        if not above:
            return None
        nodes: Sequence[Any] = self._evaluator.graph_of(parent).nodes
        call = max(above, key=lambda one: one.line)
        item = nodes[call.node]
        size = [*item[3][:1], *(value for name, value in item[4] if name == "maxsize")]
        one = bool(size) and nodes[size[0]][0] == Op.CONST and nodes[size[0]][3] == 1 and nodes[size[0]][2] == "int"
        spot = places(call, calls) if one else None
        return site_of(call, spot)._replace(region=0, first_line=call.line) if spot is not None else None

    def _by_hand(self, fid: FunctionId, outline: FunctionOutline, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        """`if key != self._key:` where the branch keeps the key and what it made."""
        graph = self._evaluator.graph_of(fid)
        nodes: Sequence[Any] = graph.nodes
        for site in graph.sites:
            if site.kind != SiteKind.TRUTH or site.node < 0 or nodes[site.node][0] != Op.COMPARE or not is_hot(site.region):
                continue
            key = self._key(fid, nodes, nodes[site.node])
            cost = self._cost(fid, RegionKind.MEMO) if key >= 0 else Cost(0, 0)
            if not _is_dear(cost):
                continue
            turn = self._turns.of(fid, list(dict.fromkeys(self._turns.sources(fid, key))), places)
            if turn is not None:
                yield self._told(fid, site, turn, cost, "key", None)

    def _key(self, fid: FunctionId, nodes: Sequence[Any], item: Any) -> int:
        """What is compared with the attribute that keeps it; -1 where it is no memo of one entry."""
        owner = self._index.owner(fid)
        if owner is None or len(item[3]) != 2 or item[2][0] not in ("==", "!="):
            return -1
        stored = {(name, node) for name, function, node, _ in self._index.klass(owner).attributes if function == fid[1]}
        others = {name for name, _ in stored}
        for kept, key in (item[3], item[3][::-1]):
            attribute = nodes[_unrefined(nodes, kept)]
            name = attribute[3] if attribute[0] == Op.ATTR else ""
            if others - {name} and any(one == name and _unrefined(nodes, node) == _unrefined(nodes, key) for one, node in stored):
                return int(key)
        return -1

    def _cost(self, fid: FunctionId, within: RegionKind | None, depth: int = CALLS_DEEP) -> Cost:
        """What a function does at a call, or what it does in its guarded parts, with what it calls."""
        frame = self._evaluator.frame(fid)
        outline = frame.outline
        self._evaluator.files |= 1 << fid[0]
        inside = [within is None or _lies_in(outline, region, within) for region in range(len(outline.regions))]
        sure = [wait for wait in waits_of(frame) if wait.confidence > Confidence.POSSIBLE and inside[wait.site.region]]
        waits, launches = len({wait.site.line for wait in sure}), 0
        for call in outline.calls:
            item: Any = frame.graph.nodes[call.node] if call.node >= 0 else (-1,)
            if item[0] != Op.CALL or not inside[call.region]:
                continue
            detail = frame.value(item[2]).detail
            if isinstance(detail, Function) and depth and detail.function != fid:
                more = self._cost(detail.function, None, depth - 1)
                waits, launches = waits + more.waits, launches + more.launches
            elif frame.value(call.node).is_tensor and call.chain.rpartition(".")[2] not in VIEWS:
                receiver = operands(frame.graph.nodes[item[2]])
                launches += isinstance(detail, External) or any(frame.value(part).is_tensor for part in receiver)
        return Cost(waits, launches)

    def _told(self, fid: FunctionId, site: Site, turn: Turn, cost: Cost, kind: str, heat: Heat | None) -> Meeting:
        outline = self._index.function(turn.fid)
        path = "" if turn.fid[0] == fid[0] else f" of {self._index.files[turn.fid[0]].path}"
        if not turn.lines:
            how = f"guidance calls `{outline.qualname}` for each of its branches, most likely with another `{turn.name}`"
        elif len(turn.lines) == 1:
            how = f"the loop at line {turn.lines[0]}{path} in `{outline.qualname}` comes with another `{turn.name}` in each pass"
        else:
            first, second = turn.lines
            how = f"the calls at lines {first} and {second}{path} in `{outline.qualname}` come with another `{turn.name}` in turn"
        lost = [f"waits or uploads in {cost.waits} place{'s' * (cost.waits > 1)}"] if cost.waits else []
        lost += [f"launches {cost.launches} operation{'s' * (cost.launches > 1)}"] if cost.launches else []
        why = f"{how}, and a miss {' and '.join(lost)}"
        return Meeting(FactKind.SINGLE_ENTRY, site, kind, why, turn.confidence, COST, kind, heat=heat)


def _is_dear(cost: Cost) -> bool:
    return cost.waits > 0 or cost.launches >= FEW


def _unrefined(nodes: Sequence[Any], node: int) -> int:
    while node >= 0 and nodes[node][0] == Op.REFINE:
        node = nodes[node][2]
    return node


def _lies_in(outline: FunctionOutline, region: int, kind: RegionKind) -> bool:
    while region and outline.regions[region].kind != kind:
        region = outline.regions[region].parent
    return bool(region)
