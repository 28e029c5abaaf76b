"""`SyncOnRead`: a CPU tensor that plays a device tensor, so that a host read of its values fails where it happens."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from hostlint.runtime_checks.blocking_operators import operator_read
from hostlint.runtime_checks.counted_uploads import KEPT, CountedUploads, count_upload, plain, wrapped
from hostlint.runtime_checks.host_reads import FREE_ON_CUDA, host_read, judged, refuse
from hostlint.runtime_checks.storage_stand_in import StorageStandIn
from hostlint.runtime_checks.untraced import untraced
from hostlint.values.value import Place

Raw = Any  # an argument of somebody else's call
Call = Callable[..., Raw]
_T = torch.Tensor
_STORAGES = frozenset({_T.untyped_storage, _T.storage, _T._typed_storage})
_LENGTHS = frozenset({torch.ctc_loss, torch.nn.functional.ctc_loss})  # take lengths that live on the host
_ALIAS = torch.ops.aten.alias.default  # what as_subclass makes
_NAME = "SyncOnRead"


class SyncOnRead(torch.Tensor):
    """A CPU tensor that plays a device tensor: reading its values on the host raises AssertionError at the place.

    Made by `plain.as_subclass(SyncOnRead)`, unmade by `.as_subclass(torch.Tensor)`; what is computed from it is a SyncOnRead, bit for bit
    what the plain tensor gives. The torch table decides what reads: each call that waits for the device on CUDA raises, and none that does
    not. So `x[mask] = 0.0`, `one_hot(t, n)`, integer indices and three-argument `where` pass; text of it (`str`, `repr`, `print`, `"%s"`)
    raises. In a call with a SyncOnRead, plain tensors play device tensors too, but 0-dim ones are numbers of the host.

    `.cpu()` is the one host copy: a plain tensor that reads freely. `.to(...)` stays SyncOnRead whatever its target, for on a CPU the
    device under test and the host have the same name. `with allow("reason"):` lets reads through in its thread or task. Nothing
    has to be entered: the tensor carries its guard into any thread, and through a layer that torch.compile runs.

    `untyped_storage()` and `storage()` give a stand-in that tells sizes and addresses and refuses to be read. `__dlpack__` raises
    although it does not wait: nothing could follow the memory there. Numbers that C++ takes out by itself (`torch.full(size, t)`,
    `torch.arange(t)`, `plain.view(t)`) are seen below autograd, where only the place is known, not the call.

    Nested tensors cannot be made of it. Not seen: sparse results, which are plain again; uploads (`torch.tensor(data, device=)`, list
    indices: see RecordOps and CountedUploads); repeated `.cpu()`; pickling; reads in C++ extensions through raw pointers; code that
    torch.compile turned into kernels. `data_ptr()` passes. TorchScript turns what is raised inside scripted code into a RuntimeError
    without text. A mask or a `to` target that lives on the host on CUDA is taken for one of the device.

    A call costs about 7 microseconds more than on a plain tensor (an add of four elements 8.1 instead of 0.8, on one core).
    """

    plays_device = True

    @classmethod
    @untraced
    def __torch_function__(
        cls, func: Call, types: Sequence[type], args: tuple[Raw, ...] = (), kwargs: dict[str, Raw] | None = None
    ) -> Raw:
        kwargs = kwargs or {}
        if torch.compiler.is_compiling():
            return super().__torch_function__(func, types, args, kwargs)  # type: ignore[no-untyped-call]  # torch does not annotate it
        if func is _T.cpu:
            return _host_copy(func, types, args, kwargs)
        if _reads(func, args, kwargs):
            return _let_read(func, types, args, kwargs)
        if func in FREE_ON_CUDA:
            with judged.during():
                result = torch._C._disabled_torch_function_impl(func, types, args, kwargs)
        else:
            result = torch._C._disabled_torch_function_impl(func, types, args, kwargs)
        if len(types) > 1 and any(issubclass(kind, CountedUploads) for kind in types):
            count_upload(func, args, kwargs, result)
        if func in _STORAGES:
            return StorageStandIn(result)
        return result if func in KEPT else wrapped(result, cls)

    @classmethod
    @untraced
    def __torch_dispatch__(  # type: ignore[override]  # torch's own is no class method
        cls, func: Call, types: Sequence[type], args: tuple[Raw, ...] = (), kwargs: dict[str, Raw] | None = None
    ) -> Raw:
        """Reached by every operator under autograd: what C++ reads by itself ends here."""
        if not judged.depth:
            read = operator_read(func, args, kwargs or {})
            if read is not None:
                refuse(_NAME, read)
        call = (func, types, args, kwargs or {})
        result = torch._C._disabled_torch_function_impl(torch._C._disabled_torch_dispatch_impl, types, call, {})
        return result if func is _ALIAS or (args and result is args[0]) else wrapped(result, cls)


@untraced
def _reads(func: Call, args: Sequence[Raw], kwargs: Mapping[str, Raw]) -> bool:
    """Whether the call is a host read that is allowed; raises for one that is not."""
    read = host_read(func, args, kwargs, _place_by(func))
    if read is None:
        return False
    refuse(_NAME, read)
    return True


def _place_by(func: Call) -> Callable[[torch.Tensor], Place]:
    return _lengths_on_host if func in _LENGTHS else _place


def _place(tensor: torch.Tensor) -> Place:
    number = tensor.dim() == 0 and tensor.dtype is not torch.bool and not isinstance(tensor, SyncOnRead)
    return Place.HOST if number else Place.DEVICE


def _lengths_on_host(tensor: torch.Tensor) -> Place:
    return Place.DEVICE if isinstance(tensor, SyncOnRead) else Place.HOST


def _host_copy(func: Call, types: Sequence[type], args: tuple[Raw, ...], kwargs: dict[str, Raw]) -> Raw:
    """A copy of its own, as from a device: writing to it leaves the device tensor as it was."""
    copied = torch._C._disabled_torch_function_impl(func, types, args, kwargs)
    with torch._C.DisableTorchFunctionSubclass():
        return copied.clone().as_subclass(torch.Tensor)


def _let_read(func: Call, types: Sequence[type], args: tuple[Raw, ...], kwargs: dict[str, Raw]) -> Raw:
    """Runs an allowed read on the plain tensor, for torch refuses some of them on a subclass."""
    with judged.during():
        receiver = (plain(args[0]), *args[1:]) if args and isinstance(args[0], SyncOnRead) and _is_pure(func) else args
        result = torch._C._disabled_torch_function_impl(func, types, receiver, kwargs)
    return wrapped(result, SyncOnRead)


def _is_pure(func: Call) -> bool:
    """Whether the call returns without writing to its receiver, which has to stay the object it is."""
    name: str = getattr(func, "__name__", "")
    return name != "__setitem__" and (name.endswith("__") or not name.endswith("_"))
