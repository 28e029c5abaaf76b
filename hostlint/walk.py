"""Walking a folder for Python files: links to folders are not followed, so circles of links end nowhere."""
from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.ignores import GitIgnores, Globs

SUFFIXES = (".py", ".pyi")


@dataclass
class Walk:
    """One walk; `folders` are those that it entered, `links` the files that are links."""

    names: frozenset[str]  # left out wherever they stand
    globs: Sequence[Globs]
    ignores: GitIgnores | None
    failed: Callable[[Path, OSError], None]
    folders: set[Path] = field(default_factory=set)
    links: set[Path] = field(default_factory=set)

    def files(self, top: Path) -> Iterator[Path]:
        pending = [top]
        while pending:
            folder = pending.pop()
            self.folders.add(folder)
            for entry in self._listed(folder):
                path = Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    if not self._left_out(path, directory=True):
                        pending.append(path)
                elif _is_source(entry) and not self._left_out(path, directory=False):
                    if entry.is_symlink():
                        self.links.add(path)
                    yield path

    def _listed(self, folder: Path) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                return list(entries)
        except OSError as error:
            self.failed(folder, error)
            return []

    def _left_out(self, path: Path, directory: bool) -> bool:
        if path.name in self.names or any(globs.match(path, directory) for globs in self.globs):
            return True
        return self.ignores is not None and self.ignores.ignored(path, directory)


def _is_source(entry: os.DirEntry[str]) -> bool:
    if not entry.name.endswith(SUFFIXES):
        return False
    try:  # a link that leads nowhere, or in a circle, is nobody's source
        return stat.S_ISREG(entry.stat().st_mode)
    except OSError:
        return False
