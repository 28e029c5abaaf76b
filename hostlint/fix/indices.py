"""Fixes of a list as an index: it is uploaded once, by a small function of the module that keeps it on the device."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.model import Applicability, Confidence
from hostlint.values.detail import Items, ListOf

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.fix.place import Place
    from hostlint.model import Fix
    from hostlint.values.value import Value

INDEX = '''
@{cache}(maxsize=64, typed=True)
def made_index(device, *positions):
    with torch.inference_mode(False):
        return torch.tensor(positions, device=device)


def index_on(x, *positions):
    """Integers as an index on the device of `x`, uploaded once. A tracer, and its stand-ins for tensors, get one of their own."""
    plain = type(x) in (torch.Tensor, torch.nn.Parameter) and not torch.compiler.is_compiling()
    return (made_index if plain else made_index.__wrapped__)(x.device, *positions)
'''  # typed: `True` and `1` are other indices; outside inference mode: autograd may want to keep it


def kept_index(place: Place, node: cst.Subscript, index: cst.BaseExpression) -> Fix | None:
    """`x[[0, 3, 5]]` to `x[index_on(x, 0, 3, 5)]`, where the source shows that the list stays the same."""
    import libcst as cst

    from hostlint.fix.build import bare_code, is_repeatable

    literal = isinstance(index, cst.List) and bool(index.elements) and all(_is_integer(one.value) for one in index.elements)
    attribute = isinstance(index, cst.Attribute) and isinstance(_index_of(place, node, index).detail, Items | ListOf)
    cache = place.spelled("functools.lru_cache")
    if not (literal or attribute) or not is_repeatable(node.value) or cache is None or place.outline.meaning("torch", ()) != "torch":
        return None
    there = any(isinstance(one, ast.FunctionDef) and one.name == "index_on" for one in place.outline.tree.body)
    if "made_index" in place.outline.names and not there:
        return None
    helper = place.helper("index_on", INDEX.replace("{cache}", cache.text))
    base, positions = bare_code(node.value), bare_code(index)
    call = f"{helper.text}({base}, {positions.strip('[]') if literal else f'*{positions}'})"
    edits = [place.replace(call, index), *helper.edits, *(cache.edits if helper.edits else ())]
    known = place.known.container
    if literal and known.is_tensor and known.confidence is Confidence.CERTAIN:
        return place.fix(Applicability.EXACT, "upload the index once and keep it", edits)
    assumed = f"`{base}` is a tensor" if literal else f"`{positions}` is a short list of integers that seldom changes"
    return place.fix(Applicability.REVIEW, f"upload the index once and keep it, where {assumed}", edits)


def _index_of(place: Place, node: cst.Subscript, part: cst.BaseExpression) -> Value:
    """What is known of one part of the index."""
    known = place.known.index
    if len(node.slice) == 1 or not isinstance(known.detail, Items):
        return known
    number = next(number for number, one in enumerate(node.slice) if getattr(one.slice, "value", None) is part)
    return known.detail.items[number] if number < len(known.detail.items) else known


def _is_integer(node: cst.BaseExpression) -> bool:
    import libcst as cst

    match node:
        case cst.Integer() | cst.UnaryOperation(cst.Minus(), cst.Integer()):
            return True
    return False
