"""The text of scanned files, for reports and fingerprints: read when asked for, line by line as Python counts lines."""
from __future__ import annotations

import io
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


def decode(data: bytes) -> str:
    """Source bytes as text, by their own coding line; SyntaxError or UnicodeDecodeError where that does not work."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding)


@dataclass
class Sources:
    """`given` holds the text of paths that are not on disk as scanned (standard input)."""

    working: Path
    given: Mapping[str, str] = field(default_factory=dict)
    _lines: dict[str, list[str]] = field(default_factory=dict)

    def lines(self, path: str) -> list[str]:
        """Without line ends; none where the file cannot be read any more."""
        if path not in self._lines:
            self._lines[path] = self._read(path).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return self._lines[path]

    def line(self, path: str, number: int) -> str:
        lines = self.lines(path)
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def _read(self, path: str) -> str:
        if path in self.given:
            return self.given[path]
        try:
            return decode((self.working / path).read_bytes())
        except (OSError, SyntaxError, UnicodeDecodeError):
            return ""
