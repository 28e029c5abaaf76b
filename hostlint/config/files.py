"""Finding and reading the configuration file of a project; the nearest one wins."""
from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hostlint.config.keys import CONFIDENCES, HEATS, SEVERITIES, Reader
from hostlint.errors import ConfigError
from hostlint.project import CONFIG_FILE, PYPROJECT

if TYPE_CHECKING:
    from hostlint.model import Confidence, HeatLevel, Severity


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration as written; None and () where it says nothing. Its patterns and paths are relative to `file`'s folder."""

    file: Path | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    min_heat: HeatLevel | None = None
    min_confidence: Confidence | None = None
    fail_on: Severity | None = None
    hot: tuple[str, ...] = ()
    cold: tuple[str, ...] = ()
    device_names: tuple[str, ...] = ()
    host_names: tuple[str, ...] = ()
    device_returns: tuple[str, ...] = ()
    upload_helpers: tuple[str, ...] = ()
    rule_modules: tuple[str, ...] = ()
    baseline: Path | None = None
    cache_dir: Path | None = None


def find(start: Path) -> Config:
    """The nearest configuration upward from a folder; a pyproject.toml without `[tool.hostlint]` is none."""
    for folder in (start, *start.parents):
        if (folder / CONFIG_FILE).is_file():
            return read(folder / CONFIG_FILE)
        file = folder / PYPROJECT
        if file.is_file() and _section(file) is not None:
            return read(file)
    return Config()


def read(file: Path) -> Config:
    """Read and check one file; whatever its name, a `[tool.hostlint]` table in it is what counts."""
    table = _section(file)
    if table is None and file.name == PYPROJECT:
        raise ConfigError(f"{file}: no [tool.hostlint] table")
    reader = Reader(file, _load(file) if table is None else table)
    reader.check_keys()
    baseline, cache_dir = reader.text("baseline"), reader.text("cache-dir")
    return Config(
        file=file,
        select=reader.texts("select"),
        ignore=reader.texts("ignore") or (),
        extend_select=reader.texts("extend-select") or (),
        per_file_ignores=reader.texts_by_pattern("per-file-ignores"),
        exclude=reader.texts("exclude"),
        extend_exclude=reader.texts("extend-exclude") or (),
        min_heat=reader.choice("min-heat", HEATS),
        min_confidence=reader.choice("min-confidence", CONFIDENCES),
        fail_on=reader.choice("fail-on", SEVERITIES),
        hot=reader.texts("hot") or (),
        cold=reader.texts("cold") or (),
        device_names=reader.texts("device-names") or (),
        host_names=reader.texts("host-names") or (),
        device_returns=reader.texts("device-returns") or (),
        upload_helpers=reader.texts("upload-helpers") or (),
        rule_modules=reader.texts("rule-modules") or (),
        baseline=file.parent / baseline if baseline is not None else None,
        cache_dir=file.parent / cache_dir if cache_dir is not None else None,
    )


def _section(file: Path) -> dict[str, object] | None:
    tool = _load(file).get("tool")
    section = tool.get("hostlint") if isinstance(tool, dict) else None
    if section is not None and not isinstance(section, dict):
        raise ConfigError(f"{file}: `tool.hostlint` must be a table")
    return section


def _load(file: Path) -> dict[str, object]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table: dict[str, object] = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {(error.strerror or str(error)).lower()}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file}: not valid TOML: {error}") from error
    return table
