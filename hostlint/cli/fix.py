"""`hostlint fix`."""
from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hostlint.cli.options import how_to_fix, the_run, what_to_scan
from hostlint.cli.sections import SectionedCommand
from hostlint.errors import FAILURE, FINDINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hostlint.cli.run import Run
    from hostlint.fix.report import Told
    from hostlint.fix.rounds import FixedFile, Result
    from hostlint.scan import Outcome, Wish


@click.command(cls=SectionedCommand)
@what_to_scan
@how_to_fix
@the_run
def fix(**given: Any) -> int:
    """Mend what can be mended with the same results, bit for bit (default: here).

    Only fixes that are exact are applied; --review also applies those that rest on an assumption, which their messages state. Exit status:
    0 nothing is left, 1 findings are left (with --diff: something would change), 2 a mistake in the call, the configuration or an input
    file, or a file that could not be written.
    """
    from hostlint.cli.run import prepared
    from hostlint.fix.report import Told, render
    from hostlint.fix.rounds import Fixer, Wanted
    from hostlint.scan import Wish

    run = prepared(given)
    wanted = Wanted(given["review"], given["baselined"])
    data = run.standard.data if run.standard else None
    with _cached(run) as kept:
        scan = _scan(kept, given["record"])
        result = Fixer(lambda texts, only=None: scan(Wish(False, True, texts, only)), wanted, data).run()
    told = Told(result, wanted, given["diff"])
    if given["diff"]:
        _print_diff(result)
    elif data is not None:
        _print_fixed(result, data)
    else:
        told = told.written(_write(result))
    beside = given["diff"] or data is not None  # standard output is the diff's, or the program's
    if not (beside and given["quiet"]):
        _say(render(told, _coloured(given)), on_stderr=beside)
    for error in told.errors:
        click.echo(f"hostlint: error: {error.path}:{error.line}: {error.message}", err=True)
    return _status(told, given["diff"], given["exit_zero"])


@contextmanager
def _cached(run: Run) -> Iterator[Run]:
    """The run with a cache: a round is cheap because of what the rounds before it found. With `--no-cache` it lasts as long as the run."""
    if run.settings.cache_dir is not None:
        yield run
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="hostlint-") as folder:
        yield replace(run, settings=replace(run.settings, cache_dir=Path(folder)))


def _scan(run: Run, record: Path | None) -> Callable[[Wish], Outcome]:
    """How to scan: with the verdicts of a record, where there is one."""
    if record is None:
        return run.scan
    from hostlint.cli.recorded import Recorded

    recorded = Recorded.of(run, record)
    return lambda wish: recorded.scan(wish).outcome


def _print_diff(result: Result) -> None:
    from hostlint.cli import output
    from hostlint.fix.diff import unified

    output.write_standard("".join(unified(file.source.path, file.before.text, file.text) for file in result.files))


def _print_fixed(result: Result, data: bytes) -> None:
    """The program of standard input as it came out, in its own encoding; unchanged where nothing was mended."""
    from hostlint.cli import output

    output.write_standard_bytes(result.files[0].after if result.files else data)


def _write(result: Result) -> dict[str, str]:
    """Write every file; what kept one from being written, by path."""
    return {file.source.path: trouble for file in result.files if (trouble := _replace(file))}


def _replace(file: FixedFile) -> str:
    from hostlint.fix.files import UnfixableError, replace

    try:
        replace(file.source.file, file.before.data, file.after)
    except UnfixableError as trouble:
        return str(trouble)
    return ""


def _say(text: str, on_stderr: bool) -> None:
    from hostlint.cli import output

    if on_stderr:
        click.echo(text, err=True, nl=False)
    else:
        output.write_standard(text)


def _coloured(given: dict[str, Any]) -> bool:
    from hostlint.cli.scan import coloured

    return coloured(given["color"], sys.stderr if given["diff"] else sys.stdout)


def _status(told: Told, diff: bool, exit_zero: bool) -> int:
    if told.errors:
        return FAILURE
    failing = bool(told.result.files) if diff else told.is_failing
    return FINDINGS if failing and not exit_zero else 0
