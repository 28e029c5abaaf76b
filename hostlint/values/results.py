"""What a call in the table of torch returns: its place, rank and type, from the entry and the arguments."""
from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from hostlint.model import Confidence
from hostlint.torch_ops.copies import largest_free_copy
from hostlint.torch_ops.spec import Op, Returns
from hostlint.values.detail import Dtype, ExternalInstance, Items, ListOf, Literal, NoElements, is_empty
from hostlint.values.devices import Target, is_device, is_dtype, target_of
from hostlint.values.lattice import NUMPY, PYTHON, UNKNOWN, combine, is_none, list_of
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.values.arguments import Bound

VECTOR_MAKERS = frozenset({"arange", "linspace", "logspace", "randperm", "flatten", "ravel", "hann_window", "range"})
VECTOR_KEEPERS = frozenset({
    "clone", "to", "cpu", "cuda", "detach", "contiguous", "cumsum", "cumprod", "flip", "sort", "roll", "pin_memory", "type", "type_as",
    "clamp", "requires_grad_", "data", "tile", "repeat_interleave", "unique", "float", "double", "half", "long", "int", "bool", "bfloat16",
    "short",
})
LONGEST_NAME = 40  # longer names of devices are left out of messages
DEFAULT_WIDTH = 4  # bytes of an element where no dtype is given: float32
SHAPES = re.compile(r"shape|size|dims$|^s$", re.IGNORECASE)  # names of tuples of sizes


def result(op: Op, bound: Bound, line: int) -> Value:
    """What a call of this entry with these arguments returns."""
    returns = op.returns
    if returns is Returns.NUMPY:
        return NUMPY
    if returns is Returns.NONE:
        return PYTHON
    if returns is Returns.PYTHON:
        return Value(Place.PYTHON, rank0=op.rank0, boolean=op.boolean, integer=op.integer)
    if returns is Returns.UNKNOWN:
        return Value(Place.PYTHON, detail=ExternalInstance(op.makes, _given(bound))) if op.makes else UNKNOWN
    made = _PLACED[returns](op, bound, line)
    data = bound.get("data")
    if data is not None and is_empty(data.value):
        return replace(made, detail=NoElements())
    if returns is Returns.SEQUENCE or _is_sequence(op, bound):
        return _sequence(op, made)
    return made


def _given(bound: Bound) -> tuple[tuple[str, Value], ...]:
    """A constructor's arguments, flat, for what its methods do with them."""
    return tuple((name, replace(given[0].value, fresh=False)) for name, given in bound.by_name.items() if len(given) == 1)


def _is_sequence(op: Op, bound: Bound) -> bool:
    if op.sequence_without:
        return not any(bound.given(name) for name in op.sequence_without)
    return any(bound.given(name) and _asks_for_more(bound.by_name[name][0].value) for name in op.sequence_with)


def _asks_for_more(value: Value) -> bool:
    """Whether `return_inverse=` or `dim=` makes the result several tensors: not where it is False or a tensor to compare with."""
    return not value.is_tensor and not (isinstance(value.detail, Literal) and value.detail.value is False)


def _sequence(op: Op, made: Value) -> Value:
    if not op.integer_items:
        return replace(list_of(made), detail=ListOf(made, "tuple"))
    count = max(op.integer_items) + 1
    items = tuple(replace(made, integer=True, boolean=False) if i in op.integer_items else made for i in range(count))
    return Value(Place.PYTHON, made.why, made.confidence, detail=Items("tuple", items))


def _flat(values: Sequence[Value]) -> list[Value]:
    """The values with lists of tensors opened: `stack([a, b])` lives where a and b do."""
    flat: list[Value] = []
    for value in values:
        if isinstance(value.detail, Items):
            flat.extend(value.detail.items)
        elif isinstance(value.detail, ListOf):
            flat.append(value.detail.element)
        else:
            flat.append(value)
    return flat


def _same(op: Op, bound: Bound, line: int) -> Value:
    values = _flat(bound.values())
    tensors = [v for v in values if v.is_tensor]
    base = combine(tensors) if tensors else combine(values)
    if not base.is_tensor:
        return base
    receiver = bound.get("self")
    # a host tensor that has dimensions would not mix with a device tensor
    alone = receiver is not None and receiver.value.place is Place.HOST and receiver.value.rank0 is not True
    if len(tensors) < len(values) and base.place is Place.HOST and not alone and any(v.place is Place.UNKNOWN for v in values):
        base = replace(base, place=Place.TENSOR)
    return _flagged(op, bound, base)


def _flagged(op: Op, bound: Bound, base: Value) -> Value:
    """The base value with the entry's rank and type flags."""
    name = op.name.rpartition(".")[2]
    rank0 = op.rank0
    if op.rank0_without:
        rank0 = None if any(bound.given(param) for param in op.rank0_without) else True
    elif op.broadcasts or (name in VECTOR_KEEPERS and rank0 is None):
        rank0 = base.rank0
    vector = name in VECTOR_MAKERS or ((op.broadcasts or name in VECTOR_KEEPERS) and base.vector) or _flattens(name, bound)
    boolean, integer = (base.boolean, base.integer) if op.keeps_type else (op.boolean, op.integer)
    if op.keeps_type and boolean is None and op.boolean is not None:
        boolean = op.boolean
    dtype = bound.get("dtype")
    if dtype is not None and not is_none(dtype.value):
        boolean, integer = dtype_flags(dtype.value)
    fresh = base.fresh and base.place is Place.HOST
    return replace(base, rank0=False if vector else rank0, vector=vector, boolean=boolean, integer=integer, fresh=fresh, detail=None)


def _flattens(name: str, bound: Bound) -> bool:
    if name not in {"view", "reshape"}:
        return False
    sizes = [argument.value.detail for key, given in bound.by_name.items() if key in {"shape", "size"} for argument in given]
    return len(sizes) == 1 and isinstance(sizes[0], Literal) and sizes[0].value == -1


def dtype_flags(value: Value) -> tuple[bool | None, bool | None]:
    """(boolean, integer) of a tensor of that dtype."""
    if isinstance(value.detail, Dtype) and value.detail.name != "?":
        name = value.detail.name
        return name == "bool", name.startswith(("int", "uint")) or name in {"long", "short"}
    return None, None


def _placed_on(target: Target, base: Value) -> Value:
    return replace(base, place=target.place, why=target.why, confidence=min(base.confidence, target.confidence), bare=True)


def _factory(op: Op, bound: Bound, line: int) -> Value:
    name = op.name.rpartition(".")[2]
    device = bound.get("device")
    data = bound.get("data")
    base = _factory_flags(op, bound, _factory_base(name, bound))
    if device is not None and not is_none(device.value):
        target = target_of(device.value, device.name)
        place = f"on `{target.why}`" if 0 < len(target.why) < LONGEST_NAME else "on the device"
        made = _placed_on(replace(target, why=f"`{op.name}` at line {line} makes it {place}"), base)
        on_host = made.place is Place.HOST
        return replace(made, fresh=on_host, pinned=on_host and _is_pinned(bound))
    if data is not None and data.value.is_tensor:  # torch.as_tensor(tensor) keeps its place
        return replace(data.value, fresh=False)
    if bound.starred or (data is not None and data.value.place is Place.UNKNOWN and op.name.endswith("as_tensor")):
        return replace(base, place=Place.TENSOR, confidence=Confidence.POSSIBLE)
    why = f"`{op.name}` at line {line} has no `device=`, so it is made on the host"
    return replace(base, place=Place.HOST, why=why, fresh=True, pinned=_is_pinned(bound), bare=True)


def _is_pinned(bound: Bound) -> bool:
    """Whether `pin_memory=` is given, and not known to be off."""
    pinned = bound.get("pin_memory")
    return pinned is not None and not (isinstance(pinned.value.detail, Literal) and not pinned.value.detail.value)


def _factory_flags(op: Op, bound: Bound, base: Value) -> Value:
    """What the entry or `dtype=` says goes before what the data say."""
    boolean = base.boolean if op.boolean is None else op.boolean
    integer = base.integer if op.integer is None else op.integer
    dtype = bound.get("dtype")
    if dtype is not None and not is_none(dtype.value):
        boolean, integer = dtype_flags(dtype.value)
    return replace(base, rank0=base.rank0 if op.rank0 is None else op.rank0, boolean=boolean, integer=integer)


def _factory_base(name: str, bound: Bound) -> Value:
    """Rank and type of `tensor(3)`, `tensor([1, 2])`, `zeros(n)`, `full((), x)`."""
    data = bound.get("data")
    if data is not None:
        return _from_data(data.value)
    sizes = bound.by_name.get("size", ())
    if len(sizes) == 1:
        detail = sizes[0].value.detail
        if isinstance(detail, Items):
            return Value(Place.TENSOR, rank0=not detail.items, vector=len(detail.items) == 1, large=_is_large(detail.items))
        if sizes[0].value.rank0 or (sizes[0].value.place is Place.UNKNOWN and sizes[0].name and not SHAPES.search(sizes[0].name)):
            return Value(Place.TENSOR, rank0=False, vector=True, large=_is_large([sizes[0].value]))
    if len(sizes) > 1:
        return Value(Place.TENSOR, rank0=False, large=_is_large([size.value for size in sizes]))
    integers = name in {"arange", "randint", "randperm"} and all(value.integer for value in bound.values() if value.rank0)
    return Value(Place.TENSOR, vector=name in VECTOR_MAKERS, integer=integers or None)


def _is_large(sizes: Sequence[Value]) -> bool:
    numbers = [size.detail.value for size in sizes if isinstance(size.detail, Literal) and isinstance(size.detail.value, int)]
    return len(numbers) == len(sizes) and math.prod(numbers) * DEFAULT_WIDTH > largest_free_copy()


def has_large_shape(shape: Value) -> bool:
    """Whether an array of that shape is larger than a copy that goes up without a wait."""
    return _is_large(shape.detail.items if isinstance(shape.detail, Items) else [shape])


def _from_data(value: Value) -> Value:
    if value.rank0:
        return Value(Place.TENSOR, rank0=True, boolean=value.boolean, integer=value.integer)
    if isinstance(value.detail, Items):
        scalars = bool(value.detail.items) and all(item.rank0 for item in value.detail.items)
        integer = scalars and all(item.integer for item in value.detail.items)
        boolean = scalars and all(item.boolean for item in value.detail.items)
        return Value(Place.TENSOR, rank0=False, vector=scalars, boolean=boolean or None, integer=integer or None)
    if isinstance(value.detail, ListOf):
        one = value.detail.element
        return Value(Place.TENSOR, rank0=False, vector=bool(one.rank0), boolean=one.boolean, integer=one.integer)
    return Value(Place.TENSOR)


def _like(op: Op, bound: Bound, line: int) -> Value:
    receiver = bound.get("self") or bound.get("input")
    base = receiver.value if receiver is not None else UNKNOWN
    if not base.is_tensor:
        base = replace(base, place=Place.TENSOR, detail=None)
    device = bound.get("device")
    if device is not None and not is_none(device.value):
        base = _placed_on(replace(target_of(device.value, device.name), why=f"`{op.name}` at line {line}"), base)
    shape = base if op.name.endswith("_like") else _factory_base(op.name, bound)
    flagged = _factory_flags(op, bound, replace(base, rank0=shape.rank0, vector=shape.vector))
    return replace(flagged, fresh=False, pinned=False, detail=None)


def _move(op: Op, bound: Bound, line: int) -> Value:
    receiver = bound.get("self")
    base = receiver.value if receiver is not None else UNKNOWN
    target, dtype = move_target(bound)
    boolean, integer = dtype_flags(dtype) if dtype is not None else (base.boolean, base.integer)
    moved = replace(base, boolean=boolean, integer=integer, fresh=False, pinned=False, detail=None)
    if target is None:
        only_cast = base.place is Place.UNKNOWN and dtype is not None
        return replace(moved, place=Place.TENSOR, confidence=Confidence.LIKELY) if only_cast else moved
    if target.place is Place.UNKNOWN:
        return replace(moved, place=Place.TENSOR if base.is_tensor else base.place)
    if base.is_device and target.place is Place.DEVICE and base.confidence > Confidence.POSSIBLE:
        return moved
    confidence = min(target.confidence, Confidence.LIKELY) if base.place is Place.UNKNOWN else target.confidence
    named = f"`{target.why}`" if 0 < len(target.why) < LONGEST_NAME else "the device" if target.place is Place.DEVICE else "the host"
    return replace(moved, place=target.place, why=f"moved to {named} at line {line}", confidence=confidence)


def move_target(bound: Bound) -> tuple[Target | None, Value | None]:
    """What `.to(…)` asks for: the target place, and the dtype, each None where it is not asked for."""
    target: Target | None = None
    dtype: Value | None = None
    for name in ("device", "dtype", "other", "non_blocking"):
        for argument in bound.by_name.get(name, ()):
            if is_none(argument.value) or (isinstance(argument.value.detail, Literal) and argument.value.detail.type_name == "bool"):
                continue
            if (name == "dtype" and not is_device(argument.value, argument.name)) or is_dtype(argument.value, argument.name):
                dtype = argument.value
            elif name == "device" and not is_device(argument.value, argument.name) and argument.value.detail is None and argument.name:
                target = Target(Place.UNKNOWN)
            elif name != "non_blocking":
                target = target_of(argument.value, argument.name)
    return target, dtype


def _host(op: Op, bound: Bound, line: int) -> Value:
    receiver = bound.get("self")
    base = receiver.value if receiver is not None else UNKNOWN
    is_numpy = receiver is None
    source = bound.get("ndarray") or bound.get("buffer")
    if op.name == "pin_memory":
        return replace(base, pinned=True, fresh=False)
    confidence = Confidence.LIKELY if base.place is Place.UNKNOWN and not is_numpy else Confidence.CERTAIN
    flagged = _flagged(op, bound, base if base.is_tensor else replace(UNKNOWN, place=Place.HOST))
    return replace(
        flagged,
        place=Place.HOST,
        why=f"`{op.name}` at line {line} gives a host tensor",
        confidence=confidence,
        fresh=is_numpy,
        pinned=False,
        large=base.large or (source is not None and source.value.large),
    )


def _device(op: Op, bound: Bound, line: int) -> Value:
    receiver = bound.get("self")
    base = receiver.value if receiver is not None else UNKNOWN
    confidence = Confidence.LIKELY if receiver is not None and base.place is Place.UNKNOWN else Confidence.CERTAIN
    flagged = _flagged(op, bound, base if base.is_tensor else replace(UNKNOWN, place=Place.DEVICE))
    return replace(flagged, place=Place.DEVICE, why=f"`{op.name}()` at line {line}", confidence=confidence, pinned=False, fresh=False)


_PLACED = {
    Returns.SAME: _same, Returns.SEQUENCE: _same, Returns.FACTORY: _factory, Returns.LIKE: _like, Returns.MOVE: _move,
    Returns.HOST: _host, Returns.DEVICE: _device,
}  # fmt: skip
