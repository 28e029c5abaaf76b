"""The one table of torch: what each call returns and under which forms of its arguments it makes the host wait or uploads.

`Wait.when` is a conjunction of *atoms* over argument names. `self` is the receiver of a method and the first operand of an `op.*`
entry; a function's first tensor has torch's own name (`input`, `A`). A name that `Op.params` lists as `*name` stands for any of the values
it takes.

    device:P  device-in:P   P is a device tensor / a list, tuple, dictionary or other object that holds one
    host:P  numpy:P         P is a host tensor / a NumPy array
    pydata:P  pylist:P      P is a Python number, or a list or tuple of numbers / a list or tuple
    absent:P  given:P       P is left out or literally None / is there and not literally None
    true:P  false:P         P is literally True / literally False
    untrue:P  not-false:P   P is left out or literally False / is not literally False
    none:P                  P is there and literally None
    to:device  to:host      where the call puts its result (device=, the argument of `to`, cuda(), cpu())
    boolean:P  integer:P    P is known to be a boolean or uint8 tensor / an integer tensor
    rank0:P  not-rank0:P    P is known to be 0-dim / is not known to be 0-dim
    pinned:P  pageable:P    P is host memory known to be pinned / not known to be
    large:P  fresh:P        P is known to be big / was built from host data by the same function
    element:P               index P is known to select exactly one element
    evaluating:P            module P is known to be in evaluation mode
    host-in:P               P is a list, tuple or dictionary that holds a host tensor
    strided:P               P is known not to fill one block of memory: a transposed view, a column, every second item
    sparse:P  not-sparse:P  P is known to have a sparse layout / is not known to have one

An entry's waits are ordered: the first one that holds names the fact. `conditions` evaluates atoms.

Operators are `op.*`: `getitem`, `setitem` and `augsetitem` look at an index that is a tuple item by item; a slice is a call of `op.slice`;
`truth` is every truth test, `format` an f-string's field, `percent` the `%` of a string (`percent_number` for %d and %f), `contains` is
`in`.
Where a call gives `dtype=`, that decides the boolean and integer flags. Attributes (`shape`, `T`, `is_cuda`) stand among the methods.
Methods of other objects are `Class.name`; `Op.makes` says which classes a constructor's result belongs to. The conditions of such a method
may also name arguments of the constructor (`BatchNorm.forward`: `none:momentum`), and `device-in:self` says that the object is known to be
made of device tensors. The bare name `synchronize`, which no tensor has, is there for receivers of unknown type. A name ending in `.*`
stands for the rest of a module (`numpy.*`).
"""
from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from hostlint.torch_ops.names import SHARED_IN_PLACE, TENSOR_METHODS, canonical
from hostlint.torch_ops.table import function_op, index, measurement, method_op

if TYPE_CHECKING:
    from hostlint.torch_ops.spec import Op
    from hostlint.torch_ops.table import Measurement

__all__ = ["function", "is_tensor_method", "measured_with", "method", "waiting_names"]


def function(dotted: str) -> Op | None:
    """The entry of a function, constructor, builtin (`builtins.float`) or operator (`op.getitem`) by its full dotted name."""
    name = canonical(dotted)
    if name.startswith("torch.Tensor."):
        return method_op(name.removeprefix("torch.Tensor."))
    return function_op(name)


def method(name: str) -> Op | None:
    """The entry of a method: of tensors by its bare name, of other objects as `Event.synchronize` or `torch.cuda.Event.synchronize`."""
    return method_op(".".join(name.split(".")[-2:]))


def is_tensor_method(name: str) -> bool:
    """Whether a receiver of unknown type is taken for a tensor because it is asked for this method."""
    in_place = name.endswith("_") and not name.endswith("__") and name not in SHARED_IN_PLACE
    return name in TENSOR_METHODS or (in_place and name in index().methods)


def measured_with() -> Measurement:
    """The GPU, torch version and date of the measurement behind the entries that are marked as measured."""
    return measurement()


@cache
def waiting_names() -> frozenset[str]:
    """The last part of the name of every entry that waits or uploads in some form.

    Those of `torch.sparse` are left out: looking at each `sum` and `mm` of a program for their sake costs more than they are worth.
    """
    table = index()
    entries = (*table.functions.items(), *table.methods.items())
    waiting = (name for name, entry in entries if {"waits", "sizes", "scalars"} & entry.keys() and not name.startswith("torch.sparse."))
    return frozenset(name.rpartition(".")[2] for name in waiting)
