"""Which files a scan reads: all of the project, for heat and calls, and the given ones, whose findings are wanted."""
from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hostlint.ignores import GitIgnores, Globs
from hostlint.model import FileError
from hostlint.project import SourceFile, module_name, shown
from hostlint.walk import Walk

DEFAULT_EXCLUDE = (
    ".direnv", ".eggs", ".git", ".hg", ".hostlint_cache", ".hypothesis", ".ipynb_checkpoints", ".mypy_cache", ".nox", ".pyenv",
    ".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".venv", ".vscode", "__pycache__", "__pypackages__", "_build", "buck-out",
    "build", "dist", "node_modules", "site-packages", "venv",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a walk leaves out; a path that is named on the command line is never left out."""

    globs: tuple[Globs, ...] = ()
    names: frozenset[str] = frozenset(DEFAULT_EXCLUDE)
    gitignore: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    files: tuple[SourceFile, ...]
    errors: tuple[FileError, ...]
    only_files: bool  # no folder was given: the way a pre-commit hook calls


@dataclass(slots=True)
class _Search:
    root: Path
    working: Path
    left_out: LeftOut
    errors: dict[Path, FileError] = field(default_factory=dict)
    links: set[Path] = field(default_factory=set)

    def failed(self, path: Path, error: OSError) -> None:
        self.errors[path] = FileError(shown(path, self.working), 1, f"cannot be read: {(error.strerror or str(error)).lower()}")

    def exists(self, path: Path) -> bool:
        try:
            path.stat()
        except OSError as error:
            self.failed(path, error)
            return False
        return True

    def walk(self, top: Path, above: bool) -> tuple[list[Path], set[Path]]:
        """The files below `top`, and the folders that were entered."""
        ignores = GitIgnores(top, above) if self.left_out.gitignore else None
        walk = Walk(self.left_out.names, self.left_out.globs, ignores, self.failed, links=self.links)
        return list(walk.files(top)), walk.folders


def discover(paths: Sequence[Path], root: Path, working: Path, left_out: LeftOut) -> Found:
    """Find the files; `paths` are absolute, and what is wrong with one of them becomes an error entry."""
    search = _Search(root, working, left_out)
    present = [path for path in paths if search.exists(path)]
    folders = [path for path in present if path.is_dir()]
    project, entered = search.walk(root, above=True) if present or not paths else ([], set())  # the root may be made of what is not there
    given = {path for path in present if path not in folders}
    for folder in folders:
        # A folder that the walk of the project did not enter is ignored or lies elsewhere; whoever names it wants it all the same.
        below = (file for file in project if folder in file.parents) if folder in entered else search.walk(folder, above=False)[0]
        given.update(below)
    search.links.update(path for path in given if path.is_symlink())
    files = _once_each({*project, *given}, given, search.links)
    return Found(
        tuple(SourceFile(shown(file, working), file, file in given, module_name(file, root)) for file in files),
        tuple(search.errors[path] for path in sorted(search.errors)),
        only_files=not folders,
    )


def _once_each(files: set[Path], given: set[Path], links: set[Path]) -> list[Path]:
    """Where a link and its target are both here, the given one stays, else the target."""
    if not links:
        return sorted(files)
    folders = {folder: os.path.realpath(folder) for folder in {file.parent for file in files}}
    by_place: dict[str, Path] = {}
    for file in sorted(files, key=lambda file: (file not in given, file in links, file)):
        place = os.path.realpath(file) if file in links else f"{folders[file.parent]}{os.sep}{file.name}"
        by_place.setdefault(place, file)
    return sorted(by_place.values())
