"""`no_cuda_sync` and `assert_no_cuda_sync`: a body in which the host may not wait for the GPU."""
from __future__ import annotations

import sys
import unittest
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator, ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

import torch

from hostlint.runtime_checks.complaints import sync_complaint
from hostlint.runtime_checks.cuda_waits import watching_cuda
from hostlint.runtime_checks.frames import caller_outside_torch
from hostlint.runtime_checks.permissions import CallSites
from hostlint.runtime_checks.sinks import listening

if TYPE_CHECKING:
    from typing_extensions import Self

    from hostlint.runtime_checks.events import HostEvent

R = TypeVar("R")


class no_cuda_sync(ContextDecorator):  # noqa: N801  a context manager, named as one
    """Raises AssertionError after the body if the host waited for the GPU in it, with the place of each wait.

    `allow` holds entries `"end of path:function"`: waits that this very function issues pass, those of functions it calls do not. Waits
    under `allow("reason")` pass too. The body runs to its end; an exception of its own goes out, with the waits so far as a note (Python
    3.11). Counted are the calling thread or asyncio task and threads that the body starts. The object can be made first and entered
    later, and again. What it sees and cannot see is what `record_host_events` says; the debug mode is set to "warn" and set back.

    Raises unittest.SkipTest on entry where there is no CUDA device.
    """

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self.sites = CallSites.parse(allow)
        self._entered: list[tuple[ExitStack, Violations]] = []

    def __enter__(self) -> Self:
        if not torch.cuda.is_available():
            raise unittest.SkipTest("no_cuda_sync needs a CUDA device")
        found = Violations(self.sites)
        with ExitStack() as stack:
            stack.enter_context(listening(found))
            stack.enter_context(watching_cuda())
            self._entered.append((stack.pop_all(), found))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        stack, found = self._entered.pop()
        stack.close()
        if not found.events:
            return
        if error is None:
            raise AssertionError(found.describe())
        if sys.version_info >= (3, 11):
            error.add_note(found.describe())


class Violations:
    """Events that nothing allows."""

    def __init__(self, sites: CallSites) -> None:
        self.sites = sites
        self.events: list[HostEvent] = []

    def add(self, event: HostEvent) -> None:
        if event.allowed is None and not self.sites.cover(caller_outside_torch(event.stack)):
            self.events.append(event)

    def describe(self) -> str:
        return sync_complaint(self.events)


def assert_no_cuda_sync(fn: Callable[..., R], *args: object, allow: Iterable[str] = (), **kwargs: object) -> R:
    """Runs `fn(*args, **kwargs)` under `no_cuda_sync(allow)` and returns its result."""
    with no_cuda_sync(allow=allow):
        return fn(*args, **kwargs)
