"""From verdicts to events: one for each call that waits, at the place in the user's code that made it."""
from __future__ import annotations

import inspect
import sys
import threading
import time
from itertools import takewhile
from types import FrameType
from typing import TYPE_CHECKING

from hostlint.runtime_checks.events import EventKind, Frame, HostEvent, Origin
from hostlint.runtime_checks.frames import origin_of, stack_from, user_frame
from hostlint.runtime_checks.permissions import allowed_reason
from hostlint.runtime_checks.simulated.composites import Composite, waiting_composite
from hostlint.runtime_checks.sinks import emit, listeners

if TYPE_CHECKING:
    from hostlint.runtime_checks.calls import Verdict

_HANDLED = "handle_torch_function"
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_INNER = (Origin.TORCH, Origin.PYTHON)


class _Told:
    """Stands as a frame's trace function to say that this run of it has been reported. Called by a tracer, it does nothing."""

    def __call__(self, *_: object) -> _Told:
        return self


_TOLD = _Told()


class _Thread(threading.local):
    told: FrameType | None = None


_thread = _Thread()


def report(verdict: Verdict, moved: int | None = None) -> None:
    """Tells who listens, unless the call of torch's own Python code that this is part of was told before."""
    if not listeners():
        return
    frame = _without_own(sys._getframe(1))
    outermost = _call_of_torch(frame)
    if outermost is not None:
        if isinstance(outermost.f_trace, _Told) or outermost is _thread.told:
            return
        if outermost.f_trace is None:
            outermost.f_trace = _TOLD
        else:  # a debugger's or a profiler's: then the frame itself is kept until the next report
            _thread.told = outermost
    stack = tuple(one for one in stack_from(frame) if one.origin is not Origin.HOSTLINT)
    known = waiting_composite(frame, outermost) if outermost is not None else None
    told = known or _as_called(verdict, stack)
    at = user_frame(stack)
    emit(
        HostEvent(
            kind=told.kind,
            path=at.path,
            line=at.line,
            function=at.function,
            stack=stack,
            call=told.call,
            thread=threading.current_thread().name,
            start_s=time.perf_counter(),
            bytes=moved,
            fact=told.fact,
            allowed=allowed_reason(told.kind, told.fact),
        )
    )


def _as_called(verdict: Verdict, stack: tuple[Frame, ...]) -> Composite:
    """A wait inside a function of torch goes by that function's name; a read there is nothing that the caller wrote."""
    if stack and stack[0].function == _HANDLED:
        stack = stack[2:]  # the called function itself, on its way to the mode
    inside = [frame.function for frame in takewhile(lambda frame: frame.origin is Origin.TORCH, stack)]
    named = [name for name in inside if "<locals>" not in name and not name.endswith("_call_impl")]
    if not named or verdict.kind is EventKind.EXPLICIT_SYNC:
        return Composite(verdict.call, verdict.kind, verdict.fact)
    return Composite(named[-1], EventKind.HIDDEN_WAIT if verdict.kind is EventKind.READ else verdict.kind, verdict.fact)


def _without_own(frame: FrameType | None) -> FrameType | None:
    while frame is not None and origin_of(frame.f_code.co_filename) is Origin.HOSTLINT:
        frame = frame.f_back
    return frame


def _call_of_torch(frame: FrameType | None) -> FrameType | None:
    """The frame of torch that the innermost code outside torch called; None where that code called the function itself.

    A generator's frame is the same in all its rounds, which are calls of their own.
    """
    below: FrameType | None = None
    while frame is not None:
        origin = origin_of(frame.f_code.co_filename)
        if origin in _INNER:
            below = below if frame.f_code.co_flags & _GENERATORS else frame
        elif origin is not Origin.HOSTLINT:
            return below
        frame = frame.f_back
    return None
