"""Fresh tensors that are handed to caches keyed by identity: made anew at every step, or once for each branch of guidance."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op, operands
from hostlint.facts.kinds import FactKind
from hostlint.model import Confidence
from hostlint.values.detail import External, Function, Instance
from hostlint.values.identity import HOPS, MEMO
from hostlint.values.judging import Meeting
from hostlint.values.loops import VIEWS, around
from hostlint.values.rebuilt import site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hostlint.facts.schema import Call
    from hostlint.facts.spans import Places
    from hostlint.index import FunctionId
    from hostlint.values.evaluator import Evaluator
    from hostlint.values.identity import Identity

MISSES = "not measured: the look-up, and all that the cache was to save, at every step"
MAKERS = frozenset({
    "cat", "concat", "stack", "contiguous", "clone", "repeat", "repeat_interleave", "arange", "linspace", "zeros", "ones", "full", "tensor",
    "as_tensor", "new_tensor", "new_zeros", "new_ones", "new_full", "where", "zeros_like", "ones_like", "full_like", "roll", "outer",
})  # fmt: skip
FRESH = MAKERS | VIEWS
DEPTH = 3  # functions that hand a parameter on to the one that looks it up


class Feeds:
    """Finds what is handed to functions that look up by identity."""

    def __init__(self, evaluator: Evaluator, identity: Identity) -> None:
        self._evaluator = evaluator
        self._identity = identity
        self._known: dict[FunctionId, tuple[tuple[int, bool], ...]] = {}

    def meetings(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        outline = self._evaluator.index.function(fid)
        told: set[int] = set()
        fed = [(call, *pair) for call in outline.calls if call.node >= 0 and is_hot(call.region) for pair in self._handed(fid, call)]
        found = [pair for call, node, address, why in fed if (pair := self._anew(fid, call, node, address, why)) is not None]
        for made, region, why in [*found, *self._branches(fid, fed)]:
            spot = places(made, outline.calls) if made.node not in told else None
            if spot is not None:
                told.add(made.node)
                site = site_of(made, spot)._replace(region=region)  # as hot as the look-up
                yield Meeting(FactKind.IDENTITY_KEY, site, made.chain, why, Confidence.LIKELY, MISSES, "fresh")
        yield from self._identity.addresses(fid, is_hot, places, self)

    def passes(self, fid: FunctionId, node: int) -> bool:
        """Whether a tensor is made in the step that looks it up, here or by a caller, and so will be freed."""
        nodes: Sequence[Any] = self._evaluator.graph_of(fid).nodes
        if self._fresh(fid, node, address=True) is not None:
            return True
        while nodes[node][0] in (Op.REFINE, Op.UNPACK, Op.INDEX):
            node = nodes[node][2]
        if nodes[node][0] != Op.PARAM:
            return False
        for edge in self._evaluator.surroundings.callers(fid):
            outline = self._evaluator.index.function(edge.caller)
            call = outline.calls[edge.call_index]
            if edge.certain and call.node >= 0 and self._evaluator.surroundings.is_hot(edge.caller, call.region):
                self._evaluator.files |= 1 << edge.caller[0]
                item: Any = self._evaluator.graph_of(edge.caller).nodes[call.node]
                given = _argument(self._evaluator, fid, nodes[node][2], item) if item[0] == Op.CALL else -1
                if given >= 0 and self._fresh(edge.caller, given, address=True) is not None:
                    return True
        return False

    def _handed(self, fid: FunctionId, call: Call) -> Iterator[tuple[int, bool, str]]:
        """What a call hands over by identity: the node, whether only its address counts, and in words by whom."""
        item: Any = self._evaluator.graph_of(fid).nodes[call.node]
        if item[0] != Op.CALL or item[5] or not self._hands_fresh(fid, item):
            return
        target = self._target(fid, item)
        if target is None:
            return
        outline = self._evaluator.index.function(target)
        for position, address in self.keyed(target):
            node = _argument(self._evaluator, target, position, item)
            if node >= 0:
                yield node, address, f"`{outline.name}` looks its result up by the identity of `{outline.params[position].name}`"

    def _hands_fresh(self, fid: FunctionId, item: Any) -> bool:
        """Whether an argument may be made in this function: asked of the graph alone, since few calls do that and most are asked."""
        nodes: Sequence[Any] = self._evaluator.graph_of(fid).nodes
        queue, seen = [*item[3], *(value for _, value in item[4])], set()
        while queue:
            node = queue.pop()
            part = nodes[node]
            if node in seen:
                continue
            seen.add(node)
            if part[0] == Op.CALL:
                callee = nodes[part[2]]
                if callee[-1] in FRESH:
                    return True
                queue.extend([callee[2]] if callee[0] == Op.ATTR else [])
            elif part[0] in HOPS:
                queue.extend(one for one in operands(part) if one < node)
        return False

    def _anew(self, fid: FunctionId, call: Call, node: int, address: bool, why: str) -> tuple[Call, int, str] | None:
        """The call that makes the tensor in the very pass that looks it up, once; and the region of the look-up."""
        outline = self._evaluator.index.function(fid)
        made = self._fresh(fid, node, address)
        if made is None or list(around(outline, made.region)) != list(around(outline, call.region)) or self._look_ups(fid, node) != 1:
            return None
        return made, call.region, why

    def _branches(self, fid: FunctionId, fed: Sequence[tuple[Call, int, bool, str]]) -> Iterator[tuple[Call, int, str]]:
        """Two objects of the same making that one loop looks up in turn: each drives the other out of a cache of one entry."""
        outline = self._evaluator.index.function(fid)
        for place, (call, node, address, why) in enumerate(fed):
            loop = next(around(outline, call.region), 0)
            made = self._fresh(fid, node, address) if loop else None
            if made is None or loop in around(outline, made.region):
                continue
            for other, older, _, same in fed[:place]:
                first = self._fresh(fid, older, address)
                alike = first is not None and first is not made and same == why and next(around(outline, other.region), 0) == loop
                if alike and first is not None and self._is_same_making(fid, first.node, made.node):
                    yield made, call.region, f"{why}, which the call at line {other.line} gave another one of the same making"
                    break

    def _is_same_making(self, fid: FunctionId, one: int, other: int) -> bool:
        """Whether two nodes are written alike over the same literals and names: their tensors hold the same."""
        nodes: Sequence[Any] = self._evaluator.graph_of(fid).nodes
        first, second = nodes[one], nodes[other]
        if one == other:
            return True
        if first[0] != second[0] or first[0] in (Op.PHI, Op.ITER, Op.UNKNOWN, Op.ENTER):
            return False
        if first[0] in (Op.CONST, Op.GLOBAL, Op.PARAM, Op.IMPORT):
            return bool(first[2:] == second[2:])
        parts, others = list(operands(first)), list(operands(second))
        if first[0] == Op.CALL:
            named = [name for name, _ in first[4]] == [name for name, _ in second[4]]
        else:
            named = first[0] not in (Op.ATTR, Op.BINOP, Op.SEQUENCE, Op.UNARY) or first[3 if first[0] == Op.ATTR else 2] == second[
                3 if second[0] == Op.ATTR else 2
            ]
        return named and len(parts) == len(others) and all(self._is_same_making(fid, a, b) for a, b in zip(parts, others, strict=True))

    def _target(self, fid: FunctionId, item: Any) -> FunctionId | None:
        if item[0] != Op.CALL:
            return None
        detail = self._evaluator.frame(fid).value(item[2]).detail
        target = detail.function if isinstance(detail, Function) else None
        if isinstance(detail, Instance):
            target = self._evaluator.index.find_method(detail.klass, "forward")
        if target is not None:
            self._evaluator.files |= 1 << target[0]
        return target

    def keyed(self, fid: FunctionId, depth: int = DEPTH) -> tuple[tuple[int, bool], ...]:
        """The parameters by whose identity a function, or one that it hands them on to, looks up; and whether only their address counts."""
        if fid not in self._known:
            self._known[fid] = ()
            found = dict(self._own(fid))
            outline, nodes = self._evaluator.index.function(fid), self._evaluator.graph_of(fid).nodes
            for call in outline.calls if depth else ():
                item: Any = nodes[call.node] if call.node >= 0 else (-1,)
                given = [*item[3], *(value for _, value in item[4])] if item[0] == Op.CALL else ()
                if not any(nodes[node][0] == Op.PARAM for node in given):
                    continue
                target = self._target(fid, item)
                for position, address in self.keyed(target, depth - 1) if target is not None and target != fid else ():
                    node = _argument(self._evaluator, target, position, item) if target is not None else -1
                    part: Any = nodes[node] if node >= 0 else (-1,)
                    if part[0] == Op.PARAM and part[2]:
                        found.setdefault(int(part[2]), address)
            self._known[fid] = tuple(found.items())
        return self._known[fid]

    def _own(self, fid: FunctionId) -> Iterator[tuple[int, bool]]:
        outline, graph = self._evaluator.index.function(fid), self._evaluator.graph_of(fid)
        if any(MEMO.search(decorator) for decorator in outline.decorators):
            yield from ((place, False) for place, param in enumerate(outline.params) if "Tensor" in param.annotation)
            return
        for key in self._identity.keys(fid):
            source: Any = graph.nodes[key.tensor]
            while source[0] in (Op.REFINE, Op.UNPACK, Op.INDEX):
                source = graph.nodes[source[2]]
            if source[0] == Op.PARAM:
                yield int(source[2]), key.is_address

    def _fresh(self, fid: FunctionId, node: int, address: bool) -> Call | None:
        """The first call that makes the tensor anew; with an address for a key a view is not new."""
        graph = self._evaluator.graph_of(fid)
        calls = {call.node: call for call in self._evaluator.index.function(fid).calls}
        queue, found = [node], []
        while queue:
            node = queue.pop()
            item: Any = graph.nodes[node]
            if item[0] in HOPS:
                queue.extend(part for part in operands(item) if part < node)
            elif item[0] == Op.CALL and node in calls:
                frame = self._evaluator.frame(fid)
                callee: Any = graph.nodes[item[2]]
                detail = frame.value(item[2]).detail
                receiver = callee[2] if callee[0] == Op.ATTR and not isinstance(detail, External) else -1
                is_tensor = frame.value(node).is_tensor or (isinstance(detail, External) and detail.name.startswith("torch."))
                name = calls[node].chain.rpartition(".")[2]
                if is_tensor and self._is_made(name, graph.nodes, receiver, address):
                    found.append(node)
                queue.extend([receiver] if receiver >= 0 else [])
        return calls[min(found)] if found else None

    def _is_made(self, name: str, nodes: Sequence[Any], receiver: int, address: bool) -> bool:
        """`contiguous()` gives the tensor itself where it is contiguous already: only after a slice it is another one."""
        if name == "contiguous":
            return receiver >= 0 and nodes[receiver][0] == Op.INDEX
        return name in MAKERS or (name in VIEWS and not address)

    def _look_ups(self, fid: FunctionId, node: int) -> int:
        """How many calls look something up by the very object: several share its identity, as the cache wants it."""
        found = 0
        for item in self._evaluator.graph_of(fid).nodes:
            target = self._target(fid, item) if item[0] == Op.CALL and node in operands(item)[1:] else None
            if target is not None:
                found += any(_argument(self._evaluator, target, position, item) == node for position, _ in self.keyed(target))
        return found


def _argument(evaluator: Evaluator, fid: FunctionId, position: int, item: Any) -> int:
    """The node that a call passes for a parameter, -1 where it passes none."""
    outline = evaluator.index.function(fid)
    slot = position - int(outline.owner >= 0)
    named = dict(item[4])
    if outline.params[position].name in named:
        return int(named[outline.params[position].name])
    return int(item[3][slot]) if 0 <= slot < len(item[3]) else -1
