"""Functions of torch that are written in Python and of which the table says that they wait: known by their code in a stack of frames."""
from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import CodeType, FrameType
from typing import TYPE_CHECKING

import torch

from hostlint.runtime_checks.calls import KINDS
from hostlint.torch_ops import function, method
from hostlint.torch_ops.table import ARGUMENT_PARSER, index

if TYPE_CHECKING:
    from hostlint.facts.kinds import FactKind
    from hostlint.runtime_checks.events import EventKind
    from hostlint.torch_ops.spec import Op


@dataclass(frozen=True, slots=True)
class Composite:
    call: str
    kind: EventKind
    fact: FactKind


def waiting_composite(frame: FrameType | None, outermost: FrameType) -> Composite | None:
    """The outermost function of the table among the frames from `frame` out to `outermost`."""
    codes = _by_code()
    found: Composite | None = None
    while frame is not None:
        found = codes.get(frame.f_code) or found
        if frame is outermost:
            break
        frame = frame.f_back
    return found


@cache
def _by_code() -> dict[CodeType, Composite]:
    return dict(_composites())


def _composites() -> Iterator[tuple[CodeType, Composite]]:
    for dotted in index().functions:
        op = function(dotted) if dotted.startswith("torch.") else None
        code = _code_of(_at(dotted)) if op is not None and op.waits else None
        if op is not None and code is not None:
            yield from _entry(code, dotted, op)
    for name in index().methods:
        op = method(name) if "." in name else None
        if op is not None and op.waits:
            for home, klass in _classes(name.partition(".")[0]):
                code = _code_of(vars(klass).get(name.partition(".")[2]))
                if code is not None:
                    yield from _entry(code, f"{home}.{name}", op)


def _entry(code: CodeType, call: str, op: Op) -> Iterator[tuple[CodeType, Composite]]:
    waits = [wait for wait in op.waits if wait.kind in KINDS and wait.evidence != ARGUMENT_PARSER]
    if waits:
        yield code, Composite(call, KINDS[waits[0].kind], waits[0].kind)


def _at(dotted: str) -> object:
    """What a dotted name stands for, as far as its module has been imported."""
    home, _, name = dotted.rpartition(".")
    return getattr(sys.modules.get(home), name, None)


def _classes(name: str) -> Iterator[tuple[str, type]]:
    """The classes of torch that the table's methods of `name` are written for, with the module that one knows them from."""
    homes = (torch.nn, torch.distributions, torch.optim, torch.optim.swa_utils, torch.amp, torch.nn.modules.batchnorm)
    for home in homes:
        for key in (name, f"_{name}"):
            value = getattr(home, key, None)
            if isinstance(value, type):
                yield home.__name__.removesuffix(".modules.batchnorm"), value


def _code_of(value: object) -> CodeType | None:
    if isinstance(value, type):
        value = vars(value).get("__init__")
    inner = getattr(value, "__wrapped__", value)  # a decorated optimizer's step
    return getattr(inner, "__code__", None)
