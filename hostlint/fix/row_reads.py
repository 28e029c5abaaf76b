"""Reads of what each row of a batch comes to, one in each pass: the numbers of all rows are worked out on the device and read once."""
from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlint.fix.hoist import expression
from hostlint.fix.loops import chain, chains_in, is_unconditional, loads_of, may_be_none, may_change, names_in
from hostlint.fix.outline import COMPREHENSIONS
from hostlint.fix.reads import read_at
from hostlint.fix.rows import WORDS, Total, are_of_a_tensor, total_of
from hostlint.fix.schedule import (
    as_read,
    assumed_of,
    insertion,
    is_asked,
    is_count,
    is_kept,
    is_tested,
    listed,
    said,
    source_of,
    table_before,
    walk_of,
    walked_by,
    word_of,
)
from hostlint.fix.sums import is_number
from hostlint.model import Edit, Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.fix.loops import Function
    from hostlint.fix.outline import Loop
    from hostlint.fix.place import Place
    from hostlint.fix.reads import Read
    from hostlint.model import Fix

SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(frozen=True, slots=True)
class _Here:
    """Where the number of a row is read: the pass's statement loop or comprehension, and what is read."""

    place: Place
    node: ast.expr
    total: Total
    comprehension: Comprehension | None

    @property
    def suffix(self) -> str:
        return f"_{WORDS[self.total.total]}" if self.total.total else "_values"


def row_read(place: Place) -> Fix | None:
    """`int(mask[i].sum())` in a loop over the rows to `int(mask_sums[i])`, where `mask_sums` is read once before it."""
    read = read_at(place)
    node = read.tensor if read is not None else expression(place)
    if node is None or place.function is None or (read is None and not _is_flag(node)):
        return None
    comprehension = _comprehension(place)
    loop = place.loops[0] if place.loops and comprehension is None else None
    total = total_of(place, node, loop)
    if total is None or (not total.total and comprehension is None) or not are_of_a_tensor(place):
        return None  # elements that a loop walks over are the schedule's
    here = _Here(place, node, total, comprehension)
    return _by_index(here, read) if total.row.index is not None else _by_element(here, read)


def _is_flag(node: ast.expr) -> bool:
    """Whether a tested expression is a row's flag itself, which is a bool on the host as well."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("any", "all")


def _comprehension(place: Place) -> Comprehension | None:
    """The innermost comprehension around the place that is evaluated in the function itself."""
    for node in reversed(place.path[:-1]):
        if isinstance(node, COMPREHENSIONS):
            return node if len(node.generators) == 1 and not node.generators[0].is_async else None
        if isinstance(node, ast.stmt):
            return None
    return None


# Rows by their index


def _by_index(here: _Here, read: Read | None) -> Fix | None:
    place, row = here.place, here.total.row
    function, index = place.function, row.index
    outer = _before(here)
    if function is None or index is None or outer is None:
        return None
    name = chain(row.table)
    made_by = here.total.of_all(name) + (f" if {name} is not None else []" if _may_be_none(function, row.table) else "")
    made = table_before(place, outer, made_by, f"{word_of(row.table)}{here.suffix}")
    if made is None:
        return None
    entry = f"{made[0]}[{source_of(place, index)}]"
    assumed = _assumed(here, name)
    if not is_count(place, index) and here.comprehension is None:
        assumed.append(f"`{source_of(place, index)}` is a Python int")
    if row.is_slice:
        assumed.append(f"`{name}` has a row for each pass")
    if not is_kept(place, row.table):
        assumed.append(f"nothing writes into `{name}` during the loop")
    return said(place, _what(here), assumed, place.replace(_as(read, entry)), made[1], _needless(here))


def _before(here: _Here) -> ast.stmt | None:
    """The statement before which the table can be read: the outermost loop that leaves it alone, else that of a comprehension."""
    place, row = here.place, here.total.row
    function = place.function
    if function is None or row.index is None:
        return None
    fixed = frozenset({chain(row.table)}).union(*(chains_in(one) for one in here.total.others))
    bound = names_in(row.index)
    loops = [one for one in place.loops if not may_change(function, one, fixed)]
    if here.comprehension is not None:
        own = names_in(here.comprehension.generators[0].target)
        if not bound & own or fixed & own:
            return None
        statement = place.statement
        if loops:
            return loops[-1]
        return statement if isinstance(statement, SIMPLE) and _is_reached(place, statement, here.comprehension) else None
    loop = loops[-1] if loops else None
    inside = [one for one in place.loops if loop is not None and loop.lineno <= one.lineno]
    return loop if bound & frozenset(name for one in inside for name in _targets(one)) else None


def _is_reached(place: Place, statement: ast.stmt, comprehension: ast.AST) -> bool:
    """Whether a comprehension is evaluated whenever its statement is."""
    number = next(number for number, one in enumerate(place.path) if one is comprehension)
    return is_unconditional(place.path[: number + 1], statement)


def _targets(loop: Loop) -> frozenset[str]:
    return names_in(loop.target) if isinstance(loop, ast.For) else frozenset()


def _may_be_none(function: Function, table: ast.expr) -> bool:
    """Whether the function asks if a table is there, or if it is a tensor, or may be called without it."""
    name = chain(table)
    return may_be_none(function, table) or is_tested(function, name) or is_asked(function, {name})


# Rows that a loop walks over


def _by_element(here: _Here, read: Read | None) -> Fix | None:
    place, name = here.place, here.total.row.element
    if here.comprehension is not None:
        return _by_comprehension(here, read, here.comprehension)
    walk = walk_of(place, name)
    if walk is None or place.function is None:
        return None
    if may_change(place.function, walk.loop, frozenset().union(*(chains_in(one) for one in here.total.others))):
        return None
    source = source_of(place, walk.schedule)
    made_by, table = here.total.of_all(source), f"{word_of(walk.schedule)}{here.suffix}"
    entry = listed(place, walk, made_by, table, f"{name}{here.suffix.removesuffix('s')}")
    if entry is None:
        return None
    value, edits = entry
    assumed = [*_assumed(here, source), *assumed_of(place, walk)]
    return said(place, _what(here), assumed, place.replace(_as(read, value)), edits, _needless(here))


def _by_comprehension(here: _Here, read: Read | None, comprehension: Comprehension) -> Fix | None:
    place, name = here.place, here.total.row.element
    generator = comprehension.generators[0]
    own = names_in(generator.target)
    found = walked_by(generator.target, generator.iter, name)
    if found is None or any(isinstance(one, ast.NamedExpr | ast.Lambda) for one in ast.walk(comprehension)):
        return None
    if own & frozenset().union(*(names_in(one) for one in here.total.others)):
        return None
    source = source_of(place, found[0])
    made_by = here.total.of_all(source)
    assumed = [*_assumed(here, source), f"nothing writes into `{source}` meanwhile"]
    value = place.fresh(f"{name}{here.suffix.removesuffix('s')}")
    edits = _beside(here, comprehension, made_by, value)
    whole = _as(read, value) == value and isinstance(generator.target, ast.Name) and not generator.ifs
    if whole and isinstance(comprehension, ast.ListComp) and comprehension.elt is expression(place):
        return said(place, _what(here), assumed, place.replace(made_by, comprehension))
    return said(place, _what(here), assumed, place.replace(_as(read, value)), edits) if edits is not None else None


def _beside(here: _Here, comprehension: Comprehension, made_by: str, value: str) -> Sequence[Edit] | None:
    """The edits that hand a comprehension the numbers beside the rows, or instead of them where it needs nothing else of them."""
    place, name = here.place, here.total.row.element
    generator = comprehension.generators[0]
    target, walked = generator.target, generator.iter
    if isinstance(target, ast.Name):
        if len(loads_of(comprehension, name)) == 1:
            return [place.replace(value, target), place.replace(made_by, walked)]
        first = place.outline.span(walked)
        opened = Edit(Span(first.line, first.column, first.line, first.column), "zip(")
        return [insertion(place, target, f", {value}"), opened, insertion(place, walked, f", {made_by})")]
    if not isinstance(target, ast.Tuple) or not isinstance(walked, ast.Call) or not isinstance(walked.func, ast.Name):
        return None
    if walked.func.id == "zip":
        return [insertion(place, target.elts[-1], f", {value}"), insertion(place, walked.args[-1], f", {made_by}")]
    if walked.func.id == "enumerate" and isinstance(target.elts[1], ast.Name) and len(walked.args) == 1:
        pair = place.replace(f"({name}, {value})", target.elts[1])
        return [pair, place.replace(f"zip({source_of(place, walked.args[0])}, {made_by})", walked.args[0])]
    return None


# Words


def _assumed(here: _Here, table: str) -> list[str]:
    total = here.total
    dimensions = "two dimensions" if total.along else "two or more dimensions"
    operand = f"`{table}` is a tensor of {dimensions}" if total.total else f"`{table}` is a 1-D tensor"
    assumed = [operand if total.whole or not total.total else f"{operand} with whole numbers"]
    assumed += [f"`{source_of(here.place, one)}` is a Python number" for one in total.others if not is_number(one)]
    return assumed


def _what(here: _Here) -> str:
    what = "work the numbers of all rows out on the device and read them once" if here.total.total else "read all elements once"
    return f"{what} before the loop"


def _as(read: Read | None, value: str) -> str:
    return as_read(read, value) if read is not None else value


def _needless(here: _Here) -> Sequence[Edit]:
    """The pass's assignments that nothing else reads now, where they stand on lines of their own."""
    place = here.place
    gone = []
    for statement in here.total.by_name:
        name = statement.targets[0].id if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) else ""
        span = place.outline.span(statement)
        rest = place.outline.lines[span.end_line - 1][span.end_column - 1 :].strip()
        if place.function is None or len(loads_of(place.function, name)) != 1 or rest or not place.outline.begins_line(statement):
            break
        gone.append(Edit(Span(span.line, 1, span.end_line + 1, 1), ""))
    return gone
