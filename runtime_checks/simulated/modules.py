"""Modules of torch whose forward the table knows to wait, below Python in part, where no mode sees it."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

import torch

from hostlint.runtime_checks.calls import KINDS, Verdict, judge_named
from hostlint.runtime_checks.patches import Patch
from hostlint.runtime_checks.simulated.mode import current_mode
from hostlint.runtime_checks.simulated.places import place_of
from hostlint.runtime_checks.simulated.reports import report
from hostlint.torch_ops import method
from hostlint.torch_ops.conditions import split_atom
from hostlint.torch_ops.table import index

if TYPE_CHECKING:
    from hostlint.torch_ops.spec import Op


@contextmanager
def modules_are_judged() -> Iterator[None]:
    with ExitStack() as stack:
        for patch in _patches():
            stack.enter_context(patch.applied())
        yield


@cache
def _patches() -> tuple[Patch, ...]:
    return tuple(_found())


def _found() -> Iterator[Patch]:
    for name in index().methods:
        owner, _, called = name.partition(".")
        klass = getattr(torch.nn, owner, None)
        op = method(name) if called == "forward" and isinstance(klass, type) else None
        if op is not None and any(wait.kind in KINDS for wait in op.waits):
            yield Patch(klass, called, _judged(name, op))


def _judged(name: str, op: Op) -> Callable[[Callable[..., object]], Callable[..., object]]:
    made_with = {atom for wait in op.waits for _, atom in map(split_atom, wait.when)} - set(op.params)

    def replacement(original: Callable[..., object]) -> Callable[..., object]:
        @wraps(original)
        def forward(self: torch.nn.Module, *args: Any, **kwargs: Any) -> object:
            if current_mode() is not None:
                verdict = _verdict(name, (self, *args), {**kwargs, **_constructed(self, made_with)})
                if verdict is not None:
                    report(replace(verdict, call=f"torch.nn.{verdict.call}"))
            return original(self, *args, **kwargs)

        return forward

    return replacement


def _verdict(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Verdict | None:
    with torch._C.DisableTorchFunction():
        return judge_named(name, args, kwargs, place_of)


def _constructed(module: torch.nn.Module, names: set[str]) -> dict[str, Any]:
    """What the module keeps of its constructor's arguments, under their names."""
    return {name: getattr(module, name) for name in names if hasattr(module, name)}
