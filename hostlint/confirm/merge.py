"""The records of a run's processes as one: the same call at the same place is one event, whoever made it."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostlint.confirm.record import Event, Loop, Mark, Pass, Place, Process, Record, Repeat

if TYPE_CHECKING:
    from hostlint.runtime_checks.confirm.counters import Counted, ProcessRecord
    from hostlint.runtime_checks.confirm.plan import Plan

PAUSES_AND_WAITS = frozenset({"read", "upload", "explicit-sync", "data-dependent-size", "hidden-wait", "flush", "collect"})


@dataclass(slots=True)
class _Sum:
    first: Mapping[str, Any]
    count: int = 0
    waits: int = 0
    blocked_s: float = 0.0
    bytes: int = 0
    threads: dict[str, None] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    here: int = 0  # in the process that is taken in
    most: int = 0


class Merge:
    """Takes in one process after the other."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._events: dict[tuple[object, ...], _Sum] = {}
        self._repeats: dict[tuple[str, int, str], list[int]] = {}
        self._loops: dict[tuple[str, int], int] = {}
        self._ran: dict[str, set[int]] = {}
        self._processes: list[Process] = []

    def take(self, process: ProcessRecord) -> None:
        rank = str(dict(process.about.get("ranks") or {}).get("RANK", ""))  # type: ignore[call-overload]
        for total in self._events.values():
            total.here = 0
        numbers = [self._slot(slot, rank) for slot in process.slots]
        for note in process.notes:
            if isinstance(ran := note.get("ran"), list):
                self._ran.setdefault(self.shown(ran[0]), set()).add(ran[1])
        loops = [self._loop(slot) for slot in process.slots]
        self._processes.append(_process(process, rank, numbers, loops))

    def record(self, program: Iterable[str], plan: Plan, status: int) -> Record:
        return Record(
            program=tuple(program),
            device=next((one.device for one in self._processes if one.device), plan.device),
            exit=status,
            events=tuple(map(self._event, self._events.values())),
            repeats=tuple(Repeat(*key, first + again, again) for key, (first, again) in sorted(self._repeats.items())),
            loops=tuple(Loop(*key, count) for key, count in self._loops.items()),
            watched={self.shown(path): tuple(lines) for path, lines in sorted(plan.lines.items())},
            ran={path: tuple(sorted(lines)) for path, lines in sorted(self._ran.items())},
            processes=tuple(self._processes),
        )

    def shown(self, path: str) -> str:
        return shown(path, self._root)

    def _slot(self, slot: Counted, rank: str) -> int | None:
        """The number of the event that the slot counts; None where it counts something else."""
        about: Mapping[str, Any] = slot.about
        kind = about["kind"]
        if kind in ("first", "again"):
            counts = self._repeats.setdefault((self.shown(about["path"]), about["line"], about["call"]), [0, 0])
            counts[kind == "again"] += slot.count
        elif kind in PAUSES_AND_WAITS:
            return self._add(slot, about, rank)
        return -1 if kind == "step" else None

    def _loop(self, slot: Counted) -> int | None:
        """The number of the loop whose passes the slot counts."""
        about: Mapping[str, Any] = slot.about
        if about["kind"] != "loop":
            return None
        key = (self.shown(about["path"]), about["line"])
        self._loops[key] = self._loops.get(key, 0) + slot.count
        return list(self._loops).index(key)

    def _add(self, slot: Counted, about: Mapping[str, Any], rank: str) -> int | None:
        if slot.count == 0:  # all of it was warm-up
            return None
        key = tuple(about[name] for name in ("kind", "call", "path", "line", "allowed"))
        total = self._events.setdefault(key, _Sum(about))
        total.count += slot.count
        total.here += slot.count
        total.most = max(total.most, total.here)
        total.waits += slot.waits
        total.blocked_s += slot.blocked_s
        total.bytes += slot.bytes
        total.threads[about["thread"]] = None
        total.ranks[rank] = total.ranks.get(rank, 0) + slot.count
        return list(self._events).index(key)

    def _event(self, total: _Sum) -> Event:
        about = total.first
        stack = tuple(Place(self.shown(path), line, function) for path, line, function in about["stack"])
        place = Place(self.shown(about["path"]), about["line"], about["function"])
        blocked = total.blocked_s if about["timed"] else None
        return Event(
            about["kind"], about["call"], place, stack, about["fact"], about["allowed"],
            total.count, total.waits, blocked, total.bytes, tuple(total.threads), total.ranks, total.most,
        )  # fmt: skip


def shown(path: str, root: Path) -> str:
    """A record's name for a file: relative to the real `root` where it lies in it."""
    file = Path(path)
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else path


def _process(process: ProcessRecord, rank: str, numbers: list[int | None], loops: list[int | None]) -> Process:
    about: Mapping[str, Any] = process.about
    notes: dict[str, Any] = {}
    for note in process.notes:
        notes.update(note)
    torch = notes.get("torch", {})
    began = float(about.get("began_s", 0.0))
    names = [str(slot.about.get("thread", "")) for slot in process.slots]
    threads: dict[str, int] = {}
    marks = []
    passes = []
    for slot, start, blocked in process.timeline:
        if (number := numbers[slot]) is not None:
            thread = threads.setdefault(names[slot], len(threads)) if number >= 0 else 0
            marks.append(Mark(number, round(start - began, 9), round(blocked, 9), thread))
        elif (loop := loops[slot]) is not None:
            passes.append(Pass(loop, round(start - began, 9)))
    return Process(
        pid=about.get("pid", 0),
        parent=about.get("parent", 0),
        how=about.get("how", ""),
        rank=rank,
        arguments=tuple(about.get("arguments", ())),
        python=about.get("python", ""),
        began_s=began,
        torch=torch.get("version", ""),
        device=torch.get("device", ""),
        gpu=torch.get("gpu"),
        watching=notes.get("watching", False),
        failed=notes.get("failed", ""),
        steps=sum(slot.count for slot in process.slots if slot.about["kind"] == "step"),
        threads=tuple(threads),
        marks=tuple(marks),
        passes=tuple(passes),
    )
