"""Counts that outlive their process: a mapped file of slots, and beside it a text file that says what each slot counts.

The kernel keeps what was written to a mapped file when the process is killed, so a count is safe once it is made. A slot is written by one
thread only (the thread is part of what it counts), hence no lock is held while events come in, from a garbage collection perhaps.
"""
from __future__ import annotations

import itertools
import json
import mmap
import os
import struct
import time
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SLOT = struct.Struct("<qqdqdd")  # count, waits, blocked seconds, bytes, first and last start
SLOTS = 65_536  # bounds the memory; the last one takes what finds no slot
MARK = struct.Struct("<qdd")  # slot, start, blocked seconds
MARKS = 65_536  # events kept one by one, for the picture of a step: the first ones
TEXTS, COUNTS, TIMELINE = ".texts", ".counts", ".timeline"


@dataclass(slots=True)
class Tally:
    """What one slot counts; the numbers lie in the mapped file."""

    slot: int
    left: int  # calls still to be left out as warm-up
    count: int = 0
    waits: int = 0
    blocked_s: float = 0.0
    bytes: int = 0
    first_s: float = 0.0


class Counters:
    """One process's counts, in `folder`."""

    def __init__(self, folder: Path, warmup: int = 0) -> None:
        self._folder = folder
        self._warmup = warmup
        self._texts = -1
        self._counts: mmap.mmap
        self._timeline: mmap.mmap

    def open(self, about: Mapping[str, object]) -> None:
        """Starts new files for this process, which `about` describes; a forked child leaves its parent's alone."""
        if self._texts >= 0:
            os.close(self._texts)
            self._counts.close()
            self._timeline.close()
        name = self._folder / f"{os.getpid()}-{time.time_ns()}"
        self._tallies: dict[Hashable, Tally] = {}
        self._others = Tally(SLOTS - 1, 0)
        self._next = itertools.count()
        self._marks = itertools.count()
        self._texts = os.open(f"{name}{TEXTS}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._counts = _mapped(f"{name}{COUNTS}", SLOT.size * SLOTS)
        self._timeline = _mapped(f"{name}{TIMELINE}", MARK.size * MARKS)
        self.say({"process": dict(about)})

    def say(self, line: Mapping[str, object]) -> None:
        """One line of text, whole."""
        os.write(self._texts, json.dumps(line).encode() + b"\n")

    def known(self, key: Hashable) -> Tally | None:
        return self._tallies.get(key)

    def tally(self, key: Hashable, about: Mapping[str, object]) -> Tally:
        """The tally of `key`; `about` is written down the first time."""
        found = self._tallies.get(key)
        return self._new(key, about) if found is None else found

    def _new(self, key: Hashable, about: Mapping[str, object]) -> Tally:
        slot = next(self._next)
        if slot >= SLOTS - 1:
            if slot == SLOTS - 1:
                self.say({"slot": slot, "kind": "others"})
            return self._others
        found = self._tallies[key] = Tally(slot, self._warmup)
        self.say({"slot": slot, **about})
        return found

    def add(self, tally: Tally, start_s: float, waits: int = 0, blocked_s: float = 0.0, size: int = 0, *, mark: bool = False) -> None:
        if tally.left > 0:
            tally.left -= 1
            return
        if tally.count == 0:
            tally.first_s = start_s
        tally.count += 1
        tally.waits += waits
        tally.blocked_s += blocked_s
        tally.bytes += size
        place = tally.slot * SLOT.size
        SLOT.pack_into(self._counts, place, tally.count, tally.waits, tally.blocked_s, tally.bytes, tally.first_s, start_s)
        if mark:
            number = next(self._marks)
            if number < MARKS:
                MARK.pack_into(self._timeline, number * MARK.size, tally.slot + 1, start_s, blocked_s)


def _mapped(name: str, size: int) -> mmap.mmap:
    """A new file of zeros, mapped; it takes room on the disk only where something is written."""
    handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.ftruncate(handle, size)
        return mmap.mmap(handle, size)
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class Counted:
    """One slot as the parent reads it."""

    about: Mapping[str, object]
    count: int
    waits: int
    blocked_s: float
    bytes: int
    first_s: float
    last_s: float


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    about: Mapping[str, object]
    notes: tuple[Mapping[str, object], ...]
    slots: tuple[Counted, ...]
    timeline: tuple[tuple[int, float, float], ...]  # index into `slots`, start, blocked seconds


def read_processes(folder: Path) -> Iterator[ProcessRecord]:
    """Every process that wrote to `folder`, oldest first; a line that its process did not finish is left out."""
    for texts in sorted(folder.glob(f"*{TEXTS}"), key=lambda file: int(file.stem.rpartition("-")[2])):
        lines = list(_lines(texts))
        about = next((line["process"] for line in lines if "process" in line), {})
        counts, timeline = texts.with_suffix(COUNTS).read_bytes(), texts.with_suffix(TIMELINE).read_bytes()
        numbers = [line for line in lines if "slot" in line]
        slots = tuple(Counted(line, *SLOT.unpack_from(counts, int(str(line["slot"])) * SLOT.size)) for line in numbers)
        notes = tuple(line for line in lines if "slot" not in line and "process" not in line)
        index = {int(str(line["slot"])): number for number, line in enumerate(numbers)}
        marks = itertools.takewhile(lambda mark: mark[0], MARK.iter_unpack(timeline))
        known = tuple((index[slot - 1], start, blocked) for slot, start, blocked in marks if slot - 1 in index)
        yield ProcessRecord(about if isinstance(about, dict) else {}, notes, slots, known)


def _lines(file: Path) -> Iterator[dict[str, object]]:
    for line in file.read_bytes().splitlines():
        try:
            read = json.loads(line)
        except ValueError:
            continue
        if isinstance(read, dict):
            yield read
