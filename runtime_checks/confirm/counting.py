"""Turns events into counts per place: the sink of a recorded process."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hostlint.runtime_checks.events import Frame, Origin

if TYPE_CHECKING:
    from hostlint.runtime_checks.confirm.counters import Counters
    from hostlint.runtime_checks.confirm.plan import Plan
    from hostlint.runtime_checks.events import HostEvent


class CountingSink:
    """Counts each event at the innermost of its frames that belongs to the scanned files, else where the event itself says it is."""

    def __init__(self, counters: Counters, plan: Plan, paths: Paths) -> None:
        self._counters = counters
        self._warmup = plan.warmup
        self._paths = paths
        self.steps = 0

    def add(self, event: HostEvent) -> None:
        if 0 < self.steps <= self._warmup:
            return
        place = self._paths.place(event)
        key = (event.kind, event.call, place.path, place.line, event.thread, event.allowed)
        tally = self._counters.known(key) or self._counters.tally(key, self._describe(event, place))
        if self.steps:
            tally.left = 0
        self._counters.add(tally, event.start_s, event.waits, event.blocked_s or 0.0, event.bytes or 0, mark=True)

    def begin_step(self, start_s: float) -> None:
        self.steps += 1
        if self.steps > self._warmup:
            tally = self._counters.tally("step", {"kind": "step"})
            tally.left = 0
            self._counters.add(tally, start_s, mark=True)

    def _describe(self, event: HostEvent, place: Frame) -> dict[str, object]:
        return {
            "kind": str(event.kind), "call": event.call, "path": self._paths.real(place.path), "line": place.line,
            "function": place.function, "thread": event.thread, "allowed": event.allowed, "timed": event.blocked_s is not None,
            "fact": event.fact.value if event.fact is not None else None,
            "stack": [
                [self._paths.real(frame.path), frame.line, frame.function]
                for frame in event.stack
                if frame.origin in (Origin.USER, Origin.LIBRARY)
            ],
        }  # fmt: skip


class Paths:
    """Which files were scanned, and what their real names are."""

    def __init__(self, files: tuple[str, ...]) -> None:
        self._files = frozenset(files)
        self._real: dict[str, str] = {}

    def real(self, path: str) -> str:
        found = self._real.get(path)
        if found is None:
            found = self._real[path] = path if path.startswith("<") else os.path.realpath(path)
        return found

    def scanned(self, path: str) -> bool:
        return self.real(path) in self._files

    def place(self, event: HostEvent) -> Frame:
        own = next((frame for frame in event.stack if self.scanned(frame.path)), None)
        return own or Frame(event.path, event.line, event.function)
