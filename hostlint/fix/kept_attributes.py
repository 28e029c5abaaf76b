"""Numbers of a configuration (`self.config.means`) that are uploaded again and again: one upload for their values, device and dtype."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.fix.hoist import expression
from hostlint.fix.loops import chain, written_in
from hostlint.fix.memo import TABLE
from hostlint.model import Applicability

if TYPE_CHECKING:
    from hostlint.fix.place import Place
    from hostlint.model import Edit, Fix

SHAPING = frozenset({"view", "reshape", "unsqueeze", "float", "double", "half", "bfloat16"})


def kept_attribute(place: Place) -> Fix | None:
    """`torch.tensor(self.means, device=d)` to `kept_table(tuple(self.means), device=d)`; `new_tensor` and moved ones too."""
    node = expression(place)
    if node is None or place.function is None or place.outline.meaning("torch", ()) != "torch":
        return None
    cache = place.spelled("functools.lru_cache")
    there = any(isinstance(one, ast.FunctionDef) and one.name == "kept_table" for one in place.outline.tree.body)
    if cache is None or ("made_table" in place.outline.names and not there):
        return None
    helper = place.helper("kept_table", TABLE.format(cache=cache.text))
    found = _edits(place, node, helper.text)
    if found is None or chain(found[0]) in written_in(place.function):
        return None
    source = place.outline.source(place.outline.span(found[0]))
    assumed = f"`{source}` is a flat list of Python numbers and nothing writes into the one tensor that all calls share"
    message = f"upload it once for its values, device and dtype, where {assumed}"
    return place.fix(Applicability.REVIEW, message, found[1], helper.edits, cache.edits)


def _edits(place: Place, node: ast.expr, helper: str) -> tuple[ast.expr, list[Edit]] | None:
    """The numbers, and what asks the function for their tensor."""
    def source(one: ast.expr) -> str:
        return place.outline.source(place.outline.span(one))

    match node:
        case ast.Call(func=ast.Attribute(value=base, attr="new_tensor"), args=[data], keywords=[]) if chain(base) and _is_own(data):
            text = f"{helper}(tuple({source(data)}), {source(base)}.device, {source(base)}.dtype)"
            return data, [place.replace(text, node)]
        case ast.Call(func=ast.Attribute() as function, args=[data], keywords=keywords) if _is_tensor(place, function) and _is_own(data):
            if {one.arg for one in keywords} in ({"device"}, {"device", "dtype"}):
                return data, [place.replace(helper, function), place.replace(f"tuple({source(data)})", data)]
        case ast.Call(func=ast.Attribute(value=inner, attr="to"), args=[ast.Attribute(attr="device") as device, *_], keywords=[]):
            made = _innermost(inner)
            if isinstance(made.func, ast.Attribute) and _is_tensor(place, made.func) and len(made.args) == 1 and not made.keywords:
                data = made.args[0]
                text = f"tuple({source(data)}), {source(device)}"
                return (data, [place.replace(helper, made.func), place.replace(text, data)]) if _is_own(data) else None
    return None


def _innermost(node: ast.expr) -> ast.Call:
    """The call that makes what methods of shape and dtype are called on."""
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr=name)) if name in SHAPING:
                node = inner
            case ast.Call():
                return node
            case _:
                return ast.Call(ast.Name("unknown", ast.Load()), [], [])


def _is_tensor(place: Place, function: ast.Attribute) -> bool:
    return function.attr == "tensor" and place.outline.meaning(chain(function.value), place.path) == "torch"


def _is_own(data: ast.expr) -> bool:
    return isinstance(data, ast.Attribute) and chain(data).startswith("self.")
