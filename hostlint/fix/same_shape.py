"""What the block of a place says of a tensor: that a mask has its shape, that no two of its elements share memory."""
from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlint.syntax import ELEMENTWISE

if TYPE_CHECKING:
    from hostlint.fix.place import Place

KEEPING = ELEMENTWISE - {"to", "type_as"} | frozenset(
    {"eq", "ne", "gt", "ge", "lt", "le", "isnan", "isinf", "isfinite", "isneginf", "isposinf", "logical_and", "logical_or", "logical_xor"}
    | {"signbit", "clone", "contiguous"}
)


FACTORIES = frozenset({"zeros", "ones", "full", "empty", "arange", "linspace", "eye", "rand", "randn", "tensor", "where", "clone"})
VIEWS = frozenset({"t", "transpose", "permute", "view", "flatten", "unsqueeze", "squeeze", "swapaxes", "movedim"})


@dataclass(frozen=True, slots=True)
class Shape:
    """`covers`: a mask that selects from the tensor must have its shape. `alone`: and nothing else went into it but numbers."""

    covers: bool = False
    alone: bool = True


def shape_of(place: Place, mask: str, base: str) -> Shape:
    """How the shape of a mask is known from the expression, and from the assignments before it in its block."""
    statements = tuple(_before(place))
    node = ast.parse(mask, mode="eval").body
    known = _Known(base, base.partition(".")[0], statements)
    shapes = [one.of(node, len(statements)) for one in (known, *(_Known(twin, twin, statements) for twin in known.twins()))]
    return next((shape for shape in shapes if shape.covers), shapes[0])


def elements_lie_apart(place: Place, base: str) -> bool:
    """Whether the block shows that no two elements of the tensor share memory, as those of an expanded one do."""
    known = _Known(base, base, tuple(_before(place)))
    return known.lie_apart(ast.parse(base, mode="eval").body, len(known.statements))


@dataclass(frozen=True, slots=True)
class _Known:
    base: str
    root: str
    statements: tuple[ast.stmt, ...]  # of the block, up to the place

    def of(self, node: ast.expr, until: int) -> Shape:
        """Of an expression that stands before the statement of this number."""
        if ast.unparse(node) == self.base:
            return Shape(True)
        match node:
            case ast.Constant():
                return Shape()
            case ast.Name(id=name):
                return self._of_name(name, until)
            case ast.UnaryOp(operand=operand):
                return self.of(operand, until)
            case ast.BinOp(left=left, op=operator, right=right) if not isinstance(operator, ast.MatMult):
                return _joined([self.of(left, until), self.of(right, until)])
            case ast.Compare(left=left, comparators=[right], ops=[ast.Eq() | ast.NotEq() | ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]):
                return _joined([self.of(left, until), self.of(right, until)])
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name), args=arguments, keywords=[]) if name in KEEPING:
                return _joined([self.of(one, until) for one in arguments])
            case ast.Call(func=ast.Attribute(value=receiver, attr=name), args=arguments, keywords=[]) if name in KEEPING:
                return _joined([self.of(one, until) for one in (receiver, *arguments)])
        return Shape(alone=False)

    def twins(self) -> Iterator[str]:
        """Names from which alone the tensor was worked out, element by element, and that the block does not bind anew after that."""
        for number in range(len(self.statements) - 1, -1, -1):
            match self.statements[number]:
                case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == self.base:
                    bound = {name for statement in self.statements[number:] for name in _bound(statement)}
                    for name in sorted({node.id for node in ast.walk(value) if isinstance(node, ast.Name)} - bound):
                        shape = _Known(name, name, ()).of(value, 0)
                        if shape.covers and shape.alone:
                            yield name
                    return
            if self.root in _bound(self.statements[number]):
                return

    def lie_apart(self, node: ast.expr, until: int) -> bool:
        """Whether an expression makes a tensor anew, or a view of one, in which every element has its own place."""
        match node:
            case ast.BinOp() | ast.UnaryOp():
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name)) if name in FACTORIES:
                return True
            case ast.Call(func=ast.Attribute(value=receiver, attr=name)):
                return name == "clone" or (name in VIEWS and self.lie_apart(receiver, until))
            case ast.Name(id=name):
                for number in range(until - 1, -1, -1):
                    match self.statements[number]:
                        case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                            return self.lie_apart(value, number)
                    if name in set(_bound(self.statements[number])):
                        return False
        return False

    def _of_name(self, name: str, until: int) -> Shape:
        for number in range(until - 1, -1, -1):
            statement = self.statements[number]
            match statement:
                case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name and name != self.root:
                    return self.of(value, number)
            if {name, self.root} & set(_bound(statement)):
                break
        return Shape(alone=False)


def _joined(shapes: Sequence[Shape]) -> Shape:
    return Shape(any(one.covers for one in shapes), all(one.alone for one in shapes))


def _before(place: Place) -> Iterator[ast.stmt]:
    """The statements of the place's block that run before it."""
    statement = place.statement
    for node in reversed(place.path):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and statement in block:
                yield from block[: block.index(statement)]
                return


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement may bind anew; writes to their elements aside."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node.id
