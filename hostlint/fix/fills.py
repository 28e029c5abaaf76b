"""Fixes of tensors that are built on the host though the device can make them: literals become fills, factories get their device."""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlint.fix.numbers import is_number_by_default
from hostlint.model import Applicability, Confidence
from hostlint.values.detail import Device, Items, Literal
from hostlint.values.value import Place as Lives

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from hostlint.fix.place import Place
    from hostlint.model import Edit, Fix
    from hostlint.values.known import Known
    from hostlint.values.value import Value

LARGEST_FLOAT = 3.4028234e38  # past float32's range `torch.tensor` gives inf where `torch.full` raises
LARGEST_INT = 2**53  # ints past it are rounded twice by `torch.tensor` and once by `torch.full` on their way to float32
NOT_FINITE = re.compile(r"""-?float\((["'])[-+]?(nan|inf)\1\)""")  # both forms take these, and refuse them for integer dtypes
CONSTRUCTORS = {"torch.tensor": "full", "torch.as_tensor": "full"}
KEYWORDS = frozenset({"dtype", "device", "requires_grad", "pin_memory"})  # what `torch.tensor` and `torch.full` both take, in one meaning


@dataclass(frozen=True, slots=True)
class Fill:
    """A constructor's data as a fill: the size and the number in source, and what must be assumed of it ("" where it is proved)."""

    size: str
    number: str
    assumed: str = ""
    whole: bool = False  # an int that is written down: its tensor is one of int64


def constructor_to_fill(place: Place) -> Fix | None:
    """`torch.tensor(3.0, device=d)` to `torch.full((), 3.0, device=d)`; with `new_tensor`, to `new_full`."""
    import libcst as cst

    if not isinstance(place.node, cst.Call):
        return None
    edits = fill_edits(place, place.node, place.known)
    if edits is None:
        return None
    changes, fill = edits
    if fill.assumed:
        return place.fix(Applicability.REVIEW, f"fill on the device, where {fill.assumed}", changes)
    return place.fix(Applicability.EXACT, "fill on the device: the number travels as an argument of the kernel", changes)


def fill_edits(place: Place, call: cst.Call, known: Known) -> tuple[tuple[Edit, ...], Fill] | None:
    """The edits that turn a constructor's call into a fill; None where its data is not one number."""
    import libcst as cst

    data, *others = call.args or (None,)
    if data is None or data.star or (data.keyword is not None and data.keyword.value not in {"data", "obj"}):
        return None
    if any(other.keyword is None or other.keyword.value not in KEYWORDS for other in others):
        return None
    fill = _fill(place, data.value, known.keyword(data.keyword.value) if data.keyword is not None else known.argument(0))
    if fill is None:
        return None
    name: Edit | None = None
    more: tuple[Edit, ...] = ()
    match call.func:
        case cst.Attribute(attr=cst.Name("new_tensor") as attribute) if known.receiver.is_tensor:
            name = place.replace("new_full", attribute)
        case cst.Attribute(attr=attribute) if place.dotted(call.func) in CONSTRUCTORS:
            name = place.replace("full", attribute)
        case cst.Name() if place.dotted(call.func) in CONSTRUCTORS:
            spelled = place.spelled("torch.full")
            if spelled is not None:
                name, more = place.replace(spelled.text, call.func), spelled.edits
    if name is None:
        return None
    dtype = _dtype(place, call, fill)
    return (name, place.replace(f"{fill.size}{_between(place, data)}{fill.number}{dtype}", data), *more), fill


def _between(place: Place, argument: cst.Arg) -> str:
    """What parts two arguments: a line's end where the one before them had its line for itself."""
    span = place.span(argument)
    line = place.outline.lines[span.line - 1]
    alone = span.line == span.end_line and not line[: span.column - 1].strip() and line[span.end_column - 1 :].strip() == ","
    return f",\n{line[: span.column - 1]}" if alone else ", "


def _dtype(place: Place, call: cst.Call, fill: Fill) -> str:
    """The dtype that `torch.tensor` finds for an int, stated: what `torch.full` finds for one has changed over time."""
    import libcst as cst

    from hostlint.fix.build import code

    match call.func:
        case cst.Attribute(value=module, attr=cst.Name(name)) if fill.whole and name != "new_tensor" and not _given(call, "dtype"):
            return f", dtype={code(module)}.int64" if place.dotted(module) == "torch" else ""
    return ""


def _fill(place: Place, data: cst.BaseExpression, value: Value) -> Fill | None:
    """One number, or a list (of lists) of the same number over and over."""
    import libcst as cst

    if not isinstance(data, cst.List | cst.Tuple):
        return _number(place, data, value)
    if not data.elements or any(isinstance(element, cst.StarredElement) for element in data.elements):
        return None
    items = value.detail.items if isinstance(value.detail, Items) else (value,) * len(data.elements)
    parts = [_fill(place, element.value, item) for element, item in zip(data.elements, items, strict=False)]
    first = parts[0]
    if first is None or any(part != first for part in parts):
        return None
    if len(parts) > 1 and not _is_literal(first.number):
        return None
    inner = first.size[1:-1].rstrip(",")
    return Fill(f"({len(parts)}, {inner})" if inner else f"({len(parts)},)", first.number, first.assumed, first.whole)


def _number(place: Place, data: cst.BaseExpression, value: Value) -> Fill | None:
    import libcst as cst

    from hostlint.fix.build import code
    from hostlint.wording import text

    source = code(data)
    if _is_literal(source):
        return Fill("()", source, whole=type(_literal(source)) is int) if _in_range(source) else None
    if NOT_FINITE.fullmatch(source):
        return Fill("()", source)
    if not value.rank0 and place.function is not None and _may_be_number(value) and is_number_by_default(place.function, source):
        return Fill("()", source, f"`{text(data)}` is a Python number within float32's range")
    if value.place is not Lives.PYTHON or not value.rank0 or "\n" in source or isinstance(data, cst.BaseNumber):
        return None  # a number that is none of these is complex
    if value.integer and value.confidence is Confidence.CERTAIN:
        return Fill("()", source)
    if isinstance(value.detail, Literal) and value.detail.type_name == "bool":
        return Fill("()", source)
    return Fill("()", source, f"`{text(data)}` is a Python number within float32's range")


def _may_be_number(value: Value) -> bool:
    """Whether nothing says that a value is a list, a tensor or the like."""
    number = value.detail is None or (isinstance(value.detail, Literal) and value.detail.type_name in ("int", "float"))
    return value.place in (Lives.UNKNOWN, Lives.PYTHON) and number


def _is_literal(source: str) -> bool:
    return _literal(source) is not None


def _literal(source: str) -> float | None:
    """The number (or truth value) that a source is; None for anything else."""
    import ast

    try:
        value = ast.literal_eval(source)
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, int | float) else None


def _in_range(source: str) -> bool:
    value = _literal(source)
    return value is not None and abs(value) <= (LARGEST_FLOAT if isinstance(value, float) else LARGEST_INT)


# Factories whose result is moved at once

SAME = frozenset({"torch.zeros", "torch.ones", "torch.full", "torch.eye", "torch.zeros_like", "torch.ones_like", "torch.full_like"})
WHOLE = frozenset({"torch.zeros", "torch.ones", "torch.eye"})  # nothing but 0 and 1, which every dtype can hold
FILLS = frozenset({"torch.full", "torch.full_like"})
INTEGER_CASTS = frozenset({"long", "int"})
FLOATS = frozenset(f"torch.{name}" for name in ("float", "half", "double", "bfloat16", "float16", "float32", "float64"))
SMALLEST_MAXIMUM = 127  # what every dtype can hold
TAKEN = frozenset({"dtype", "size", "fill_value", "n", "m", "start", "end", "step", "input"})
SHAPING = frozenset(
    {"view", "reshape", "unsqueeze", "squeeze", "flatten", "permute", "transpose", "t", "repeat", "contiguous"}
    | {"float", "double", "half", "bfloat16", "long", "int", "bool"}
)  # methods with the same bits and strides before and after a move; a copy of an expanded or sliced tensor has other strides


@dataclass(frozen=True, slots=True)
class _Move:
    """Where `.to(…)` or `.cuda()` moves, and the dtype that it also casts to ("" for none), in source."""

    device: str
    dtype: str = ""


def moved_to_made(place: Place) -> Fix | None:
    """`torch.zeros(n).to(d)` to `torch.zeros(n, device=d)`."""
    import libcst as cst

    match place.node:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name("to" | "cuda") as name, dot=dot)):
            move = _move(place, place.node, name.value)
        case _:
            return None
    base, known, steps = _base(inner, place.known.base)
    if move is None or not isinstance(base, cst.Call):
        return None
    end = place.fact.span
    start = place.span(dot)
    tail = place.replace("", type(end)(start.line, start.column, end.end_line, end.end_column))
    dotted = place.dotted(base.func)
    if dotted in CONSTRUCTORS and not steps and not _given(base, "device") and not move.dtype:
        edits = fill_edits(place, base, known)
        if edits is None:
            return None
        changes, fill = edits
        applicability = Applicability.REVIEW if fill.assumed else Applicability.EXACT
        message = "fill on the device" + (f", where {fill.assumed}" if fill.assumed else "")
        return place.fix(applicability, message, changes, _with(place, base, f"device={move.device}"), tail)
    if not _is_same_there(dotted, base, known):
        return None
    given = f"device={move.device}"
    if move.dtype and dotted in WHOLE and not steps and not _given(base, "dtype"):
        given += f", dtype={move.dtype}"
    elif move.dtype:
        tail = place.replace(f".to({move.dtype})", tail.span)
    what, made = f"make it on the device: `{dotted}` gives the same values there", (_with(place, base, given), tail)
    integer = INTEGER_CASTS & {*steps} or (move.dtype and move.dtype not in FLOATS)
    if dotted in FILLS and integer and not _fits_all(base, known):
        return place.fix(Applicability.REVIEW, f"{what}, where the dtype that it is cast to can hold the number", *made)
    return place.fix(Applicability.EXACT, what, *made)


def _move(place: Place, call: cst.Call, method: str) -> _Move | None:
    """What a move asks for; None where it is not a device, and perhaps a dtype, that are plain to see."""
    from hostlint.fix.build import code

    given = {argument.keyword.value: argument.value for argument in call.args if argument.keyword is not None}
    positional = [argument.value for argument in call.args if argument.keyword is None and not argument.star]
    if len(given) + len(positional) != len(call.args) or not given.keys() <= {"device", "dtype", "non_blocking"}:
        return None
    if method == "cuda":
        return _Move('"cuda"') if not positional and given.keys() <= {"non_blocking"} else None
    device = given.get("device") or (positional[0] if positional else None)
    value = place.known.keyword("device") if "device" in given else place.known.argument(0)
    dtype = given.get("dtype") or (positional[1] if len(positional) == 2 and "device" not in given else None)
    if device is None or len(positional) > 2 or not _is_device(device, value) or not (dtype is None or _is_plain(dtype)):
        return None
    return _Move(code(device), code(dtype) if dtype is not None else "")


def _is_device(node: cst.BaseExpression, value: Value) -> bool:
    """Whether an argument is a device (its name, a `torch.device`, None): whatever it is called with, a factory takes the same."""
    from hostlint.fix.build import code

    named = code(node).rpartition(".")[2].lower().endswith("device")
    proved = isinstance(value.detail, Device) or (isinstance(value.detail, Literal) and value.detail.type_name == "str")
    return _is_plain(node) and (named or proved)


def _is_plain(node: cst.BaseExpression) -> bool:
    """Whether it makes no difference that an expression is evaluated a little earlier."""
    import libcst as cst

    match node:
        case cst.Name() | cst.SimpleString():
            return True
        case cst.Attribute(value=value):
            return _is_plain(value)
        case cst.Call(func=cst.Attribute(value=cst.Name("torch"), attr=cst.Name("device")), args=args):
            return all(_is_plain(argument.value) and not argument.star for argument in args)
    return False


def _base(node: cst.BaseExpression, known: Known) -> tuple[cst.BaseExpression, Known, Sequence[str]]:
    """The call that builds, what is known of it, and the shaping methods between it and the move."""
    import libcst as cst

    steps: list[str] = []
    while True:
        match node:
            case cst.Call(func=cst.Attribute(value=cst.Call() as inner, attr=cst.Name(name))) if name in SHAPING:
                steps.append(name)
                node, known = inner, known.base
            case _:
                return node, known, steps


def _fits_all(call: cst.Call, known: Known) -> bool:
    """Whether a fill's number is the same in all dtypes, or an int: floats that an integer dtype cannot hold are cast otherwise there."""
    from hostlint.fix.build import code

    named = next((one for one in call.args if one.keyword is not None and one.keyword.value == "fill_value"), None)
    placed = [one for one in call.args if one.keyword is None]
    if named is None and len(placed) < 2:
        return False
    number = _literal(code(named.value if named is not None else placed[1].value))
    value = known.keyword("fill_value") if named is not None else known.argument(1)
    is_int = bool(value.integer) and value.confidence is Confidence.CERTAIN and not _given(call, "dtype")
    return is_int or (number is not None and 0 <= number <= SMALLEST_MAXIMUM)


def _is_same_there(dotted: str, call: cst.Call, known: Known) -> bool:
    """Whether a factory makes the same bits on the device: fills do, and ranges of ints."""
    if any(argument.star == "**" or (argument.keyword is not None and argument.keyword.value not in TAKEN) for argument in call.args):
        return False
    if dotted == "torch.arange":
        return bool(known.value.integer) and known.value.confidence is Confidence.CERTAIN and not _given(call, "dtype")
    return dotted in SAME


def _given(call: cst.Call, name: str) -> bool:
    return any(argument.keyword is not None and argument.keyword.value == name for argument in call.args)


def _with(place: Place, call: cst.Call, argument: str) -> Edit:
    """One more argument at the end of a call's."""
    from hostlint.model import Span

    if call.args:
        end = place.span(call.args[-1])
        return place.replace(f", {argument}", Span(end.end_line, end.end_column, end.end_line, end.end_column))
    end = place.span(call)
    return place.replace(argument, Span(end.end_line, end.end_column - 1, end.end_line, end.end_column - 1))
