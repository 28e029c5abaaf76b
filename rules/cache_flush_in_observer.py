"""A getter, a logger or a profiler that empties the allocator's cache or collects garbage.

## Why it costs
Whoever asks how much memory is free does not expect that the question waits for the device and takes its cache away. Such a flush sits
behind a default argument or a helper, so that turning on a log level or a profiler changes the latency and the memory of what it observes,
at every stage boundary; and the arguments of a log line are worked out even where its level is off.

## Instead
- An observer only observes: `torch.cuda.mem_get_info()`, `memory_allocated()`, `memory_reserved()` say what is free and what is cached.
- Where a flush is offered, its default is off (`empty_cache: bool = False`), and the callers that release memory ask for it.
- A debug line gets values that cost nothing, or stands behind `log.isEnabledFor(...)`.

`hostlint fix --review` switches off the default of the parameter that offers the flush. Who relied on it (to release memory, or for a
number without the cache) has to ask from then on: `empty_cache=True`. A plain `torch.cuda.empty_cache()` in an observer goes; a comment
beside it stays. What the observer then tells counts the cache as used, and a run that lived on its flushes may run out of memory.

## Not flagged
A flush behind a parameter whose default is off and that no call switches on; a helper that others call to release memory; `synchronize()`
in a timer (explicit-synchronize has it where it is hot).

## Evidence
A serving engine's stage profiler emptied the cache at every stage, through a platform getter with the default `empty_cache=True`.
NVIDIA H200, torch 2.11:
- `torch.cuda.mem_get_info()`: free
- `gc.collect()`: host work

## How to confirm
`torch.cuda.memory_reserved()` before and after the observer: it must not fall.
"""
from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.loops import blocks_of
from hostlint.model import Applicability, Span
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact
    from hostlint.fix.place import Place
    from hostlint.model import Fix


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(
        f"`{whole(node)}` pauses the process {when(fact)}, hidden in {fact.evidence}: observe only (`mem_get_info`, `memory_reserved`), "
        "let a flush be off by default, and ask for it where memory is released"
    )


def fix(place: Place) -> Fix | None:
    """`def get_memory(empty_cache: bool = True)` to `= False`."""
    import ast

    if place.function is None:
        return None
    tests = [outer.test for outer, inner in pairwise(place.path) if isinstance(outer, ast.If) and inner in outer.body]
    names = {test.id for test in tests if isinstance(test, ast.Name)}
    given = place.function.args
    placed = [*given.posonlyargs, *given.args]
    pairs = [*zip(reversed(placed), reversed(given.defaults), strict=False), *zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    for argument, default in pairs:
        if argument.arg in names and isinstance(default, ast.Constant) and default.value is True:
            message = f"do not flush unless asked, where every caller that wants it passes `{argument.arg}=True`"
            return place.fix(Applicability.REVIEW, message, place.replace("False", default))
    return _dropped(place)


def _dropped(place: Place) -> Fix | None:
    """The line of a plain `torch.cuda.empty_cache()` goes; a comment beside it stays."""
    import ast

    statement = place.statement
    if place.known.callee != "torch.cuda.empty_cache" or not isinstance(statement, ast.Expr) or not place.outline.begins_line(statement):
        return None
    block = next((one for outer in reversed(place.path) for one in blocks_of(outer) if statement in one), [])
    span = place.outline.span(statement)
    rest = place.outline.lines[span.end_line - 1][span.end_column - 1 :]
    if len(block) < 2 or (rest.strip() and not rest.strip().startswith("#")):
        return None
    gap = len(rest) - len(rest.lstrip())
    whole = Span(span.line, span.column, span.end_line, span.end_column + gap) if rest.strip() else Span(span.line, 1, span.end_line + 1, 1)
    message = "only look: do not flush, where no run needs the memory that this gives back, or counts it as free"
    return place.fix(Applicability.REVIEW, message, place.replace("", whole))


RULE = Rule(
    code="HL402",
    name="cache-flush-in-observer",
    summary="a getter, logger or profiler flushes the allocator or collects garbage",
    kinds=(FactKind.OBSERVER_PAUSE,),
    check=check,
    fix=fix,
    examples=(
        Example(
            bad="""\
import torch


def get_free_memory(empty_cache: bool = True) -> int:
    if empty_cache:
        torch.cuda.empty_cache()  # expect
    free, _ = torch.cuda.mem_get_info()
    return free


class StageProfiler:
    def __enter__(self):
        self.before = get_free_memory()

    def __exit__(self, *error):
        pass


def denoise(model, latents, steps: int):
    latents = latents.cuda()
    for i in range(steps):
        with StageProfiler():
            latents = model(latents, i)
        print(get_free_memory())
    return latents
""",
            good="""\
import torch


def get_free_memory(empty_cache: bool = False) -> int:
    if empty_cache:
        torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info()
    return free


class StageProfiler:
    def __enter__(self):
        self.before = get_free_memory()

    def __exit__(self, *error):
        pass


def denoise(model, latents, steps: int):
    latents = latents.cuda()
    for i in range(steps):
        with StageProfiler():
            latents = model(latents, i)
        print(get_free_memory())
    return latents
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import gc

import torch


def settle():
    gc.collect()  # expect


def log_usage(step: int):
    settle()
    print(step, torch.cuda.memory_allocated())


def fit(model, loader, optimizer):
    for step, x in enumerate(loader):
        model(x.cuda(non_blocking=True)).mean().backward()
        optimizer.step()
        log_usage(step)
""",
            good="""\
import gc

import torch


def settle():
    gc.collect()


def log_usage(step: int):
    print(step, torch.cuda.memory_allocated())


def fit(model, loader, optimizer):
    settle()
    for step, x in enumerate(loader):
        model(x.cuda(non_blocking=True)).mean().backward()
        optimizer.step()
        log_usage(step)
""",
        ),
        Example(
            bad="""\
import logging

import torch

log = logging.getLogger(__name__)


def memory_line() -> str:
    torch.cuda.empty_cache()  # expect
    return f"{torch.cuda.mem_get_info()}"


def fit(model, loader, optimizer):
    for x in loader:
        model(x.cuda(non_blocking=True)).mean().backward()
        optimizer.step()
        log.debug(memory_line())
""",
            good="""\
import logging

import torch

log = logging.getLogger(__name__)


def memory_line() -> str:
    return f"{torch.cuda.mem_get_info()}"


def fit(model, loader, optimizer):
    for x in loader:
        model(x.cuda(non_blocking=True)).mean().backward()
        optimizer.step()
        log.debug(memory_line())
""",
            fix=Applicability.REVIEW,
        ),
    ),
)
