"""Fixes one program's text as a project of its own, with the same rounds and checks as `hostlint fix`."""
from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hostlint.fix.rounds import Fixer, Result, Wanted
from hostlint.project import SourceFile

if TYPE_CHECKING:
    from hostlint.scan import Outcome
    from hostlint.settings import Settings


def fixed_text(text: str, path: str, codes: Collection[str] | None = None, review: bool = False) -> str:
    """The text after the fixes of the rules with these codes (None: of all), until none is left to apply."""
    result = fix_text(text, path, codes, review)
    return result.files[0].text if result.files else text


def fix_text(text: str, path: str, codes: Collection[str] | None = None, review: bool = False) -> Result:
    """As `fixed_text`, with what was mended and what is left."""
    from hostlint.settings import Options, resolve

    settings = resolve(Options(working=Path(), paths=(Path(path),), isolated=True, cache=False))

    def scan(texts: Mapping[Path, str], only: object = None) -> Outcome:
        return _outcome(settings, SourceFile(path, Path(path), True, Path(path).stem, texts.get(Path(path), text)), codes)

    return Fixer(scan, Wanted(review), text.encode()).run()


def _outcome(settings: Settings, source: SourceFile, codes: Collection[str] | None) -> Outcome:
    from hostlint.model import ScanResult
    from hostlint.scan import Outcome, scan_text
    from hostlint.sources import Sources

    findings, errors = scan_text(source.text or "", source.path, fixes=True)
    kept = tuple(replace(one, fix=one.fix if codes is None or one.code in codes else None) for one in findings)
    return Outcome(ScanResult(kept, tuple(errors)), settings, Sources(settings.working), (source,))
