"""What does not change in a loop: nodes whose operands are all bound before it, and that nothing in it writes to."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op, operands
from hostlint.facts.schema import RegionKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from hostlint.facts.graph import FunctionGraph
    from hostlint.facts.schema import FunctionOutline

    Leaf: TypeAlias = Callable[[int], "bool | None"]

VIEWS = frozenset({
    "view", "reshape", "expand", "expand_as", "unsqueeze", "squeeze", "transpose", "permute", "detach", "flatten", "unflatten", "chunk",
    "split", "unbind", "narrow", "select", "view_as", "t", "swapaxes", "movedim", "contiguous", "diagonal", "unfold", "as_strided",
})  # fmt: skip
TRAINS = re.compile(r"\.backward$|(^|\.)\w*(optim|optimizer|opt)\w*\.step$|^\w*backward$", re.IGNORECASE)
TRAINERS = re.compile(r"(^|[._])(train\w*|fit|loss\w*|backward|distill\w*|finetune\w*)(_|$)|Trainer", re.IGNORECASE)
HEAD_OPS = frozenset({Op.PHI, Op.ITER})


def around(outline: FunctionOutline, region: int) -> Iterator[int]:
    """The loops around a region, innermost first."""
    while region:
        if outline.regions[region].kind == RegionKind.LOOP:
            yield region
        region = outline.regions[region].parent


def is_training(outline: FunctionOutline) -> bool:
    """Whether a function trains, by its name or by what it calls: each of its steps has a batch of its own."""
    return bool(TRAINERS.search(outline.qualname)) or any(TRAINS.search(call.chain) for call in outline.calls)


class LoopBody:
    """The nodes of one loop's body: those from its head on. What comes after the loop counts as well, which only makes the answers shy."""

    def __init__(self, outline: FunctionOutline, graph: FunctionGraph, loop: int) -> None:
        self._graph = graph
        line = outline.regions[loop].line
        self.start = next((place for place, node in enumerate(graph.nodes) if _is_head(node, place, line)), -1)
        self.trains = any(
            TRAINS.search(call.chain) and loop in around(outline, call.region)
            for call in outline.calls
        )
        self.written = frozenset(self._written()) if self.start >= 0 else frozenset()

    def is_invariant(self, node: int, leaf: Leaf) -> bool:
        """Whether a node is the same in every pass; `leaf` judges what the graph alone cannot: calls, attributes, names. It says None
        where the operands decide."""
        if self.start < 0:
            return False
        seen: dict[int, bool] = {}
        return self._same(node, leaf, seen)

    def _same(self, node: int, leaf: Leaf, seen: dict[int, bool]) -> bool:
        if node not in seen:
            seen[node] = False  # what depends on itself changes
            seen[node] = self._judge(node, leaf, seen)
        return seen[node]

    def _judge(self, node: int, leaf: Leaf, seen: dict[int, bool]) -> bool:
        item: Any = self._graph.nodes[node]
        if node in self.written:
            return False
        if node < self.start:
            return True
        if item[0] in (Op.PHI, Op.ITER, Op.STORE, Op.APPEND, Op.MOVED, Op.UNKNOWN, Op.ENTER, Op.FUNCTION, Op.CLASS, Op.COMPREHENSION):
            return False
        if item[0] in (Op.ATTR, Op.GLOBAL, Op.FREE, Op.CALL) and (known := leaf(node)) is not None:
            return known
        return all(self._same(part, leaf, seen) for part in operands(item))

    def _written(self) -> Iterator[int]:
        """What is written to in place, with what it is a view of."""
        for place in range(self.start, len(self._graph.nodes)):
            node: Any = self._graph.nodes[place]
            if node[0] == Op.STORE:
                yield from self._viewed(node[2])
            elif node[0] == Op.BINOP and node[2].endswith("=") and node[2] not in ("==", "<=", ">=", "!="):
                yield from self._viewed(node[3])
            elif node[0] == Op.CALL:
                yield from (part for key, value in node[4] if key == "out" for part in self._viewed(value))
                callee: Any = self._graph.nodes[node[2]]
                if callee[0] == Op.ATTR and callee[3].endswith("_") and not callee[3].endswith("__"):
                    yield from self._viewed(callee[2])

    def _viewed(self, node: int) -> Iterator[int]:
        seen = set()
        queue = [node]
        while queue:
            node = queue.pop()
            if node in seen:
                continue
            seen.add(node)
            yield node
            item: Any = self._graph.nodes[node]
            if item[0] in (Op.INDEX, Op.REFINE, Op.UNPACK, Op.ATTR, Op.STORE, Op.MOVED):
                queue.append(item[2])
            elif item[0] == Op.CALL and (callee := self._graph.nodes[item[2]])[0] == Op.ATTR and callee[3] in VIEWS:
                queue.append(callee[2])
            elif item[0] == Op.PHI:
                queue.extend(item[2])


def _is_head(node: Any, place: int, line: int) -> bool:
    """The first node of a loop: a name that it binds again, or the element that it takes."""
    if node[1] != line or node[0] not in HEAD_OPS:
        return False
    return node[0] == Op.ITER or any(part > place for part in node[2])
