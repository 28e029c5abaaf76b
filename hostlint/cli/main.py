"""The entry point: finds the command, and turns every error into one message and an exit status."""
from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import click

from hostlint.errors import FAILURE, INTERRUPTED, HostlintError
from hostlint.version import VERSION

# Command -> module of `hostlint.cli` that holds it under that name; imported only when called.
_COMMANDS = {
    "scan": "scan",
    "fix": "fix",
    "confirm": "confirm",
    "report": "report",
    "rule": "rule",
    "explain": "rule",
    "baseline": "baseline",
    "test": "test",
    "version": "version",
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = getattr(import_module(f"hostlint.cli.{_COMMANDS[cmd_name]}"), cmd_name)
        return command if isinstance(command, click.Command) else None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from hostlint.config.keys import did_you_mean

            raise click.UsageError(f"no such command {args[0]!r}{did_you_mean(args[0], _COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, "-V", "--version", prog_name="hostlint", message="%(prog)s %(version)s")
def commands() -> None:
    """Find where PyTorch code makes the host wait for the GPU, upload to it, or do work again."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:  # a name or a message never fails for want of an encoding
            reconfigure(errors="backslashreplace")
    try:
        status = commands.main(args=arguments, prog_name="hostlint", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except HostlintError as error:
        click.echo(f"hostlint: error: {error}", err=True)
        return error.exit_code
    except Exception:  # noqa: BLE001  whatever it is, status 1 would say "findings"
        traceback.print_exc()
        click.echo("hostlint: error: this is a bug in hostlint; please report it with the lines above", err=True)
        return FAILURE
    return status if isinstance(status, int) else 0
