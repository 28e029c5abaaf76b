"""Calls that wait for the device because that is what they are for: synchronize() of a device, a stream, an event."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Protocol

import torch

from hostlint.runtime_checks.patches import Patch


class Waited(Protocol):
    def __call__(self, name: str, start_s: float, blocked_s: float) -> None: ...


class _Thread(threading.local):
    depth: int = 0


_thread = _Thread()
_lock = threading.RLock()
_told: tuple[Waited, ...] = ()

# Below each Python function stands the C function that it calls: code that bound the former's name earlier comes through the latter.
_PLACES = (
    (torch.cuda, "synchronize", "torch.cuda.synchronize"),
    (torch._C, "_cuda_synchronize", "torch.cuda.synchronize"),
    (torch._C, "_accelerator_synchronizeDevice", "torch.accelerator.synchronize"),
    (torch.cuda.Stream, "synchronize", "torch.cuda.Stream.synchronize"),
    (torch.cuda.Event, "synchronize", "torch.cuda.Event.synchronize"),
    (torch.distributed, "barrier", "torch.distributed.barrier"),
)


def inside() -> bool:
    """Whether the calling thread is in an explicit wait, whose own warnings are not told again."""
    return _thread.depth > 0


@contextmanager
def explicit_waits(waited: Waited) -> Iterator[None]:
    """Calls `waited(name, start_s, blocked_s)` after each explicit wait of any thread, once, whatever it calls inside.

    Not seen: `torch.Stream.synchronize` and `torch.Event.synchronize` of the classes that are no particular device's, and what
    extensions and libraries call below torch.
    """
    global _told  # noqa: PLW0603  one set of patches serves all
    with ExitStack() as stack:
        for patch in _PATCHES:
            stack.enter_context(patch.applied())
        with _lock:
            _told = (*_told, waited)
        try:
            yield
        finally:
            with _lock:
                rest = list(_told)
                rest.remove(waited)
                _told = tuple(rest)


def _timed(name: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    def replacement(original: Callable[..., object]) -> Callable[..., object]:
        @wraps(original)
        def synchronize(*args: object, **kwargs: object) -> object:
            if not _told or _thread.depth:
                return original(*args, **kwargs)
            _thread.depth += 1
            start = time.perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                _thread.depth -= 1
                spent = time.perf_counter() - start
                for waited in _told:
                    waited(name, start, spent)

        return synchronize

    return replacement


_PATCHES = tuple(Patch(owner, name, _timed(called)) for owner, name, called in _PLACES if hasattr(owner, name))
