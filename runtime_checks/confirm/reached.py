"""Which of the lines that a finding speaks of have run, and how often the bodies of step loops have.

Python 3.12 has line events that cost nothing once a line is known to have run (`sys.monitoring`). Before that a trace function looks at
each call of a Python function and follows only those that hold such a line.
"""
from __future__ import annotations

import sys
import threading
import time
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hostlint.runtime_checks.confirm.counters import Counters
    from hostlint.runtime_checks.confirm.counting import Paths
    from hostlint.runtime_checks.confirm.plan import Plan

Local = Any  # a trace function returns itself, whose type cannot be written
PASSES = 2_048  # of each loop that are kept one by one, to show where steps begin
TOOL = 4  # an identifier of sys.monitoring that no tool has for its own


class Lines:
    """The lines of interest, and what has been seen of them."""

    def __init__(self, plan: Plan, paths: Paths, counters: Counters) -> None:
        self._wanted = {path: frozenset(lines) for path, lines in plan.lines.items()}
        self._bodies = {path: {body: bool(head) for body, head, _ in loops} for path, loops in plan.loops.items()}
        self._heads = {path: _by_head(loops) for path, loops in plan.loops.items()}
        self._due: set[tuple[int, str, int]] = set()  # threads and bodies that a head has come before
        self._paths = paths
        self._counters = counters
        self._seen: set[tuple[str, int]] = set()
        self._by_code: dict[CodeType, frozenset[int]] = {}

    def of(self, code: CodeType) -> frozenset[int]:
        """The lines of interest that a function holds (not those of functions in it)."""
        found = self._by_code.get(code)
        if found is None:
            path = self._paths.real(code.co_filename)
            interesting = {*self._wanted.get(path, ()), *self._bodies.get(path, ()), *self._heads.get(path, ())}
            held = {line for _, _, line in code.co_lines()} if interesting else set()
            found = self._by_code[code] = frozenset(line for line in interesting if line in held)
        return found

    def ran(self, code: CodeType, line: int) -> bool:
        """Notes that a line runs; False once nothing more is wanted of it."""
        path = self._paths.real(code.co_filename)
        if line in self._wanted.get(path, ()) and (path, line) not in self._seen:
            self._seen.add((path, line))
            self._counters.say({"ran": [path, line]})
        heads = self._heads.get(path, {}).get(line, ())
        begins = self._begins(path, line)
        self._due.update((threading.get_ident(), path, body) for body in heads)
        if begins:
            self._count(path, line)
        return bool(heads) or line in self._bodies.get(path, ())

    def _begins(self, path: str, line: int) -> bool:
        """Whether a pass of a loop begins. One pass can come to its first line more than once: a call that goes over lines comes back
        to it, a `with` does at its end, and so does the head of a loop that stands first in the body."""
        has_head = self._bodies.get(path, {}).get(line)
        if not has_head:
            return has_head is not None
        due = (threading.get_ident(), path, line)
        if due not in self._due:
            return False
        self._due.discard(due)
        return True

    def _count(self, path: str, line: int) -> None:
        thread = threading.current_thread().name
        key = ("loop", path, line, thread)
        about = {"kind": "loop", "path": path, "line": line, "thread": thread}
        tally = self._counters.known(key) or self._counters.tally(key, about)
        self._counters.add(tally, time.perf_counter(), mark=tally.count < PASSES)


def _by_head(loops: Iterable[tuple[int, int, int]]) -> dict[int, list[int]]:
    """The bodies that come after a line."""
    found: dict[int, list[int]] = {}
    for body, head, end in loops:
        for line in range(head, end + 1) if head else ():
            found.setdefault(line, []).append(body)
    return found


def watch_lines(lines: Lines) -> bool:
    """Starts to watch, in all threads; False where another tool (a debugger, a coverage measurement) is at work with what it takes."""
    return _monitor(lines) if sys.version_info >= (3, 12) else _trace(lines)


def _monitor(lines: Lines) -> bool:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined]  # Python 3.12
    if monitoring.get_tool(TOOL) is not None:
        return False
    monitoring.use_tool_id(TOOL, "hostlint")
    events = monitoring.events

    def started(code: CodeType, offset: int) -> object:
        if lines.of(code):
            monitoring.set_local_events(TOOL, code, events.LINE)
        return monitoring.DISABLE

    def ran(code: CodeType, line: int) -> object:
        return None if line in lines.of(code) and lines.ran(code, line) else monitoring.DISABLE

    monitoring.register_callback(TOOL, events.PY_START, started)
    monitoring.register_callback(TOOL, events.LINE, ran)
    monitoring.set_events(TOOL, events.PY_START)
    for frame in _running_frames():
        started(frame.f_code, 0)
    return True


def _trace(lines: Lines) -> bool:
    if sys.gettrace() is not None:
        return False

    def entered(frame: FrameType, event: str, argument: object) -> Local:
        return ran if lines.of(frame.f_code) else None

    def ran(frame: FrameType, event: str, argument: object) -> Local:
        if event == "line" and frame.f_lineno in lines.of(frame.f_code):
            lines.ran(frame.f_code, frame.f_lineno)
        return ran

    sys.settrace(entered)
    threading.settrace(entered)
    for frame in _running_frames():
        if lines.of(frame.f_code):
            frame.f_trace = ran
    return True


def _running_frames() -> Iterator[FrameType]:
    """Frames of functions that have begun already, in every thread: the script's own top level among them."""
    for innermost in sys._current_frames().values():
        frame: FrameType | None = innermost
        while frame is not None:
            yield frame
            frame = frame.f_back
