"""What one function does with a tensor that may be a counter: which nodes are it, what is written to it, and what only follows from it."""
from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from hostlint.facts.graph import Op, operands
from hostlint.values.detail import Class, External, Function
from hostlint.values.host_numbers import is_given, is_one_element

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from hostlint.values.evaluator import Frame

PLACEMENT = frozenset({"device", "dtype", "requires_grad", "pin_memory", "layout", "non_blocking"})
ALIASES = frozenset({"data", "detach", "view", "reshape", "squeeze", "requires_grad_", "detach_"})
ADDS = frozenset({"add_", "sub_"})
SETS = frozenset({"fill_", "zero_", "copy_"})
FOLLOWS = frozenset({Op.BINOP, Op.UNARY, Op.COMPARE, Op.BOOL})
ASKED = frozenset({  # builtins that are given the tensor and keep nothing of it
    "int", "float", "bool", "str", "repr", "print", "len", "min", "max", "abs", "round", "range", "isinstance", "hasattr", "getattr",
    "format", "type", "id",
})  # fmt: skip
SPREADS = ("torch.distributed.", "torch._foreach", "torch._fused", "torch.optim.")
ROUNDS = 4


class WriteKind(IntEnum):
    COUNTS = 0  # adds a number of the host's
    SETS = 1  # puts a number of the host's in
    UNKNOWN = 2  # anything else, or something that may write


class Write(NamedTuple):
    kind: WriteKind
    node: int
    line: int


class Flow:
    """`seeds` are nodes that are the counter; `stored` those that the function binds to it."""

    def __init__(self, frame: Frame, seeds: Collection[int], stored: Collection[int] = ()) -> None:
        self._frame = frame
        self._nodes: Sequence[Any] = frame.graph.nodes
        self._seeds = frozenset(seeds)
        self.same: set[int] = set()  # the tensor itself, or a view of it
        self.follows: set[int] = set()  # what follows from it and numbers of the host's
        self._spread(self._merged(stored))
        self.writes = tuple(self._written(stored))

    def numbers(self, nodes: Sequence[int]) -> bool:
        """Whether these are numbers that the host has, or follow from the counter and such."""
        return all(node in self.follows or node in self.same or is_given(self._frame, node) for node in nodes)

    def is_given_a_name(self, node: int) -> bool:
        """Whether a write puts in what is no literal: another number each time."""
        item = self._nodes[node]
        parts = [*item[3], *(value for _, value in item[4])] if item[0] == Op.CALL else [item[4]] if item[0] == Op.STORE else []
        return any(self._nodes[part][0] != Op.CONST for part in parts)

    def _merged(self, stored: Collection[int]) -> set[int]:
        """The names that loops and branches bind to the counter or to what follows from it; those that may be something else fall away."""
        merged = {node for node, item in enumerate(self._nodes) if item[0] == Op.PHI and item[2]}
        while True:
            self._spread(merged)
            wrong = {node for node in merged & self.same if not self.numbers(self._nodes[node][2])}
            apart = {node for node in merged if node not in self.same}
            if not wrong and not apart:
                return merged
            merged -= wrong | apart

    def _spread(self, merged: Collection[int]) -> None:
        self.same, self.follows = set(self._seeds), set()
        for _ in range(ROUNDS):
            before = len(self.same) + len(self.follows)
            for node, item in enumerate(self._nodes):
                if (node in merged and not self.same.isdisjoint(item[2])) or self._is_same(item):
                    self.same.add(node)
                elif self._is_led(item):
                    self.follows.add(node)
            if len(self.same) + len(self.follows) == before:
                return

    def _is_same(self, item: Any) -> bool:
        if item[0] == Op.REFINE:
            return item[2] in self.same
        if item[0] == Op.ATTR:
            return item[2] in self.same and item[3] in ALIASES
        if item[0] == Op.BINOP:
            return item[2].endswith("=") and item[2] not in ("==", "!=", "<=", ">=") and item[3] in self.same
        if item[0] == Op.CALL:
            callee = self._nodes[item[2]]
            return callee[0] == Op.ATTR and callee[2] in self.same and (callee[3] in ALIASES or callee[3].endswith("_"))
        return False

    def _is_led(self, item: Any) -> bool:
        known = self.same | self.follows
        if item[0] == Op.REFINE:
            return item[2] in known
        if item[0] in FOLLOWS:
            return not known.isdisjoint(operands(item)) and self.numbers(operands(item))
        if item[0] != Op.CALL:
            return False
        callee = self._nodes[item[2]]
        given = [*item[3], *(value for _, value in item[4])]
        if callee[0] == Op.ATTR and callee[2] in known:
            return not callee[3].endswith("_") and self.numbers(given)
        outside = isinstance(self._frame.value(item[2]).detail, External)
        return outside and not known.isdisjoint(given) and self.numbers(given)

    def _written(self, stored: Collection[int]) -> Iterator[Write]:
        for node in stored:
            item = self._nodes[node]
            if node in self.follows and item[0] in (Op.BINOP, Op.CALL):
                yield Write(WriteKind.COUNTS, node, item[1])
            elif node not in self.same:
                yield Write(WriteKind.SETS if is_one_element(self._frame, node) else WriteKind.UNKNOWN, node, item[1])
        carried = {part for node in self.same if self._nodes[node][0] == Op.PHI for part in self._nodes[node][2]}
        for node, item in enumerate(self._nodes):
            if item[0] == Op.BINOP:
                yield from self._added(node, item, node in carried)
            elif item[0] == Op.STORE:
                yield from self._put(node, item)
            elif item[0] == Op.CALL:
                yield from self._called(node, item)
            elif item[0] == Op.APPEND and item[3] in self.same:
                yield Write(WriteKind.UNKNOWN, node, item[1])

    def _added(self, node: int, item: Any, is_carried: bool) -> Iterator[Write]:
        """`x += n`; and `x + n` where a loop or branch binds it to the counter's name."""
        if node in self.same:
            kind = WriteKind.COUNTS if item[2] in ("+=", "-=") else WriteKind.SETS
            yield Write(kind if self.numbers([item[4]]) else WriteKind.UNKNOWN, node, item[1])
        elif is_carried and node in self.follows:
            yield Write(WriteKind.COUNTS, node, item[1])

    def _put(self, node: int, item: Any) -> Iterator[Write]:
        if item[2] in self.same:
            yield Write(WriteKind.SETS if self.numbers([item[4]]) else WriteKind.UNKNOWN, node, item[1])
        elif item[4] in self.same and not self._frame.value(item[2]).is_tensor:
            yield Write(WriteKind.UNKNOWN, node, item[1])  # another holds it as well

    def _called(self, node: int, item: Any) -> Iterator[Write]:
        callee = self._nodes[item[2]]
        given = [*item[3], *(value for _, value in item[4])]
        if callee[0] == Op.ATTR and callee[2] in self.same:
            if callee[3].endswith("_") and callee[3] not in ALIASES:
                known = self.numbers([part for part in given if not _is_placement(self._nodes, item, part)])
                kind = WriteKind.COUNTS if callee[3] in ADDS else WriteKind.SETS if callee[3] in SETS else WriteKind.UNKNOWN
                yield Write(kind if known else WriteKind.UNKNOWN, node, item[1])
            return
        if any(name == "out" and value in self.same for name, value in item[4]):
            yield Write(WriteKind.COUNTS if self.numbers(given) else WriteKind.UNKNOWN, node, item[1])
        elif self._holds(given) and self._may_keep(item):
            yield Write(WriteKind.UNKNOWN, node, item[1])

    def _holds(self, given: Sequence[int]) -> bool:
        """Whether the counter itself is among the arguments, alone or in a list."""
        parts = [part for node in given for part in (self._nodes[node][3] if self._nodes[node][0] == Op.SEQUENCE else (node,))]
        return not self.same.isdisjoint(parts)

    def _may_keep(self, item: Any) -> bool:
        """Whether what is called may write to its argument, or hand it on to who does: anything but pure functions and arithmetic."""
        callee = self._nodes[item[2]]
        detail = self._frame.value(item[2]).detail
        if isinstance(detail, External):
            name = detail.name.removeprefix("builtins.")
            return not (name in ASKED or name.startswith("math.") or (name.startswith("torch.") and not name.startswith(SPREADS)))
        if isinstance(detail, Function):
            return writes_its_argument(self._frame, detail.function, item, self.same)
        if isinstance(detail, Class):
            return True
        return not (callee[0] == Op.ATTR and self._frame.value(callee[2]).is_tensor and not callee[3].endswith("_"))


def writes_its_argument(frame: Frame, target: tuple[int, int], item: Any, same: Collection[int]) -> bool:
    """Whether a function of the project may write to the counter that it is given; one that hands it on is not followed."""
    evaluator = frame.evaluator
    outline = evaluator.index.function(target)
    evaluator.files |= 1 << target[0]
    inner = evaluator.frame(target, max(frame.fuel - 1, 0))
    offset = int(outline.owner >= 0)
    named = {name for name, value in item[4] if value in same}
    places = {place + offset for place, node in enumerate(item[3]) if node in same}
    places |= {place for place, param in enumerate(outline.params) if param.name in named}
    seeds = {node for node, part in enumerate(inner.graph.nodes) if part[0] == Op.PARAM and part[2] in places}
    if item[5] or frame.fuel <= 0 or any(part[0] == Op.CALL and _hands_on(inner, part, seeds) for part in inner.graph.nodes):
        return True
    return any(write.kind is not WriteKind.COUNTS or write.node in seeds for write in Flow(inner, seeds).writes) if seeds else True


def _hands_on(frame: Frame, item: Any, seeds: Collection[int]) -> bool:
    handed = any(node in seeds for node in (*item[3], *(value for _, value in item[4])))
    return handed and isinstance(frame.value(item[2]).detail, Function)


def _is_placement(nodes: Sequence[Any], item: Any, part: int) -> bool:
    return any(name in PLACEMENT and value == part for name, value in item[4])
