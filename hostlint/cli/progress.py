"""Progress on standard error: for work of over a second, on a terminal only."""
from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

_PATIENCE_S = 1.0


@dataclass
class Progress:
    """Called with a phase in words, how much is done, and of how much (0: nobody knows)."""

    started: float = field(default_factory=time.monotonic)
    _bar: Bar | None = None
    _tasks: dict[str, TaskID] = field(default_factory=dict)

    def __call__(self, phase: str, done: int, total: int) -> None:
        if self._bar is None:
            if time.monotonic() - self.started < _PATIENCE_S:
                return
            self._bar = _new_bar()
        if phase not in self._tasks:
            self._tasks[phase] = self._bar.add_task(phase, total=total or None)
        self._bar.update(self._tasks[phase], completed=done, total=total or None)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def for_terminal() -> Progress | None:
    return Progress() if sys.stderr is not None and sys.stderr.isatty() else None


def _new_bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    bar = Bar(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=Console(stderr=True), transient=True)
    bar.start()
    return bar
