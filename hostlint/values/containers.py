"""Parts of containers and tensors: what an index, an iteration or an append gives."""
from __future__ import annotations

from dataclasses import replace

from hostlint.model import Confidence
from hostlint.values.conventions import SETTINGS
from hostlint.values.detail import Items, ListOf, Literal, Mapping, Prepared
from hostlint.values.lattice import NUMPY, PYTHON, UNKNOWN, element, join_all
from hostlint.values.value import Place, Value


def subscript(base: Value, index: Value) -> Value:
    """One element or a part of a container or tensor."""
    if base.is_tensor:
        return _tensor_item(base, index)
    if base.place is Place.NUMPY:
        return NUMPY
    literal = index.detail.value if isinstance(index.detail, Literal) else None
    sliced = isinstance(index.detail, Literal) and index.detail.type_name == "slice"
    detail = base.detail
    if isinstance(detail, Items):
        if sliced:
            return replace(base, detail=ListOf(element(detail))) if detail.items else base
        if isinstance(literal, int) and -len(detail.items) <= literal < len(detail.items):
            return detail.items[literal]
        return element(detail)
    if isinstance(detail, ListOf):
        return base if sliced else detail.element
    if isinstance(detail, Mapping):
        known: dict[object, Value] = dict(detail.items)
        if literal in known:
            return known[literal]
        numbered = index.rank0 and all(isinstance(key, str) for key in known)  # other entries than these lie under numbers
        return join_all(known.values()) if literal is None and known and not numbered else UNKNOWN
    return Value(Place.TENSOR, confidence=Confidence.POSSIBLE) if isinstance(detail, Prepared) else UNKNOWN


def _tensor_item(base: Value, index: Value) -> Value:
    """x[i]: 0-dim where x is 1-D and i one integer; a mask or an index tensor keeps a dimension."""
    if isinstance(index.detail, Literal) and isinstance(index.detail.value, str) and SETTINGS.search(index.detail.value):
        return UNKNOWN  # `layout["seq_len"]`: a dictionary after all, and a number in it
    single = index.place is Place.PYTHON and (index.rank0 or (index.is_tensor and index.rank0)) and not isinstance(index.detail, Items)
    scalar_tensor = index.is_tensor and index.rank0 is True and index.boolean is not True
    if base.vector and (single or scalar_tensor):
        return replace(base, rank0=True, vector=False, fresh=False, detail=None)
    sliced = isinstance(index.detail, Literal) and index.detail.type_name == "slice"
    keeps = sliced or (index.is_tensor and index.rank0 is False)
    return replace(base, rank0=False if keeps else None, vector=base.vector and keeps, fresh=False, detail=None)


def one_of(value: Value) -> Value:
    """One element when the value is iterated: rows of a tensor, items of a list, keys of a dictionary."""
    if value.is_tensor:
        return replace(value, rank0=True if value.vector else None, vector=False, fresh=False, detail=None)
    if value.place is Place.NUMPY:
        return NUMPY
    if isinstance(value.detail, (Items, ListOf)):
        return PYTHON if value.detail.kind == "dict" else element(value.detail)
    return PYTHON if isinstance(value.detail, (Mapping, Literal)) else UNKNOWN
