"""torch.compile under the stand-in: code runs as it is written, so that each of its calls is seen."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps

import torch
import torch._dynamo  # here, because optimizers import it later, and it does not load while torch.cuda has other functions than its own

from hostlint.runtime_checks.patches import Patch


@contextmanager
def compiled_code_runs_eagerly() -> Iterator[None]:
    """Compiled code runs uncompiled; before torch 2.6, only what is compiled inside the body."""
    stance = getattr(torch.compiler, "set_stance", None)
    if stance is None:
        with _PATCH.applied():
            yield
    else:
        with stance("force_eager"):
            yield


def _uncompiled(original: Callable[..., object]) -> Callable[..., object]:
    @wraps(original)
    def compile_(model: object = None, **options: object) -> object:
        return (lambda given: given) if model is None else model

    return compile_


_PATCH = Patch(torch, "compile", _uncompiled)
