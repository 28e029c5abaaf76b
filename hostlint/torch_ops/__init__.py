"""The one table of torch: what each call returns and under which forms of its arguments it makes the host wait or uploads.

`Wait.when` is a conjunction of *atoms* over argument names. `self` is the receiver of a method and the first operand of an `op.*` entry;
a function's first tensor has torch's own name (`input`, `A`). A name that `Op.params` lists as `*name` stands for any of the values it takes.

    device:P  device-in:P   P is a device tensor / a list or tuple that holds one
    host:P  numpy:P         P is a host tensor / a NumPy array
    pydata:P  pylist:P      P is a Python number, or a list or tuple of numbers / a list or tuple
    absent:P  given:P       P is left out or literally None / is there and not literally None
    true:P  untrue:P        P is literally True / is left out or literally False
    none:P                  P is there and literally None
    to:device  to:host      where the call puts its result (device=, the argument of `to`, cuda(), cpu())
    boolean:P  integer:P    P is known to be a boolean or uint8 tensor / an integer tensor
    rank0:P  not-rank0:P    P is known to be 0-dim / is not known to be 0-dim
    pinned:P  pageable:P    P is host memory known to be pinned / not known to be
    large:P  fresh:P        P is known to be big / was built from host data by the same function
    element:P               index P is known to select exactly one element
    evaluating:P            module P is known to be in evaluation mode

An entry's waits are ordered: the first one that holds names the fact. `conditions` evaluates atoms. An index that is a tuple is looked at
item by item (`op.getitem`, `op.setitem`, `op.augsetitem`); a slice is a call of `op.slice`. Where a call gives `dtype=`, that decides the
boolean and integer flags. Methods of other objects are `Class.name`; `Op.makes` says which class a constructor makes.
"""
from __future__ import annotations

from hostlint.torch_ops.names import TENSOR_METHODS, canonical
from hostlint.torch_ops.spec import Op
from hostlint.torch_ops.table import function_op, method_op

__all__ = ["function", "is_tensor_method", "method"]


def function(dotted: str) -> Op | None:
    """The entry of a function, constructor, builtin (`builtins.float`) or operator (`op.getitem`) by its full dotted name."""
    name = canonical(dotted)
    if name.startswith("torch.Tensor."):
        return method_op(name[len("torch.Tensor."):])
    return function_op(name)


def method(name: str) -> Op | None:
    """The entry of a method: of tensors by its bare name, of other objects as `Event.synchronize`."""
    return method_op(name)


def is_tensor_method(name: str) -> bool:
    """Whether a receiver of unknown type is taken for a tensor because it is asked for this method."""
    return name in TENSOR_METHODS or (name.endswith("_") and not name.startswith("_") and method_op(name) is not None
                                      and name not in ("requires_grad_", "share_memory_"))
