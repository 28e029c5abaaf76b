"""`hostlint report`."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hostlint.cli.options import confirm_reports
from hostlint.cli.sections import SectionedCommand


@click.command(cls=SectionedCommand)
@click.argument("record_file", type=click.Path(path_type=Path), metavar="RECORD")
@confirm_reports
def report(record_file: Path, **given: Any) -> int:
    """Render a record of `confirm` again."""
    from hostlint.cli import output
    from hostlint.cli.confirmed import show
    from hostlint.confirm.record import read

    for file in (given["html"], given["output_file"]):
        output.check(file)
    show(read(record_file), given)
    return 0
