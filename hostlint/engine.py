"""The engine: the facts of every file, the heat of the whole project, and the findings of the files that were asked for."""
from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hostlint import registry
from hostlint.cache import Cache, digest
from hostlint.comments import Comments
from hostlint.comments import parse as parse_comments
from hostlint.facts.store import FactStore, load, stamp
from hostlint.model import FileError, Finding, HeatLevel
from hostlint.pool import chunks, spread

if TYPE_CHECKING:
    from hostlint.project import SourceFile

JUDGE_CHUNK = 60_000  # bytes of value graphs


@dataclass(frozen=True, slots=True)
class ScanRequest:
    root: Path
    files: tuple[SourceFile, ...]
    hot: tuple[str, ...] = ()
    cold: tuple[str, ...] = ()
    device_names: tuple[str, ...] = ()
    host_names: tuple[str, ...] = ()
    device_returns: tuple[str, ...] = ()
    upload_helpers: tuple[str, ...] = ()
    jobs: int = 1
    cache: Cache | None = None
    progress: Callable[[str, int, int], None] | None = None
    whole_project: bool = False  # also judge files that were not given: a hook's changed files may have heated them
    at_least: HeatLevel = HeatLevel.COLD  # files with hostlint's comments are judged at any heat, for unused suppressions


@dataclass(frozen=True, slots=True)
class RawScan:
    """The findings of the given files (of all, where their chain may touch a given one), before suppressions and thresholds."""

    findings: tuple[Finding, ...] = ()
    errors: tuple[FileError, ...] = ()
    files: int = 0
    lines: int = 0
    comments: Mapping[str, Comments] = field(default_factory=dict)


def raw_scan(request: ScanRequest) -> RawScan:
    store = load(request.files, request.cache, request.jobs, request.progress)
    key = _key(request, store)
    if request.cache is not None and (kept := request.cache.get_many([key]).get(key)) is not None:
        findings, lines, failed = pickle.loads(kept)  # noqa: S301 - our own cache
    else:
        findings, lines, failed = _judge_all(request, store)
        if request.cache is not None:
            request.cache.put_many({key: pickle.dumps((findings, lines, failed))})
    comments = {one.source.path: parse_comments(_text(one.source)) for one in store.stored if one.has_comments}
    given = [number for number, one in enumerate(store.stored) if one.source.given]
    return RawScan(findings, (*store.errors, *failed), len(given), sum(lines[number] for number in given), comments)


def _key(request: ScanRequest, store: FactStore) -> bytes:
    """What the findings depend on: every file's content and name, which are asked for, and the settings."""
    settings = (request.hot, request.cold, request.device_names, request.host_names, request.device_returns, request.upload_helpers)
    files = [(one.source.path, one.source.module, one.source.given, one.digest) for one in store.stored]
    return digest(stamp() + _rules_stamp() + repr((settings, request.at_least, request.whole_project, files)).encode())


def _rules_stamp() -> bytes:
    statuses = [(str(file), file.stat()) for file in registry.sources()]
    return digest(repr([(file, status.st_size, status.st_mtime_ns) for file, status in statuses]).encode())


def _judge_all(request: ScanRequest, store: FactStore) -> tuple[tuple[Finding, ...], tuple[int, ...], tuple[FileError, ...]]:
    from hostlint.heat import compute_heat
    from hostlint.index import ProjectIndex
    from hostlint.judge import Judge, Judged, Project
    from hostlint.values.conventions import Conventions
    from hostlint.values.evaluator import Evaluator

    index = ProjectIndex(store.outlines())
    heat = compute_heat(index, request.hot, request.cold)
    conventions = Conventions(
        frozenset(request.device_names), frozenset(request.host_names), frozenset(request.device_returns), frozenset(request.upload_helpers)
    )
    evaluator = Evaluator(index, store.graph, Project(heat.graph, heat), conventions)
    judge = Judge(index, evaluator, heat, lambda file: _text(store.stored[file].source))

    def work(files: Sequence[int]) -> list[Judged]:
        return [judge.file(file, HeatLevel.COLD if store.stored[file].has_comments else request.at_least) for file in files]

    wanted = _wanted(request, store)
    runs = chunks(wanted, lambda file: len(store.stored[file].graphs), JUDGE_CHUNK)
    progress = request.progress
    tick = (lambda done: progress("judging", done, len(runs))) if progress is not None else None
    judged = [one for results in spread(work, runs, request.jobs, tick) for one in results]
    findings = tuple(sorted((finding for one in judged for finding in one.findings), key=lambda finding: finding.sort_key))
    lines = tuple(outline.lines for outline in index.files)
    return findings, lines, tuple(error for one in judged for error in one.errors)


def _wanted(request: ScanRequest, store: FactStore) -> list[int]:
    """The given files; all of them where a finding elsewhere may matter for its chain (a hook's changed files)."""
    numbers = range(len(store.stored))
    return list(numbers) if request.whole_project else [number for number in numbers if store.stored[number].source.given]


def _text(source: SourceFile) -> str:
    from hostlint.sources import decode

    if source.text is not None:
        return source.text
    try:
        return decode(source.file.read_bytes())
    except (OSError, SyntaxError, UnicodeDecodeError):
        return ""
