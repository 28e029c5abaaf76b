"""What a pass reads of one row of a tensor: a count, a sum or a flag, and how to write the same of all rows at once."""
from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op
from hostlint.fix.loops import bindings_of, names_in, shared_with_nested
from hostlint.values.detail import External

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.fix.place import Place
    from hostlint.values.evaluator import Frame

TOTALS = {"sum": "sum", "count_nonzero": "count_nonzero", "any": "any", "all": "all", "max": "amax", "min": "amin"}
WORDS = {"sum": "sums", "count_nonzero": "counts", "any": "any", "all": "all", "amax": "largest", "amin": "smallest"}
PAIRS = frozenset({"max", "min"})  # along a dimension they give values and indices
FLAGS = frozenset({"any", "all"})
TESTS = frozenset({"ne", "eq", "gt", "ge", "lt", "le"})
WHOLE = frozenset({"bool", "long", "int", "short", "logical_not", "isnan", "isinf", "isfinite"})


@dataclass(frozen=True, slots=True)
class Row:
    """A row as a pass gets it: `table[index]`, or the loop's own element of `table` where there is no index."""

    table: ast.Name | ast.Attribute
    index: ast.expr | None = None
    element: str = ""
    is_slice: bool = False  # `table[i : i + 1]`


@dataclass(frozen=True, slots=True)
class Total:
    """A number of one row: `total` (a method of tensors; "" for the row itself) of `before` + row + `after` in the source's words."""

    row: Row
    total: str
    before: str = ""
    after: str = ""
    along: bool = False  # the dimension of the row is named: it has no other
    whole: bool = False  # of whole numbers or truth values, whatever the table holds
    others: tuple[ast.expr, ...] = ()  # what the row's elements are compared with
    by_name: tuple[ast.stmt, ...] = ()  # assignments of the pass that the number was read through

    def of_all(self, table: str) -> str:
        """The numbers of all rows as a list, in source."""
        operand = f"{self.before}{table}{self.after}"
        return f"{operand}.flatten(1).{self.total}(1).tolist()" if self.total else f"{operand}.tolist()"


def total_of(place: Place, node: ast.expr, loop: ast.AST | None) -> Total | None:
    """What a read expression is of a row; `loop`: the one around it whose own statements may have given parts of it a name."""
    node, named = _followed(place, node, loop, ())
    match node:
        case ast.Call(func=ast.Attribute(value=operand, attr=method), args=given, keywords=named_as) if method in TOTALS:
            given = [*given, *(one.value for one in named_as)]
            if any(one.arg != "dim" for one in named_as) or (_is_torch(place, operand) and not given):
                return None
            if _is_torch(place, operand):
                operand, given = given[0], given[1:]
        case _:
            row = row_of(place, node, loop)
            return Total(row, "", by_name=named) if row is not None else None
    found = _operand(place, operand, loop, named)
    if found is None or not _runs_over_all(found, method, given):
        return None
    whole = found.whole or method in FLAGS or method == "count_nonzero"
    return replace(found, total=TOTALS[method], along=bool(given), whole=whole)


def _operand(place: Place, node: ast.expr, loop: ast.AST | None, named: tuple[ast.stmt, ...]) -> Total | None:
    """A row, or what is worked out from each of its elements alone."""
    row = row_of(place, node, loop)
    if row is not None:
        return Total(row, "", by_name=_followed(place, node, loop, named)[1])
    node, named = _followed(place, node, loop, named)
    others: list[ast.expr] = []
    match node:
        case ast.Compare(left=inner, ops=[_], comparators=[ast.Constant() | ast.Name() | ast.Attribute() | ast.UnaryOp() as other]):
            others.append(other)
        case ast.Call(func=ast.Attribute(value=inner, attr=method), args=[ast.Constant() | ast.Name() | ast.Attribute() as other],
                      keywords=[]) if method in TESTS:  # fmt: skip
            others.append(other)
        case ast.Call(func=ast.Attribute(value=inner, attr=method), args=[], keywords=[]) if method in WHOLE:
            pass
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            pass
        case _:
            return None
    found = _operand(place, inner, loop, named)
    if found is None:
        return None
    source = place.outline.source(place.outline.span(node))
    own = place.outline.source(place.outline.span(inner))
    left, _, right = source.partition(own)
    if "\n" in source:
        return None
    opened, closed = ("", "") if isinstance(node, ast.Call) else ("(", ")")
    before, after = found.before, found.after
    if left.endswith("(") and before.startswith("("):
        before, after = before[1:], after[:-1]
    return replace(
        found,
        before=f"{opened}{left}{before}",
        after=f"{after}{right}{closed}",
        whole=found.whole or not isinstance(node, ast.UnaryOp),
        others=(*found.others, *others),
    )


def row_of(place: Place, node: ast.expr, loop: ast.AST | None) -> Row | None:
    """`table[i]`, `table[i : i + 1]`, `table[i, :]`, a name that the pass gave one of them, or the loop's own element."""
    node = _followed(place, node, loop, ())[0]
    match node:
        case ast.Subscript(value=ast.Name() | ast.Attribute() as table, slice=ast.Slice(lower, upper, None)):
            return Row(table, lower, is_slice=True) if lower is not None and _is_next(lower, upper) else None
        case ast.Subscript(value=ast.Name() | ast.Attribute() as table, slice=ast.Tuple(elts=[index, *rest])):
            return Row(table, index) if _is_plain(index) and all(_is_everything(one) for one in rest) else None
        case ast.Subscript(value=ast.Name() | ast.Attribute() as table, slice=index):
            return Row(table, index) if _is_plain(index) else None
        case ast.Name() as name:
            return Row(name, element=name.id)  # of which table, the loop says
    return None


def are_of_a_tensor(place: Place) -> bool:
    """Whether what the row is taken out of is a tensor, as far as the engine knows, and no list of tensors."""
    frame, node = place.known.frame, place.known.node
    while frame is not None and 0 <= node < len(frame.graph.nodes):
        item: Any = frame.graph.nodes[node]
        match item[0]:
            case Op.INDEX if frame.value(item[3]).is_tensor:
                return False  # a mask, or rows by their numbers
            case Op.INDEX | Op.ITER:
                return frame.value(item[2]).is_tensor
            case Op.UNPACK:
                return frame.value(_walked_by(frame, *item[2:4])).is_tensor
            case Op.CALL:
                callee = frame.graph.nodes[item[2]]
                plain = callee[0] != Op.ATTR or isinstance(frame.value(item[2]).detail, External)
                node = item[3][0] if plain and item[3] else callee[2] if callee[0] == Op.ATTR else -1
            case Op.ATTR | Op.REFINE:
                node = item[2]
            case Op.UNARY:
                node = item[3]
            case Op.COMPARE:
                node = item[3][0]
            case _:
                return False
    return False


def _walked_by(frame: Frame, whole: int, position: int) -> int:
    """What a name that is unpacked from a loop's element walks over: `mask` for `row` in `for i, row in enumerate(mask)`; -1 if unknown."""
    element: Any = frame.graph.nodes[whole]
    walked = element[2] if element[0] == Op.ITER else _walked_by(frame, *element[2:4]) if element[0] == Op.UNPACK else -1
    call: Any = frame.graph.nodes[walked] if walked >= 0 else (Op.UNKNOWN,)
    if call[0] != Op.CALL:
        return -1
    number = {"zip": position, "enumerate": position - 1}.get(frame.node_name(call[2]).rpartition(".")[2], -1)
    return int(call[3][number]) if 0 <= number < len(call[3]) else -1


def _followed(
    place: Place, node: ast.expr, loop: ast.AST | None, named: tuple[ast.stmt, ...]
) -> tuple[ast.expr, tuple[ast.stmt, ...]]:
    """What a name stands for, where a statement of the pass itself, before the place, is all that binds it."""
    body: Sequence[ast.stmt] = getattr(loop, "body", ()) if isinstance(loop, ast.For | ast.While) else ()
    while isinstance(node, ast.Name) and place.function is not None:
        here = next((number for number, one in enumerate(body) if one in place.path), 0)
        found = [one for one in body[:here] if isinstance(one, ast.Assign) and _binds(one, node.id)]
        if len(found) != 1 or len(bindings_of(place.function, node.id)) != 1 or shared_with_nested(place.function, node.id):
            break
        named = (*named, found[0])
        node = found[0].value
    return node, named


def _binds(statement: ast.Assign, name: str) -> bool:
    match statement.targets:
        case [ast.Name(id=bound)]:
            return bound == name
    return False


def _is_torch(place: Place, node: ast.expr) -> bool:
    """Whether a total is spelled as torch's function: `torch.sum(row)`."""
    return isinstance(node, ast.Name) and place.outline.meaning(node.id, place.path) == "torch"


def _runs_over_all(found: Total, method: str, given: Sequence[ast.expr]) -> bool:
    """Whether the dimension that is given, if any, is the only one of a row, so that a number comes out."""
    match given:
        case []:
            return True
        case [ast.Constant(value=int() as dim)]:
            return method not in PAIRS and not isinstance(dim, bool) and dim == (1 if found.row.is_slice else 0)
        case [ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))]:
            return method not in PAIRS
    return False


def _is_next(lower: ast.expr, upper: ast.expr | None) -> bool:
    match lower, upper:
        case ast.Name(id=name), ast.BinOp(left=ast.Name(id=same), op=ast.Add(), right=ast.Constant(value=1)):
            return name == same
    return False


def _is_plain(index: ast.expr) -> bool:
    """Whether an index is spelled as a number is: a name, perhaps with numbers added."""
    match index:
        case ast.Name():
            return True
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return bool(names_in(index)) and all(isinstance(one, ast.Constant) or _is_plain(one) for one in (left, right))
    return False


def _is_everything(one: ast.expr) -> bool:
    if isinstance(one, ast.Slice):
        return one.lower is one.upper is one.step is None
    return isinstance(one, ast.Constant) and one.value is Ellipsis
