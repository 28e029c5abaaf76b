"""`hostlint confirm`."""
from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hostlint.cli.options import confirm_reports, confirm_runs, the_run, which_findings
from hostlint.cli.sections import SectionedCommand

if TYPE_CHECKING:
    from hostlint.confirm.record import Record
    from hostlint.model import Finding
    from hostlint.scan import Outcome


@click.command(cls=SectionedCommand, context_settings={"allow_interspersed_args": False})
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="(SCRIPT | -m MODULE) [ARG]...")
@confirm_runs
@which_findings
@confirm_reports
@the_run
def confirm(**given: Any) -> int:
    """Run a program and say of each finding whether it makes the host wait.

    The program runs as Python would run it, with a recorder in it and in the Python processes that it starts. Exit status: the program's
    own where that is not 0; else 0, or 1 under --fail-on-events.
    """
    from hostlint.cli import output
    from hostlint.cli.confirmed import show
    from hostlint.confirm.confirm import Wanted
    from hostlint.confirm.confirm import confirm as run
    from hostlint.confirm.program import die_as
    from hostlint.confirm.record import write

    for file in (given["record"], given["html"], given["output_file"]):
        output.check(file)
    arguments = _arguments(given["program"], given["module"])
    everything, shown = _scanned(given, arguments)
    record = run(Wanted(arguments, given["device"], given["warmup"]), everything, shown)
    if given["record"]:
        output.write(write(record), given["record"])
    show(record, given)
    if record.exit:
        return die_as(record.exit)
    return int(given["fail_on_events"] and _unallowed(record))


def _arguments(program: tuple[str, ...], module: bool) -> tuple[str, ...]:
    from hostlint.errors import UsageError

    if module:
        return ("-m", *program)
    if not Path(program[0]).is_file():
        raise UsageError(f"there is no script {program[0]} (a module is run with -m)")
    return program


def _scanned(given: dict[str, Any], arguments: tuple[str, ...]) -> tuple[Outcome, list[Finding]]:
    """A scan at any heat and confidence, and those of its findings that the options ask for and a run can speak of."""
    from hostlint.cli.run import prepared
    from hostlint.model import Confidence, HeatLevel
    from hostlint.scan import Wish
    from hostlint.suppress import OWN_FAMILY

    run = prepared({**given, "paths": given["scan"] or (_folder(arguments),), "stdin_filename": None, "baseline": None})
    everything = replace(run, settings=replace(run.settings, min_heat=HeatLevel.COLD, min_confidence=Confidence.POSSIBLE))
    outcome = everything.scan(Wish(subtract=False))
    wanted = filter(run.settings.wants, outcome.result.findings)
    return outcome, [finding for finding in wanted if not finding.code.startswith(OWN_FAMILY)]


def _folder(arguments: tuple[str, ...]) -> str:
    """Here, where the program lies here too; else the script's own folder."""
    script = Path(os.path.abspath(arguments[0]))
    return "." if arguments[0] == "-m" or script.is_relative_to(Path.cwd()) else str(script.parent)


def _unallowed(record: Record) -> bool:
    """Whether something of the user's own code made the host wait, or paused it, and nothing allowed that."""
    own = set(record.digests)
    return any(event.allowed is None and event.kind != "collect" and event.place.path in own for event in record.events)
