"""Caches that are looked up by the values of a device tensor which another function has read: the read is told there, the look-up here."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op, operands
from hostlint.facts.kinds import FactKind
from hostlint.model import Confidence
from hostlint.values.constancy import argument_of
from hostlint.values.detail import External, Function
from hostlint.values.identity import LOOK_UPS, MEMO
from hostlint.values.judging import Meeting
from hostlint.values.rebuilt import site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hostlint.facts.schema import Call
    from hostlint.facts.spans import Places
    from hostlint.index import FunctionId
    from hostlint.values.constancy import Constancy
    from hostlint.values.evaluator import Evaluator
    from hostlint.values.identity import Identity

COST = "not measured: the read waits for the device at each look-up, and hashing the values and building the result again come on top"
READS = frozenset({"tolist", "item", "numpy", "cpu"})
NUMBERS = frozenset({"int", "float", "bool"})
HANDED_ON = frozenset({"tuple", "list", "str", "bytes", "hash", "frozenset", "sorted", "repr"})
THROUGH = frozenset({Op.SEQUENCE, Op.INDEX, Op.UNPACK, Op.REFINE, Op.BINOP, Op.PHI, Op.COMPREHENSION, Op.ITER, Op.STAR})
DEPTH = 4


class ValueKeys:
    """Finds look-ups by values that were read from the device elsewhere."""

    def __init__(self, evaluator: Evaluator, constancy: Constancy, identity: Identity) -> None:
        self._evaluator = evaluator
        self._constancy = constancy
        self._identity = identity

    def meetings(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        outline = self._evaluator.index.function(fid)
        for call in outline.calls:
            keys = self._looked_up(fid, call) if call.node >= 0 and is_hot(call.region) else ()
            reads = [read for key in keys if (read := self._read(fid, key, DEPTH)) is not None]
            if reads and all(where != fid for where, _ in reads):
                where, line = reads[0]
                spot = places(call, outline.calls)
                if spot is not None:
                    path = "" if where[0] == fid[0] else f"{self._evaluator.index.files[where[0]].path}, "
                    name = self._evaluator.index.function(where).qualname
                    why = f"`{name}` reads them from a device tensor ({path}line {line})"
                    yield Meeting(FactKind.VALUE_KEY, site_of(call, spot), call.chain, why, Confidence.LIKELY, COST)

    def _looked_up(self, fid: FunctionId, call: Call) -> Sequence[int]:
        """The key of a look-up: the arguments of a kept function, what a dictionary is asked for."""
        frame = self._evaluator.frame(fid)
        item: Any = frame.graph.nodes[call.node]
        if item[0] != Op.CALL:
            return ()
        detail = frame.value(item[2]).detail
        if isinstance(detail, Function):
            decorators = self._evaluator.index.function(detail.function).decorators
            return [*item[3], *(value for _, value in item[4])] if any(MEMO.search(each) for each in decorators) else ()
        callee: Any = frame.graph.nodes[item[2]]
        asked = callee[0] == Op.ATTR and callee[3] in LOOK_UPS and self._identity.is_kept(fid, callee[2])
        return item[3][:1] if asked else ()

    def _read(self, fid: FunctionId, node: int, depth: int) -> tuple[FunctionId, int] | None:
        """Where a value was read from the device: the function and the line."""
        seen: set[int] = set()
        queue = [node]
        while queue:
            node = queue.pop()
            if node in seen:
                continue
            seen.add(node)
            item: Any = self._evaluator.graph_of(fid).nodes[node]
            if item[0] in THROUGH:
                queue.extend(part for part in operands(item) if part < node)
            elif item[0] == Op.PARAM and item[2] and depth:
                if (found := self._from_callers(fid, item[2], depth - 1)) is not None:
                    return found
            elif item[0] == Op.CALL:
                if self._is_read(fid, item):
                    return fid, item[1]
                if (found := self._from_call(fid, item, queue, depth)) is not None:
                    return found
        return None

    def _is_read(self, fid: FunctionId, item: Any) -> bool:
        frame = self._evaluator.frame(fid)
        callee: Any = frame.graph.nodes[item[2]]
        detail = frame.value(item[2]).detail
        name = detail.name.removeprefix("builtins.") if isinstance(detail, External) else ""
        source = item[3][0] if name in NUMBERS and item[3] else callee[2] if callee[0] == Op.ATTR and callee[3] in READS else -1
        return source >= 0 and frame.value(source).is_device and frame.value(source).confidence > Confidence.POSSIBLE

    def _from_call(self, fid: FunctionId, item: Any, queue: list[int], depth: int) -> tuple[FunctionId, int] | None:
        """Through `tuple(...)` and methods of what was read, and into the project's own functions."""
        frame = self._evaluator.frame(fid)
        callee: Any = frame.graph.nodes[item[2]]
        detail = frame.value(item[2]).detail
        if isinstance(detail, External):
            queue.extend(item[3] if detail.name.removeprefix("builtins.") in HANDED_ON | NUMBERS else ())
        elif isinstance(detail, Function) and depth:
            self._evaluator.files |= 1 << detail.function[0]
            returns = self._evaluator.graph_of(detail.function).returns
            return next((found for part in returns if (found := self._read(detail.function, part, depth - 1)) is not None), None)
        elif callee[0] == Op.ATTR:
            queue.append(callee[2])
        return None

    def _from_callers(self, fid: FunctionId, position: int, depth: int) -> tuple[FunctionId, int] | None:
        for edge in self._constancy.hot_callers(fid):
            argument = argument_of(self._evaluator, fid, position, edge) if edge.certain else None
            if argument is not None:
                self._evaluator.files |= 1 << edge.caller[0]
                if (found := self._read(*argument, depth)) is not None:
                    return found
        return None
