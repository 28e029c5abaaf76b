"""Cuts a run into its steps, and picks the few that are worth a picture: the first, a typical one, the one with most."""
from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from statistics import median_low
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.confirm.record import Mark, Process, Record

MOST_MARKS = 800  # of one picture
MOST_TRACKS = 24
_ENOUGH = 0.8  # of the events that the best loop covers
_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Drawn:
    """One event in a picture. Times are seconds after the picture's start; on the stand-in its place in the order."""

    event: int
    start: float
    length: float


@dataclass(frozen=True, slots=True)
class Track:
    name: str
    drawn: tuple[Drawn, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """`left_out` counts what the picture has no room for: marks, and tracks."""

    title: str
    tracks: tuple[Track, ...]
    end: float  # on the pictures' own scale
    timed: bool
    left_out: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class _Cut:
    """A step of the leading process: from one begin to the next, on the clock that the processes of a machine share."""

    number: int
    start: float
    end: float


class _Timeline:
    """One process's events in their order, and when its steps and the passes of its loops began, on the shared clock."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.marks = sorted((mark for mark in process.marks if mark.event >= 0), key=lambda mark: mark.start_s)
        self.starts = [process.began_s + mark.start_s for mark in self.marks]
        self.marked = sorted(process.began_s + mark.start_s for mark in process.marks if mark.event < 0)
        self.passes: dict[int, list[float]] = {}
        for one in process.passes:
            self.passes.setdefault(one.loop, []).append(process.began_s + one.start_s)
        self.begins: list[float] = []  # of the steps

    def covered(self, loop: int) -> int:
        """How many events happen in a loop."""
        return self.count(*_extent(self.passes.get(loop, ())))

    def count(self, start: float, end: float) -> int:
        return bisect_left(self.starts, end) - bisect_left(self.starts, start)

    def inside(self, cut: _Cut, leads: bool) -> list[Mark]:
        """The events of a step: by the process's own begins, where it has them, else by the leader's."""
        start, end = cut.start, cut.end
        if self.begins and not leads and cut.number:
            if len(self.begins) < cut.number:
                return []
            start, end = self.begins[cut.number - 1], self.begins[cut.number] if cut.number < len(self.begins) else _NEVER
        return self.marks[bisect_left(self.starts, start) : bisect_left(self.starts, end)]


def _extent(begins: Sequence[float]) -> tuple[float, float]:
    """From the first begin to the end of the last pass, which is taken to be as long as the others; nothing where there is none."""
    if not begins:
        return (0.0, 0.0)
    first, last = min(begins), max(begins)
    return first, last + (last - first) / (len(begins) - 1) if len(begins) > 1 else _NEVER


def is_timed(record: Record) -> bool:
    """Whether the record knows how long the host was held."""
    return any(event.blocked_s is not None for event in record.events if event.kind != "collect")


class Steps:
    """The steps of a run."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._timed = is_timed(record)
        self._all = list(map(_Timeline, record.processes))
        self._lines = [line for line in self._all if line.marks]
        self._marked = any(line.marked for line in self._lines)
        self._loop = None if self._marked else self._outermost()
        for line in self._lines:
            line.begins = line.marked if self._marked else sorted(line.passes.get(self._loop, ())) if self._loop is not None else []

    def begins(self, process: int) -> list[float]:
        """When the steps of a process of the record (by its index) began, on the clock that the processes share."""
        return self._all[process].begins

    def collections(self) -> int | None:
        """How many collections of garbage held the steps up, as far as events are kept one by one; None where no steps are known."""
        lines = [(line, _extent(line.begins)) for line in self._lines if line.begins]
        marks = (mark for line, extent in lines for mark in line.marks[slice(*(bisect_left(line.starts, edge) for edge in extent))])
        return sum(self._record.events[mark.event].kind == "collect" for mark in marks) if lines else None

    def worth_showing(self) -> list[Step]:
        """None where nothing was recorded."""
        if not self._lines:
            return []
        if not self._cuts:
            return [self._step("All that was recorded (no step loop is known)", _Cut(0, -_NEVER, _NEVER))]
        return [self._step(title, cut) for title, cut in self._chosen()]

    def _chosen(self) -> Iterator[tuple[str, _Cut]]:
        first, *later = self._cuts
        of = f"of {self._count}"
        usual = median_low(map(self._size, later)) if later else 0.0
        if later:
            typical = next(cut for cut in later if self._size(cut) == usual)
            yield f"Typical step ({typical.number} {of})", typical
        yield f"First step (1 {of})", first
        most = max(later, key=self._size, default=first)
        if later and self._size(most) > usual:
            yield f"{'Longest step' if self._timed else 'Step with most events'} ({most.number} {of})", most

    @cached_property
    def _leader(self) -> _Timeline:
        """The process whose steps are those of the run."""
        return max(self._lines, key=lambda line: len(line.begins))

    @property
    def _count(self) -> int:
        """How many steps the leader had; of very many only the first are kept one by one."""
        if self._marked:
            return max(self._leader.process.steps, len(self._leader.begins))
        if self._loop is not None and len(self._lines) == 1:
            return self._record.loops[self._loop].count
        return len(self._leader.begins)

    @cached_property
    def _cuts(self) -> list[_Cut]:
        """The steps whose events are all kept. Where the last one ends is not known: it is left out where there are others."""
        begins = self._leader.begins
        last = self._leader.starts[-1]
        ends = chain(begins[1:], [_NEVER])
        cuts = [_Cut(number, start, end) for number, (start, end) in enumerate(zip(begins, ends, strict=False), 1) if start <= last]
        return cuts[:-1] if len(cuts) > 2 else cuts

    def _outermost(self) -> int | None:
        """The loop of the steps: of those that hold (nearly) all events, the one with the fewest passes."""
        covered = {number: sum(line.covered(number) for line in self._lines) for number in range(len(self._record.loops))}
        best = max(covered.values(), default=0)
        loops = [number for number, marks in covered.items() if marks and marks >= _ENOUGH * best]
        return min(loops, key=lambda number: self._record.loops[number].count, default=None)

    def _size(self, cut: _Cut) -> float:
        """What makes a step large: its time, where that is known, else its events."""
        return cut.end - cut.start if self._timed and cut.end < _NEVER else self._leader.count(cut.start, cut.end)

    def _step(self, title: str, cut: _Cut) -> Step:
        parts = [(line.process, marks) for line in self._lines if (marks := line.inside(cut, line is self._leader))]
        begin = min((process.began_s + marks[0].start_s for process, marks in parts), default=0.0)
        begin = min(begin, cut.start) if cut.number else begin
        tracks = [track for process, marks in parts for track in self._tracks(process, marks, begin)]
        kept = _bounded(tracks[:MOST_TRACKS])
        left_out = sum(len(track.drawn) for track in tracks) - sum(len(track.drawn) for track in kept)
        last = max((one.start + one.length for track in kept for one in track.drawn), default=0.0)
        end = max(last, cut.end - begin) if self._timed and cut.end < _NEVER and not left_out else last
        return Step(title, kept, end, self._timed, (left_out, max(0, len(tracks) - MOST_TRACKS)))

    def _tracks(self, process: Process, marks: Sequence[Mark], begin: float) -> Iterator[Track]:
        """A track for each thread. Without times the events of a process stand at equal distances, in their order."""
        threads: dict[int, list[Drawn]] = {}
        for position, mark in enumerate(marks):
            start = process.began_s + mark.start_s - begin if self._timed else float(position)
            length = mark.blocked_s if self._timed else 1.0
            threads.setdefault(mark.thread, []).append(Drawn(mark.event, start, length))
        for thread, drawn in sorted(threads.items()):
            yield Track(self._name(process, thread), tuple(drawn))

    def _name(self, process: Process, thread: int) -> str:
        several = len(self._lines) > 1
        name = f"rank {process.rank}" if process.rank else f"process {process.pid}" if several else ""
        spoken = process.threads[thread] if thread < len(process.threads) else ""
        main = spoken == "MainThread"
        return name if name and main else " ".join(filter(None, (name, "main thread" if main else spoken))) or "host"


def _bounded(tracks: Sequence[Track]) -> tuple[Track, ...]:
    """So many events that a browser likes them, shared among the tracks."""
    room = MOST_MARKS // max(1, len(tracks))
    return tuple(Track(track.name, track.drawn[:room]) for track in tracks)
