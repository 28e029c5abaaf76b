"""The value lattice: where a value lives, what is known of its rank and type, and why."""
from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from hostlint.model import Confidence

if TYPE_CHECKING:
    from hostlint.values.detail import Detail


class Place(Enum):
    PYTHON = "Python object"  # numbers, strings, lists, None, dtypes, modules: never waits for the device
    NUMPY = "NumPy array"
    HOST = "host tensor"
    DEVICE = "device tensor"
    TENSOR = "tensor of unknown place"
    UNKNOWN = "unknown"

    __hash__ = object.__hash__  # the default hashes the name string on every look-up


@dataclass(frozen=True, slots=True)
class Value:
    """One abstract value. None in a flag means "not known"."""

    place: Place
    why: str = ""
    confidence: Confidence = Confidence.CERTAIN
    rank0: bool | None = None
    vector: bool = False  # known to be 1-D, so that an element of it is 0-dim
    boolean: bool | None = None
    integer: bool | None = None
    pinned: bool = False
    fresh: bool = False  # built in this function from host data (a constructor or NumPy), not received
    large: bool = False
    detail: Detail | None = None  # what kind of Python object: see hostlint.values.detail
    output: bool = False  # what the call of a module returned: perhaps an object whose parts are tensors
    bare: bool = False  # torch or a module made this tensor itself: what hangs on it is what code hangs there, no part of an output

    @property
    def is_device(self) -> bool:
        return self.place is Place.DEVICE

    @property
    def is_tensor(self) -> bool:
        return self.place in (Place.DEVICE, Place.HOST, Place.TENSOR)

    @property
    def is_host(self) -> bool:
        return self.place in (Place.PYTHON, Place.NUMPY, Place.HOST)
