"""Tests of a schedule's steps against bounds, one in each pass: all steps are compared before the loop, and the answers read once."""
from __future__ import annotations

import ast
from itertools import pairwise
from typing import TYPE_CHECKING

from hostlint.fix.entry_windows import OPERATORS, compared_entries
from hostlint.fix.hoist import expression
from hostlint.fix.loops import chains_in, may_be_none, may_change
from hostlint.fix.schedule import assumed_of, is_vector, listed, said, source_of, walk_of, word_of
from hostlint.fix.sums import is_number
from hostlint.model import Confidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.fix.place import Place
    from hostlint.model import Fix


def compared_before(place: Place) -> Fix | None:
    """`for t in ticks: if low <= t <= high:` to one comparison of all ticks on the device, whose answers are read once."""
    node = expression(place)
    if not isinstance(node, ast.Compare) or not all(type(one) in OPERATORS for one in node.ops) or not _is_only_tested(place):
        return compared_entries(place)
    operands = [node.left, *node.comparators]
    walks = [walk for one in operands if isinstance(one, ast.Name) and (walk := walk_of(place, one.id)) is not None]
    if not walks or place.function is None:
        return compared_entries(place)
    walk = walks[0]
    bounds = [one for one in operands if not (isinstance(one, ast.Name) and one.id == walk.name)]
    plain = all(isinstance(one, ast.Name | ast.Attribute | ast.Constant | ast.UnaryOp) for one in bounds)
    if len(bounds) + 1 != len(operands) or not plain:
        return None
    if may_change(place.function, walk.loop, frozenset(one for bound in bounds for one in chains_in(bound))):
        return None
    source = source_of(place, walk.schedule)
    words = [source if isinstance(one, ast.Name) and one.id == walk.name else source_of(place, one) for one in operands]
    pairs = [f"{words[number]} {OPERATORS[type(one)]} {words[number + 1]}" for number, one in enumerate(node.ops)]
    compared = pairs[0] if len(pairs) == 1 else " & ".join(f"({one})" for one in pairs)
    made = f"({compared}).tolist()"
    for one in bounds:
        if may_be_none(place.function, one):
            if not walk.counter:
                return None
            made += f" if {source_of(place, one)} is not None else []"
            break
    entry = listed(place, walk, made, f"{word_of(walk.schedule)}_inside", f"{walk.name}_inside")
    if entry is None:
        return None
    value, edits = entry
    assumed = [*assumed_of(place, walk), *_unproved(place, bounds)]
    if not (place.fact.confidence is Confidence.CERTAIN and is_vector(place, walk)):
        assumed.insert(0, f"`{source}` is a 1-D tensor")
    return said(place, "compare all steps on the device, in the schedule's own dtype, and read the answers once", assumed,
                 place.replace(value), edits)  # fmt: skip


def _is_only_tested(place: Place) -> bool:
    """Whether the truth of the comparison is all that is used: `ok = t > 0 and n` may hold the tensor."""
    for outer, inner in reversed(list(pairwise(place.path))):
        if isinstance(outer, (ast.If, ast.IfExp, ast.While, ast.Assert)):
            return inner is outer.test
        if isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.Not):
            return True
        if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Name) and outer.func.id == "bool":
            return True
        if not isinstance(outer, ast.BoolOp):
            return False
    return False


def _unproved(place: Place, bounds: Sequence[ast.expr]) -> list[str]:
    words = [f"`{source_of(place, one)}`" for one in bounds if not is_number(one)]
    return [f"{' and '.join(words)} {'is a Python number' if len(words) == 1 else 'are Python numbers'}"] if words else []
