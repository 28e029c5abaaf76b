"""Patterns that leave files out: `.gitignore` files as git reads them, and the globs of the configuration in the same language."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_Chain = tuple[tuple[Path, "GitIgnoreSpec"], ...]


def _compiled(lines: Iterable[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # 30 ms that most scans need not pay

    return GitIgnoreSpec.from_lines(lines)


def _text_below(path: Path, base: Path, directory: bool) -> str:
    """The path as patterns of `base` see it; of a path elsewhere only the name."""
    below = path.relative_to(base).as_posix() if path.is_relative_to(base) else path.name
    return f"{below}/" if directory else below


@dataclass
class Globs:
    """Patterns written in one place: without a slash they match names at any depth, with one paths from `base`."""

    base: Path
    patterns: Sequence[str]

    def match(self, path: Path, directory: bool = False) -> bool:
        return bool(self.patterns) and self._spec.match_file(_text_below(path, self.base, directory))

    @cached_property
    def _spec(self) -> GitIgnoreSpec:
        return _compiled(self.patterns)


@dataclass
class GitIgnores:
    """Every `.gitignore` that speaks about the folders below `top`; those above it are read too, up to the repository's root."""

    top: Path
    above: bool = True
    _chains: dict[Path, _Chain] = field(default_factory=dict)

    def ignored(self, path: Path, directory: bool) -> bool:
        """Whether git would ignore it, given that none of its folders is ignored; the nearest file that says something decides."""
        for base, spec in self._chain(path.parent):
            said = spec.check_file(_text_below(path, base, directory)).include
            if said is not None:
                return said
        return False

    def _chain(self, folder: Path) -> _Chain:
        known = self._chains.get(folder)
        if known is None:
            own = self._read(folder / ".gitignore")
            last = folder in (self._end, folder.parent)
            known = self._chains[folder] = own + (() if last else self._chain(folder.parent))
        return known

    @cached_property
    def _end(self) -> Path:
        folders = (self.top, *self.top.parents) if self.above else ()
        return next((folder for folder in folders if (folder / ".git").exists()), self.top)

    @staticmethod
    def _read(file: Path) -> _Chain:
        try:
            lines = file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        except OSError:
            return ()
        return ((file.parent, _compiled(lines)),)
