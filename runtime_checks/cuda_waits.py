"""Waits of a real GPU as events: from torch's debug mode, from explicit waits, and from the calls on which the debug mode is silent."""
from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from hostlint.runtime_checks import explicit_waits
from hostlint.runtime_checks.call_mode import Call, current_call, noting_calls
from hostlint.runtime_checks.calls import Verdict, bytes_moved, judge_call, known_wait
from hostlint.runtime_checks.events import EventKind, Frame, HostEvent, Origin
from hostlint.runtime_checks.frames import stack_from, user_frame
from hostlint.runtime_checks.permissions import allowed_reason
from hostlint.runtime_checks.silent_waits import may_wait_silently
from hostlint.runtime_checks.sinks import emit, listeners
from hostlint.runtime_checks.sync_warnings import sync_warnings
from hostlint.values.value import Place

if TYPE_CHECKING:
    from hostlint.facts.kinds import FactKind


@contextmanager
def watching_cuda() -> Iterator[None]:
    """Emits an event for each wait of this thread (or task) and of those that it starts, while the body runs."""
    with explicit_waits.explicit_waits(_explicit), sync_warnings(_heard), noting_calls(_finished):
        yield


def place_of(tensor: torch.Tensor) -> Place:
    return Place.DEVICE if tensor.is_cuda else Place.HOST


def _heard() -> None:
    """Torch's debug mode says that the host has just waited; the warning comes at the end of the C++ call that did."""
    if explicit_waits.inside() or _compiling():
        return
    call = current_call()
    if call is None:
        stack = stack_from(sys._getframe(1))
        _emit(EventKind.HIDDEN_WAIT, stack, _torch_function(stack), time.perf_counter())
    else:
        call.waits += 1
        call.waited_s = time.perf_counter() - call.start_s


def _finished(call: Call) -> None:
    if call.waits:
        if listeners():
            _report(call, known_wait(call.func, call.args, call.kwargs, place_of))
    elif may_wait_silently(call.func) and listeners() and not _compiling():
        verdict = judge_call(call.func, call.args, call.kwargs, place_of)
        if verdict is not None and verdict.silent:
            call.waits = 1
            call.waited_s = time.perf_counter() - call.start_s
            _report(call, verdict)


def _report(call: Call, verdict: Verdict) -> None:
    stack = _callers(stack_from(sys._getframe(1)))
    inside_torch = bool(stack) and stack[0].origin is Origin.TORCH
    kind = EventKind.HIDDEN_WAIT if inside_torch and verdict.kind is EventKind.READ else verdict.kind
    name = _torch_function(stack) if inside_torch else verdict.call
    moved = bytes_moved(verdict, call.args, call.result)
    _emit(kind, stack, name, call.start_s, call.waited_s, fact=verdict.fact, moved=moved, waits=call.waits)


def _callers(stack: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Without the frames of the called function itself, which torch's functions in Python leave behind on their way to the mode."""
    if stack and stack[0].function == "handle_torch_function" and stack[0].origin is Origin.TORCH:
        return stack[2:]
    return stack


def _explicit(name: str, start_s: float, blocked_s: float) -> None:
    if listeners():
        _emit(EventKind.EXPLICIT_SYNC, stack_from(sys._getframe(1)), name, start_s, blocked_s)


def _emit(
    kind: EventKind,
    stack: tuple[Frame, ...],
    call: str,
    start_s: float,
    blocked_s: float | None = None,
    *,
    fact: FactKind | None = None,
    moved: int | None = None,
    waits: int = 1,
) -> None:
    place = user_frame(stack)
    emit(
        HostEvent(
            kind, place.path, place.line, place.function, stack, call, threading.current_thread().name, start_s,
            blocked_s, moved, fact, allowed_reason(kind, fact), waits,
        )
    )


def _torch_function(stack: tuple[Frame, ...]) -> str:
    """The function of torch that the user's (or a library's) code called."""
    inner = list(itertools.takewhile(lambda frame: frame.origin is Origin.TORCH, stack))
    named = [frame.function for frame in inner if "<locals>" not in frame.function]  # not the wrappers of decorators
    return named[-1] if named else "a call below Python"


def _compiling() -> bool:
    """Whether this is torch.compile at work: what it reads while it traces is no wait of the step."""
    return torch._guards.CompileContext.try_get() is not None
