"""Where a project begins, and how its files are named: the root, the paths that people see, the modules that code imports."""
from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CONFIG_FILE = "hostlint.toml"
PYPROJECT = "pyproject.toml"
_MARKERS = (CONFIG_FILE, PYPROJECT, ".git")


@dataclass(frozen=True, slots=True)
class SourceFile:
    path: str  # as reports show it: relative to the working directory, with "/"
    file: Path  # absolute
    given: bool  # its findings were asked for
    module: str  # "pkg.sub.mod"; a package's __init__ is "pkg.sub"
    text: str | None = None  # what stands for the file's content (standard input)


def common_folder(paths: Iterable[Path]) -> Path:
    """The deepest folder that holds all of these absolute paths."""
    folders = [path if path.is_dir() else path.parent for path in paths]
    try:
        return Path(os.path.commonpath(folders))
    except ValueError:  # on different drives
        return folders[0]


def find_root(paths: Sequence[Path], working: Path) -> Path:
    """The project of a scan of these absolute paths."""
    start = common_folder(paths) if paths else working
    for folder in (start, *start.parents):
        if any((folder / marker).exists() for marker in _MARKERS):
            return folder
    # Where the working directory has nothing to do with the paths, reading all of it would help nobody.
    return working if start.is_relative_to(working) else start


def shown(file: Path, working: Path) -> str:
    """How reports name a file: relative to the working directory, with `/`."""
    try:
        return Path(os.path.relpath(file, working)).as_posix()
    except ValueError:  # on another drive
        return file.as_posix()


def module_name(file: Path, root: Path) -> str:
    """The longest dotted name that an absolute import could use; the index knows that `src.pkg.mod` is imported as `pkg.mod` too."""
    folders = file.parent.relative_to(root).parts if file.is_relative_to(root) else ()
    base = root if file.is_relative_to(root) else file.parent
    parts = [*_package_above(base), *folders]
    stem = file.name.partition(".")[0] if file.suffix in (".py", ".pyi") else file.name
    return ".".join(parts if stem == "__init__" and parts else [*parts, stem])


@cache
def _package_above(folder: Path) -> tuple[str, ...]:
    """The name of a folder that is itself part of a package, as the root of a scan inside site-packages is."""
    if not folder.name or not any((folder / name).is_file() for name in ("__init__.py", "__init__.pyi")):
        return ()
    return (*_package_above(folder.parent), folder.name)
