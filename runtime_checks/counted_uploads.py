"""`CountedUploads`: a host tensor that counts its copies to the device."""
from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

Raw = Any  # an argument of somebody else's call
_T = torch.Tensor
_ACCELERATORS = frozenset(getattr(_T, name) for name in ("cuda", "xpu", "npu", "hpu", "mtia", "musa", "mlu", "ipu") if hasattr(_T, name))
_CASTS = frozenset({_T.type, _T.type_as})
_WRITES = frozenset({_T.copy_, _T.__setitem__})
# Calls whose result stays of the type that it has.
KEPT = torch.overrides.get_default_nowrap_functions() | {_T.as_subclass}
_lock = threading.Lock()


class CountedUploads(torch.Tensor):
    """A host tensor that counts its uploads in `CountedUploads.uploads`, also through subclasses; set it to 0 before the code under test.

    Made by `host.as_subclass(CountedUploads)`. Views, slices and what is computed from it count as well; the copy that an upload returns is
    a plain tensor. Counted: every `to` (on a machine without a GPU the target says nothing, so also those that only change the dtype);
    `cuda()` and its like; `copy_` into, or assignment of more than one element to, a tensor that is not itself a counted one; `type` and
    `type_as` where the result lies on another device. Not counted: `cpu()`, `float()`, `type` and `type_as` that stay on the host; reading
    it; writing a single element. It may meet a SyncOnRead, which wins.

    Not seen: `torch.tensor(host, device=)` and `as_tensor`, which subclasses do not hear of; copies made by scripted code, by C++
    extensions, and of memory that was taken out with `numpy()`, `data_ptr()` or DLPack. An add of four elements takes 4.0 microseconds
    instead of 0.8, on one core.
    """

    uploads: int = 0
    plays_device = False

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Raw], types: Sequence[type], args: tuple[Raw, ...] = (), kwargs: dict[str, Raw] | None = None
    ) -> Raw:
        kwargs = kwargs or {}
        if torch.compiler.is_compiling():
            return super().__torch_function__(func, types, args, kwargs)  # type: ignore[no-untyped-call]  # torch does not annotate it
        if any(getattr(kind, "plays_device", False) for kind in types):
            return NotImplemented  # its own handler runs the call, and counts
        result = torch._C._disabled_torch_function_impl(func, types, args, kwargs)
        if count_upload(func, args, kwargs, result):
            return args[0] if func in _WRITES else plain(result)
        return result if func in KEPT else wrapped(result, cls)


def count_upload(func: Callable[..., Raw], args: Sequence[Raw], kwargs: Mapping[str, Raw], result: Raw) -> bool:
    """Counts the call if it uploaded a `CountedUploads`, and says whether it did. Call it once, when the call is done."""
    if not _uploads(func, args, kwargs, result):
        return False
    with _lock:
        CountedUploads.uploads += 1
    return True


def wrapped(result: Raw, cls: type[torch.Tensor]) -> Raw:
    """The result with its tensors, also those in tuples and lists, as `cls`; sparse and nested ones cannot be, and stay as they are."""
    if isinstance(result, torch.Tensor):
        return result if isinstance(result, cls) or result.layout is not torch.strided else result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        return type(result)(wrapped(item, cls) for item in result)
    return result


def plain(result: Raw) -> Raw:
    with torch._C.DisableTorchFunctionSubclass():
        return result.as_subclass(torch.Tensor) if isinstance(result, torch.Tensor) else result


def _uploads(func: Callable[..., Raw], args: Sequence[Raw], kwargs: Mapping[str, Raw], result: Raw) -> bool:
    first = args[0] if args else None
    counted = isinstance(first, CountedUploads)
    if func in _WRITES:
        value = args[-1] if func is _T.__setitem__ else args[1] if len(args) > 1 else kwargs.get("other")
        return not counted and isinstance(value, CountedUploads) and (func is _T.copy_ or value.numel() > 1)
    if func is _T.to or func in _ACCELERATORS:
        return counted
    return counted and func in _CASTS and _elsewhere(first, result)


def _elsewhere(source: Raw, result: Raw) -> bool:
    with torch._C.DisableTorchFunctionSubclass():
        return isinstance(result, torch.Tensor) and bool(result.device != source.device)
