"""Who listens to events: guards and recorders, each in its own thread or task and the threads started inside."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from hostlint.runtime_checks.events import HostEvent


class Sink(Protocol):
    def add(self, event: HostEvent) -> None: ...


_here: ContextVar[tuple[Sink, ...]] = ContextVar("hostlint_sinks", default=())
_lock = threading.Lock()
_everywhere: tuple[Sink, ...] = ()  # sinks that listen to every thread
_open: tuple[Sink, ...] = ()  # all that are open, for threads that nobody started from Python


@contextmanager
def listening(sink: Sink, *, every_thread: bool = False) -> Iterator[None]:
    """`sink` gets the events of this thread or task and of what it starts (of all threads with `every_thread`), until the body ends."""
    global _everywhere, _open  # noqa: PLW0603  what is open, process-wide
    with _lock:
        _open = (*_open, sink)
        _everywhere = (*_everywhere, sink) if every_thread else _everywhere
    token = _here.set(_here.get() if every_thread else (*_here.get(), sink))
    try:
        yield
    finally:
        _here.reset(token)
        with _lock:
            _open = _without(_open, sink)
            _everywhere = _without(_everywhere, sink)


def listeners() -> tuple[Sink, ...]:
    """The sinks that an event of the calling thread goes to, outermost first.

    A thread that Python did not start (autograd's device threads run hooks in such) has no context of its own: its events go to all.
    """
    if isinstance(threading.current_thread(), threading._DummyThread):
        return _open
    here = tuple(sink for sink in _here.get() if any(sink is each for each in _open))  # a thread may outlive the body that started it
    return (*_everywhere, *here)


def emit(event: HostEvent) -> None:
    for sink in listeners():
        sink.add(event)


def _without(sinks: tuple[Sink, ...], sink: Sink) -> tuple[Sink, ...]:
    return tuple(each for each in sinks if each is not sink)
