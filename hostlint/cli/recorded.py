"""Scans that are joined with a kept record: what `scan --record` and `fix --record` have in common."""
from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hostlint.confirm.record import read
from hostlint.confirm.returned import Judged, Returned
from hostlint.model import Confidence, HeatLevel

if TYPE_CHECKING:
    from hostlint.cli.run import Run
    from hostlint.scan import Wish


@dataclass
class Recorded:
    """A run's scans, each with the verdicts of one record. What explains an event may be too cool to be shown, so everything is judged."""

    run: Run
    file: Path
    returned: Returned
    _has_spoken: bool = False

    @classmethod
    def of(cls, run: Run, file: Path) -> Recorded:
        return cls(run, file, Returned(read(file)))

    def scan(self, wish: Wish) -> Judged:
        settings = self.run.settings
        everything = replace(self.run, settings=replace(settings, min_heat=HeatLevel.COLD, min_confidence=Confidence.POSSIBLE))
        judged = self.returned.judge(everything.scan(replace(wish, subtract=False)), settings, wish.subtract)
        if not self._has_spoken:
            self._has_spoken = True
            self._warn(judged)
        return judged

    def _warn(self, judged: Judged) -> None:
        if not judged.known and judged.outcome.given:
            self.run.speech.warn(f"{self.file} is the record of a run of other files: nothing is known of these")
        if judged.changed:
            first, more = judged.changed[0], len(judged.changed) - 1
            files = first if not more else f"{first} and {more} more"
            self.run.speech.warn(f"changed since the run, so not measured: {files} (run `hostlint confirm` again)")
