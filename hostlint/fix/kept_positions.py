"""Elements that a mask picks at every step: the mask's positions are found once, and the elements gathered by them."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.fix.hoist import expression
from hostlint.fix.loops import bindings_of, chain
from hostlint.fix.schedule import source_of
from hostlint.fix.step_calls import calls_in_steps
from hostlint.model import Applicability

if TYPE_CHECKING:
    from hostlint.fix.place import Place
    from hostlint.model import Fix

SELECTOR = '''
@{cache}(maxsize=16)
def true_positions(mask, version):
    return mask.reshape(-1).nonzero().reshape(-1)


def select_masked(table, mask):
    """`table[mask]`; the positions are found once for each mask and state of it. A compiler and a capture find their own."""
    captures = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
    find = true_positions.__wrapped__ if captures or torch.compiler.is_compiling() else true_positions
    positions = find(mask, 0 if mask.is_inference() else mask._version)
    return table.flatten(0, mask.dim() - 1).index_select(0, positions)
'''


def kept_selection(place: Place) -> Fix | None:
    """`x.masked_select(mask)` to `select_masked(x, mask).reshape(-1)`, where a step loop's calls pass the same mask each time."""
    node, function = expression(place), place.function
    if function is None or place.outline.meaning("torch", ()) != "torch":
        return None
    match node:
        case ast.Call(func=ast.Attribute(value=table, attr="masked_select"), args=[index], keywords=[]) if chain(table) != "torch":
            mask, flat = _mask(index), True
        case ast.Subscript(value=table, slice=ast.Name() | ast.Attribute() as index, ctx=ast.Load()):
            mask, flat = _mask(index), False
        case _:
            return None
    given = {one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    if not isinstance(mask, ast.Name) or mask.id not in given or bindings_of(function, mask.id) or not calls_in_steps(place, [mask.id]):
        return None
    cache = place.spelled("functools.lru_cache")
    there = any(isinstance(one, ast.FunctionDef) and one.name == "select_masked" for one in place.outline.tree.body)
    source = source_of(place, table)
    if cache is None or ("true_positions" in place.outline.names and not there) or "\n" in source:
        return None
    helper = place.helper("select_masked", SELECTOR.format(cache=cache.text))
    text = f"{helper.text}({source}, {mask.id}){'.reshape(-1)' if flat else ''}"
    assumed = f"`{mask.id}` has the first dimensions of `{source}` and nobody writes into it in inference mode"
    edits = (place.replace(text), *helper.edits, *(cache.edits if helper.edits else ()))
    return place.fix(Applicability.REVIEW, f"find the mask's positions once, where {assumed}", edits)


def _mask(index: ast.expr) -> ast.expr:
    """The mask without what only makes it boolean, or gives it trailing dimensions that it shares with the elements."""
    while True:
        match index:
            case ast.Call(func=ast.Attribute(value=inner, attr="bool"), args=[], keywords=[]):
                index = inner
            case ast.Call(func=ast.Attribute(value=inner, attr="unsqueeze"), args=[place]) if ast.unparse(place) == "-1":
                index = inner
            case _:
                return index
