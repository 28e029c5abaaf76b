"""Which function of torch is handled how."""
from __future__ import annotations

from functools import cache
from types import FunctionType
from typing import Any

import torch
from torch.utils import _device as default_device

from hostlint.runtime_checks.call_names import named
from hostlint.runtime_checks.simulated import moves, properties
from hostlint.runtime_checks.simulated.mode import Call, Handler, Plans
from hostlint.torch_ops.spec import Returns

_TENSOR_ATTRIBUTES = frozenset(("data", "real", "imag", "T", "mT", "H", "mH", "_base"))
_PLACELESS = frozenset(("size", "stride", "requires_grad_", "_set_grad_enabled", "_version", "retain_grad"))


@cache
def plans() -> Plans:
    tensor: Any = torch.Tensor
    found: dict[Call, Handler] = {
        tensor.to: moves.to, tensor.cuda: moves.cuda, tensor.cpu: moves.cpu, tensor.type: moves.type_, tensor.type_as: moves.type_as,
        tensor.copy_: moves.copy_, tensor.pin_memory: moves.pin_memory,
    }  # fmt: skip
    found.update(dict.fromkeys(default_device._device_constructors(), moves.with_device))
    found.update(properties.handlers())
    return Plans(found, moves.with_device, _is_untouched)


def _is_untouched(func: Call) -> bool:
    """Whether a call has nothing to do with places: shapes, flags, settings."""
    name: str = getattr(func, "__name__", "")
    if isinstance(func, type):
        return True
    if name in ("__get__", "__set__", "__delete__"):
        return name != "__get__" or getattr(getattr(func, "__self__", None), "__name__", "") not in _TENSOR_ATTRIBUTES
    if name in _PLACELESS:
        return True
    op = named(func).op()
    return op is not None and op.returns is Returns.PYTHON and not op.waits and not isinstance(func, FunctionType)
