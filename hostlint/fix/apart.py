"""Tensors that a function keeps to itself: made in it, and given to nothing that could write into them or keep them."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op, operands
from hostlint.fix.loops import NESTED, names_in
from hostlint.model import Confidence
from hostlint.values.detail import External
from hostlint.values.loops import VIEWS
from hostlint.values.value import Place as Lives

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.fix.loops import Function
    from hostlint.values.known import Known

FRESH = frozenset({
    "zeros", "ones", "full", "arange", "linspace", "logspace", "eye", "tensor", "rand", "randn", "randint", "zeros_like", "ones_like",
    "full_like", "cat", "stack", "where", "isnan", "isinf", "isfinite", "tril", "triu", "exp", "cos", "sin", "log", "sqrt", "sigmoid",
    "abs", "sum", "mean", "logical_and", "logical_or", "logical_not", "matmul", "add", "mul", "sub", "outer", "bmm", "mm",
})  # fmt: skip
CASTS = frozenset({"float", "double", "half", "bfloat16", "bool", "long", "int", "short", "type_as"})
NUMBERS = frozenset({"item", "tolist", "any", "all", "size", "dim", "numel", "max", "min", "argmax", "argmin", "softmax"}) | FRESH
METADATA = frozenset({"shape", "dtype", "device", "ndim", "is_cuda", "requires_grad"})
PLAIN_CALLS = frozenset({"len", "isinstance", "builtins.len", "builtins.isinstance", "float", "int", "builtins.float", "builtins.int"})
WALKS = frozenset({"enumerate", "builtins.enumerate", "zip", "builtins.zip"})


class Apart:
    """Answers for the nodes of one function's graph. `elements`: an element by iteration or index may go anywhere, the rest may not."""

    def __init__(self, known: Known, elements: bool = False) -> None:
        assert known.frame is not None
        self._frame = known.frame
        self._nodes: Sequence[Any] = known.frame.graph.nodes
        self._elements = elements
        self._users: dict[int, list[int]] = {}
        for place, node in enumerate(self._nodes):
            for part in operands(node):
                self._users.setdefault(part, []).append(place)

    def is_made_here(self, node: int) -> bool:
        """Whether a node is a tensor in memory of its own, made by this function."""
        item = self._nodes[node]
        if item[0] == Op.REFINE:
            return self.is_made_here(item[2])
        if item[0] == Op.CALL and not item[5]:
            detail = self._frame.value(item[2]).detail
            return isinstance(detail, External) and detail.name.startswith("torch.") and detail.name.partition(".")[2] in FRESH
        return item[0] in (Op.COMPARE, Op.BINOP) and any(self._is_tensor(part) for part in operands(item))

    def is_kept(self, node: int) -> bool:
        """Whether nothing that is given the node could write into it, return it or keep it."""
        graph = self._frame.graph
        seen: set[int] = set()
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if one in seen:
                continue
            seen.add(one)
            if one in graph.returns or one in graph.yields:
                return False
            for user in self._users.get(one, ()):
                more = self._same(user, one)
                if more is None:
                    return False
                waiting += more
        return True

    def _same(self, user: int, node: int) -> Sequence[int] | None:
        """The nodes that share memory with the node through one of its users; None where that user may do anything."""
        item = self._nodes[user]
        op = item[0]
        if op in (Op.PHI, Op.REFINE, Op.UNPACK):
            return [user]
        if op in (Op.ITER, Op.INDEX):
            return [] if self._elements or (op == Op.INDEX and item[3] == node) else [user]
        if op in (Op.COMPARE, Op.UNARY):
            return []
        if op == Op.BINOP:
            others = [part for part in operands(item) if part != node]
            return [] if not item[2].endswith("=") and all(self._is_known(part) for part in others) else None
        if op == Op.ATTR:
            return [] if item[3] in METADATA else self._method(user, item[3])
        if op == Op.CALL:
            detail = self._frame.value(item[2]).detail
            name = detail.name if isinstance(detail, External) else ""
            plain = name.startswith("torch.") and name.partition(".")[2] in FRESH and not any(key == "out" for key, _ in item[4])
            return [] if plain or name in PLAIN_CALLS or (self._elements and name in WALKS) else None
        return None

    def _method(self, attribute: int, name: str) -> Sequence[int] | None:
        users = self._users.get(attribute, ())
        if not all(self._nodes[user][0] == Op.CALL and self._nodes[user][2] == attribute for user in users):
            return None
        if name in NUMBERS:
            return []
        return list(users) if name in VIEWS | CASTS else None

    def _is_tensor(self, node: int) -> bool:
        value = self._frame.value(node)
        return value.is_tensor and value.confidence is Confidence.CERTAIN

    def _is_known(self, node: int) -> bool:
        return self._is_tensor(node) or self._frame.value(node).place is Lives.PYTHON

    def iterated(self, node: int) -> int:
        """What the node is an element of, by iteration, `enumerate` looked through; -1 where it is none."""
        item = self._nodes[node]
        while item[0] == Op.REFINE:
            item = self._nodes[item[2]]
        if item[0] != Op.ITER:
            return -1
        walked = self._nodes[item[2]]
        detail = self._frame.value(walked[2]).detail if walked[0] == Op.CALL else None
        through = isinstance(detail, External) and detail.name in WALKS and len(walked[3]) == 1
        return int(walked[3][0] if through else item[2])


def gives_nothing_away(function: Function) -> bool:
    """Whether a function has no nested ones and stores nothing but constants in attributes and globals: then its graph tells all."""
    for node in ast.walk(function):
        if isinstance(node, (*NESTED, ast.Global, ast.Nonlocal)) and node is not function:
            return False
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and names_in(*([node.value] if node.value else [])):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load) for one in targets for part in ast.walk(one)):
                return False
    return True
