"""Fixes of device scalars where torch takes numbers: lists of them are stacked, fills take the tensor, factors are multiplied."""
from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from hostlint.fix.calls import follow, given, is_plain
from hostlint.fix.gradients import gradients_are_off
from hostlint.model import Applicability, Confidence, Edit, Span
from hostlint.values.detail import Items, ListOf, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import libcst as cst

    from hostlint.fix.place import Place
    from hostlint.model import Fix
    from hostlint.values.value import Value

CONSTRUCTORS = frozenset({"torch.tensor", "torch.as_tensor"})
MANTISSA = 2**8  # bfloat16 has the shortest one
STACKER = '''
def stack_scalars(values, device):
    """`torch.tensor(values, device=device)` of numbers and 0-dim tensors, without reading them."""
    return torch.stack([v.to(device) if isinstance(v, torch.Tensor) else torch.full((), v, device=device) for v in values])
'''


def tensor_to_stack(place: Place) -> Fix | None:
    """`torch.tensor([a, b], device=d)` to `torch.stack([a, b]).to(d)`."""
    import libcst as cst

    call = place.node
    if not isinstance(call, cst.Call) or place.dotted(call.func) not in CONSTRUCTORS or not is_plain(call, frozenset({"dtype", "device"})):
        return None
    if not call.args or call.args[0].keyword is not None or any(one.keyword is None for one in call.args[1:]):
        return None
    data, value = call.args[0].value, place.known.argument(0)
    match data:
        case cst.List(elements=[*elements]) | cst.Tuple(elements=[*elements]) if elements:
            return _elements(place, call, elements, value)
        case cst.BinaryOperation(left=cst.List(elements=[cst.Element(value=one)]), operator=cst.Multiply(), right=count):
            return _repeated(place, call, one, count)
        case cst.Name(name):
            return _named(place, call, name, value)
    return None


def _elements(place: Place, call: cst.Call, elements: Sequence[cst.BaseElement], value: Value) -> Fix | None:
    import libcst as cst

    from hostlint.fix.build import bare_code, is_repeatable, operand

    items = value.detail.items if isinstance(value.detail, Items) and len(value.detail.items) == len(elements) else ()
    if not items or any(isinstance(element, cst.StarredElement) for element in elements):
        return None
    literals = [item.detail.value for item in items if isinstance(item.detail, Literal)]
    numbers = [element.value for element, item in zip(elements, items, strict=True) if isinstance(item.detail, Literal)]
    tensors = [item for item in items if not isinstance(item.detail, Literal)]
    beside = next((one.value for one, item in zip(elements, items, strict=True) if item in tensors and is_repeatable(one.value)), None)
    if not tensors or not all(item.is_device for item in tensors) or not all(is_short(one) for one in literals):
        return None
    if numbers and (beside is None or place.outline.meaning("torch", place.path) != "torch"):
        return None
    device = f"{operand(beside)}.device" if beside is not None else ""
    made = [place.replace(f"torch.full((), {bare_code(one)}, device={device})", one) for one in numbers]
    proved = all(item.rank0 and item.confidence is Confidence.CERTAIN and item.why == tensors[0].why for item in tensors)
    exact = proved and given(call, "dtype") is None
    return _stacked(place, call, made, "" if exact else "every tensor in the list is 0-dim")


def _stacked(place: Place, call: cst.Call, made: Sequence[Edit], assumed: str) -> Fix | None:
    """The constructor becomes `torch.stack`, its keywords a move after it."""
    import libcst as cst

    if not isinstance(call.func, cst.Attribute):
        return None
    edits = [place.replace("stack", call.func.attr), *made]
    if call.args[1:]:
        first, last = place.span(call.args[0]), place.span(call.args[-1])
        edits.append(Edit(Span(first.end_line, first.end_column, last.end_line, last.end_column), ""))
    detached = "" if assumed or given(call, "device") is None or gradients_are_off(place) else ".detach()"
    after = f"{detached}{_move(call)}"
    return _said(place, call, [*edits, *([follow(place, call, after)] if after else [])], assumed)


def _move(call: cst.Call) -> str:
    """The `.to(…)` that puts a result where the constructor was told to, in the dtype that it was told."""
    from hostlint.fix.build import code

    wanted = [code(one.value) for one in (given(call, "device"), given(call, "dtype")) if one is not None]
    return f".to({', '.join(wanted)})" if wanted else ""


def _said(place: Place, call: cst.Call, edits: Sequence[Edit], assumed: str) -> Fix:
    """Exact where nothing is assumed: the same values, types, shape and strides, in memory of its own, without a gradient."""
    stays = "the result, which was on the host, may stay on the device" if given(call, "device") is None else ""
    if not assumed and not stays:
        return place.fix(Applicability.EXACT, "stack them on the device", edits)
    gradient = "" if gradients_are_off(place) else "no gradient runs through them"
    words = [one for one in (assumed, stays, gradient) if one]
    return place.fix(Applicability.REVIEW, f"stack them on the device, where {' and '.join(words)}", edits)


def _repeated(place: Place, call: cst.Call, one: cst.BaseExpression, count: cst.BaseExpression) -> Fix | None:
    """`torch.tensor([t] * n, device=d)` to `t.repeat(n).to(d)`: like the list's tensor, and unlike `expand`, in memory of its own."""
    from hostlint.fix.build import bare_code, operand

    if "\n" in bare_code(one) + bare_code(count):
        return None
    edit = place.replace(f"{operand(one)}.repeat({bare_code(count)}){_move(call)}")
    return _said(place, call, [edit], f"`{bare_code(one)}` is a 0-dim tensor")


def _named(place: Place, call: cst.Call, name: str, value: Value) -> Fix | None:
    """A list by its name: `torch.stack`, or a helper where numbers stand among its tensors."""
    from hostlint.fix.build import code

    items = value.detail.items if isinstance(value.detail, Items) else ()
    one = value.detail.element if isinstance(value.detail, ListOf) else next((item for item in items if item.is_device), None)
    if one is None or not one.is_device or place.function is None:
        return None
    numbers = list(_numbers(place.function, name))
    if not numbers:
        return _stacked(place, call, (), f"`{name}` holds at least one 0-dim tensor and nothing else")
    device = given(call, "device")
    if device is None or given(call, "dtype") is not None or place.outline.meaning("torch", ()) != "torch":
        return None
    if not all(is_short(number) for number in numbers):
        return None
    helper = place.helper("stack_scalars", STACKER)
    edits = [place.replace(f"{helper.text}({name}, {code(device.value)})"), *helper.edits]
    return _said(place, call, edits, f"the tensors in `{name}` are 0-dim")


def is_short(number: object) -> bool:
    """Whether every float dtype holds the number: then it does not matter in which one it is made before it meets the tensors'."""
    if not isinstance(number, int | float) or not math.isfinite(number):
        return False
    fraction, exponent = math.frexp(number)
    return number == 0 or (fraction * MANTISSA == int(fraction * MANTISSA) and -13 <= exponent <= 15)


def _numbers(function: ast.AST, name: str) -> Iterator[object]:
    """The constants of the source that the function puts into the list of this name."""
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=holder), attr="append" | "insert"), args=[*_, one]) if holder == name:
                parts = [one]
            case ast.Assign(targets=[ast.Name(id=holder)], value=value) | ast.AugAssign(target=ast.Name(id=holder), value=value):
                lists = [one for one in ast.walk(value) if isinstance(one, ast.List | ast.Tuple)] if holder == name else []
                parts = [element for one in lists for element in one.elts]
            case _:
                continue
        yield from (one.value for one in parts if isinstance(one, ast.Constant))
        yield from (one.operand.value for one in parts if isinstance(one, ast.UnaryOp) and isinstance(one.operand, ast.Constant))
