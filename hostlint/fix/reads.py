"""Reads of device scalars in a loop: what is read and how, and which of the moves before it, after it or under its guard fits."""
from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlint.fix.gradients import gradients_are_off
from hostlint.fix.hoist import expression
from hostlint.model import Confidence

if TYPE_CHECKING:
    from hostlint.fix.place import Place
    from hostlint.model import Fix
    from hostlint.values.value import Value

COMPARISONS = frozenset({"eq", "ne", "gt", "ge", "lt", "le", "isnan", "isinf", "isfinite", "bool", "logical_and", "logical_or"})
FLOATS = frozenset({"mean", "std", "var", "norm", "float", "double", "sqrt", "sigmoid", "softmax"})


@dataclass(frozen=True, slots=True)
class Read:
    """One number read from the device: `node` in Python's own tree, `how` ("item", "float", "int"), and what is read."""

    node: ast.expr
    how: str
    tensor: ast.expr
    value: Value

    @property
    def is_integer(self) -> bool:
        return bool(self.value.integer or self.value.boolean) or counts(self.tensor)

    @property
    def is_float(self) -> bool:
        """Whether it is plain to see that the dtype is a float one."""
        match self.tensor:
            case ast.Call(func=ast.Attribute(attr=name), args=[]) if name in FLOATS:
                return True
        return self.how == "float"

    @property
    def is_proved_scalar(self) -> bool:
        """Whether it is proved to be a 0-dim tensor on the device."""
        return self.value.is_device and bool(self.value.rank0) and self.value.confidence is Confidence.CERTAIN


def counts(node: ast.expr) -> bool:
    """Whether an expression counts what is true: the sum of a comparison, which is int64."""
    match node:
        case ast.Call(func=ast.Attribute(value=summed, attr="sum" | "count_nonzero"), keywords=[]):
            return isinstance(summed, ast.Compare) or (
                isinstance(summed, ast.Call) and isinstance(summed.func, ast.Attribute) and summed.func.attr in COMPARISONS
            )
    return False


def read_at(place: Place) -> Read | None:
    """The read at the fact's place: `t.item()`, `float(t)` or `int(t)`."""
    node = expression(place)
    match node:
        case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[], keywords=[]):
            return Read(node, "item", tensor, place.known.receiver)
        case ast.Call(func=ast.Name(id="float" | "int" as how), args=[tensor], keywords=[]) if not isinstance(tensor, ast.Starred):
            return Read(node, how, tensor, place.known.argument(0))
    return None


def without_graph(place: Place, read: Read) -> str:
    """The tensor's source, detached unless that is needless."""
    source = operand_source(place, read.tensor)
    match read.tensor:
        case ast.Call(func=ast.Attribute(attr="detach")):
            return source
    return source if read.is_integer or gradients_are_off(place) else f"{source}.detach()"


def operand_source(place: Place, node: ast.expr) -> str:
    """An expression's source so that a method can be put to it."""
    source = place.outline.source(place.outline.span(node))
    plain = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return source if plain else f"({source})"


def moved_read(place: Place) -> Fix | None:
    """The fix of a read: one before its loop, after it, or under the guard that uses it; one for each schedule, where no loop is seen."""
    from hostlint.fix.guarded import under_guard
    from hostlint.fix.last_read import read_last
    from hostlint.fix.read_again import read_again
    from hostlint.fix.schedule import read_before
    from hostlint.fix.sums import kept_list, summed
    from hostlint.fix.table_reads import kept_read

    read = read_at(place)
    if read is None or place.function is None:
        return None
    for make in (read_before, summed, kept_list, under_guard, read_last, read_again) if place.loops else (kept_read, read_again):
        fix = make(place, read)
        if fix is not None:
            return fix
    return None
