"""From a command's options to a finished scan: what `scan`, `fix` and `baseline` have in common."""
from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from hostlint.cli import progress
from hostlint.config.keys import CONFIDENCES, HEATS, SEVERITIES
from hostlint.errors import UsageError
from hostlint.scan import PLAIN, Hooks, Outcome, Standard, Wish, scan
from hostlint.settings import Options, Settings, resolve

Given = Mapping[str, Any]  # what click hands over, by parameter name


@dataclass(frozen=True, slots=True)
class _Speech:
    quiet: bool
    verbose: bool

    def warn(self, message: str) -> None:
        if not self.quiet:
            click.echo(f"hostlint: warning: {message}", err=True)

    def note(self, message: str) -> None:
        if self.verbose:
            click.echo(f"hostlint: {message}", err=True)


@dataclass(frozen=True, slots=True)
class Run:
    """One command's settings and inputs, ready to be scanned, more than once where a command wants that."""

    settings: Settings
    paths: tuple[Path, ...]
    standard: Standard | None
    jobs: int | None
    speech: _Speech

    def scan(self, wish: Wish = PLAIN) -> Outcome:
        began = time.perf_counter()
        bar = None if self.speech.quiet else progress.for_terminal()
        try:
            hooks = Hooks(self.speech.warn, self.speech.note, bar)
            outcome = scan(self.settings, self.paths, self.standard, self.jobs, hooks, wish)
        finally:
            if bar:
                bar.close()
        self.speech.note(f"{outcome.result.summary.lines} lines in {time.perf_counter() - began:.2f} s")
        return outcome


def prepared(given: Given) -> Run:
    """What the options ask for, read and checked."""
    speech = _Speech(given["quiet"], given["verbose"])
    standard, paths = _what(given["paths"], given["stdin_filename"])
    settings = _settings(given, (standard.file,) if standard else paths)
    speech.note(f"configuration {settings.config.file or 'none'}")
    return Run(settings, () if standard else paths, standard, given["jobs"], speech)


def settings_and_scan(given: Given, wish: Wish = PLAIN) -> Outcome:
    """Do the scan that the options ask for."""
    return prepared(given).scan(wish)


def absolute(path: str | Path) -> Path:
    """Absolute, `..` resolved, links kept: people see the paths that they gave."""
    return Path(os.path.abspath(path))


def _what(paths: Sequence[str], stdin_filename: str | None) -> tuple[Standard | None, tuple[Path, ...]]:
    if "-" in paths or (stdin_filename and not paths):
        if len(paths) > 1:
            raise UsageError("`-` (standard input) and other paths exclude each other")
        return Standard(absolute(stdin_filename or "-"), sys.stdin.buffer.read()), ()
    if stdin_filename:
        raise UsageError("--stdin-filename goes with the path `-`")
    return None, tuple(absolute(path) for path in paths or (".",))


def _settings(given: Given, paths: tuple[Path, ...]) -> Settings:
    return resolve(
        Options(
            working=Path.cwd(),
            paths=paths,
            select=given["select"],
            ignore=given["ignore"],
            extend_select=given["extend_select"],
            per_file_ignores=given["per_file_ignores"],
            config=given["config"],
            isolated=given["isolated"],
            exclude=given["exclude"],
            extend_exclude=given["extend_exclude"],
            respect_gitignore=given["respect_gitignore"],
            min_heat=HEATS.get(given["min_heat"]),
            min_confidence=CONFIDENCES.get(given["min_confidence"]),
            fail_on=SEVERITIES.get(given.get("fail_on", "")),
            baseline=given["baseline"],
            hot=given["hot"],
            cache=not given["no_cache"],
            cache_dir=absolute(given["cache_dir"]) if given["cache_dir"] else None,
        )
    )
