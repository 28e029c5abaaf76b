"""Keeps torch.compile from compiling this package's own handlers, which it meets when code that it compiled calls them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch._C._dynamo.eval_frame

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])
_frames: Any = torch._C._dynamo.eval_frame  # private, and not the same in every torch


def untraced(function: FunctionT) -> FunctionT:
    """The function itself, which from now on always runs as Python code, and so does what it calls.

    `torch.compiler.disable` does the same, but imports the whole compiler, which takes seconds.
    """
    code = getattr(function, "__code__")  # noqa: B009  a callable need not have one
    if hasattr(_frames, "set_code_exec_strategy"):  # torch >= 2.7
        skip = _frames._FrameAction.SKIP
        _frames.set_code_exec_strategy(code, _frames._FrameExecStrategy(skip, skip))
    elif hasattr(_frames, "skip_code"):
        _frames.skip_code(code)
    return function
