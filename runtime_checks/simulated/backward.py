"""Gradients: what the autograd engine computes below Python lives where its inputs do, and waits where the table says so."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hostlint.runtime_checks.patches import Patch
from hostlint.runtime_checks.simulated.mixing import Mix, places_in
from hostlint.runtime_checks.simulated.mode import SimulatedMode, current_mode, judge, put_new_on_device, switched_on
from hostlint.runtime_checks.simulated.places import put_on_device, put_result_on_device


class _Gradients(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves its hook for subclasses unannotated
    """On while the engine runs. What hooks and custom functions call comes through the function mode first, which sees to it."""

    def __init__(self, mode: SimulatedMode) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.mode = mode

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here, and to say so to the compiler torch would import it, which takes seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> object:
        kwargs = kwargs or {}
        if self.mode.handling:
            return func(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            mix = places_in(args, kwargs)
            if mix is Mix.HOST:
                return func(*args, **kwargs)
            if mix is Mix.DEVICE:  # a scalar that the engine makes has no place
                judge(func, args, kwargs)
            result = func(*args, **kwargs)
            if mix is Mix.DEVICE:
                put_result_on_device(result)
            else:
                put_new_on_device(result, args, kwargs)
            return result


def _watched(original: Callable[..., object]) -> Callable[..., object]:
    @wraps(original)
    def run(*args: object, **kwargs: object) -> object:
        mode = current_mode()
        if mode is None:
            return original(*args, **kwargs)
        handling, mode.handling = mode.handling, 0
        try:
            with _Gradients(mode):
                return original(*args, **kwargs)
        finally:
            mode.handling = handling

    return run


def _with_places(original: Callable[..., object]) -> Callable[..., object]:
    """Hooks on saved tensors are called from inside the operator that saves them."""

    @wraps(original)
    def init(self: object, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        original(self, _packing(pack_hook), _packing(unpack_hook))

    return init


def _packing(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @wraps(hook)
    def run(saved: Any) -> Any:
        mode = current_mode()
        if mode is None:
            return hook(saved)
        if mode.all_on_device and isinstance(saved, torch.Tensor):
            with torch._C.DisableTorchFunction():
                put_on_device(saved)  # the operator's own result, before the operator is done
        with switched_on(mode):
            return hook(saved)

    return run


_ENGINE = tuple(
    Patch(module, "_engine_run_backward", _watched)
    for module in (torch.autograd, torch.autograd.graph)
    if hasattr(module, "_engine_run_backward")
)

_SAVING = Patch(torch.autograd.graph.saved_tensors_hooks, "__init__", _with_places)


@contextmanager
def gradients_have_places() -> Iterator[None]:
    with ExitStack() as stack:
        for patch in (*_ENGINE, _SAVING):
            stack.enter_context(patch.applied())
        yield
