"""Fixes of results whose size depends on the data: counts by scatter, and the size of a repeat that the host knows."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.fix.calls import given, is_plain, with_argument
from hostlint.model import Applicability

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.fix.place import Place
    from hostlint.model import Fix

COUNT = '''
def count_values(ids, size):
    """`torch.bincount(ids, minlength=size)` for values below `size`, without reading the largest one."""
    ids = ids.long()
    return torch.zeros(size, dtype=torch.long, device=ids.device).scatter_add_(0, ids, torch.ones_like(ids))
'''
CONSTRUCTORS = frozenset({"torch.tensor", "torch.as_tensor"})


def sized(place: Place) -> Fix | None:
    """`bincount(ids, minlength=n)` by scatter; `repeat_interleave(x, counts)` with `output_size=`."""
    import libcst as cst

    match place.node:
        case cst.Call(func=cst.Attribute(attr=cst.Name("bincount"))) as call:
            return _counted(place, call)
        case cst.Call(func=cst.Attribute(attr=cst.Name("repeat_interleave"))) as call:
            return _repeated(place, call)
    return None


def _counted(place: Place, call: cst.Call) -> Fix | None:
    import libcst as cst

    from hostlint.fix.build import bare_code

    placed = [one.value for one in call.args if one.keyword is None]
    if place.dotted(call.func) != "torch.bincount" and isinstance(call.func, cst.Attribute):
        placed.insert(0, call.func.value)
    size = given(call, "minlength")
    if size is None or len(placed) != 1 or not is_plain(call, frozenset({"minlength"})) or place.outline.meaning("torch", ()) != "torch":
        return None
    helper = place.helper("count_values", COUNT)
    ids, most = bare_code(placed[0]), bare_code(size.value)
    if "\n" in ids + most:
        return None
    edit = place.replace(f"{helper.text}({ids}, {most})")
    return place.fix(Applicability.REVIEW, f"count by scatter, where no value of `{ids}` reaches `{most}`", edit, *helper.edits)


def _repeated(place: Place, call: cst.Call) -> Fix | None:
    """The counts were made of a list of the same function: then their sum is known on the host."""
    import libcst as cst

    function = place.dotted(call.func) == "torch.repeat_interleave"
    placed = [one.value for one in call.args if one.keyword is None]
    position = 1 if function else 0
    repeats = given(call, "repeats")
    counts = repeats.value if repeats is not None else placed[position] if len(placed) > position else None
    if not isinstance(counts, cst.Name) or not is_plain(call, frozenset({"dim", "repeats", "input"})) or place.function is None:
        return None
    source = _made_of(place, place.function, counts.value)
    if not source:
        return None
    message = f"give the size, where `{source}` still holds the numbers that `{counts.value}` was made of"
    return place.fix(Applicability.REVIEW, message, with_argument(place, call, f"output_size=sum({source})"))


def _made_of(place: Place, function: ast.AST, name: str) -> str:
    """The list that a tensor of counts was made of, where each of both names is bound once; "" where that is not so."""
    nodes = list(ast.walk(function))
    bound = [node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
    bound += [node.arg for node in nodes if isinstance(node, ast.arg)]
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.Call(func=func, args=[ast.Name(id=source)])) if target == name:
                made = _dotted(place, func) in CONSTRUCTORS
                return source if made and bound.count(name) == 1 and bound.count(source) <= 1 else ""
    return ""


def _dotted(place: Place, func: ast.expr) -> str:
    import libcst as cst

    return place.dotted(cst.parse_expression(ast.unparse(func))) if isinstance(func, ast.Attribute) else ""
