"""What a function computes from its constants and nothing else: which of them go into one thing, and how many launches make it."""
from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from hostlint.facts.graph import Op, operands
from hostlint.values.constancy import METADATA, PLACES, Steady
from hostlint.values.detail import External, Function
from hostlint.values.loops import VIEWS
from hostlint.values.shapes import is_fixed_index

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostlint.index import FunctionId
    from hostlint.values.constancy import Constancy
    from hostlint.values.evaluator import Evaluator
    from hostlint.values.hoisted import Hoisted
    from hostlint.values.size_tables import SizeTables

PLACEMENT = frozenset({"device", "dtype", "layout", "requires_grad", "pin_memory", "out", "non_blocking", "copy", "memory_format"})
FRESH = frozenset({"zeros", "ones", "full", "empty", "new_zeros", "new_ones", "new_full", "new_empty"})
THROUGH = frozenset({Op.INDEX, Op.BINOP, Op.UNARY, Op.COMPARE, Op.SEQUENCE, Op.UNPACK, Op.REFINE, Op.STAR})
FREE_CALLS = VIEWS | METADATA | {"meshgrid", "size", "dim", "numel", "expand", "broadcast_to", "len", "item"}
LAUNCHING = frozenset({Op.BINOP, Op.UNARY, Op.COMPARE, Op.STORE})


class Chain(NamedTuple):
    """Constants that are joined somewhere, in the order of the text, and the launches that make them and all that rests on them alone."""

    seeds: tuple[int, ...]
    launches: int


class Chains:
    """Follows constants through the functions that make them."""

    def __init__(self, evaluator: Evaluator, constancy: Constancy, hoisted: Hoisted, helpers: SizeTables) -> None:
        self._evaluator = evaluator
        self._constancy = constancy
        self._hoisted = hoisted
        self._helpers = helpers

    def of(self, fid: FunctionId, seeds: Sequence[int]) -> list[Chain]:
        """The seeds by what they go into, first things first."""
        walk = _Walk(self, fid, seeds)
        groups: dict[int, list[int]] = {}
        for seed in sorted(seeds):
            groups.setdefault(walk.root(seed), []).append(seed)
        return [Chain(tuple(group), walk.launches(root)) for root, group in groups.items()]

    def inputs(self, fid: FunctionId, item: Any) -> Sequence[int] | None:
        """What a call's result is made of; None where more than that decides it."""
        frame = self._evaluator.frame(fid)
        if self._hoisted.is_pure(frame, item) is False and not self._is_helper(fid, item):
            return None
        callee: Any = frame.graph.nodes[item[2]]
        given = [*item[3], *(value for key, value in item[4] if key not in PLACEMENT)]
        return [callee[2], *given] if callee[0] == Op.ATTR and not isinstance(frame.value(item[2]).detail, External) else given

    def _is_helper(self, fid: FunctionId, item: Any) -> bool:
        """A function of the project's modules: what it is given decides what it returns, but for state that nobody sees here."""
        detail = self._evaluator.frame(fid).value(item[2]).detail
        return isinstance(detail, Function) and self._evaluator.index.function(detail.function).owner < 0

    def weight(self, fid: FunctionId, item: Any) -> int | None:
        """How many calls in a pure function of the project make something; None for other callees."""
        detail = self._evaluator.frame(fid).value(item[2]).detail
        made = self._helpers.makes(detail.function) if isinstance(detail, Function) else -1
        return made if made >= 0 else None

    def is_steady(self, fid: FunctionId, node: int) -> bool:
        """Whether what a constant is combined with stays the same, too: a number, a size, a tensor that construction made."""
        item: Any = self._evaluator.graph_of(fid).nodes[node]
        if item[0] == Op.CONST or (item[0] == Op.ATTR and item[3] in PLACES):
            return True
        if item[0] in (Op.SEQUENCE, Op.SLICE):
            return all(self.is_steady(fid, part) for part in operands(item))
        if item[0] == Op.ATTR and self._hoisted.is_kept(fid, node, item):
            return True
        viewed = self._viewed(fid, item)
        if (viewed >= 0 and self.is_steady(fid, viewed)) or self._is_blank(fid, item):
            return True
        return self._constancy.of(fid, node).steady > Steady.VARIES

    def _viewed(self, fid: FunctionId, item: Any) -> int:
        """What `x.unsqueeze(0)` is a view of, -1 for anything else."""
        callee: Any = self._evaluator.graph_of(fid).nodes[item[2]] if item[0] == Op.CALL else (-1,)
        return int(callee[2]) if callee[0] == Op.ATTR and callee[3] in VIEWS else -1

    def _is_blank(self, fid: FunctionId, item: Any) -> bool:
        """A tensor of zeros or ones to be written to."""
        callee: Any = self._evaluator.graph_of(fid).nodes[item[2]] if item[0] == Op.CALL else (-1,)
        if callee[0] != Op.ATTR or callee[3] not in FRESH:
            return False
        return all(self.is_steady(fid, part) for part in (*item[3], *(value for key, value in item[4] if key not in PLACEMENT)))


class _Walk:
    """One pass over the nodes of a function, in their order."""

    def __init__(self, chains: Chains, fid: FunctionId, seeds: Sequence[int]) -> None:
        self._chains = chains
        self._fid = fid
        self._nodes: Sequence[Any] = chains._evaluator.graph_of(fid).nodes
        self._above: dict[int, int] = {seed: seed for seed in seeds}  # a node -> one that goes into the same thing
        for node in range(min(seeds) + 1, len(self._nodes)):
            self._visit(node, self._nodes[node])

    def root(self, node: int) -> int:
        while self._above[node] != node:
            node = self._above[node]
        return node

    def launches(self, root: int) -> int:
        return sum(self._launches(self._nodes[node]) for node in self._above if self.root(node) == root)

    def _visit(self, node: int, item: Any) -> None:
        if item[0] == Op.PHI:
            self._join(node, [part for part in item[2] if part < node])
        elif item[0] == Op.STORE:
            self._derive(node, [item[2], item[4]])
        elif item[0] == Op.CALL:
            if node not in self._above and any(part in self._above for part in self._touched(item)):
                self._derive(node, self._chains.inputs(self._fid, item) or ())
        elif item[0] in THROUGH:
            self._derive(node, operands(item))

    def _touched(self, item: Any) -> Iterator[int]:
        yield from operands(item)[1:]
        callee = self._nodes[item[2]]
        if callee[0] == Op.ATTR:
            yield callee[2]

    def _derive(self, node: int, parts: Sequence[int]) -> None:
        own = [part for part in parts if part in self._above]
        if own and all(part in self._above or self._chains.is_steady(self._fid, part) for part in parts):
            self._above[node] = self.root(own[0])
            self._unite(own)

    def _join(self, node: int, parts: Sequence[int]) -> None:
        """A name that branches bind: the same thing, made in one way or another."""
        own = [part for part in parts if part in self._above]
        if len(own) == len(parts) and own:
            self._above[node] = self.root(own[0])
        self._unite(own)

    def _unite(self, nodes: Sequence[int]) -> None:
        for one, other in pairwise(nodes):
            first, second = sorted((self.root(one), self.root(other)))
            self._above[second] = first

    def _launches(self, item: Any) -> int:
        if item[0] == Op.CALL:
            callee = self._nodes[item[2]]
            if callee[0] == Op.ATTR and callee[3] in FREE_CALLS:
                return 0
            made = self._chains.weight(self._fid, item)
            return 1 if made is None else made
        if item[0] == Op.INDEX:
            return int(not is_fixed_index(self._nodes[item[3]], self._nodes) and self._nodes[item[3]][0] not in (Op.SLICE, Op.SEQUENCE))
        return int(item[0] in LAUNCHING)
