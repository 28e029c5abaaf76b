"""Guards that work by a torch mode: entered and left any number of times, in several threads and tasks, with one mode in each thread."""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Generic, TypeVar

import torch

from hostlint.runtime_checks.threads import carried_into_threads

GuardT = TypeVar("GuardT")
Mode = Callable[[], AbstractContextManager[object]]


@dataclass(eq=False, slots=True)
class _Entry(Generic[GuardT]):
    guard: GuardT
    exits: ExitStack
    closed: bool = False  # a task or thread that outlives the body keeps the entry, but is no longer guarded


@dataclass
class _Thread(threading.local):
    users: int = 0
    mode: AbstractContextManager[object] | None = None


class Scope(Generic[GuardT]):
    """Which guards of one kind are on at a point of the program: those that this task, or what started it, has entered.

    torch keeps modes in a stack for each thread, whatever task runs; leaving in another order than entering, as tasks do, would take off
    another's. So a thread has one mode of the kind while any guard is on in it, and the mode asks `active()` whom a call concerns.
    """

    def __init__(self, name: str, mode: Mode) -> None:
        self._entries: ContextVar[tuple[_Entry[GuardT], ...]] = ContextVar(name, default=())
        self._mode = mode
        self._thread = _Thread()

    def enter(self, guard: GuardT) -> None:
        with ExitStack() as exits:
            exits.enter_context(carried_into_threads(self._in_this_thread))
            exits.enter_context(self._in_this_thread())
            self._entries.set((*self._entries.get(), _Entry(guard, exits.pop_all())))

    def leave(
        self, guard: GuardT, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        entries = self._entries.get()
        entry = next(entry for entry in reversed(entries) if entry.guard is guard and not entry.closed)
        entry.closed = True
        self._entries.set(tuple(one for one in entries if one is not entry))
        entry.exits.__exit__(kind, error, trace)

    def active(self) -> list[GuardT]:
        """The guards that are on here, outermost first."""
        return [entry.guard for entry in self._entries.get() if not entry.closed]

    @contextmanager
    def _in_this_thread(self) -> Iterator[None]:
        here = self._thread
        if here.users == 0:
            here.mode = self._mode()
            here.mode.__enter__()
        here.users += 1
        try:
            yield
        finally:
            here.users -= 1
            if here.users == 0 and here.mode is not None:
                mode, here.mode = here.mode, None
                mode.__exit__(None, None, None)


@dataclass
class Muted(threading.local):
    """Whether the call that this thread is in has been judged as a whole, so that what it does inside is not judged again."""

    depth: int = field(default=0)

    @contextmanager
    def during(self) -> Iterator[None]:
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1


def compiling() -> bool:
    """Whether torch.compile is tracing in this thread: what it runs then, on tensors without data, is no work of the program."""
    return torch.compiler.is_compiling() or torch._guards.CompileContext.try_get() is not None
