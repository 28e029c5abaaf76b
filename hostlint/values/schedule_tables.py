"""A scheduler's table that every step converts or moves again, in its loop or in a helper that the loop calls."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hostlint.facts.fact import Repeated
from hostlint.facts.graph import Op
from hostlint.facts.kinds import FactKind
from hostlint.heat.words import Walk, loop_walks
from hostlint.model import Confidence
from hostlint.values.causes import Work, gathered, others, whatever
from hostlint.values.constancy import PLACES
from hostlint.values.detail import Device, Dtype
from hostlint.values.hoisted import CASTS
from hostlint.values.judging import Meeting
from hostlint.values.rebuilt import UNMEASURED, site_of
from hostlint.values.value import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hostlint.facts.schema import Call
    from hostlint.facts.spans import Places
    from hostlint.index import FunctionId
    from hostlint.values.constancy import Constancy
    from hostlint.values.evaluator import Evaluator

TABLES = frozenset({"sigmas", "timesteps", "alphas_cumprod", "betas", "alphas", "log_sigmas"})
SCHEDULER = re.compile(r"(^|[._])(\w*scheduler|sched|sch|noise_schedule)$")
CONVERSIONS = CASTS | {"to", "cuda", "cpu", "type"}
PLACED = re.compile(r"(^|[._])(device|dtype)$")


class ScheduleTables:
    """Finds conversions of schedules on a step's path."""

    def __init__(self, evaluator: Evaluator, constancy: Constancy) -> None:
        self._evaluator = evaluator
        self._constancy = constancy

    def meetings(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        outline, graph = self._evaluator.index.function(fid), self._evaluator.graph_of(fid)
        found: list[Work] = []
        whys: dict[int, tuple[str, str]] = {}
        inner: set[int] = set()  # receivers of other conversions
        for call in reversed(outline.calls):
            table = self._converted(fid, call) if call.node >= 0 and is_hot(call.region) else -1
            if table < 0:
                continue
            item: Any = graph.nodes[call.node]
            inner.add(graph.nodes[item[2]][2])
            why = self._why(fid, call) if call.node not in inner else ("", "")
            spot = places(call, outline.calls) if why[0] else None
            if spot is not None and not spot.fills:
                found.insert(0, Work(call, spot, 0))
                whys[call.node] = why
        for works in gathered(graph, found, alike=whatever):
            call, spot, _ = works[0]
            why = whys[call.node]
            yield Meeting(
                FactKind.INVARIANT_WORK, site_of(call, spot), call.chain, why[0], Confidence.LIKELY, UNMEASURED, why[1],
                repeated=Repeated(others=others(spot, works)),
            )  # fmt: skip

    def _converted(self, fid: FunctionId, call: Call) -> int:
        """The attribute that a chain of casts and moves begins at, where it is a scheduler's table; -1 for other calls."""
        frame = self._evaluator.frame(fid)
        nodes: Any = frame.graph.nodes
        item = nodes[call.node]
        node = call.node
        while item[0] == Op.CALL and nodes[item[2]][0] == Op.ATTR:
            given = [*item[3], *(value for _, value in item[4])]
            if nodes[item[2]][3] not in CONVERSIONS or item[5] or not all(self._is_place(fid, part) for part in given):
                return -1
            node = nodes[item[2]][2]
            item = nodes[node]
        named = item[0] == Op.ATTR and item[3] in TABLES and SCHEDULER.search(frame.node_name(item[2]))
        return node if named and node != call.node and frame.value(node).place is not Place.HOST else -1

    def _is_place(self, fid: FunctionId, node: int) -> bool:
        frame = self._evaluator.frame(fid)
        item: Any = frame.graph.nodes[node]
        kept = isinstance(frame.value(node).detail, (Dtype, Device)) or (item[0] == Op.ATTR and item[3] in PLACES) or item[0] == Op.CONST
        return kept or bool(PLACED.search(frame.node_name(node)))

    def _why(self, fid: FunctionId, call: Call) -> tuple[str, str]:
        """Which loop over the steps repeats it, and its line where it is the function's own."""
        outline = self._evaluator.index.function(fid)
        loop = self._constancy.step_loop(fid, call.region)
        if loop and self._walks_steps(fid, loop):
            return f"the schedule stays as it is in the loop at line {outline.regions[loop].line}", str(outline.regions[loop].line)
        if loop:
            return "", ""
        for edge in self._constancy.hot_callers(fid):
            caller = self._evaluator.index.function(edge.caller)
            loop = self._constancy.step_loop(edge.caller, caller.calls[edge.call_index].region) if edge.certain else 0
            if loop and self._walks_steps(edge.caller, loop):
                self._evaluator.files |= 1 << edge.caller[0]
                return f"the loop in `{caller.qualname}`, line {caller.regions[loop].line}, calls it with one schedule", ""
        return "", ""

    def _walks_steps(self, fid: FunctionId, loop: int) -> bool:
        head = self._evaluator.index.function(fid).regions[loop]
        start = self._constancy.body(fid, loop).start
        bound = any("scheduler" in target for target in head.targets)
        return start >= 0 and not bound and loop_walks(head.text, head.targets) in (Walk.STEPS, Walk.UNKNOWN)
