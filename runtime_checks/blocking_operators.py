"""Which operators below Python make the host wait on CUDA: what C++ code, scripted code and backward passes end in."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch

from hostlint.facts.kinds import FactKind
from hostlint.runtime_checks.calls import KINDS, Verdict

Raw = Any  # an argument of somebody else's call
NUMBER_TAKEN = "a tensor given where torch takes a number"  # all that is known of the call when C++ code reads one value
_MASKS = (torch.bool, torch.uint8)
# By name, for not every torch has all of them. Forms that only some arguments make wait are in `_waits`.
_OPERATORS = {
    FactKind.ITEM: "_local_scalar_dense",
    FactKind.TRUTH_TEST: "is_nonzero",
    FactKind.EQUALITY: "equal allclose",
    FactKind.NONZERO: "nonzero nonzero_numpy argwhere",
    FactKind.MASK_READ: "masked_select index _unsafe_index",
    FactKind.MASK_WRITE: "index_put index_put_ _index_put_impl_ _unsafe_index_put",
    FactKind.DATA_DEPENDENT_SIZE: "_unique _unique2 unique_dim unique_consecutive unique_dim_consecutive bincount histc "
    "repeat_interleave to_sparse _to_sparse",
    FactKind.SCALAR_ARGUMENT: "linspace logspace",
    FactKind.CHECKED_LINALG: "_linalg_check_errors linalg_eig linalg_eigvals _linalg_eigvals _linalg_svd _linalg_eigh linalg_lstsq "
    "linalg_matrix_exp linalg_ldl_factor_ex",
    FactKind.HIDDEN_WAIT: "_nested_tensor_from_mask _nested_tensor_from_mask_left_aligned",
}
_INDEXED = frozenset({"index", "_unsafe_index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put"})


def operator_read(func: Raw, args: Sequence[Raw], kwargs: Mapping[str, Raw]) -> Verdict | None:
    """The wait that this operator is on CUDA, whatever tensors it was given here; None if it is none."""
    verdict = _verdicts().get(func)
    return verdict if verdict is not None and _waits(func, args, kwargs) else None


@cache
def _verdicts() -> dict[Callable[..., object], Verdict]:
    found: dict[Callable[..., object], Verdict] = {}
    for fact, names in _OPERATORS.items():
        for packet in (getattr(torch.ops.aten, name, None) for name in names.split()):
            for overload in packet.overloads() if packet is not None else ():
                call = getattr(packet, overload)
                spelled = NUMBER_TAKEN if fact is FactKind.ITEM else f"torch.ops.{call}"
                found[call] = Verdict(KINDS[fact], fact, spelled, "an operator that waits", measured=False, silent=False)
    return found


def _waits(func: Raw, args: Sequence[Raw], kwargs: Mapping[str, Raw]) -> bool:
    name = func.overloadpacket.__name__
    if name in _INDEXED:
        return any(index is not None and index.dtype in _MASKS for index in args[1])
    if name == "repeat_interleave":
        lengths = args[0] if func._overloadname == "Tensor" else args[1] if len(args) > 1 else kwargs.get("repeats")
        return kwargs.get("output_size") is None and isinstance(lengths, torch.Tensor)
    if name == "histc":  # without bounds they are looked for
        low, high = (args[2] if len(args) > 2 else kwargs.get("min", 0)), (args[3] if len(args) > 3 else kwargs.get("max", 0))
        return bool(low == high)
    if name == "equal":  # other shapes, or the same tensor twice: nothing to read
        return args[0] is not args[1] and args[0].shape == args[1].shape
    if name in ("linspace", "logspace"):
        return "Tensor" in func._overloadname
    return True
