"""Where a tensor lives: a mark on its storage, which its views, aliases, gradients' accumulators and parameters share with it."""
from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from hostlint.runtime_checks.patches import Patch
from hostlint.values.value import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

CUDA = torch.device("cuda", 0)
CPU = torch.device("cpu")
_MARK = "hostlint_on_device"
_PINNED = "hostlint_pinned"
_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))
_untyped_storage = torch._C.TensorBase.untyped_storage


def _storage_of(tensor: torch.Tensor) -> Any:
    """Without asking a subclass, which may answer in its own way or refuse."""
    if type(tensor) in _PLAIN:
        return _untyped_storage(tensor)
    with torch._C.DisableTorchFunctionSubclass():
        return _untyped_storage(tensor)


@contextmanager
def storages_have_places() -> Iterator[None]:
    """Storages answer for their place, without a dictionary look-up that fails for each host tensor."""
    with Patch(torch.UntypedStorage, _MARK, lambda _: False).applied(), Patch(torch.UntypedStorage, _PINNED, lambda _: False).applied():  # type: ignore[arg-type, return-value]  # attributes, not functions
        yield


def is_on_device(tensor: torch.Tensor) -> bool:
    """Call it where the stand-in's own mode is off, as it is while a call is handled."""
    try:
        return _storage_of(tensor).hostlint_on_device  # type: ignore[no-any-return]
    except (NotImplementedError, RuntimeError):  # no storage: sparse, or wrapped by a function transform
        return _object_mark(tensor)
    except AttributeError:  # a thread that outlives the body
        return False


def place_of(tensor: torch.Tensor) -> Place:
    return Place.DEVICE if is_on_device(tensor) else Place.HOST


def put_on_device(tensor: torch.Tensor, on_device: bool = True) -> None:
    """From now on the tensor, and all that shares its storage, lives on the device (or not)."""
    try:
        _storage_of(tensor).hostlint_on_device = on_device
    except (NotImplementedError, RuntimeError):
        inner = _unwrapped(tensor)
        if inner is not None:
            put_on_device(inner, on_device)
        else:
            tensor.__dict__[_MARK] = on_device


def put_result_on_device(result: object) -> None:
    """The tensors of a call's result live on the device."""
    if isinstance(result, torch.Tensor):
        put_on_device(result)
    elif isinstance(result, (tuple, list)):
        for item in result:
            put_result_on_device(item)
    elif isinstance(result, Mapping):
        for item in result.values():
            put_result_on_device(item)


def same_storage(one: torch.Tensor, other: torch.Tensor) -> bool:
    try:
        return _storage_of(one) is _storage_of(other)
    except (NotImplementedError, RuntimeError):
        return one is other


def is_pinned(tensor: torch.Tensor) -> bool:
    try:
        return bool(getattr(_storage_of(tensor), _PINNED, False))
    except (NotImplementedError, RuntimeError):
        return False


def pin(tensor: torch.Tensor) -> None:
    setattr(_storage_of(tensor), _PINNED, True)


def _object_mark(tensor: torch.Tensor) -> bool:
    inner = _unwrapped(tensor)
    return is_on_device(inner) if inner is not None else bool(tensor.__dict__.get(_MARK, False))


def _unwrapped(tensor: Any) -> torch.Tensor | None:
    """The tensor inside a wrapper of torch.func (vmap, grad)."""
    functorch = torch._C._functorch
    return functorch.get_unwrapped(tensor) if functorch.is_functorch_wrapped_tensor(tensor) else None
