"""A finding that a fix brings to another file: by which of the files that were changed it comes."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from hostlint.fix.checks import Entry
    from hostlint.fix.rounds import Scan
    from hostlint.model import Finding

MOST_SEARCHES = 8  # a search costs a scan for each halving


@dataclass
class Since:
    """A file as it was when all files were scanned, and what was mended in it after that."""

    file: Path
    text: str
    entries: list[Entry]
    mended: list[Entry] = field(default_factory=list)


@dataclass
class Elsewhere:
    """What was changed since all files were scanned, by path."""

    scan: Scan
    since: dict[str, Since] = field(default_factory=dict)
    _searches: int = 0

    def culprit(self, texts: Mapping[Path, str], came: Finding, file: Path) -> str | None:
        """The changed file without whose fixes a finding does not come to `file`; None where it comes without any."""
        changed = list(self.since)
        self._searches += 1
        few, many = 0, len(changed)  # it comes without the first few files' fixes, and not without the first many ones'
        if not changed or self._searches > MOST_SEARCHES or self._comes(texts, came, file, changed):
            return None
        while many - few > 1:
            middle = (few + many) // 2
            few, many = (middle, many) if self._comes(texts, came, file, changed[:middle]) else (few, middle)
        return changed[many - 1]

    def _comes(self, texts: Mapping[Path, str], came: Finding, file: Path, without: Sequence[str]) -> bool:
        """Whether a finding is there where these files are as they were."""
        before = {self.since[path].file: self.since[path].text for path in without}
        outcome = self.scan({**texts, **before}, {file})
        return any((one.path, place_of(one)) == (came.path, place_of(came)) for one in outcome.result.findings)


def place_of(finding: Finding) -> tuple[str, int, int]:
    return finding.code, finding.span.line, finding.span.column
