"""`hostlint baseline`: the file of known findings, written, checked and kept from growing."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hostlint.cli.options import the_run, what_to_scan
from hostlint.cli.sections import Section, SectionedCommand
from hostlint.errors import FINDINGS, HostlintError

if TYPE_CHECKING:
    from hostlint.fingerprint import Fingerprint

DEFAULT = "hostlint-baseline.jsonl"
_SECTION = Section("Baseline")
_FILE = _SECTION.option(
    "--baseline", type=click.Path(path_type=Path), metavar="FILE", help=f"The file.  [default: the configured one, else {DEFAULT}]"
)


@dataclass(frozen=True, slots=True)
class _Now:
    """The findings of now as entries, and which entries of the file this scan can speak about."""

    file: Path
    found: Counter[Fingerprint]
    root: Path
    paths: tuple[Path, ...]
    enabled: frozenset[str]

    def known(self) -> tuple[Counter[Fingerprint], Counter[Fingerprint]]:
        """The entries of the file that this scan judges, and the others."""
        from hostlint import baseline as files

        inside: Counter[Fingerprint] = Counter()
        outside: Counter[Fingerprint] = Counter()
        for entry, count in files.load(self.file).items():
            (inside if self._judges(entry) else outside)[entry] = count
        return inside, outside

    def _judges(self, entry: Fingerprint) -> bool:
        return entry.code in self.enabled and any((self.root / entry.path).is_relative_to(path) for path in self.paths)


@click.group()
def baseline() -> None:
    """Keep the findings that are known, so that a scan shows new ones only."""


@baseline.command(cls=SectionedCommand)
@what_to_scan
@_FILE
@the_run
def write(**given: Any) -> None:
    """Take every finding of now as known."""
    now = _scanned(given)
    _keep(now.file, now.found)
    _say(given, f"{now.file}: {now.found.total()} known")


@baseline.command(cls=SectionedCommand)
@what_to_scan
@_FILE
@_SECTION.option("--accept-new", is_flag=True, help="Take new findings as known too.")
@the_run
def update(accept_new: bool, **given: Any) -> None:
    """Forget the entries that no finding needs any more."""
    now = _scanned(given)
    known, others = now.known()
    _keep(now.file, others + (now.found if accept_new else known & now.found))
    stale, new = (known - now.found).total(), (now.found - known).total()
    _say(given, f"{now.file}: {stale} stale removed, {new} new {'added' if accept_new else 'not added'}")


@baseline.command(cls=SectionedCommand)
@what_to_scan
@_FILE
@the_run
def check(**given: Any) -> int:
    """Fail (exit status 1) where an entry is stale: what it knows has been mended, so it must go."""
    now = _scanned(given)
    stale = now.known()[0] - now.found
    for entry, count in sorted(stale.items()):
        click.echo(f"{entry.path}: stale: {count} x {entry.code} in {entry.function}")
    return FINDINGS if stale else 0


def _scanned(given: dict[str, Any]) -> _Now:
    from hostlint.cli.run import absolute, settings_and_scan
    from hostlint.scan import Wish

    outcome = settings_and_scan(given, Wish(subtract=False))
    file = outcome.settings.baseline or Path(DEFAULT)
    if outcome.result.errors:  # what such a file holds is not known, so its entries can be neither kept nor dropped
        listed = "\n".join(f"  {error.path}:{error.line}: {error.message}" for error in outcome.result.errors)
        raise HostlintError(f"{file} is left as it is, for not every file could be read:\n{listed}")
    found = Counter(outcome.fingerprints.of(finding) for finding in outcome.result.findings)
    paths = tuple(absolute(path) for path in given["paths"] or (".",))
    return _Now(file, found, outcome.settings.root, paths, outcome.settings.enabled)


def _keep(file: Path, entries: Mapping[Fingerprint, int]) -> None:
    from hostlint import baseline as files
    from hostlint.cli import output

    output.check(file)
    output.write(files.dump(entries), file)


def _say(given: dict[str, Any], message: str) -> None:
    if not given["quiet"]:
        click.echo(f"hostlint: {message}", err=True)
