"""Text edits: where they lie in a text, which of them overlap, what the text is after them, and where its other places went."""
from __future__ import annotations

import builtins
import keyword
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hostlint.model import Edit, Span

_LINE_END = re.compile(r"\r\n|\r|\n")
_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")  # attributes are none
_KNOWN = frozenset({*dir(builtins), *keyword.kwlist})


class Change(NamedTuple):
    """An edit in offsets: `text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


class Text:
    """A source text with its own line ends (`\\n`, `\\r\\n`, `\\r`, also mixed), addressed by spans."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._ends = [found.span() for found in _LINE_END.finditer(text)]
        self._starts = [0, *(end for _, end in self._ends)]

    def offset(self, line: int, column: int) -> int:
        """Of a 1-based line and column; a line past the last one is the end of the text."""
        if line > len(self._starts):
            return len(self.text)
        end = self._ends[line - 1][0] if line <= len(self._ends) else len(self.text)
        return min(self._starts[line - 1] + column - 1, end)

    def place(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column of an offset."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def change(self, edit: Edit) -> Change:
        """The edit in offsets, its line ends written as those of the line at which it begins."""
        span = edit.span
        start, end = self.offset(span.line, span.column), self.offset(span.end_line, span.end_column)
        if end < start:
            raise ValueError(f"an edit ends before it begins: {span}")
        new = edit.text
        if start == end == len(self.text) and self.text and not self._ends_line:  # what follows goes on a line of its own
            new = "\n" + new.removesuffix("\n")
        return Change(start, end, new.replace("\n", self._newline(span.line)))

    @property
    def _ends_line(self) -> bool:
        return self.text.endswith(("\n", "\r"))

    def _newline(self, line: int) -> str:
        """How the line ends; where it is the last one, as the line before it, or as most do."""
        number = min(line, len(self._ends)) - 1
        if number < 0:
            return "\n"
        start, end = self._ends[number]
        return self.text[start:end]


@dataclass(frozen=True)
class Patch:
    """Changes that do not overlap, in order; insertions at one place stand in the order in which they were given."""

    before: Text
    changes: tuple[Change, ...]

    @cached_property
    def after(self) -> str:
        pieces: list[str] = []
        done = 0
        for change in self.changes:
            pieces += [self.before.text[done : change.start], change.new]
            done = change.end
        return "".join([*pieces, self.before.text[done:]])

    def moved(self, offset: int, after_insertions: bool = True) -> int:
        """Where an offset of the text before lies in the text after; inside a replaced piece it is that piece's start."""
        shift = 0
        for start, end, new in self.changes:
            if offset < start or (offset == start == end and not after_insertions):
                break
            if start <= offset < end:
                return start + shift
            shift += len(new) - (end - start)
        return offset + shift

    def moved_span(self, span: Span) -> tuple[int, int]:
        """The offsets in the text after of a span of the text before, with what was written in the place of any part of it."""
        start, end = self.before.offset(span.line, span.column), self.before.offset(span.end_line, span.end_column)
        new_end = self.moved(end)
        for change in self.changes:
            if change.start < end < change.end:
                new_end = self.moved(change.start) + len(change.new)
        return self.moved(start), new_end


def overlap(one: Change, other: Change) -> bool:
    """Whether two changes touch the same characters; insertions only clash inside a replaced piece."""
    if one.start == one.end and other.start == other.end:
        return False
    if one.start == one.end or other.start == other.end:
        point, piece = (one, other) if one.start == one.end else (other, one)
        return piece.start < point.start < piece.end
    return one.start < other.end and other.start < one.end


def joined(text: Text, groups: Iterable[Sequence[Edit]]) -> tuple[Patch, list[int]]:
    """One patch of as many groups of edits as fit together, first come first served, and the numbers of those groups.

    A group goes in whole or not at all; the same insertion in several groups (an import, a helper) is made once. Groups that each bring the
    same new name, and mean different things by it, do not go together.
    """
    taken: list[Change] = []
    numbers: list[int] = []
    brought: dict[str, set[Change]] = {}  # new names, with the insertions that speak of them
    old = frozenset(_NAME.findall(text.text)) | _KNOWN
    for number, edits in enumerate(groups):
        changes = list(dict.fromkeys(text.change(edit) for edit in edits))
        fresh = [change for change in changes if change not in taken or change.start != change.end]
        if _clash(changes) or any(overlap(change, other) for change in fresh for other in taken):
            continue
        names = _brought(changes, old)
        if any(brought.get(name, insertions) != insertions for name, insertions in names.items()):
            continue
        taken += fresh
        numbers.append(number)
        brought.update(names)
    ordered = sorted(taken, key=lambda change: (change.start, change.end))
    return Patch(text, tuple(ordered)), numbers


def _brought(changes: Sequence[Change], old: frozenset[str]) -> dict[str, set[Change]]:
    """The names that insertions bring into a text and replacements use, each with those insertions."""
    inserted = [change for change in changes if change.start == change.end]
    used = {name for change in changes if change.start != change.end for name in _NAME.findall(change.new)} - old
    return {name: {change for change in inserted if name in _NAME.findall(change.new)} for name in used}


def _clash(changes: Sequence[Change]) -> bool:
    return any(overlap(one, other) for number, one in enumerate(changes) for other in changes[number + 1 :])


def removed(text: Text, edits: Iterable[Edit]) -> Iterator[tuple[Change, str]]:
    """Each change with the text that it takes away."""
    for edit in edits:
        change = text.change(edit)
        yield change, text.text[change.start : change.end]
