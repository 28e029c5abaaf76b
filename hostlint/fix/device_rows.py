"""A row that a device scalar picks: selected on the device, in the place of an index that the host must read."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.fix.hoist import expression
from hostlint.fix.loops import written_in
from hostlint.fix.schedule import source_of
from hostlint.model import Applicability

if TYPE_CHECKING:
    from hostlint.fix.place import Place
    from hostlint.model import Fix


def selected_row(place: Place) -> Fix | None:
    """`table[step]` to `table.index_select(0, step.view(1))[0]`, where nothing is written to the row."""
    node = expression(place)
    match node:
        case ast.Subscript(value=ast.Name() | ast.Attribute() | ast.Call() as table, slice=ast.Name() | ast.Attribute() as index):
            pass
        case _:
            return None
    container, position = place.known.container, place.known.index
    whole = position.is_device and position.rank0 and position.integer and not position.boolean
    if not (container.is_tensor and whole) or not isinstance(node.ctx, ast.Load) or _is_written(place, node):
        return None
    row, at = source_of(place, table), source_of(place, index)
    if "\n" in row:
        return None
    assumed = f"`{at}` is no negative number, and nothing writes to the row, which is a copy then"
    message = f"select it on the device, where {assumed}; a position that is not there is an error of the device"
    return place.fix(Applicability.REVIEW, message, place.replace(f"{row}.index_select(0, {at}.view(1))[0]"))


def _is_written(place: Place, node: ast.Subscript) -> bool:
    """Whether the function may write in place to the row, by a method, an index or a name of it."""
    outer = place.path[-2]
    if isinstance(outer, ast.Subscript):
        return outer.value is node and not isinstance(outer.ctx, ast.Load)
    if isinstance(outer, ast.Attribute):
        return outer.attr.endswith("_")
    if isinstance(outer, ast.keyword) and outer.arg == "out":
        return True
    names = [target.id for target in getattr(outer, "targets", ()) if isinstance(target, ast.Name)]
    return place.function is not None and any(name in written_in(place.function) for name in names)
