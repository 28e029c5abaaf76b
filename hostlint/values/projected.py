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
from hostlint.values.layers import KEY_VALUE, is_projection, is_unseen_layer, layer_name
from hostlint.values.loops import around
from hostlint.values.per_step import DEPTH, FILLED, IMAGES, TEXT
from hostlint.values.rebuilt import reachable, site_of
from hostlint.values.value import Place
from hostlint.values.worth import LEAST

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
        if self._is_handed_a_cache(fid):
            return  # the place to keep them in
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
            region = self._whole(fid, call)
            region = region if is_hot(region) else call.region
            repeated = Repeated(others=others(spot, works), in_blocks=self._worth.is_in_blocks(fid, region))
            site = site_of(call, spot)._replace(region=region)
            yield Meeting(FactKind.CONSTANT_PROJECTION, site, call.chain, whys[call.node], Confidence.LIKELY, UNMEASURED, repeated=repeated)

    def _whole(self, fid: FunctionId, call: Call) -> int:
        """Where the work is that a step repeats: what a loop over layers does to the text is one work."""
        graph, outline = self._evaluator.graph_of(fid), self._evaluator.index.function(fid)
        item: Any = graph.nodes[call.node]
        lines = {graph.nodes[node][1] for node in reachable(graph, [item[2]]) if graph.nodes[node][0] == Op.ITER}
        loop = next((loop for loop in around(outline, call.region) if outline.regions[loop].line in lines), 0)
        return outline.regions[loop].parent if loop else call.region

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
        if why and is_unseen_layer(frame, item) and not self._is_given_text(fid, given):
            return ""  # of positions and masks it may be a method that counts
        if why == "":
            return self._of_constants(fid, call, given)
        return (self._in_some_calls(fid, given[0]) if why is None and KEY_VALUE.match(layer_name(frame, item)) and given else why) or ""

    def _is_given_text(self, fid: FunctionId, given: Sequence[int]) -> bool:
        graph, params = self._evaluator.graph_of(fid), self._evaluator.index.function(fid).params
        nodes: Any = graph.nodes
        names = [params[nodes[node][2]].name for node in reachable(graph, given) if nodes[node][0] == Op.PARAM]
        return any(TEXT.match(name) or IMAGES.match(name) for name in names)

    def _of_constants(self, fid: FunctionId, call: Call, given: Sequence[int]) -> str:
        """An embedding of zeros or positions that the denoiser makes itself, one for each token."""
        graph, root = self._evaluator.graph_of(fid), self._steps.root(fid)
        nodes: Any = graph.nodes
        called = [nodes[node] for node in given if root and nodes[node][0] == Op.CALL and nodes[nodes[node][2]][0] == Op.ATTR]
        sizes = [size for item in called for size in self._sizes(nodes, item)]
        large = sizes and self._worth.of_constant(fid, call.region, sizes, LEAST, False) is Confidence.LIKELY
        return f"it is given constants, the same at every step of {root}" if large else ""

    def _sizes(self, nodes: Any, item: Any) -> Sequence[int]:
        """What decides how large a table is that a factory fills: one of two axes or more, or one of positions; none for others."""
        name = nodes[item[2]][3]
        given = item[3][:1] if name == "full" else item[3]
        axes = nodes[given[0]][3] if given and nodes[given[0]][0] == Op.SEQUENCE else given
        return axes if name == "arange" or (name in FILLED and len(axes) > 1) else ()

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

    def _is_handed_a_cache(self, fid: FunctionId) -> bool:
        return any(CACHES.search(param.name) for param in self._evaluator.index.function(fid).params)

    def _is_called_again(self, fid: FunctionId) -> bool:
        """Whether a call of the whole function is itself such a place, and so told in place of what lies inside."""
        index = self._evaluator.index
        for edge in self._evaluator.surroundings.callers(fid):
            call = index.function(edge.caller).calls[edge.call_index]
            if edge.certain and call.node >= 0 and not self._is_handed_a_cache(edge.caller) and self._why(edge.caller, call):
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
            later = other.call.node > work.call.node  # in a loop each reaches the other
            if same and later and work.call.node in reachable(graph, [other.call.node]):
                return True
            if not same and not later and other.call.node in reachable(graph, [work.call.node]):
                return True
        return False
