"""`torch.cuda.FloatTensor` and its like: constructors that are also types to test for and to convert to."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from hostlint.runtime_checks.calls import bytes_moved, judge_named
from hostlint.runtime_checks.simulated.places import is_on_device, place_of, put_on_device
from hostlint.runtime_checks.simulated.reports import report

LEGACY_TYPES = tuple(
    f"{kind}Tensor" for kind in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
)


class _Legacy(type):
    """The type of such a type: a call makes a tensor, `isinstance` asks for type and place."""

    host: Any

    def __call__(cls, *data: Any, **options: Any) -> torch.Tensor:
        options.pop("device", None)
        name = f"torch.cuda.{cls.__name__}"
        with torch._C.DisableTorchFunction():
            made: torch.Tensor = cls.host(*data, **options)
            put_on_device(made)
            verdict = judge_named(name, data, options, place_of)
            moved = bytes_moved(verdict, data, made) if verdict is not None else None
        if verdict is not None:
            report(verdict, moved)
        return made

    def __instancecheck__(cls, instance: object) -> bool:
        with torch._C.DisableTorchFunction():
            return isinstance(instance, cls.host) and is_on_device(instance)


def legacy_type(original: Callable[..., object]) -> Callable[..., object]:
    """What stands for torch's own type, which needs a driver."""
    name: str = original.__name__
    return _Legacy(name, (), {"host": getattr(torch, name), "__module__": "torch.cuda"})
