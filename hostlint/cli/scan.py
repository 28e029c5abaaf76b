"""`hostlint scan`."""
from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

import click

from hostlint.cli.options import how_to_report, the_run, what_to_scan
from hostlint.cli.sections import SectionedCommand

if TYPE_CHECKING:
    from pathlib import Path

    from hostlint.cli.run import Run
    from hostlint.confirm.record import Event
    from hostlint.report.base import Report
    from hostlint.scan import Outcome, Wish


@click.command(cls=SectionedCommand)
@what_to_scan
@how_to_report
@the_run
def scan(**given: Any) -> int:
    """Find host overhead in files and folders (default: here).

    The code is read, never imported or run. Exit status: 0 nothing found, 1 findings, 2 a mistake in the call, the configuration or an
    input file.
    """
    from hostlint.cli import output
    from hostlint.cli.run import prepared
    from hostlint.report.base import FOR_PEOPLE, WITH_FIXES, render
    from hostlint.scan import Wish

    output.check(given["output_file"])
    wish = Wish(fixes=given["output_format"] in WITH_FIXES and not given["statistics"])
    outcome, unpredicted = _scanned(prepared(given), given["record"], wish)
    in_colours = given["color"] == "always" or (not given["output_file"] and coloured(given["color"], sys.stdout))
    text = render(_report(outcome, in_colours, unpredicted), given["output_format"], given["statistics"])
    output.write(text, given["output_file"])
    if not given["quiet"] and (given["output_file"] or given["output_format"] not in FOR_PEOPLE):
        for error in outcome.result.errors:
            click.echo(f"hostlint: error: {error.path}:{error.line}: {error.message}", err=True)
    return outcome.status(given["exit_zero"])


def _scanned(run: Run, record: Path | None, wish: Wish) -> tuple[Outcome, tuple[Event, ...]]:
    """The scan, joined with a record where there is one, and the record's events that no finding explains."""
    if record is None:
        return run.scan(wish), ()
    from hostlint.cli.recorded import Recorded

    judged = Recorded.of(run, record).scan(wish)
    return judged.outcome, judged.unpredicted


def _report(outcome: Outcome, in_colours: bool, unpredicted: tuple[Event, ...]) -> Report:
    from hostlint import registry
    from hostlint.report.base import Report

    against_baseline = outcome.settings.baseline is not None
    return Report(outcome.result, outcome.sources, outcome.fingerprints, registry.rules(), against_baseline, in_colours, unpredicted)


def coloured(color: str, stream: TextIO | None) -> bool:
    """Whether what goes to a stream is to have colours, by the option `--color` and the usual variables."""
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream is not None and stream.isatty())
