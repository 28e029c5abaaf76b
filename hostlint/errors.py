"""The one family of errors that end a command; `hostlint.cli.main` alone turns them into a message and an exit status."""
from __future__ import annotations

FINDINGS = 1
FAILURE = 2
INTERRUPTED = 130  # what a shell reports for a program that an interrupt ended


class HostlintError(Exception):
    """Something that the user has to change: the message says what, in one line where that is possible."""

    exit_code = FAILURE


class UsageError(HostlintError):
    """Options or arguments that do not fit together."""


class ConfigError(HostlintError):
    """A configuration that cannot be read or means nothing."""


class OutputError(HostlintError):
    """A report that cannot be written."""
