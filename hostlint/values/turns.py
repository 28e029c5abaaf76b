"""Calls of one function that take turns in one step with other arguments, and what these arguments follow from."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from hostlint.facts.arms import are_exclusive
from hostlint.facts.graph import Op, operands
from hostlint.heat.words import Walk, loop_walks
from hostlint.model import Confidence
from hostlint.values.constancy import METADATA, PLACES, SHAPE_CALLS, argument_of
from hostlint.values.loops import around
from hostlint.values.per_step import TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostlint.facts.schema import Call
    from hostlint.facts.spans import Places
    from hostlint.index import FunctionId
    from hostlint.values.constancy import Constancy
    from hostlint.values.evaluator import Caller, Evaluator
    from hostlint.values.per_step import StepConstancy

DEPTH = 4  # functions between the memo and the calls that take turns
MANY = 16
BRANCHES = re.compile(r"branch|(?<!se)cond|prompt|text|guid|cfg|caption|speaker|lang", re.IGNORECASE)
OF_TEXT = re.compile(rf"{TEXT.pattern}|^(prompt|text|txt|caption|cap|encoder)_\w*(lens?|lengths?|mask)$")
KEEPS_SHAPE = frozenset({"to", "float", "half", "bfloat16", "double", "clone", "detach", "contiguous", "cuda", "type"})
THROUGH = frozenset({
    Op.INDEX, Op.SLICE, Op.BINOP, Op.UNARY, Op.COMPARE, Op.BOOL, Op.PHI, Op.SEQUENCE, Op.DICT, Op.COMPREHENSION, Op.ITER, Op.UNPACK,
    Op.REFINE, Op.STAR, Op.STORE, Op.APPEND, Op.CALL,
})  # fmt: skip


class Source(NamedTuple):
    """What a key follows from: a parameter, by its shape or by its value."""

    position: int
    by_shape: bool


class Turn(NamedTuple):
    """Two calls, or the passes of a loop, that hand over other values in turn."""

    fid: FunctionId
    lines: tuple[int, ...]  # of the two calls; of the loop; none where only convention says so
    region: int
    name: str  # of the parameter that differs
    confidence: Confidence


class Turns:
    """Finds them, from the function that must not be called in turns upwards."""

    def __init__(self, evaluator: Evaluator, constancy: Constancy, steps: StepConstancy) -> None:
        self._evaluator = evaluator
        self._constancy = constancy
        self._steps = steps

    def of(self, fid: FunctionId, sources: Sequence[Source], places: Places, depth: int = DEPTH) -> Turn | None:
        """The first calls of a function that take turns in what its key follows from, or those of a function that calls it."""
        if not sources or not depth:
            return None
        edges = [edge for edge in self._constancy.hot_callers(fid) if edge.among < 3]
        seen = self._seen(fid, sources, edges, places, depth) if len(edges) <= MANY else None
        return seen or self._by_convention(fid, sources)

    def _seen(self, fid: FunctionId, sources: Sequence[Source], edges: Sequence[Caller], places: Places, depth: int) -> Turn | None:
        for caller in dict.fromkeys(edge.caller for edge in edges):
            self._evaluator.files |= 1 << caller[0]
            here = [edge for edge in edges if edge.caller == caller]
            turn = self._pair(fid, sources, here, places) or self._loop(fid, sources, here)
            if turn is not None:
                return turn
        for edge in edges:
            turn = self.of(edge.caller, self._sources_of(fid, sources, edge), places, depth - 1)
            if turn is not None:
                return turn if edge.certain else turn._replace(confidence=Confidence.POSSIBLE)
        return None

    def _by_convention(self, fid: FunctionId, sources: Sequence[Source]) -> Turn | None:
        """A denoiser that takes the time and the text: guidance calls it for each branch, with another text."""
        params = self._evaluator.index.function(fid).params
        texts = [params[source.position].name for source in sources if OF_TEXT.match(params[source.position].name)]
        return Turn(fid, (), 0, texts[0], Confidence.POSSIBLE) if texts and self._steps.is_denoiser(fid) else None

    def sources(self, fid: FunctionId, node: int) -> Iterator[Source]:
        """The parameters that a node follows from."""
        nodes: Sequence[Any] = self._evaluator.graph_of(fid).nodes
        first = int(self._evaluator.index.function(fid).owner >= 0)
        seen: set[tuple[int, bool]] = set()
        queue = [(node, False)]
        while queue:
            node, by_shape = queue.pop()
            if (node, by_shape) in seen or node < 0:
                continue
            seen.add((node, by_shape))
            item = nodes[node]
            if item[0] == Op.PARAM:
                if item[2] >= first:
                    yield Source(item[2], by_shape or self._is_tensor(fid, node))
            elif item[0] == Op.ATTR:
                queue += [] if item[3] in PLACES else [(item[2], by_shape or item[3] in METADATA)]
            elif item[0] == Op.CALL:
                callee = nodes[item[2]]
                shape = by_shape or (callee[0] == Op.ATTR and callee[3] in SHAPE_CALLS)
                queue += [(part, shape) for part in (*item[3], *(value for _, value in item[4]))]
                queue += [(callee[2], shape)] if callee[0] == Op.ATTR else []
            elif item[0] in THROUGH:
                queue += [(part, by_shape) for part in operands(item)]

    def _is_tensor(self, fid: FunctionId, node: int) -> bool:
        return self._evaluator.frame(fid).value(node).is_tensor

    def _sources_of(self, fid: FunctionId, sources: Sequence[Source], edge: Caller) -> list[Source]:
        """What the key follows from in the function that makes a call."""
        found: dict[Source, None] = {}
        for source in sources:
            argument = argument_of(self._evaluator, fid, source.position, edge)
            if argument is not None and argument[0] == edge.caller:
                for each in self.sources(*argument):
                    found[Source(each.position, each.by_shape or source.by_shape)] = None
        return list(found)

    def _call(self, edge: Caller) -> Call:
        return self._evaluator.index.function(edge.caller).calls[edge.call_index]

    def _pair(self, fid: FunctionId, sources: Sequence[Source], edges: Sequence[Caller], places: Places) -> Turn | None:
        """Two calls of one pass on one object."""
        for place, edge in enumerate(edges):
            for earlier in edges[:place]:
                one, other = self._call(earlier), self._call(edge)
                outline = self._evaluator.index.function(edge.caller)
                alike = one.chain == other.chain and list(around(outline, one.region)) == list(around(outline, other.region))
                if not alike:
                    continue
                name, confidence = self._differing(fid, sources, earlier, edge)
                if name and not are_exclusive(places.text_of(edge.caller[0]), one.line, other.line):
                    sure = confidence if edge.certain and earlier.certain else Confidence.POSSIBLE
                    return Turn(edge.caller, (one.line, other.line), other.region, name, sure)
        return None

    def _differing(self, fid: FunctionId, sources: Sequence[Source], one: Caller, other: Caller) -> tuple[str, Confidence]:
        """The parameter that two calls give other values; "" where none is seen to differ."""
        found, best = "", Confidence.POSSIBLE
        for source in sources:
            first, second = (argument_of(self._evaluator, fid, source.position, edge) for edge in (one, other))
            if first is None or second is None or first[0] != second[0]:
                continue
            sure = self._differs(first[0], first[1], second[1], source)
            if sure is not None and (not found or sure > best):
                found, best = self._evaluator.index.function(fid).params[source.position].name, sure
        return found, best

    def _differs(self, fid: FunctionId, one: int, other: int, source: Source) -> Confidence | None:
        """How surely two nodes differ in what the key takes of them; None where they may well be the same."""
        nodes: Sequence[Any] = self._evaluator.graph_of(fid).nodes
        first, second = self._root(fid, one, source.by_shape), self._root(fid, other, source.by_shape)
        if is_alike(nodes, first, second):
            return None
        if source.by_shape or self._takes_shape(nodes, one) or self._takes_shape(nodes, other):
            names = [self._evaluator.frame(fid).node_name(node).rpartition(".")[2] for node in (first, second)]
            texts = sum(bool(TEXT.match(name) or BRANCHES.search(name)) for name in names)
            return Confidence.LIKELY if texts else Confidence.POSSIBLE
        return Confidence.LIKELY

    def _takes_shape(self, nodes: Sequence[Any], node: int) -> bool:
        item = nodes[node]
        whole = nodes[item[2]] if item[0] == Op.INDEX else item
        return bool(whole[0] == Op.ATTR and whole[3] in METADATA)

    def _root(self, fid: FunctionId, node: int, by_shape: bool) -> int:
        """What gives a node its value; where only its shape counts, what gives it its shape."""
        nodes: Sequence[Any] = self._evaluator.graph_of(fid).nodes
        while True:
            item = nodes[node]
            if item[0] == Op.REFINE or self._takes_shape(nodes, node):
                node = item[2]
            elif by_shape and item[0] in (Op.UNARY, Op.BINOP):
                node = item[3]
            elif by_shape and item[0] == Op.CALL and (start := self._keeps_shape(nodes, item)) >= 0:
                node = start
            else:
                return node

    def _keeps_shape(self, nodes: Sequence[Any], item: Any) -> int:
        callee = nodes[item[2]]
        if callee[0] != Op.ATTR:
            return -1
        if callee[3].endswith("_like") and item[3]:
            return int(item[3][0])
        return int(callee[2]) if callee[3] in KEEPS_SHAPE else -1

    def _loop(self, fid: FunctionId, sources: Sequence[Source], edges: Sequence[Caller]) -> Turn | None:
        """One call in a loop within a step: over branches, or over the parts of a batch."""
        for edge in edges:
            call, outline = self._call(edge), self._evaluator.index.function(edge.caller)
            loop = next(around(outline, call.region), 0)
            head = outline.regions[loop]
            by_name = any(map(BRANCHES.search, (head.text, *head.targets)))
            walk = loop_walks(head.text, head.targets)
            if not loop or head.text.startswith("while") or walk is Walk.STEPS or (walk is Walk.LAYERS and not by_name):
                continue
            if not self._evaluator.surroundings.is_hot(edge.caller, head.parent):
                continue  # the loop itself is what heats the place: each pass is a step
            for source in sources:
                argument = argument_of(self._evaluator, fid, source.position, edge)
                if argument is not None and argument[0] == edge.caller and self._is_item(edge.caller, argument[1], head.line):
                    sure = Confidence.LIKELY if edge.certain and (not source.by_shape or by_name) else Confidence.POSSIBLE
                    name = self._evaluator.index.function(fid).params[source.position].name
                    return Turn(edge.caller, (head.line,), call.region, name, sure)
        return None

    def _is_item(self, fid: FunctionId, node: int, line: int) -> bool:
        """Whether a node is, or is a part of, the element that a loop takes in each pass."""
        nodes: Sequence[Any] = self._evaluator.graph_of(fid).nodes
        for _ in range(MANY):
            item = nodes[node]
            if item[0] == Op.ITER:
                return bool(item[1] == line)
            if item[0] not in (Op.ATTR, Op.INDEX, Op.UNPACK, Op.REFINE):
                return False
            node = item[2]
        return False


def is_alike(nodes: Sequence[Any], one: int, other: int) -> bool:
    """Whether two nodes are the same by how they are written."""
    if one == other:
        return True
    first, second = nodes[one], nodes[other]
    if first[0] != second[0] or first[0] in (Op.PHI, Op.ITER, Op.UNKNOWN, Op.ENTER):
        return False
    if first[0] in (Op.CONST, Op.GLOBAL, Op.PARAM, Op.IMPORT, Op.FREE):
        return bool(first[2:] == second[2:])
    parts, others = list(operands(first)), list(operands(second))
    words = [[part for part in item[2:] if isinstance(part, str)] for item in (first, second)]
    return words[0] == words[1] and len(parts) == len(others) and all(is_alike(nodes, a, b) for a, b in zip(parts, others, strict=True))
