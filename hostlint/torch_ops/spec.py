"""The shape of one entry of the table of torch: what a call returns and under which arguments it makes the host wait."""
from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.facts.kinds import FactKind


class Returns(Enum):
    """Where the result of a call lives."""

    PYTHON = "python"  # a Python number, list, bool, shape
    NUMPY = "numpy"  # a NumPy array
    SAME = "same"  # a tensor where the tensor arguments live (device wins over 0-dim host)
    FACTORY = "factory"  # a new tensor on `device=`, on the host without it
    LIKE = "like"  # a new tensor on `device=`, else where the receiver or first argument lives
    MOVE = "move"  # Tensor.to and type: the target is parsed from the arguments; rank and type are the receiver's unless a dtype is given
    HOST = "host"  # a host tensor (cpu())
    DEVICE = "device"  # a device tensor (cuda())
    SEQUENCE = "sequence"  # a tuple or list of tensors that live where the arguments do (split, unbind, topk)
    NONE = "none"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Wait:
    """One form of a call that makes the host wait or upload.

    `when` is a conjunction of conditions on the arguments (see `hostlint.torch_ops.__doc__`); `evidence` is the expression that was
    measured, or the reason in words where `measured` is false.
    """

    kind: FactKind
    when: tuple[str, ...]
    evidence: str
    measured: bool
    torch: str  # version it was measured with, or a range it is believed for


@dataclass(frozen=True, slots=True)
class Op:
    """One function of torch, or one method of Tensor (the receiver is parameter `self`)."""

    name: str
    params: tuple[str, ...]  # positional order, so that `op(a, b)` and `op(x=a, y=b)` mean the same; "*size" takes the rest
    returns: Returns
    rank0: bool | None  # the result is 0-dim: always, never, or not known from the name
    boolean: bool | None
    integer: bool | None
    waits: tuple[Wait, ...]
    # The result is 0-dim where none of these arguments is given (sum, mean, any ...: "dim"); empty: `rank0` alone decides.
    rank0_without: tuple[str, ...] = ()
    # The boolean and integer flags are those on which the tensor arguments agree (view, clone, where, `&`); else the two flags above.
    keeps_type: bool = False
    # The result is 0-dim exactly where every tensor argument is (abs, add, where ...).
    broadcasts: bool = False
    # `returns` is SEQUENCE where one of these is given, not literally False and no tensor (max: "dim"; unique: "return_counts").
    sequence_with: tuple[str, ...] = ()
    # `returns` is SEQUENCE where one of these is left out (the one-argument form of where: "input").
    sequence_without: tuple[str, ...] = ()
    # Places in a returned sequence that hold integer tensors (topk: 1); the flags above speak of the others.
    integer_items: tuple[int, ...] = ()
    # Classes of a returned object, nearest first: look its methods up as `method("Class.name")`, without the class's module.
    makes: tuple[str, ...] = ()
