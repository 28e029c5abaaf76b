"""Threads that a body starts run under what the body runs under: its context variables, and the modes that torch keeps per thread."""
from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import wraps

from hostlint.runtime_checks.patches import Patch

Enter = Callable[[], AbstractContextManager[object]]

_entries: contextvars.ContextVar[tuple[Enter, ...]] = contextvars.ContextVar("hostlint_threads", default=())


@contextmanager
def carried_into_threads(enter: Enter | None = None) -> Iterator[None]:
    """While the body runs, each thread that it starts (and those that these start) begins with a copy of the context variables, and enters
    what `enter()` returns, anew in each thread.

    Threads that were running before are not touched, nor those made below `threading` (`_thread.start_new_thread`, C++ threads).
    """
    token = _entries.set((*_entries.get(), enter) if enter is not None else _entries.get())
    try:
        with _START.applied():
            yield
    finally:
        _entries.reset(token)


def _starting(original: Callable[..., object]) -> Callable[..., object]:
    @wraps(original)
    def start(self: threading.Thread) -> object:
        if _START.in_use:
            _follow(self)
        return original(self)

    return start


def _follow(thread: threading.Thread) -> None:
    context, entries, run = contextvars.copy_context(), _entries.get(), thread.run

    def within() -> None:
        with ExitStack() as stack:
            for enter in entries:
                stack.enter_context(enter())
            run()

    def run_in_context() -> None:
        del thread.run  # breaks the cycle through the thread; the class's own is back
        context.run(within)

    if entries or len(context):
        thread.run = run_in_context  # type: ignore[method-assign]


_START = Patch(threading.Thread, "start", _starting)
