"""Where a `device` argument points, and what the arguments of `.to()` ask for."""
from __future__ import annotations

import re
from dataclasses import dataclass

from hostlint.model import Confidence
from hostlint.values.detail import Device, Dtype, Literal
from hostlint.values.lattice import device_name, is_none
from hostlint.values.value import Place, Value

HOST_NAME = re.compile(r"(^|_)(cpu|host|offload)(_|$)", re.IGNORECASE)
DTYPE_NAME = re.compile(r"dtype|precision|^(float|bfloat|int|uint)\d+$|^(half|bool|long)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Target:
    """The place that a call puts its result in."""

    place: Place
    confidence: Confidence = Confidence.CERTAIN
    why: str = ""


def target_of(value: Value, name: str) -> Target:
    """The place that a `device=` argument names. A device of unknown kind is likely the accelerator: that is what code passes around."""
    detail = value.detail
    on = device_name(detail) if detail is not None else "unknown"
    if on == "host":
        return Target(Place.HOST, value.confidence, "cpu")
    if on == "device":
        return Target(Place.DEVICE, value.confidence, name)
    if isinstance(detail, Literal) and detail.type_name == "int":
        return Target(Place.DEVICE, Confidence.CERTAIN, name)
    if isinstance(detail, Literal) and isinstance(detail.value, str):
        return Target(Place.UNKNOWN)
    if value.is_tensor:  # `.to(other)`
        return Target(value.place, value.confidence, value.why)
    if HOST_NAME.search(name.rpartition(".")[2]):
        return Target(Place.HOST, Confidence.LIKELY, name)
    if is_none(value):
        return Target(Place.UNKNOWN)
    return Target(Place.DEVICE, min(Confidence.LIKELY, value.confidence), name)


def is_dtype(value: Value, name: str) -> bool:
    """Whether an argument is a dtype, by its value or by the name it was read through."""
    return isinstance(value.detail, Dtype) or bool(DTYPE_NAME.search(name.rpartition(".")[2]))


def is_device(value: Value, name: str) -> bool:
    """Whether an argument names a device, or is a tensor whose device is meant."""
    if isinstance(value.detail, Device):
        return True
    if isinstance(value.detail, Literal) and isinstance(value.detail.value, str):
        return True
    return "device" in name.rpartition(".")[2].lower() or value.is_tensor
