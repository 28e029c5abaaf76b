"""`hostlint scan`."""
from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from hostlint.cli.options import how_to_report, the_run, what_to_scan
from hostlint.cli.sections import SectionedCommand

if TYPE_CHECKING:
    from hostlint.report.base import Report
    from hostlint.scan import Outcome


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
    from hostlint.cli.run import settings_and_scan
    from hostlint.report.base import FOR_PEOPLE, WITH_FIXES, render
    from hostlint.scan import Wish

    output.check(given["output_file"])
    outcome = settings_and_scan(given, Wish(fixes=given["output_format"] in WITH_FIXES and not given["statistics"]))
    text = render(_report(outcome, _coloured(given)), given["output_format"], given["statistics"])
    output.write(text, given["output_file"])
    if not given["quiet"] and (given["output_file"] or given["output_format"] not in FOR_PEOPLE):
        for error in outcome.result.errors:
            click.echo(f"hostlint: error: {error.path}:{error.line}: {error.message}", err=True)
    return outcome.status(given["exit_zero"])


def _report(outcome: Outcome, coloured: bool) -> Report:
    from hostlint import registry
    from hostlint.report.base import Report

    against_baseline = outcome.settings.baseline is not None
    return Report(outcome.result, outcome.sources, outcome.fingerprints, registry.rules(), against_baseline, coloured)


def _coloured(given: dict[str, Any]) -> bool:
    if given["color"] != "auto":
        return bool(given["color"] == "always")
    if given["output_file"] or os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout is not None and sys.stdout.isatty())
