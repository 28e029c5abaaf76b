"""Torch's sync debug mode, armed while somebody listens: every warning that a call made the host wait becomes one Python call."""
from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from hostlint.runtime_checks.patches import Patch

SYNC_WARNING = "called a synchronizing CUDA operation"
_SETTING = "Synchronization debug mode is a prototype feature"  # what torch says when the mode is set
_FILTER = ("always", re.compile(f".*({SYNC_WARNING}|{_SETTING})", re.DOTALL), Warning, None, 0)

_lock = threading.RLock()
_heard: tuple[Callable[[], None], ...] = ()
_mode_before: object = None


@contextmanager
def sync_warnings(heard: Callable[[], None]) -> Iterator[None]:
    """Calls `heard()` in the thread that waited, right after each wait that torch's debug mode reports.

    The mode is process-wide: the first listener sets "warn" and the last one sets back what was there. All other warnings go on as they
    would. Filters and hooks that the body installs (pytest does, around each test) are passed by: see `rearm`.
    """
    global _heard, _mode_before  # noqa: PLW0603  the debug mode has one state a process
    with _lock:
        first, _heard = not _heard, (*_heard, heard)
        if first:
            _SHOW.apply()
        rearm()
        if first:
            _mode_before = torch.cuda.get_sync_debug_mode()
            torch.cuda.set_sync_debug_mode("warn")
    try:
        yield
    finally:
        with _lock:
            rest = list(_heard)
            rest.remove(heard)
            _heard = tuple(rest)
            if not _heard:
                torch.cuda.set_sync_debug_mode(_mode_before)  # type: ignore[arg-type]  # what get_sync_debug_mode returned
                _SHOW.remove()
                _drop_filter()


def rearm() -> None:
    """Puts our filter first again: a body that changed the filters would hide the warnings, or turn them into exceptions."""
    if not warnings.filters or warnings.filters[0] is not _FILTER:
        warnings.filters.insert(0, _FILTER)  # type: ignore[attr-defined]  # a list, whatever its stub says


def _drop_filter() -> None:
    warnings.filters[:] = [each for each in warnings.filters if each is not _FILTER]  # type: ignore[index]


def _showing(original: Callable[..., object]) -> Callable[..., object]:
    def show(message: warnings.WarningMessage) -> object:
        text = str(message.message)
        if _heard and SYNC_WARNING in text:
            for heard in _heard:
                heard()
            return None
        return None if _SETTING in text else original(message)

    return show


# Every filter, catch_warnings and showwarning comes after this one, so that none of them can take a warning away.
_SHOW = Patch(warnings, "_showwarnmsg", _showing)
