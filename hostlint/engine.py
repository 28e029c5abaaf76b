"""The engine: the facts of every file, the heat of the whole project, and the findings of the files that were asked for."""
from __future__ import annotations

import gc
import pickle
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hostlint import registry
from hostlint.cache import Cache, digest
from hostlint.comments import Comments
from hostlint.comments import parse as parse_comments
from hostlint.facts.store import FactStore, load, on_disk, stamp
from hostlint.model import FileError, Finding, HeatLevel
from hostlint.pool import chunks, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from hostlint.index import ProjectIndex
    from hostlint.judge import Judged
    from hostlint.project import SourceFile

JUDGE_CHUNK = 60_000  # bytes of value graphs
COLLECTION_THRESHOLDS = (100_000, 20, 50)


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What to scan, with the settings that findings depend on."""

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
    fixes: bool = False  # ask the rules for their fixes too
    patched: bool = False  # the texts are those files with fixes in them, which bring only names that nobody asks for
    at_least: HeatLevel = HeatLevel.COLD  # files with hostlint's comments are judged at any heat, for unused suppressions


@dataclass(frozen=True, slots=True)
class RawScan:
    """The findings of the given files (of all, where their chain may touch a given one), before suppressions and thresholds."""

    findings: tuple[Finding, ...] = ()
    errors: tuple[FileError, ...] = ()
    files: int = 0
    lines: int = 0
    comments: Mapping[str, Comments] = field(default_factory=dict)
    digests: Mapping[str, bytes] = field(default_factory=dict)  # of the given files' contents as they were read


@contextmanager
def _few_collections() -> Iterator[None]:
    """Millions of small tuples come and stay: looking for cycles among them at Python's usual pace takes a fifth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@_few_collections()
def raw_scan(request: ScanRequest) -> RawScan:
    """The scan: from the cache as a whole where no file has changed, else file by file."""
    known = request.cache.unchanged(str(one.file) for one in request.files if one.text is None) if request.cache is not None else {}
    if request.cache is not None and all(str(one.file) in known for one in request.files):
        digests = [known[str(one.file)] for one in request.files]
        kept = _recall(request.cache, _key(request, digests))
        if kept is not None:
            return _raw(request, kept, digests)
    store = load(request.files, request.cache, known, request.jobs, request.progress)
    digests = [one.digest for one in store.stored]
    key = _key(request, digests)
    kept = _recall(request.cache, key)
    if kept is None:
        kept = _judge_all(request, store)
        if request.cache is not None:
            request.cache.put_many({key: pickle.dumps(kept)})
    return _raw(request, kept, digests)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A whole scan's result, as it is kept."""

    findings: tuple[Finding, ...]
    errors: tuple[FileError, ...]
    lines: tuple[int, ...]  # of each file
    commented: tuple[int, ...]  # the files that hold hostlint's comments


def _recall(cache: Cache | None, key: bytes) -> _Kept | None:
    blob = cache.get_many([key]).get(key) if cache is not None else None
    if blob is None:
        return None
    kept = pickle.loads(blob)  # noqa: S301 - our own cache
    return kept if isinstance(kept, _Kept) else None


def _raw(request: ScanRequest, kept: _Kept, digests: Sequence[bytes]) -> RawScan:
    comments = {request.files[number].path: parse_comments(text_of(request.files[number])) for number in kept.commented}
    given = [number for number, one in enumerate(request.files) if one.given]
    read = {request.files[number].path: digests[number] for number in given}
    return RawScan(kept.findings, kept.errors, len(given), sum(kept.lines[number] for number in given), comments, read)


def _key(request: ScanRequest, digests: Sequence[bytes]) -> bytes:
    """What the findings depend on: every file's content and name, which are asked for, and the settings."""
    files = [(one.path, one.module, one.given, content) for one, content in zip(request.files, digests, strict=True)]
    return digest(_settings(request) + repr((request.whole_project, files)).encode())


def _settings(request: ScanRequest) -> bytes:
    names = (request.device_names, request.host_names, request.device_returns, request.upload_helpers)
    return digest(stamp() + _rules_stamp() + repr((request.hot, request.cold, names, request.at_least, request.fixes)).encode())


def _rules_stamp() -> bytes:
    """Hostlint's rules and the user's: a changed one must not be answered from the cache."""
    statuses = [(str(file), file.stat()) for file in registry.sources()]
    return digest(repr([(file, status.st_size, status.st_mtime_ns) for file, status in statuses]).encode())


def _judge_all(request: ScanRequest, store: FactStore) -> _Kept:
    from hostlint.index import ProjectIndex
    from hostlint.relevance import relevant_files

    index = ProjectIndex(store.outlines())
    relevant = relevant_files(index)
    wanted = [file for file in _wanted(request, store) if relevant[file]]
    judged = _judge_files(request, store, index, wanted) if wanted else {}
    ordered = [judged[file] for file in wanted]
    findings = tuple(sorted((finding for one in ordered for finding in one.findings), key=lambda finding: finding.sort_key))
    errors = (*store.errors, *(error for one in ordered for error in one.errors))
    commented = tuple(number for number, one in enumerate(store.stored) if one.has_comments)
    return _Kept(findings, errors, tuple(outline.lines for outline in index.files), commented)


def _judge_files(request: ScanRequest, store: FactStore, index: ProjectIndex, wanted: Sequence[int]) -> dict[int, Judged]:
    """What is found in the wanted files: from the cache where it still holds, else judged, in parallel."""
    from hostlint.heat import compute_heat
    from hostlint.judge import Judge, Project
    from hostlint.reuse import Reuse
    from hostlint.values.conventions import Conventions
    from hostlint.values.evaluator import Evaluator

    heat = compute_heat(index, request.hot, request.cold)
    names = (request.device_names, request.host_names, request.device_returns, request.upload_helpers)
    conventions = Conventions(*map(frozenset, names))
    evaluator = Evaluator(index, store.graph, Project(heat.graph, heat), conventions)
    judge = Judge(index, evaluator, heat, lambda file: text_of(store.stored[file].source), request.fixes)

    def work(files: Sequence[int]) -> list[Judged]:
        return [judge.file(file, HeatLevel.COLD if store.stored[file].has_comments else request.at_least) for file in files]

    reuse = Reuse(request.cache, _settings(request), store, index, heat, *_names(request, store))
    judged = reuse.recall(wanted)
    missing = [file for file in wanted if file not in judged]
    runs = chunks(missing, lambda file: len(store.stored[file].graphs), JUDGE_CHUNK)
    progress = request.progress
    tick = (lambda done: progress("judging", done, len(runs))) if progress is not None else None
    for run, results in zip(runs, spread(work, runs, request.jobs, tick), strict=True):
        judged.update(zip(run, results, strict=True))
    reuse.keep(judged, missing)
    return judged


def _names(request: ScanRequest, store: FactStore) -> tuple[bytes, bytes]:
    """What names mean in the project, and what they mean to all files that have no fixes: what a fix only adds (an import, a helper) is
    nothing that another file can have asked for, so that none is judged again for that."""
    from hostlint.facts.seen import only_came

    seen = [one.seen for one in store.stored]
    others = list(seen)
    patched = [number for number, one in enumerate(store.stored) if one.source.text is not None] if request.patched else []
    if patched:
        before = on_disk([store.stored[number].source for number in patched], request.cache, request.jobs)
        shared = {star for outline in store.outlines() for star in outline.stars}
        for number, one in zip(patched, before.stored, strict=True):
            if one.source.module not in shared and only_came(one.seen, seen[number]):
                others[number] = one.seen
    return digest(b"".join(seen)), digest(b"".join(others))


def _wanted(request: ScanRequest, store: FactStore) -> list[int]:
    """The given files; all of them where a finding elsewhere may matter for its chain (a hook's changed files)."""
    numbers = range(len(store.stored))
    return list(numbers) if request.whole_project else [number for number in numbers if store.stored[number].source.given]


def text_of(source: SourceFile) -> str:
    """The text of a file, "" where it cannot be read any more."""
    from hostlint.sources import decode

    if source.text is not None:
        return source.text
    try:
        return decode(source.file.read_bytes())
    except (OSError, SyntaxError, UnicodeDecodeError):
        return ""
