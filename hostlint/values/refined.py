"""What is left of a value where a test or a comment says more of it."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hostlint.facts.graph import Refinement
from hostlint.model import Confidence
from hostlint.values.conventions import conventional
from hostlint.values.detail import Items, ListOf
from hostlint.values.lattice import NEVER, NONE, NUMPY, PYTHON, is_none
from hostlint.values.value import Place, Value


def refined(value: Value, what: Refinement, why: str) -> Value:
    """The value, given that `what` holds of it; `why` says who says so."""
    narrow = _BY_REFINEMENT.get(what)
    return narrow(value, why) if narrow is not None else value


def _device(value: Value, why: str) -> Value:
    if value.place is Place.PYTHON:  # a module or pipeline has a device too
        return value
    return replace(value, place=Place.DEVICE, why=why or "it was tested to be", confidence=Confidence.CERTAIN, detail=None)


def _host(value: Value, why: str) -> Value:
    if value.place is Place.PYTHON:
        return value
    return replace(value, place=Place.HOST, why=why or "it was tested to be", detail=None)


def _said_device(value: Value, why: str) -> Value:
    return replace(value, place=Place.DEVICE, why=f"a comment on {why}", confidence=Confidence.CERTAIN, detail=None)


def _said_host(value: Value, why: str) -> Value:
    return replace(value, place=Place.HOST, why=f"a comment on {why}", confidence=Confidence.CERTAIN, detail=None)


def _tensor(value: Value, why: str) -> Value:
    if value.is_tensor:
        return value
    if value.is_host:
        return NEVER
    return Value(Place.TENSOR, value.why, rank0=value.rank0 if value.place is Place.UNKNOWN else None)


def _not_tensor(value: Value, why: str) -> Value:
    return NEVER if value.is_tensor else value


def _gradient(value: Value, why: str) -> Value:
    return conventional(why) if value.place in (Place.UNKNOWN, Place.TENSOR) else value


def _python(value: Value, why: str) -> Value:
    return value if value.place is Place.PYTHON else PYTHON


def _not_none(value: Value, why: str) -> Value:
    return NEVER if is_none(value) else value


def _empty(value: Value, why: str) -> Value:
    return replace(value, detail=Items("list", ())) if isinstance(value.detail, (Items, ListOf)) else value


_BY_REFINEMENT: dict[Refinement, Callable[[Value, str], Value]] = {
    Refinement.DEVICE: _device, Refinement.HOST: _host, Refinement.SAID_DEVICE: _said_device, Refinement.SAID_HOST: _said_host,
    Refinement.TENSOR: _tensor, Refinement.NOT_TENSOR: _not_tensor,
    Refinement.GRADIENT: _gradient, Refinement.PYTHON: _python, Refinement.NOT_NONE: _not_none, Refinement.EMPTY: _empty,
    Refinement.NUMPY: lambda value, why: NUMPY, Refinement.NONE: lambda value, why: NONE,
}  # fmt: skip
