"""Which torch call each thread is in: the mode that notes calls, so that a wait can be given its call and its seconds."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.overrides import TorchFunctionMode

from hostlint.runtime_checks.sync_warnings import rearm
from hostlint.runtime_checks.threads import carried_into_threads


@dataclass(slots=True)
class Call:
    """One call of torch, as the user's code (or a library's) wrote it; calls inside it are not told apart."""

    func: Callable[..., object]
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    start_s: float
    result: object = None
    waits: int = 0  # waits heard of during the call
    waited_s: float = 0.0  # from the start, or from the last wait, to the last one


Finished = Callable[[Call], None]


class _Thread(threading.local):
    call: Call | None = None
    mode: CallMode | None = None
    users: int = 0


_thread = _Thread()


class CallMode(TorchFunctionMode):
    """Notes each call that is made while it is on, and hands it over when it is done.

    Code that torch.compile traces goes through untouched; what the compiled code calls is seen when it runs.
    """

    def __init__(self, finished: Finished) -> None:
        super().__init__()
        self.finished = finished

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        if torch.compiler.is_compiling():
            return func(*args, **(kwargs or {}))
        rearm()
        outer = _thread.call
        call = _thread.call = Call(func, args, kwargs or {}, time.perf_counter())
        try:
            call.result = func(*args, **call.kwargs)
            return call.result
        finally:
            _thread.call = outer
            self.finished(call)


def current_call() -> Call | None:
    """The call that the calling thread is in."""
    return _thread.call


@contextmanager
def noting_calls(finished: Finished) -> Iterator[None]:
    """Calls of this thread, and of those that the body starts, go to `finished`; within a thread one mode serves all users."""
    with carried_into_threads(lambda: _in_this_thread(finished)), _in_this_thread(finished):
        yield


@contextmanager
def _in_this_thread(finished: Finished) -> Iterator[None]:
    if _thread.users == 0:
        _thread.mode = CallMode(finished)
        _thread.mode.__enter__()  # type: ignore[no-untyped-call]
    _thread.users += 1
    try:
        yield
    finally:
        _thread.users -= 1
        if _thread.users == 0 and _thread.mode is not None:
            _thread.mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            _thread.mode = None
