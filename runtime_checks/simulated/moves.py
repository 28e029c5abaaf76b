"""Tensors that change their place, or are made at one: `to`, `cuda`, `cpu`, `type`, `pin_memory`, everything with `device=`."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _device as default_device

from hostlint.runtime_checks.calls import bytes_moved
from hostlint.runtime_checks.simulated.devices import as_device, real
from hostlint.runtime_checks.simulated.mixing import Mix, demand_one_place, places_in
from hostlint.runtime_checks.simulated.mode import judge, plain_call, verdict_on
from hostlint.runtime_checks.simulated.places import CPU, CUDA, is_on_device, is_pinned, pin, put_on_device, same_storage
from hostlint.runtime_checks.simulated.reports import report

if TYPE_CHECKING:
    from hostlint.runtime_checks.simulated.mode import Call, SimulatedMode

_FROM_DATA = (torch.tensor, torch.as_tensor, torch.asarray)
Args = tuple[Any, ...]
Kwargs = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """What a call of `to` asks for; None where it leaves things as they are."""

    device: torch.device | None
    dtype: torch.dtype | None
    non_blocking: bool = False
    copy: bool = False
    memory_format: torch.memory_format | None = None

    @classmethod
    def of(cls, args: Args, kwargs: Mapping[str, Any]) -> Target:
        """`to(device, dtype, …)`, `to(dtype, …)` and `to(other, …)`, the receiver left out."""
        rest, device, dtype = list(args), kwargs.get("device"), kwargs.get("dtype")
        other = kwargs.get("other")
        if rest and isinstance(rest[0], torch.Tensor):
            other = rest.pop(0)
        elif rest and isinstance(rest[0], torch.dtype):
            dtype = rest.pop(0)
        elif rest:
            device = rest.pop(0)
            if rest and (rest[0] is None or isinstance(rest[0], torch.dtype)):
                dtype = rest.pop(0)
        if isinstance(other, torch.Tensor):
            device, dtype = CUDA if is_on_device(other) else other.device, other.dtype
        flags = dict(zip(("non_blocking", "copy"), rest, strict=False))
        return cls(
            as_device(device),
            dtype,
            bool(flags.get("non_blocking", kwargs.get("non_blocking", False))),
            bool(flags.get("copy", kwargs.get("copy", False))),
            kwargs.get("memory_format"),
        )


def to(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    return _moved(mode, func, args, kwargs, Target.of(args[1:], kwargs))


def cuda(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    named = dict(zip(("device", "non_blocking"), args[1:], strict=False)) | kwargs
    device = as_device(named.get("device")) or CUDA
    return _moved(mode, func, args, kwargs, Target(device, None, bool(named.get("non_blocking")), memory_format=named.get("memory_format")))


def cpu(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    return _moved(mode, func, args, kwargs, Target(CPU, None, memory_format=kwargs.get("memory_format")))


def type_as(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    return _moved(mode, func, args, kwargs, Target.of(args[1:], kwargs))


def type_(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    """`x.type()` names the legacy type; `x.type(t)` converts, and moves where t is a legacy type of the other place."""
    named = dict(zip(("dtype", "non_blocking"), args[1:], strict=False)) | kwargs
    wanted, tensor = named.get("dtype"), args[0]
    if wanted is None:
        name: str = func(tensor)
        return name.replace("torch.", "torch.cuda.", 1) if is_on_device(tensor) else name
    if isinstance(wanted, type):
        wanted = f"{wanted.__module__}.{wanted.__name__}"
    if isinstance(wanted, torch.dtype):
        return _moved(mode, func, args, kwargs, Target(None, wanted))
    dtype = func(torch.empty(0), wanted.replace("torch.cuda.", "torch.")).dtype
    device = CUDA if wanted.startswith("torch.cuda.") else CPU
    return _moved(mode, func, args, kwargs, Target(device, dtype, bool(named.get("non_blocking"))))


def _moved(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs, target: Target) -> Any:
    tensor = args[0]
    here = is_on_device(tensor)
    device = target.device
    there = here if device is None else device.type == "cuda"
    options: dict[str, Any] = {} if target.memory_format is None else {"memory_format": target.memory_format}
    if here is there and (device is None or device.type in ("cuda", "cpu")):
        result = tensor.to(dtype=target.dtype or tensor.dtype, copy=target.copy, **options)
        if here:
            put_on_device(result)
        return result
    if device is not None and device.type not in ("cuda", "cpu"):
        return tensor.to(device, target.dtype or tensor.dtype, copy=target.copy, **options)
    verdict = verdict_on(func, args, kwargs)
    result = _copied(tensor, target.dtype or tensor.dtype, options, there)
    if verdict is not None:
        report(verdict, bytes_moved(verdict, args, result))
    if not there and target.non_blocking:
        pin(result)  # a copy that does not wait lands in pinned memory
    return result


def _copied(tensor: torch.Tensor, dtype: torch.dtype, options: dict[str, Any], there: bool) -> torch.Tensor:
    if tensor.requires_grad and torch.is_grad_enabled():
        moved: torch.Tensor = _Move.apply(tensor, dtype, options, there)  # type: ignore[no-untyped-call]
        return moved
    return _copy(tensor, dtype, options, there)


def _copy(tensor: torch.Tensor, dtype: torch.dtype, options: dict[str, Any], there: bool) -> torch.Tensor:
    if tensor.is_meta:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    result = tensor.to(dtype=dtype, copy=True, **options)
    put_on_device(result, there)
    return result


class _Move(torch.autograd.Function):
    """A copy to the other place, whose gradient comes back to this one."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, dtype: torch.dtype, options: dict[str, Any], there: bool) -> torch.Tensor:
        ctx.back = tensor.dtype, not there
        return _copy(tensor, dtype, options, there)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        dtype, here = ctx.back
        with torch._C.DisableTorchFunction():
            return _copied(grads[0], dtype, {}, here), None, None, None


def copy_(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    """The one call that writes from either place into the other."""
    source = args[1] if len(args) > 1 else kwargs.get("src", kwargs.get("other"))
    verdict = verdict_on(func, args, kwargs)
    if verdict is not None:
        report(verdict, bytes_moved(verdict, (source,), source))
    return func(*args, **kwargs)


def pin_memory(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    tensor = args[0]
    if is_on_device(tensor):
        raise RuntimeError(f"cannot pin '{tensor.type().replace('torch.', 'torch.cuda.', 1)}' only dense CPU tensors can be pinned")
    if is_pinned(tensor):
        return tensor
    result = tensor.clone()
    pin(result)
    return result


def with_device(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    """A call that may name a device for its result: a factory, or a function like one."""
    asked = kwargs.get("device")
    if asked is None and func in default_device._device_constructors() and not _follows_its_data(func, args):
        asked = default_device.CURRENT_DEVICE
    if asked is None:
        return _undirected(mode, func, args, kwargs)
    device = as_device(asked)
    _check_generator(kwargs.get("generator"), device)
    kwargs = {**kwargs, "device": device}
    verdict = verdict_on(func, args, kwargs)
    mix = places_in(args, kwargs)
    if mix not in (Mix.HOST, Mix.DEVICE) and "_like" not in getattr(func, "__name__", ""):
        demand_one_place(func, args, kwargs, mix)
    kwargs["device"] = real(device) if device is not None else None
    pinned = kwargs.pop("pin_memory", False)
    result = mode.done(func, args, kwargs)
    if verdict is not None:
        report(verdict, bytes_moved(verdict, args, result))
    return _placed(result, args, there=device is not None and device.type == "cuda", pinned=pinned)


def _undirected(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    pinned = kwargs.pop("pin_memory", False) if "pin_memory" in kwargs else False
    _check_generator(kwargs.get("generator"), None if places_in(args, {}) is Mix.DEVICE else CPU)
    if func in _FROM_DATA and not isinstance(args[0] if args else kwargs.get("data"), torch.Tensor):
        judge(func, args, kwargs)  # from tensors of the device, but on the host
        return mode.done(func, args, kwargs)
    result = plain_call(mode, func, args, kwargs)
    if pinned:
        pin(result)
    return result


def _placed(result: Any, args: Args, *, there: bool, pinned: bool) -> Any:
    """The result at the place that was asked for, with memory of its own where that is not an argument's place."""
    if not isinstance(result, torch.Tensor) or result.is_meta:
        return result
    if is_on_device(result) is not there or (there and _is_borrowed(result, args)):
        if any(isinstance(one, torch.Tensor) and same_storage(one, result) for one in args) or _is_borrowed(result, args):
            result = result.detach().clone().requires_grad_(result.requires_grad)
        put_on_device(result, there)
    if pinned:
        pin(result)
    return result


def _is_borrowed(result: torch.Tensor, args: Args) -> bool:
    """Whether the memory is an array's, which `as_tensor` shares with it."""
    data: Any = args[0] if args else None
    if isinstance(data, torch.Tensor) or not hasattr(data, "__array_interface__"):
        return False
    return bool(data.__array_interface__["data"][0] == result.data_ptr())


def _follows_its_data(func: Call, args: Args) -> bool:
    """`torch.tensor(t)` and `as_tensor(t)` stay where t is, whatever the default device."""
    return func in _FROM_DATA and bool(args) and isinstance(args[0], torch.Tensor)


def _check_generator(generator: Any, device: torch.device | None) -> None:
    if generator is None or device is None or device.type not in ("cuda", "cpu"):
        return
    if generator.device.type != device.type:
        raise RuntimeError(f"Expected a '{device.type}' device type for generator but found '{generator.device.type}'")
