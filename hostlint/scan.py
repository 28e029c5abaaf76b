"""One scan from options to result: find the files, run the engine, apply suppressions, selection, thresholds and baseline."""
from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from hostlint import baseline, registry, suppress
from hostlint.cache import Cache
from hostlint.discovery import Found, discover
from hostlint.engine import RawScan, ScanRequest, raw_scan
from hostlint.errors import FAILURE, FINDINGS
from hostlint.fingerprint import Fingerprints
from hostlint.model import FileError, Finding, ScanResult, Severity, Summary
from hostlint.project import SourceFile, module_name, shown
from hostlint.settings import MIN_CONFIDENCE, MIN_HEAT, counts
from hostlint.sources import Sources, decode

if TYPE_CHECKING:
    from hostlint.settings import Settings


@dataclass(frozen=True, slots=True)
class Standard:
    """A program on standard input, and the file that it stands for."""

    file: Path
    data: bytes


@dataclass(frozen=True, slots=True)
class Hooks:
    """How a scan speaks while it runs."""

    warn: Callable[[str], None]
    note: Callable[[str], None]  # for those who want to know more
    progress: Callable[[str, int, int], None] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    result: ScanResult
    settings: Settings
    sources: Sources
    given: tuple[SourceFile, ...] = ()
    digests: Mapping[str, bytes] = field(default_factory=dict)  # by path, of the given files' contents as they were read
    suppressed: tuple[Finding, ...] = ()  # what would have been shown

    @property
    def fingerprints(self) -> Fingerprints:
        return Fingerprints(self.settings.root, self.sources)

    def status(self, exit_zero: bool = False) -> int:
        if self.result.errors:
            return FAILURE
        failing = any(finding.severity.rank >= self.settings.fail_on.rank for finding in self.result.findings)
        return FINDINGS if failing and not exit_zero else 0


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted of a scan: without the findings of the baseline, with the rules' fixes, with other texts for files, of some only."""

    subtract: bool = True
    fixes: bool = False
    texts: Mapping[Path, str] = field(default_factory=dict)
    only: Collection[Path] | None = None  # of the given files


PLAIN = Wish()


def scan(
    settings: Settings, paths: Iterable[Path], standard: Standard | None, jobs: int | None, hooks: Hooks, wish: Wish = PLAIN
) -> Outcome:
    """Scan the absolute `paths`, or standard input."""
    known = baseline.load(settings.baseline) if settings.baseline and wish.subtract else None
    found = discover(list(paths), settings.root, settings.working, settings.left_out)
    files, errors = _with_standard(found, standard, settings) if standard else (found.files, found.errors)
    files = tuple(replace(file, text=wish.texts[file.file]) if file.file in wish.texts else file for file in files) if wish.texts else files
    if wish.only is not None:
        files = tuple(replace(file, given=file.given and file.file in wish.only) for file in files)
    only_files = found.only_files and standard is None and wish.only is None
    given = {file.path: file for file in files if file.given}
    sources = Sources(settings.working, {file.path: file.text for file in files if file.text is not None})
    hooks.note(f"project {settings.root}: {len(files)} Python files, {len(given)} of them given")
    if not given:
        if not errors:
            hooks.warn("no Python files under the given paths")
        return Outcome(ScanResult((), errors, Summary()), settings, sources)
    raw = _raw(settings, files, only_files, jobs, hooks, wish)
    shown_findings, suppressed = _sift(raw, settings, given, only_files)
    baselined: tuple[Finding, ...] = ()
    if known is not None:
        shown_findings, baselined = baseline.subtract(shown_findings, known, Fingerprints(settings.root, sources))
    errors = tuple(sorted({*errors, *(error for error in raw.errors if error.path in given)}, key=lambda e: (e.path, e.line, e.message)))
    summary = Summary(raw.files, raw.lines, len(shown_findings), len(suppressed), len(baselined))
    return Outcome(ScanResult(shown_findings, errors, summary), settings, sources, tuple(given.values()), raw.digests, suppressed)


def _raw(settings: Settings, files: tuple[SourceFile, ...], only_files: bool, jobs: int | None, hooks: Hooks, wish: Wish) -> RawScan:
    config = settings.config
    cache = Cache(settings.cache_dir, hooks.warn) if settings.cache_dir else None
    try:
        return raw_scan(
            ScanRequest(
                root=settings.root,
                files=files,
                hot=settings.hot,
                cold=config.cold,
                device_names=config.device_names,
                host_names=config.host_names,
                device_returns=config.device_returns,
                upload_helpers=config.upload_helpers,
                jobs=jobs or processors(),
                cache=cache,
                progress=hooks.progress,
                whole_project=only_files,
                fixes=wish.fixes,
                patched=bool(wish.texts),
                at_least=settings.min_heat,
            )
        )
    finally:
        if cache:
            cache.close()


def _sift(raw: RawScan, settings: Settings, given: Collection[str], only_files: bool) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """What is to be shown, in order, and what of it is suppressed."""

    def wanted(finding: Finding) -> bool:
        return settings.wants(finding) and (finding.path in given or (only_files and _reached_from(finding, given)))

    outcome = _suppressed(raw, settings.enabled)
    kept = sorted(filter(wanted, outcome.kept), key=lambda finding: finding.sort_key)
    return tuple(kept), tuple(filter(wanted, outcome.suppressed))


def scan_text(text: str, path: str = "example.py", fixes: bool = False) -> tuple[list[Finding], list[FileError]]:
    """One piece of source as a project of its own, every rule on: what examples and tests look at."""
    raw = raw_scan(ScanRequest(Path(), (SourceFile(path, Path(path), True, Path(path).stem, text),), fixes=fixes))
    kept = _suppressed(raw, registry.expand(registry.EVERYTHING)).kept
    return sorted((f for f in kept if counts(f, MIN_HEAT, MIN_CONFIDENCE)), key=lambda f: f.sort_key), list(raw.errors)


def _suppressed(raw: RawScan, enabled: frozenset[str]) -> suppress.Outcome:
    return suppress.apply(raw.findings, raw.comments, enabled, date.today(), suppress.Catalogue(registry.expand, _describe))


def _reached_from(finding: Finding, given: Collection[str]) -> bool:
    """A change of one file can heat what another file holds: whoever gives changed files wants to see that too."""
    return any(link.path in given for link in finding.heat.chain)


def _describe(code: str) -> tuple[str, Severity]:
    rule = registry.find(code)
    if rule is None:
        raise registry.RegistryError(f"the catalogue has no rule {code}")
    return rule.name, rule.severity


def _with_standard(found: Found, standard: Standard, settings: Settings) -> tuple[tuple[SourceFile, ...], tuple[FileError, ...]]:
    path = shown(standard.file, settings.working)
    others = tuple(file for file in found.files if file.file != standard.file)
    try:
        text = decode(standard.data)
    except (SyntaxError, UnicodeDecodeError) as error:
        return others, (*found.errors, FileError(path, 1, f"cannot be decoded: {error}"))
    module = module_name(standard.file, settings.root)
    return (*others, SourceFile(path, standard.file, True, module, text)), found.errors


def processors() -> int:
    """The processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
