"""The mode that every call of torch goes through: judged by the table, done on the host, its result put where the device would have it."""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from hostlint.runtime_checks.calls import Verdict, bytes_moved, judge_call
from hostlint.runtime_checks.simulated.bodies import Bodies
from hostlint.runtime_checks.simulated.mixing import HOST_RESULTS, Mix, demand_one_place, places_in
from hostlint.runtime_checks.simulated.places import is_pinned, place_of, put_on_device, put_result_on_device, same_storage
from hostlint.runtime_checks.simulated.reports import report

Call = Callable[..., Any]
Handler = Callable[["SimulatedMode", Call, "tuple[Any, ...]", "dict[str, Any]"], Any]

_push: Callable[[TorchFunctionMode], None] = torch._C._push_on_torch_function_stack
_pop: Callable[[], object] = torch._C._pop_torch_function_stack


class SimulatedMode(TorchFunctionMode):
    """One thread's mode. While it handles a call it is off, so that what it asks of tensors itself does not come back to it."""

    def __init__(self, plans: Plans) -> None:
        super().__init__()
        self.plans = plans
        self.handling = 0
        self.all_on_device = False  # the call being handled has tensors of the device alone
        self._bodies: list[Call] = []  # those that run, outermost first

    def __torch_function__(
        self, func: Call, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> object:
        handler = self.plans.of(func)
        if handler is None:
            return func(*args, **kwargs) if kwargs else func(*args)
        self.handling += 1
        before, self.all_on_device = self.all_on_device, False
        try:
            return handler(self, func, args, kwargs or {})
        finally:
            self.handling -= 1
            self.all_on_device = before

    def done(self, func: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Runs the call: torch's Python functions under this mode, so that what they do inside is seen."""
        body = self.plans.bodies.of(func)
        if body is None or (self._bodies and self._bodies[-1] is func and self.plans.bodies.is_its_own_twin(func)):
            return func(*args, **kwargs)
        self._bodies.append(func)
        _push(self)
        try:
            return body(*args, **kwargs)
        finally:
            _pop()
            self._bodies.pop()


class Plans:
    """How each function is handled, found out once: by a handler of its own, as a plain call, or (None) not at all."""

    def __init__(self, handlers: Mapping[Call, Handler], with_device: Handler, untouched: Callable[[Call], bool]) -> None:
        self.bodies = Bodies()
        self.with_device = with_device
        self._handlers: dict[Call, Handler | None] = dict(handlers)
        self._untouched = untouched

    def of(self, func: Call) -> Handler | None:
        try:
            return self._handlers[func]
        except KeyError:
            handler = self._handlers[func] = None if self._untouched(func) else plain_call
            return handler


def verdict_on(func: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Verdict | None:
    return judge_call(func, args, kwargs, place_of, is_pinned=is_pinned)


def judge(func: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Reports the call if the table says that it waits."""
    verdict = verdict_on(func, args, kwargs)
    if verdict is not None:
        report(verdict, bytes_moved(verdict, args, None))


def plain_call(mode: SimulatedMode, func: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call without anything of its own: its result lives where its arguments do."""
    if kwargs and kwargs.get("device") is not None:
        return mode.plans.with_device(mode, func, args, kwargs)
    mix = places_in(args, kwargs)
    if mix is Mix.HOST:
        return mode.done(func, args, kwargs)
    judge(func, args, kwargs)
    if mix is not Mix.DEVICE:
        demand_one_place(func, args, kwargs, mix)
    mode.all_on_device = mix is Mix.DEVICE
    result = mode.done(func, args, kwargs)
    if getattr(func, "__name__", "") in HOST_RESULTS:
        put_result_on_device(result[0])
    elif mix is Mix.DEVICE:
        put_result_on_device(result)
    else:
        put_new_on_device(result, args, kwargs)
    return result


def put_new_on_device(result: object, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """The result of a call with tensors of both places: what is a view of a host argument stays on the host."""
    for tensor in result if isinstance(result, (tuple, list)) else (result,):
        if isinstance(tensor, torch.Tensor):
            given = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor)]
            source = next((one for one in given if same_storage(one, tensor)), None)
            if source is None:
                put_on_device(tensor)


class _Thread(threading.local):
    mode: SimulatedMode | None = None
    users: int = 0


_thread = _Thread()


def current_mode() -> SimulatedMode | None:
    """The calling thread's mode, on or off."""
    return _thread.mode


@contextmanager
def switched_on(mode: SimulatedMode) -> Iterator[None]:
    """For Python code that torch calls back while a call is handled, and the mode is off."""
    depth: int = torch._C._len_torch_function_stack()
    if any(torch._C._get_function_stack_at(index) is mode for index in range(depth)):
        yield
        return
    _push(mode)
    try:
        yield
    finally:
        _pop()


@contextmanager
def in_this_thread(plans: Plans) -> Iterator[None]:
    """The mode, in the calling thread; nested bodies share one."""
    if _thread.users == 0:
        _thread.mode = SimulatedMode(plans)
        _thread.mode.__enter__()  # type: ignore[no-untyped-call]
    _thread.users += 1
    try:
        yield
    finally:
        _thread.users -= 1
        if _thread.users == 0 and _thread.mode is not None:
            _thread.mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            _thread.mode = None
