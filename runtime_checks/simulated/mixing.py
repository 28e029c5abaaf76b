"""Tensors of both places in one call: where CUDA takes them, and the error where it does not."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any

import torch

from hostlint.runtime_checks.call_names import named
from hostlint.runtime_checks.simulated.places import is_on_device

_CONTAINERS = (list, tuple)
# Host tensors of any rank are taken beside device tensors: as indices, sizes and lengths, as the source of a copy, for their shape alone.
_TAKES_BOTH = frozenset((
    "copy_", "set_", "expand_as", "view_as", "reshape_as", "resize_as_", "is_set_to", "is_same_size", "tensor_split", "unsafe_split",
    "_pack_padded_sequence", "_pad_packed_sequence", "ctc_loss", "data=", "backward", "grad", "__getitem__", "type_as", "_foreach_copy_",
    "_has_compatible_shallow_copy_type", "result_type", "can_cast", "promote_types", "__deepcopy__", "__reduce_ex__", "__setstate__",
    "register_hook", "_foreach_add_", "broadcast_tensors", "new_tensor", "new", "lstm", "gru", "rnn_tanh", "rnn_relu",
    "_nested_view_from_jagged", "_nested_get_values_copy", "_nested_view_from_buffer", "_pack_padded_sequence", "_foreach_addcmul_",
    "_foreach_addcdiv_", "_foreach_addcmul", "_foreach_addcdiv", "_fused_adam_", "_fused_adamw_", "_fused_sgd_", "record_stream",
))  # fmt: skip
HOST_RESULTS = frozenset(("_pack_padded_sequence", "_pad_packed_sequence"))  # all but the first: sizes, which torch wants on the host
# Also 0-dim host tensors are refused here, where no scalar is expected.
_TENSORS_ONLY = frozenset((
    "clamp", "clip", "repeat_interleave",
    "cat", "concat", "concatenate", "stack", "mm", "matmul", "bmm", "linear", "index_select", "gather", "embedding",
))  # fmt: skip


class Mix(Enum):
    HOST = 0  # no tensor of the device
    DEVICE = 1  # none of the host
    SCALARS = 2  # of the device, and 0-dim ones of the host
    BOTH = 3

    __hash__ = object.__hash__


_DEVICE, _SCALAR, _HOST = 1, 2, 4
_MIXES = tuple(Mix.HOST if not n & _DEVICE else Mix.BOTH if n & _HOST else Mix.SCALARS if n & _SCALAR else Mix.DEVICE for n in range(8))


def places_in(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mix:
    """Which tensors a call has among its arguments, and in the lists and tuples that are such."""
    seen = 0
    for value in args:
        if isinstance(value, torch.Tensor):
            seen |= _DEVICE if is_on_device(value) else _of_host(value)
        elif isinstance(value, _CONTAINERS):
            seen |= _seen_in(value)
    for value in kwargs.values():
        if isinstance(value, torch.Tensor):
            seen |= _DEVICE if is_on_device(value) else _of_host(value)
        elif isinstance(value, _CONTAINERS):
            seen |= _seen_in(value)
    return _MIXES[seen]


def _of_host(tensor: torch.Tensor) -> int:
    with torch._C.DisableTorchFunctionSubclass():
        return _HOST if tensor.dim() else _SCALAR


def _seen_in(values: Any) -> int:
    seen = 0
    for value in values:
        if isinstance(value, torch.Tensor):
            seen |= _DEVICE if is_on_device(value) else _of_host(value)
        elif isinstance(value, _CONTAINERS):
            seen |= _seen_in(value)
    return seen


def demand_one_place(func: Callable[..., object], args: tuple[Any, ...], kwargs: Mapping[str, Any], mix: Mix) -> None:
    """Raises RuntimeError where CUDA would: a host tensor beside device tensors, where no index, length or scalar is meant."""
    spelled = named(func).spelled
    name = spelled.rpartition(".")[2]
    if spelled.startswith("torch.ops.") or torch._C._functorch.peek_interpreter_stack() is not None:
        return  # what torch decomposes, or a transform makes inside, has places that nobody gave it
    if name in _TAKES_BOTH:
        _demand_indexable(name, args)
        return
    if name in ("__setitem__", "index_put", "index_put_"):
        _demand_writable(*args[:3])
        return
    if mix is Mix.SCALARS and name not in _TENSORS_ONLY and not _writes_host(name, args):
        return
    places = ", ".join("cuda:0" if is_on_device(tensor) else "cpu" for tensor in _tensors((*args, *kwargs.values())))
    raise RuntimeError(f"{spelled}: Expected all tensors to be on the same device, but found at least two devices ({places})")


def _demand_indexable(name: str, args: tuple[Any, ...]) -> None:
    if name == "__getitem__":
        _demand_host_indices(args[0], args[1])


def _demand_host_indices(target: torch.Tensor, index: Any) -> None:
    """To read from a host tensor, indices that select more than one element have to be on the host."""
    parts = index if isinstance(index, tuple) else (index,)
    chosen = [part for part in parts if isinstance(part, torch.Tensor) and part.dim()]
    if not is_on_device(target) and any(map(is_on_device, chosen)):
        raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")


def _demand_writable(target: torch.Tensor, index: Any, value: Any) -> None:
    """`x[i] = v`: the index may be on the host; a value is copied into a slice from anywhere, into an index only if it is 0-dim."""
    chosen = [part for part in (index if isinstance(index, (tuple, list)) else (index,)) if isinstance(part, torch.Tensor) and part.dim()]
    if chosen and isinstance(value, torch.Tensor) and value.dim() and is_on_device(value) is not is_on_device(target):
        raise RuntimeError("an indexed tensor and the values written into it must be on the same device")


def _writes_host(name: str, args: tuple[Any, ...]) -> bool:
    in_place = name.endswith("_") and not name.endswith("__")
    return in_place and bool(args) and isinstance(args[0], torch.Tensor) and not is_on_device(args[0])


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, _CONTAINERS):
            yield from _tensors(value)
