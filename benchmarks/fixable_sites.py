"""What `hostlint fix --review` does about known faults: `fixable_sites.py BENCH.json PACKAGES [--only NAME]`, one line a site.

BENCH.json lists faults (`sites`: package, path, line, end_line, family, and `fixable` for how a cure is to be had). Only their files are
judged, with the whole package around them for heat, at `--min-heat request`. Fixes are asked for and tried in rounds, as `hostlint fix`
does, but nothing is written. Of each site is told: missed; found, but no fix is offered; withheld by the fixer, and why; or mended, `exact`
or for `review`. With `--json` also which fix. The cache makes a second run quick.
"""
from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hostlint.fix.rounds import Fixer, Wanted
from hostlint.model import Finding, HeatLevel
from hostlint.scan import Hooks, Outcome, Wish, scan
from hostlint.settings import Options, resolve

HOOKS = Hooks(print, lambda _: None)
KINDS = ("mechanical", "needs-host-copy", "needs-cache-helper")


@dataclass(frozen=True, slots=True)
class Site:
    """A fault, and what became of it."""

    id: str
    place: str
    fixable: str
    verdict: str  # "missed", "no fix", "withheld: …", "exact", "review"
    rules: tuple[str, ...] = ()
    message: str = ""

    def __str__(self) -> str:
        told = f" ({self.message})" if self.message else ""
        return f"{self.verdict:<7} {self.fixable:<18} {self.place} {self.id} {' '.join(self.rules)}{told}"


def main() -> int:
    given = _arguments()
    bench = json.loads(given.bench.read_text())
    packages: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for site in bench["sites"]:
        if (not given.only or site["package"].startswith(given.only)) and (given.all or site.get("fixable") in KINDS):
            packages[site["package"]].append(site)
    told: list[Site] = []
    for package, sites in sorted(packages.items()):
        folder = given.packages / package.replace("==", "-")
        if not folder.is_dir():
            print(f"{folder} is missing", file=sys.stderr)
            return 2
        told += _package(folder.resolve(), sites, given.cache_dir, given.jobs)
    print("\n".join(map(str, told)))
    for kind in sorted({one.fixable for one in told}):
        verdicts = Counter(one.verdict.partition(":")[0] for one in told if one.fixable == kind)
        fixed = verdicts["exact"] + verdicts["review"]
        parts = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.most_common())
        print(f"{kind}: {fixed}/{verdicts.total()} = {fixed / verdicts.total():.1%} ({parts})")
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in told], indent=1) + "\n")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("packages", type=Path, help="a folder with a folder NAME-VERSION for each package")
    parser.add_argument("--only", help="a package's name, or its beginning")
    parser.add_argument("--all", action="store_true", help="also sites of which nobody said how a cure is to be had")
    parser.add_argument("--cache-dir", type=Path, default=Path(tempfile.gettempdir()) / "hostlint-fixable-sites")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _package(folder: Path, sites: Sequence[Mapping[str, Any]], cache_dir: Path, jobs: int) -> Iterator[Site]:
    files = tuple(sorted({folder / site["path"] for site in sites}))
    settings = resolve(Options(folder, files, isolated=True, min_heat=HeatLevel.REQUEST, cache_dir=cache_dir))
    outcomes: list[Outcome] = []

    def told(texts: Mapping[Path, str], only: Collection[Path] | None = None) -> Outcome:
        outcomes.append(scan(settings, files, None, jobs, HOOKS, Wish(False, True, texts, only if only is not None else files)))
        return outcomes[-1]

    fixer = Fixer(told, Wanted(review=True))
    fixer.run()
    found = outcomes[0].result.findings
    withheld = {(path, code, function, text): reason for (path, code, function, text), reason in fixer._withheld.items()}
    for site in sorted(sites, key=lambda site: (site.get("fixable", ""), site["path"], site["line"])):
        yield _site(site, found, withheld)


def _site(site: Mapping[str, Any], findings: Sequence[Finding], withheld: Mapping[tuple[str, str, str, str], str]) -> Site:
    here = [one for one in findings if one.path == site["path"] and _overlaps(one, site) and one.code.startswith(tuple(site["family"]))]
    place, kind = f"{site['path']}:{site['line']}", site.get("fixable") or "unknown"
    offered = [(one, one.fix, withheld.get(_key(one), "")) for one in here if one.fix is not None]
    mended = [(one, fix) for one, fix, reason in offered if not reason]
    rules = tuple(f"{one.code}/{one.heat.level.label}" for one in here)
    if mended:
        best = min((fix for _, fix in mended), key=lambda fix: fix.applicability.value != "exact")
        return Site(site["id"], place, kind, best.applicability.value, rules, best.message)
    if offered:
        return Site(site["id"], place, kind, f"withheld: {offered[0][2]}", rules)
    return Site(site["id"], place, kind, "no fix" if here else "missed", rules)


def _key(finding: Finding) -> tuple[str, str, str, str]:
    """What the fixer calls a finding over its rounds."""
    edits = finding.fix.edits if finding.fix is not None else ()
    return finding.path, finding.code, finding.function, "\0".join(edit.text for edit in edits)


def _overlaps(finding: Finding, site: Mapping[str, Any]) -> bool:
    span = finding.span
    last = span.end_line if span.end_line - span.line < 10 else span.line
    return bool(span.line <= site.get("end_line", site["line"]) and last >= site["line"])


if __name__ == "__main__":
    sys.exit(main())
