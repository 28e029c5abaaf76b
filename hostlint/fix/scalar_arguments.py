"""Fixes of a device scalar that an argument reads as a number: fills, masked fills, and the factors `alpha=` and `value=`."""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.fix.calls import follow, given, is_plain, without_argument
from hostlint.model import Applicability, Confidence

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.fix.place import Place
    from hostlint.model import Edit, Fix
    from hostlint.values.value import Value

EMPTY = {"full": "empty", "full_like": "empty_like", "new_full": "new_empty"}
FILL_KEYWORDS = frozenset({"size", "input", "fill_value", "dtype", "device", "layout", "memory_format", "pin_memory"})
FACTORS = frozenset({"add", "sub", "addcmul", "addcdiv", "add_", "sub_", "addcmul_", "addcdiv_"})
ANY_INTEGER = frozenset({"torch.long", "torch.int64", "torch.float", "torch.float32", "torch.double", "torch.float64", "torch.bfloat16"})


def scalar_argument_fix(place: Place) -> Fix | None:
    """`torch.full(n, t)` to `torch.empty(n).fill_(t)`; `masked_fill(m, t)` to `where`; `alpha=t` to a product."""
    import libcst as cst

    match place.node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(name))) as call if name in EMPTY:
            return _filled(place, call, name)
        case cst.Call(func=cst.Attribute(attr=cst.Name("masked_fill" | "masked_fill_"))) as call:
            return _where(place, call)
        case cst.Call(func=cst.Attribute(attr=cst.Name(name))) as call if name in FACTORS:
            return _multiplied(place, call, name)
    return None


# Fills


def _filled(place: Place, call: cst.Call, name: str) -> Fix | None:
    """The fill of memory that is not filled yet takes the tensor as it is, and a number too."""
    from hostlint.fix.build import bare_code

    method = name == "new_full"
    if not is_plain(call, FILL_KEYWORDS) or not (method or place.dotted(call.func) == f"torch.{name}"):
        return None
    number = given(call, "fill_value") or next(iter([one for one in call.args if one.keyword is None][1:2]), None)
    if number is None or (name == "full" and given(call, "device") is None):
        return None  # without a device the result is on the host, and filling it reads the scalar as well
    value = place.known.argument(1) if number.keyword is None else place.known.keyword("fill_value")
    source = bare_code(number.value)
    edits = [place.replace(EMPTY[name], _name(call)), without_argument(place, call, number), follow(place, call, f".fill_({source})")]
    kind = _kind(value) if name == "full" and given(call, "dtype") is None else ""
    if kind:
        edits.append(follow(place, call.args[-1], f", dtype={kind}"))
    if _is_exact(place, call, name, value, kind):
        return place.fix(Applicability.EXACT, "fill with the tensor itself", edits)
    untold = name == "full" and given(call, "dtype") is None and not kind
    return place.fix(
        Applicability.REVIEW,
        f"fill with the tensor itself, where `{source}` is 0-dim and {'of floats' if untold else 'the dtype can hold it'}",
        edits,
    )


def _name(call: cst.Call) -> cst.Name:
    import libcst as cst

    assert isinstance(call.func, cst.Attribute)
    return call.func.attr


def _kind(value: Value) -> str:
    """The dtype that `torch.full` takes from the value of a fill, where that is proved not to be the default one."""
    if value.confidence is not Confidence.CERTAIN:
        return ""
    return "torch.bool" if value.boolean else "torch.int64" if value.integer else ""


def _is_exact(place: Place, call: cst.Call, name: str, value: Value, kind: str) -> bool:
    """Integers and truth values that the dtype can all hold: `full` raises for others, where the kernel takes what comes."""
    if name != "full" or not value.is_tensor or not value.rank0 or not _kind(value):
        return False
    dtype = given(call, "dtype")
    return bool(kind) or (dtype is not None and place.dotted(dtype.value) in ANY_INTEGER)


# Masked fills


def _where(place: Place, call: cst.Call) -> Fix | None:
    from hostlint.fix.build import bare_code, is_repeatable, operand

    name = _name(call).value
    function = place.dotted(call.func) == "torch.masked_fill"
    placed = [one.value for one in call.args if one.keyword is None and not one.star]
    named = {one.keyword.value: one.value for one in call.args if one.keyword is not None}
    names = ("input", "mask", "value") if function else ("mask", "value")
    parts = {**dict(zip(names, placed, strict=False)), **named}
    if len(placed) + len(named) != len(call.args) or set(parts) != set(names):
        return None
    spelled = place.spelled("torch.where")
    base = parts["input"] if function else getattr(call.func, "value", None)
    if spelled is None or base is None:
        return None
    mask, value, old = bare_code(parts["mask"]), bare_code(parts["value"]), bare_code(base)
    new = f"{spelled.text}({mask}, {value}, {old})"
    if name == "masked_fill_":
        if not is_repeatable(base):
            return None
        new = f"{operand(base)}.copy_({new})"
    assumed = f"`{value}` is 0-dim and of the kind of `{old}` (then its dtype stays; strides follow the mask's where `{old}` is permuted)"
    return place.fix(Applicability.REVIEW, f"select instead of filling, where {assumed}", place.replace(new), *spelled.edits)


# Factors


def _multiplied(place: Place, call: cst.Call, name: str) -> Fix | None:
    """`torch.sub(a, b, alpha=t)` to `torch.sub(a, b * t)`."""
    from hostlint.fix.build import bare_code, operand

    function = place.dotted(call.func) == f"torch.{name}"
    factor = given(call, "alpha", "value")
    placed = [one for one in call.args if one.keyword is None and not one.star]
    position = 1 if function else 0
    if factor is None or len(placed) + 1 != len(call.args) or len(placed) <= position or not _is_one_line(factor.value):
        return None
    factors = placed[position].value
    edits: list[Edit] = [place.replace(f"{operand(factors)} * {operand(factor.value)}", factors), without_argument(place, call, factor)]
    message = f"multiply with `{bare_code(factor.value)}`: the product is rounded before it is added, so that the last bit may differ"
    return place.fix(Applicability.REVIEW, message, edits)


def _is_one_line(node: cst.BaseExpression) -> bool:
    """Whether an expression can be moved to another line as it is."""
    from hostlint.fix.build import code

    return "\n" not in code(node)
