"""Each flush of an allocator's cache as an event, under whatever name it was called."""
from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps

import torch

from hostlint.facts.kinds import FactKind
from hostlint.runtime_checks.events import EventKind, HostEvent
from hostlint.runtime_checks.frames import current_stack, user_frame
from hostlint.runtime_checks.patches import Patch
from hostlint.runtime_checks.permissions import allowed_reason
from hostlint.runtime_checks.sinks import emit, listeners

Replacement = Callable[[Callable[..., object]], Callable[..., object]]


@contextmanager
def flushing() -> Iterator[None]:
    """While any such body runs, each flush is emitted to who listens in its thread.

    The C functions are replaced, and what the Python functions ask before they call them: so names that were bound earlier
    (`from torch.cuda import empty_cache`) are seen too, and calls that flush nothing because no device is in use. `blocked_s` and `bytes`
    are None for the latter; `bytes` (given back, over all CUDA devices) is also None for devices other than CUDA.
    Not seen: flushes by the allocator itself when memory runs out, by libraries below Python, of the cache of pinned memory.
    """
    with ExitStack() as stack:
        for patch in _ALL:
            if hasattr(patch.owner, patch.name):  # a build for one kind of device lacks the others
                stack.enter_context(patch.applied())
        yield


def cuda_in_use() -> bool:
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]  # torch leaves it unannotated


def reserved_bytes() -> int | None:
    """What the caching allocator holds on all CUDA devices; None where CUDA is not in use."""
    if not cuda_in_use():
        return None
    return sum(torch.cuda.memory_reserved(device) for device in range(torch.cuda.device_count()))


def _flush(call: str) -> Replacement:
    def replacement(original: Callable[..., object]) -> Callable[..., object]:
        @wraps(original)
        def empty_cache(*args: object, **kwargs: object) -> object:
            if not listeners():
                return original(*args, **kwargs)
            before, start = reserved_bytes(), time.perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                spent = time.perf_counter() - start
                after = reserved_bytes()
                emit(_event(call, start, spent, None if before is None or after is None else before - after))

        return empty_cache

    return replacement


def _gate(call: str) -> Replacement:
    """`empty_cache` asks this and returns if the answer is no."""

    def replacement(original: Callable[..., object]) -> Callable[..., object]:
        @wraps(original)
        def is_in_use(*args: object, **kwargs: object) -> object:
            answer: object = False
            try:
                answer = original(*args, **kwargs)
                return answer
            finally:
                if not answer and listeners() and sys._getframe(1).f_code.co_name == "empty_cache":
                    emit(_event(call, time.perf_counter(), None, None))

        return is_in_use

    return replacement


def _event(call: str, start_s: float, spent_s: float | None, given_back: int | None) -> HostEvent:
    stack = current_stack()
    at = user_frame(stack)
    return HostEvent(
        EventKind.FLUSH,
        at.path,
        at.line,
        at.function,
        stack,
        call,
        threading.current_thread().name,
        start_s,
        spent_s,
        given_back,
        FactKind.FLUSH,
        allowed_reason(EventKind.FLUSH),
    )


# C functions that flush, by the name of the Python function above each.
_FLUSHES = {
    "_cuda_emptyCache": "torch.cuda.empty_cache",
    "_accelerator_emptyCache": "torch.accelerator.empty_cache",
    "_xpu_emptyCache": "torch.xpu.empty_cache",
    "_mps_emptyCache": "torch.mps.empty_cache",
    "_mtia_emptyCache": "torch.mtia.empty_cache",
}
# What these Python functions ask first, where they look it up. Older versions of torch lack some.
_GATES = (
    ("torch.cuda.memory", "is_initialized", "torch.cuda.empty_cache"),
    ("torch._C", "_accelerator_isAllocatorInitialized", "torch.accelerator.empty_cache"),
    ("torch.xpu.memory", "is_initialized", "torch.xpu.empty_cache"),
)
_ALL = (
    *(Patch(torch._C, name, _flush(call)) for name, call in _FLUSHES.items()),
    *(Patch(sys.modules[module], name, _gate(call)) for module, name, call in _GATES if module in sys.modules),
)
