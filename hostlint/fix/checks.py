"""What a fixed file must pass: it compiles, no comment is lost, the mended findings are gone and none came."""
from __future__ import annotations

import contextlib
import io
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlint.fix.edits import Patch, Text, removed
from hostlint.fix.outline import loops_around

if TYPE_CHECKING:
    from hostlint.model import Edit, Finding


@dataclass(frozen=True, slots=True)
class Entry:
    """A finding that is there; `known`: the baseline has it."""

    finding: Finding
    known: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one file's findings: those that stay, and the mended ones whose fix must not be, with the reason."""

    left: tuple[Entry, ...]
    refused: tuple[tuple[Entry, str], ...]


def trouble_of(text: str) -> str:
    """Why a text is no program for this Python; "" where it is one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<fixed>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return str(getattr(error, "msg", error))
    return ""


class Comments:
    """The comments of a text, by their offsets."""

    def __init__(self, text: Text) -> None:
        self._text = text
        normal = text.text.replace("\r\n", "\n").replace("\r", "\n")
        self._found: list[tuple[int, str]] = []
        with contextlib.suppress(SyntaxError, tokenize.TokenError):  # what cannot be read to its end is not changed either
            for token in tokenize.generate_tokens(io.StringIO(normal).readline):
                if token.type == tokenize.COMMENT:
                    self._found.append((text.offset(token.start[0], token.start[1] + 1), token.string))

    def lost(self, edits: Iterable[Edit]) -> bool:
        """Whether the edits take a comment away that their new text does not hold."""
        gone: Counter[str] = Counter()
        kept = ""
        for change, _ in removed(self._text, edits):
            gone.update(comment for offset, comment in self._found if change.start <= offset < change.end)
            kept += f"{change.new}\n"
        return any(kept.count(comment) < number for comment, number in gone.items())


def compare(patch: Patch, mended: Sequence[Entry], others: Sequence[Entry], now: Sequence[Finding]) -> Verdict:
    """Hold one file's findings before a patch (mended and others) against those of now."""
    after = Text(patch.after)
    places = {(one.code, after.offset(one.span.line, one.span.column)): one for one in now}
    left: list[Entry] = []
    vanished: list[Entry] = []
    for entry in others:
        span = entry.finding.span
        found = places.pop((entry.finding.code, patch.moved(patch.before.offset(span.line, span.column))), None)
        if found is None:
            vanished.append(entry)
        else:
            left.append(Entry(found, entry.known))
    refused: list[tuple[Entry, str]] = []
    for (code, offset), found in places.items():
        stays = next((one for one in mended if one.finding.code == code and _covers(patch, one, offset)), None)
        alike = (one for one in vanished if (one.finding.code, one.finding.function) == (code, found.function))
        same = next((one for one in alike if stays is None or _inside(one, stays)), None)
        if same is not None:
            vanished.remove(same)
            left.append(Entry(found, same.known))
        elif stays is not None:
            refused.append((stays, "the finding would stay"))
        elif any(_is_part(patch, one, code, offset) or _is_expected(patch, one, found, after) for one in mended):
            left.append(Entry(found))
        else:
            reason = f"{code} {found.name} would come in its place"
            refused += [(entry, reason) for entry in _causes(patch, mended, found, offset)]
    return Verdict(tuple(left), tuple(refused))


def _inside(one: Entry, other: Entry) -> bool:
    inner, outer = one.finding.span, other.finding.span
    begins = (outer.line, outer.column) <= (inner.line, inner.column)
    return begins and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)


def _covers(patch: Patch, entry: Entry, offset: int) -> bool:
    start, end = patch.moved_span(entry.finding.span)
    return start <= offset < max(end, start + 1)


def _is_part(patch: Patch, entry: Entry, code: str, offset: int) -> bool:
    """Whether a finding was told with a mended one, as another place of the same cause: it is next."""
    parts = entry.finding.parts if entry.finding.code[:3] == code[:3] else ()
    return any(start <= offset < end for start, end in map(patch.moved_span, parts))


def _is_expected(patch: Patch, entry: Entry, found: Finding, after: Text) -> bool:
    return _uncovers(patch, entry, found, after) or _lifts(patch, entry, found, after)


def _uncovers(patch: Patch, entry: Entry, found: Finding, after: Text) -> bool:
    """Whether a finding was hidden by a graver one at the same place, which is mended now: better than before, if not good yet."""
    if found.severity.rank >= entry.finding.severity.rank:
        return False
    start, end = patch.moved_span(entry.finding.span)
    first, last = after.offset(found.span.line, found.span.column), after.offset(found.span.end_line, found.span.end_column)
    return first < max(end, start + 1) and start < last


def _lifts(patch: Patch, entry: Entry, found: Finding, after: Text) -> bool:
    """Whether a finding of the same family stands in what a fix wrote, and runs less often: in fewer loops, or up the chain of calls."""
    one = entry.finding
    first, last = after.offset(found.span.line, found.span.column), after.offset(found.span.end_line, found.span.end_column)
    written = any(patch.after[first:last] in edit.text for edit in _edits(entry))
    if not written or one.code[:3] != found.code[:3]:
        return False
    if one.function != found.function:
        return found.function in {link.function for link in one.heat.chain}
    return loops_around(patch.after, found.span) < loops_around(patch.before.text, one.span)


def _causes(patch: Patch, mended: Sequence[Entry], found: Finding, offset: int) -> Sequence[Entry]:
    """The fixes that may have brought a finding: those that wrote there, else those in its function, else all."""
    wrote = [entry for entry in mended if any(_wrote(patch, edit, offset) for edit in _edits(entry))]
    nearby = [entry for entry in mended if entry.finding.function == found.function]
    return wrote or nearby or mended


def _edits(entry: Entry) -> Sequence[Edit]:
    return entry.finding.fix.edits if entry.finding.fix is not None else ()


def _wrote(patch: Patch, edit: Edit, offset: int) -> bool:
    change = patch.before.change(edit)
    start = patch.moved(change.start, after_insertions=False)
    return start <= offset < start + max(len(change.new), 1)
