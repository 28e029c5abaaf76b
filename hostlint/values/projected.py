"""Projections of a request's tensors that a denoiser makes again at every step: text embeddings, keys and values, rotary tables."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hostlint.facts.fact import Repeated
from hostlint.facts.graph import Op, Refinement
from hostlint.facts.kinds import FactKind
from hostlint.model import Confidence
from hostlint.values.causes import Work, gathered, others, whatever
from hostlint.values.judging import Meeting
from hostlint.values.per_step import DEPTH, KEY_VALUE, is_projection, layer_name
from hostlint.values.rebuilt import reachable, site_of
from hostlint.values.value import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hostlint.facts.schema import Call
    from hostlint.facts.spans import Places
    from hostlint.index import FunctionId
    from hostlint.values.evaluator import Evaluator
    from hostlint.values.per_step import StepConstancy
    from hostlint.values.worth import Worth

KEYS = re.compile(r"(^|[._])(to_)?(k|key|wk|kv)(_proj|_linear)?$")
POOLED = re.compile(r"(^|[._])\w*pool(ed)?(_|\.|$)", re.IGNORECASE)  # one vector for each prompt
CACHES = re.compile(r"cache|past_key", re.IGNORECASE)
UNMEASURED = "not measured: a matrix product and its launches for each repetition, more where the tensors are gathered over ranks"


class Projected:
    """Finds the layers that work on the same tensor at every step."""

    def __init__(self, evaluator: Evaluator, steps: StepConstancy, worth: Worth) -> None:
        self._evaluator = evaluator
        self._steps = steps
        self._worth = worth

    def meetings(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        outline = self._evaluator.index.function(fid)
        if any(CACHES.search(param.name) for param in outline.params):
            return  # it is handed the place to keep them in
        found: list[Work] = []
        whys: dict[int, str] = {}
        for call in outline.calls:
            why = self._why(fid, call) if call.node >= 0 and is_hot(call.region) else ""
            spot = places(call, outline.calls) if why else None
            if spot is not None and not spot.fills:
                found.append(Work(call, spot, self._rests_on(fid, call)))
                whys[call.node] = why
        if found and self._is_called_again(fid):
            return
        graph = self._evaluator.graph_of(fid)
        told = [work for work in found if not self._is_told(fid, work, found)]
        for works in gathered(graph, told, alike=whatever):
            call, spot, _ = next((work for work in works if KEYS.search(work.call.chain)), works[0])
            repeated = Repeated(others=others(spot, works), in_blocks=self._worth.is_in_blocks(fid, call.region))
            why = whys[call.node]
            yield Meeting(
                FactKind.CONSTANT_PROJECTION, site_of(call, spot), call.chain, why, Confidence.LIKELY, UNMEASURED, repeated=repeated
            )

    def _rests_on(self, fid: FunctionId, call: Call) -> int:
        """The tensor that a layer is given: keys and values of one text are one cause."""
        item: Any = self._evaluator.graph_of(fid).nodes[call.node]
        given = [*item[3], *(value for _, value in item[4])]
        return int(given[0]) if len(given) == 1 else -call.node

    def _why(self, fid: FunctionId, call: Call) -> str:
        """Why everything that a layer is given is the same at every step; "" where it may not be, or the call is no layer's."""
        frame = self._evaluator.frame(fid)
        item: Any = frame.graph.nodes[call.node]
        if item[0] != Op.CALL or item[5] or not is_projection(frame, item):
            return ""
        given = [*item[3], *(value for _, value in item[4])]
        if any(frame.value(part).place is Place.HOST or POOLED.search(frame.node_name(part)) for part in given):
            return ""
        why = self._steps.all_of(fid, given)
        return (self._in_some_calls(fid, given[0]) if why is None and KEY_VALUE.match(layer_name(frame, item)) and given else why) or ""

    def _in_some_calls(self, fid: FunctionId, node: int) -> str:
        """Keys and values of an attention that serves a block for itself and across: the calls that pass the text count."""
        nodes: Any = self._evaluator.graph_of(fid).nodes
        item = nodes[node]
        parts = item[2] if item[0] == Op.PHI else ()
        offered = [part for part in parts if nodes[part][0] == Op.REFINE and nodes[part][3] == Refinement.NOT_NONE]
        source = nodes[nodes[offered[0]][2]] if len(offered) == 1 else item
        if source[0] != Op.PARAM or not source[2]:
            return ""
        for edge in self._steps.callers(fid):
            if why := self._steps.passed(fid, source[2], edge, DEPTH - 1):
                self._evaluator.files |= 1 << edge.caller[0]
                line = self._evaluator.index.function(edge.caller).calls[edge.call_index].line
                return f"at the call in `{self._evaluator.index.function(edge.caller).qualname}`, line {line}, {why}"
        return ""

    def _is_called_again(self, fid: FunctionId) -> bool:
        """Whether a call of the whole function is itself such a place, and so told in place of what lies inside."""
        index = self._evaluator.index
        for edge in self._evaluator.surroundings.callers(fid):
            call = index.function(edge.caller).calls[edge.call_index]
            if edge.certain and call.node >= 0 and self._why(edge.caller, call):
                self._evaluator.files |= 1 << edge.caller[0]
                return True
        return False

    def _is_told(self, fid: FunctionId, work: Work, found: Sequence[Work]) -> bool:
        """In one statement the outermost layer speaks for those inside it; of a chain over statements the first one."""
        graph = self._evaluator.graph_of(fid)
        for other in found:
            if other is work:
                continue
            same = work.spot.statement == other.spot.statement
            if same and work.call.node in reachable(graph, [other.call.node]):
                return True
            if not same and other.call.node in reachable(graph, [work.call.node]):
                return True
        return False
