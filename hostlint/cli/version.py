"""`hostlint version`."""
from __future__ import annotations

import click

from hostlint.version import VERSION


@click.command()
def version() -> None:
    """Say which hostlint this is."""
    click.echo(f"hostlint {VERSION}")
