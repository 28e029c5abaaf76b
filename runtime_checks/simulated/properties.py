"""What a tensor says of itself: its device, its flags, its gradient, its memory; and what it refuses on the device."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from hostlint.runtime_checks.simulated.blind_spots import warn
from hostlint.runtime_checks.simulated.mode import judge, plain_call
from hostlint.runtime_checks.simulated.places import CUDA, is_on_device, is_pinned, put_on_device

if TYPE_CHECKING:
    from hostlint.runtime_checks.simulated.mode import Call, Handler, SimulatedMode

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]


def device(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    return CUDA if is_on_device(args[0]) else func(*args)


def is_cuda(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    return is_on_device(args[0]) or func(*args)


def is_cpu(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    return func(*args) and not is_on_device(args[0])


def get_device(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    return 0 if is_on_device(args[0]) else func(*args, **kwargs)


def pinned(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    return is_pinned(args[0])


def set_grad(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    tensor, grad = args
    if isinstance(grad, torch.Tensor) and not grad.is_meta and is_on_device(grad) is not is_on_device(tensor):
        raise RuntimeError("assigned grad has data located on a different device")
    return func(*args)


def numpy(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    tensor = args[0]
    if not is_on_device(tensor):
        return func(*args, **kwargs)
    if not (kwargs.get("force") or args[1:] == (True,)):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
    judge(func, args, kwargs)
    return func(tensor.clone(), force=True)


def without_driver(mode: SimulatedMode, func: Call, args: Args, kwargs: dict[str, Any]) -> Any:
    """Which of CUDA's routines is used makes no difference on the host, which refuses to be asked."""
    if is_on_device(args[0]):
        kwargs.pop("driver", None)
    return plain_call(mode, func, args, kwargs)


def counts_integers(mode: SimulatedMode, func: Call, args: Args, kwargs: dict[str, Any]) -> Any:
    """CUDA's histogram takes integers, the host's does not: double holds all that it may be given."""
    tensor = args[0] if args else kwargs.get("input")
    if not isinstance(tensor, torch.Tensor) or not is_on_device(tensor) or tensor.is_floating_point():
        return plain_call(mode, func, args, kwargs)
    as_double = tensor.double()
    put_on_device(as_double)
    counts = plain_call(mode, func, (as_double, *args[1:]), {name: value for name, value in kwargs.items() if name != "input"})
    result = counts.to(tensor.dtype)
    put_on_device(result)
    return result


def wants_host_argument(mode: SimulatedMode, func: Call, args: Args, kwargs: dict[str, Any]) -> Any:
    """Lengths and sections, which torch reads itself and therefore wants on the host."""
    lengths = args[1] if len(args) > 1 else None
    if isinstance(lengths, torch.Tensor) and is_on_device(lengths):
        raise RuntimeError(f"{func.__name__}: expected argument 1 to be on the host, but it is on cuda:0")
    return plain_call(mode, func, args, kwargs)


def share_memory(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    return args[0] if is_on_device(args[0]) else func(*args, **kwargs)


def as_the_host_has_it(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    return func(*args, **kwargs)


def handed_out(mode: SimulatedMode, func: Call, args: Args, kwargs: Kwargs) -> Any:
    """`__dlpack__`: what another library makes of the memory is on the host."""
    if is_on_device(args[0]):
        warn("the memory of a tensor is handed out by dlpack; what is made of it lives on the host")
    return func(*args, **kwargs)


def handlers() -> dict[Call, Handler]:
    tensor: Any = torch.Tensor
    named: dict[str, Handler] = {"device": device, "is_cuda": is_cuda, "is_cpu": is_cpu}
    found: dict[Call, Handler] = {getattr(tensor, name).__get__: handler for name, handler in named.items()}
    return found | {
        tensor.grad.__set__: set_grad,
        tensor.get_device: get_device,
        torch.get_device: get_device,
        tensor.is_pinned: pinned,
        tensor.__dlpack__: handed_out,
        tensor.__dlpack_device__: as_the_host_has_it,
        tensor.numpy: numpy,
        tensor.share_memory_: share_memory,
        torch.histc: counts_integers,
        tensor.histc: counts_integers,
        torch.linalg.svd: without_driver,
        torch.linalg.svdvals: without_driver,
        torch.tensor_split: wants_host_argument,
        tensor.tensor_split: wants_host_argument,
        torch._VF._pack_padded_sequence: wants_host_argument,
    }
