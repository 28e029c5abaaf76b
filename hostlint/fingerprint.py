"""What a finding is called so that it is known again after edits elsewhere: its rule, file, function and statement, no line numbers."""
from __future__ import annotations

import os
import re
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.model import Finding
    from hostlint.sources import Sources

_PIECES = re.compile(
    r"""(?P<kept>'{3}(?:\\.|[^\\])*?'{3}|"{3}(?:\\.|[^\\])*?"{3}|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")|#[^\n]*|\s+""", re.DOTALL
)


@dataclass(frozen=True, slots=True, order=True)
class Fingerprint:
    path: str  # relative to the project's root
    function: str
    code: str
    statement: str

    def digest(self, occurrence: int = 0) -> str:
        text = "\0".join((self.path, self.function, self.code, self.statement, str(occurrence)))
        return blake2b(text.encode(errors="surrogateescape"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Makes fingerprints of the findings of one scan."""

    root: Path
    sources: Sources

    def of(self, finding: Finding) -> Fingerprint:
        file = os.path.normpath(self.sources.working / finding.path)
        path = Path(os.path.relpath(file, self.root)).as_posix()
        return Fingerprint(path, finding.function, finding.code, self._statement(finding))

    def _statement(self, finding: Finding) -> str:
        first, last = finding.statement if finding.statement != (0, 0) else (finding.span.line, finding.span.end_line)
        text = "\n".join(self.sources.lines(finding.path)[first - 1 : last])
        return blake2b(normalised(text).encode(errors="surrogateescape"), digest_size=8).hexdigest()


def normalised(statement: str) -> str:
    """Source without comments and white space, strings kept: a reformatted statement stays the same."""
    return _PIECES.sub(lambda piece: piece["kept"] or "", statement)
