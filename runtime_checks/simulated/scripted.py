"""Scripted and traced code: it runs below Python, so that only what goes in and what comes out has a place."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

import torch

from hostlint.runtime_checks.patches import Patch
from hostlint.runtime_checks.simulated.blind_spots import warn
from hostlint.runtime_checks.simulated.mixing import Mix, places_in
from hostlint.runtime_checks.simulated.mode import current_mode
from hostlint.runtime_checks.simulated.places import put_result_on_device


def _bounded(original: Callable[..., object]) -> Callable[..., object]:
    @wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> object:
        result = original(self, *args, **kwargs)
        if current_mode() is not None:
            with torch._C.DisableTorchFunction():
                on_device = places_in(args, kwargs) is not Mix.HOST
                if on_device:
                    put_result_on_device(result)
            if on_device:
                warn("scripted or traced code runs as a whole; its waits are not seen")
        return result

    return call


_PATCHES = tuple(Patch(klass, "__call__", _bounded) for klass in (torch._C.ScriptFunction, torch._C.ScriptMethod))


@contextmanager
def scripted_results_have_places() -> Iterator[None]:
    with ExitStack() as stack:
        for patch in _PATCHES:
            stack.enter_context(patch.applied())
        yield
