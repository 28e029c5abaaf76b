"""Automatic mixed precision: `torch.autocast("cuda")` does what `torch.autocast("cpu")` of the same type does."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch.amp import autocast_mode

from hostlint.runtime_checks.patches import Patch

_autocast = autocast_mode.autocast
_LOW = (torch.float16, torch.bfloat16)


def _entering(original: Callable[..., object]) -> Callable[..., object]:
    @wraps(original)
    def enter(self: Any) -> object:
        result = original(self)
        if self.device == "cuda":
            enabled = self._enabled and self.fast_dtype in _LOW
            inner = _autocast("cpu", self.fast_dtype if enabled else None, enabled, self._cache_enabled)
            original(inner)
            vars(self).setdefault("_hostlint_inner", []).append(inner)
        return result

    return enter


def _leaving(original: Callable[..., object]) -> Callable[..., object]:
    @wraps(original)
    def leave(self: Any, *error: object) -> object:
        opened = vars(self).get("_hostlint_inner")
        if opened:
            original(opened.pop(), *error)
        return original(self, *error)

    return leave


_PATCHES = Patch(_autocast, "__enter__", _entering), Patch(_autocast, "__exit__", _leaving)


@contextmanager
def autocast_on_the_host() -> Iterator[None]:
    """While the body runs, entering CUDA's autocast enters the host's too; the default type stays CUDA's, float16."""
    with _PATCHES[0].applied(), _PATCHES[1].applied():
        yield
