"""Joins and combinations of values: what a name is after two paths met, and what an operation on several values gives."""
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hostlint.model import Confidence
from hostlint.values.detail import Class, Detail, Device, ExternalInstance, Function, Instance, Items, ListOf, Literal
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WHERE_THERE_IS_ONE = "the accelerator where there is one"
OBJECTS = (Instance, ExternalInstance, Function, Class)
UNKNOWN = Value(Place.UNKNOWN)
PYTHON = Value(Place.PYTHON)
NUMBER = Value(Place.PYTHON, rank0=True)
INTEGER = Value(Place.PYTHON, rank0=True, integer=True)
TRUTH = Value(Place.PYTHON, rank0=True, boolean=True)
NONE = Value(Place.PYTHON, detail=Literal("NoneType"))
SHAPE = Value(Place.PYTHON, detail=ListOf(INTEGER))
NUMPY = Value(Place.NUMPY)
TENSOR = Value(Place.TENSOR)


NEVER = Value(Place.PYTHON, detail=Literal("never"))  # on a path that these values rule out


def is_none(value: Value) -> bool:
    """Whether the value says nothing of what else a name may be: None, or a path that is never taken."""
    return isinstance(value.detail, Literal) and value.detail.type_name in {"NoneType", "never"}


def is_constant(value: Value) -> bool:
    """Whether the source says what it is."""
    return isinstance(value.detail, Literal)


def join_all(values: Iterable[Value]) -> Value:
    """What holds of a value that is one of these; None among them says nothing of a tensor."""
    result: Value | None = None
    for value in values:
        result = value if result is None else join(result, value)
    return UNKNOWN if result is None else result


def join(a: Value, b: Value) -> Value:
    """What holds of a value that is one of two."""
    if a is b or a == b:
        return a
    if is_none(a) or is_none(b):
        return b if is_none(a) else a
    if a.place is b.place:
        return _same_place(a, b)
    for one, other in ((a, b), (b, a)):
        if one.place is Place.DEVICE:
            return _with_device(one, other)
    for one, other in ((a, b), (b, a)):
        if one.place is Place.UNKNOWN and isinstance(other.detail, OBJECTS):  # taken from a cache, or built: one class
            return replace(other, confidence=min(other.confidence, Confidence.LIKELY))
    places = {a.place, b.place}
    if places & {Place.UNKNOWN, Place.TENSOR}:  # a host value on one path: that the other is on the device is no more than possible
        tensor = Place.UNKNOWN not in places and places != {Place.PYTHON, Place.TENSOR} and places != {Place.NUMPY, Place.TENSOR}
        mixed = Confidence.POSSIBLE if not (is_constant(a) or is_constant(b)) else min(a.confidence, b.confidence)
        return Value(Place.TENSOR if tensor else Place.UNKNOWN, confidence=mixed)
    host = a if a.place is Place.HOST else b if b.place is Place.HOST else PYTHON
    return replace(host, confidence=min(a.confidence, b.confidence), detail=None)


def _same_place(a: Value, b: Value) -> Value:
    strong = a if a.confidence <= b.confidence else b
    return Value(
        a.place,
        strong.why or a.why or b.why,
        min(a.confidence, b.confidence),
        _agree(a.rank0, b.rank0),
        a.vector and b.vector,
        _agree(a.boolean, b.boolean),
        _agree(a.integer, b.integer),
        a.pinned and b.pinned,
        a.fresh and b.fresh,
        a.large and b.large,
        detail=_join_details(a.detail, b.detail),
        output=a.output and b.output,
        bare=strong.bare,
    )


def _with_device(device: Value, other: Value) -> Value:
    """A device value on one path: likely where the other is unknown or a constant to start from, else only possible."""
    either = replace(device, detail=None)
    if other.is_tensor:
        flags = _same_place(device, replace(other, place=Place.DEVICE))
        either = replace(either, rank0=flags.rank0, vector=flags.vector, boolean=flags.boolean, integer=flags.integer)
    if (other.place in (Place.UNKNOWN, Place.TENSOR) and other.confidence is not Confidence.POSSIBLE) or is_constant(other):
        return replace(either, confidence=min(device.confidence, Confidence.LIKELY))
    return replace(either, place=Place.TENSOR if other.place is Place.HOST else Place.UNKNOWN, confidence=Confidence.POSSIBLE)


def _agree(a: bool | None, b: bool | None) -> bool | None:
    return a if a is b else None


def _join_details(a: Detail | None, b: Detail | None) -> Detail | None:
    if a == b:
        return a
    if isinstance(a, Instance) and isinstance(b, Instance) and a.klass == b.klass:
        return a if a.moved else b
    if isinstance(a, (Items, ListOf)) and isinstance(b, (Items, ListOf)):
        if isinstance(a, Items) and isinstance(b, Items) and a.kind == b.kind == "tuple" and len(a.items) == len(b.items):
            return Items("tuple", tuple(join(x, y) for x, y in zip(a.items, b.items, strict=True)))
        elements = [element(part) for part in (a, b) if not (isinstance(part, Items) and not part.items)]
        return ListOf(join_all(elements), a.kind if a.kind == b.kind else "list") if elements else a
    if isinstance(a, (Device, Literal)) and isinstance(b, (Device, Literal)):
        on = {device_name(a), device_name(b)}
        if on <= {"device", "host"} and len(on) == 2:
            return Device("device", WHERE_THERE_IS_ONE)
        return Device(on.pop()) if len(on) == 1 and on != {"unknown"} else None
    return None


def device_name(detail: Detail) -> str:
    """"device", "host" or "unknown" for a device or the string that names one."""
    if isinstance(detail, Device):
        return detail.on
    if isinstance(detail, Literal) and isinstance(detail.value, str):
        head = detail.value.partition(":")[0]
        return "host" if head == "cpu" else "device" if head in {"cuda", "npu", "xpu", "hpu", "mps", "musa", "hip"} else "unknown"
    return "unknown"


def element(detail: Detail | None) -> Value:
    """The value of one element of a container."""
    if isinstance(detail, ListOf):
        return detail.element
    if isinstance(detail, Items):
        return join_all(detail.items)
    return UNKNOWN


def list_of(value: Value) -> Value:
    """A list of such values."""
    return Value(Place.PYTHON, value.why, value.confidence, detail=ListOf(replace(value, fresh=False) if value.fresh else value))


def combine(values: Sequence[Value]) -> Value:
    """The result of tensor arithmetic on these values: on the device where one of them is, by the best evidence."""
    tensors = [value for value in values if value.is_tensor]
    on_device = [value for value in tensors if value.is_device]
    best = next((value for value in on_device if value.confidence is Confidence.CERTAIN), on_device[0] if on_device else None)
    if best is not None:
        return _combined(best, Place.DEVICE, tensors, values)
    unknown = any(value.place is Place.UNKNOWN for value in values)
    if tensors:
        place = Place.HOST if not unknown and all(value.place is Place.HOST for value in tensors) else Place.TENSOR
        made = _combined(tensors[0], place, tensors, values)
        on_host = place is Place.TENSOR and all(value.place is Place.HOST for value in tensors)
        return replace(made, confidence=Confidence.POSSIBLE) if on_host else made  # what it met is most likely a number
    if any(value.place is Place.NUMPY for value in values):
        return NUMPY
    return UNKNOWN if unknown or not values else PYTHON


def _combined(best: Value, place: Place, tensors: Sequence[Value], values: Sequence[Value]) -> Value:
    unknown = len(tensors) < len(values) and any(value.place is Place.UNKNOWN for value in values)
    ranks = {value.rank0 for value in tensors}
    rank0 = None if unknown or None in ranks else ranks == {True}
    confidence = best.confidence if place is Place.DEVICE else min(value.confidence for value in tensors)
    vector = any(value.vector for value in tensors) and all(value.vector or value.rank0 for value in tensors) and not unknown
    boolean = _common({value.boolean for value in tensors}) if not unknown else None
    integer = _common({value.integer for value in tensors}) if not unknown else None
    fresh = place is Place.HOST and all(value.fresh for value in tensors)
    large = place is Place.HOST and any(value.large for value in tensors)
    return Value(place, best.why, confidence, rank0, vector, boolean, integer, fresh=fresh, large=large, bare=best.bare)


def _common(flags: set[bool | None]) -> bool | None:
    return flags.pop() if len(flags) == 1 else None
