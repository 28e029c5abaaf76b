"""What a recorded run holds, and its file: JSON, version 1."""
from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from hostlint.errors import UsageError
from hostlint.version import VERSION

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Place:
    path: str  # relative to the project's root where it lies in it, with "/"; else absolute
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class Event:
    """All occurrences of one call at one place, in every thread and process."""

    kind: str
    call: str
    place: Place
    stack: tuple[Place, ...]  # of the first occurrence, innermost first, libraries' frames too
    fact: str | None  # the scan's word for it, where the table of torch knows the call
    allowed: str | None  # the reason of an `allow` around it
    count: int
    waits: int  # how often the host waited; a call can wait more than once
    blocked_s: float | None  # None on the stand-in
    bytes: int
    threads: tuple[str, ...]
    ranks: dict[str, int]  # rank -> count; "" for processes that have none
    most: int  # the highest count of one process


@dataclass(frozen=True, slots=True)
class Repeat:
    """Torch calls on a line of a finding about redone work: how many, and how many of them with arguments of an earlier one."""

    path: str
    line: int
    call: str
    count: int
    again: int


@dataclass(frozen=True, slots=True)
class Loop:
    path: str
    line: int  # the first line of its body
    count: int  # how often the body began


class Mark(NamedTuple):
    """One occurrence of an event, for pictures; of a long run the first ones are kept."""

    event: int  # index into the record's `events`; -1: the program said that a step began
    start_s: float  # after the process's `began_s`
    blocked_s: float  # 0.0 where it is not known
    thread: int  # index into the process's `threads`


class Pass(NamedTuple):
    """One begin of a loop's body, for pictures; the first ones of each loop are kept."""

    loop: int  # index into the record's `loops`
    start_s: float


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    how: str  # started or forked
    rank: str
    arguments: tuple[str, ...]
    python: str
    began_s: float
    torch: str = ""  # empty: torch was not imported
    device: str = ""
    gpu: str | None = None
    watching: bool = False  # whether it was noted which lines ran
    failed: str = ""  # why it could not be recorded
    steps: int = 0  # marked with step()
    threads: tuple[str, ...] = ()  # those of the marks
    marks: tuple[Mark, ...] = ()
    passes: tuple[Pass, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    program: tuple[str, ...]
    device: str
    exit: int  # as subprocess gives it: negative for a signal
    events: tuple[Event, ...] = ()
    repeats: tuple[Repeat, ...] = ()
    loops: tuple[Loop, ...] = ()
    watched: dict[str, tuple[int, ...]] = field(default_factory=dict)
    ran: dict[str, tuple[int, ...]] = field(default_factory=dict)
    processes: tuple[Process, ...] = ()
    digests: dict[str, str] = field(default_factory=dict)  # of the files as they were scanned
    findings: tuple[dict[str, Any], ...] = ()  # as in the JSON report, with their verdicts
    unpredicted: tuple[int, ...] = ()  # indexes into `events`: in the scanned files, without a finding
    setup: tuple[int, ...] = ()  # likewise, but not in the steps: once a process, or far more seldom than steps
    library: tuple[int, ...] = ()  # inside code that was not scanned, called from the scanned files or not
    explained: tuple[tuple[int, ...], ...] = ()  # for each event, those of `findings` (by index) that it bears out
    paths: dict[str, str] = field(default_factory=dict)  # what `findings` call a file, where that is not its name in the rest

    @property
    def steps(self) -> int:
        """How often the program said that a step began; of several ranks, each of which says so, the one with most."""
        return max((process.steps for process in self.processes), default=0)

    @property
    def ranks(self) -> tuple[str, ...]:
        """The ranks of a distributed run, in order; none in others."""
        found = {process.rank for process in self.processes if process.rank and process.torch}
        return tuple(sorted(found, key=lambda rank: (len(rank), rank)))

    @property
    def gpu(self) -> str | None:
        return next((process.gpu for process in self.processes if process.gpu), None)

    @property
    def measured(self) -> bool:
        return any(process.torch and not process.failed for process in self.processes)


def write(record: Record) -> str:
    return json.dumps({"version": FORMAT, "tool": f"hostlint {VERSION}", **asdict(record)}, indent=1) + "\n"


def read(file: Path) -> Record:
    """Raises UsageError for a file that cannot be read or is no record of this version."""
    try:
        given = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {file}: {(error.strerror or str(error)).lower()}") from error
    except ValueError as error:
        raise UsageError(f"{file} is no record of `hostlint confirm`: {error}") from error
    if not isinstance(given, dict) or given.get("version") != FORMAT or "events" not in given:
        raise UsageError(f"{file} is no record of `hostlint confirm` (version {FORMAT})")
    try:
        return _record(given)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{file} is a damaged record of `hostlint confirm`: {error}") from error


def _record(given: dict[str, Any]) -> Record:
    return Record(
        program=tuple(given["program"]),
        device=given["device"],
        exit=given["exit"],
        events=tuple(_event(one) for one in given["events"]),
        repeats=tuple(Repeat(**one) for one in given["repeats"]),
        loops=tuple(Loop(**one) for one in given["loops"]),
        watched={path: tuple(lines) for path, lines in given["watched"].items()},
        ran={path: tuple(lines) for path, lines in given["ran"].items()},
        processes=tuple(_process(one) for one in given["processes"]),
        digests=given["digests"],
        findings=tuple(given["findings"]),
        unpredicted=tuple(given["unpredicted"]),
        setup=tuple(given["setup"]),
        library=tuple(given["library"]),
        explained=tuple(map(tuple, given["explained"])),
        paths=given["paths"],
    )


def _event(given: dict[str, Any]) -> Event:
    stack = tuple(Place(**frame) for frame in given["stack"])
    return Event(**{**given, "place": Place(**given["place"]), "stack": stack, "threads": tuple(given["threads"])})


def _process(given: dict[str, Any]) -> Process:
    lists = {name: tuple(given[name]) for name in ("arguments", "threads")}
    marks = tuple(Mark(*one) for one in given["marks"])
    return Process(**{**given, **lists, "marks": marks, "passes": tuple(Pass(*one) for one in given["passes"])})
