"""Nested tensors: their constructors ask no mode, and take the device's name straight to the kernels."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
import torch.nested

from hostlint.runtime_checks.arguments import tensors_in
from hostlint.runtime_checks.calls import bytes_moved, judge_named
from hostlint.runtime_checks.patches import Patch
from hostlint.runtime_checks.simulated.devices import as_device, real
from hostlint.runtime_checks.simulated.mode import current_mode
from hostlint.runtime_checks.simulated.places import CUDA, is_on_device, place_of, put_on_device
from hostlint.runtime_checks.simulated.reports import report

_NAMES = ("nested_tensor", "as_nested_tensor")


def _placed(original: Callable[..., Any]) -> Callable[..., Any]:
    name = f"torch.nested.{original.__name__}"

    @wraps(original)
    def make(data: Any, *args: Any, **kwargs: Any) -> Any:
        if current_mode() is None:
            return original(data, *args, **kwargs)
        with torch._C.DisableTorchFunction():
            device = as_device(kwargs.get("device")) or (CUDA if _is_there(data) else None)
            verdict = judge_named(name, (data, *args), {**kwargs, "device": device}, place_of)
        if kwargs.get("device") is not None and device is not None:
            kwargs["device"] = real(device)
        made = original(data, *args, **kwargs)
        with torch._C.DisableTorchFunction():
            if device is not None and device.type == "cuda":
                put_on_device(made)
            moved = bytes_moved(verdict, (data,), made) if verdict is not None else None
        if verdict is not None:
            report(verdict, moved)
        return made

    return make


def _is_there(data: Any) -> bool:
    return any(is_on_device(tensor) for tensor in tensors_in(data if isinstance(data, (list, tuple)) else [data]))


_PATCHES = tuple(Patch(torch.nested, name, _placed) for name in _NAMES)


@contextmanager
def nested_tensors_have_places() -> Iterator[None]:
    with _PATCHES[0].applied(), _PATCHES[1].applied():
        yield
