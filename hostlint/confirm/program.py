"""Runs the user's program as Python would, with the recorder in it and in all Python processes that it starts."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import hostlint.runtime_checks.confirm
from hostlint.errors import UsageError

FOLDER = "HOSTLINT_CONFIRM"
_PASSED_ON = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")


def run(arguments: Sequence[str], folder: Path) -> int:
    """Runs `python ARGUMENTS…` to its end and returns its exit status, negative for a signal; it records itself into `folder`."""
    site = Path(hostlint.runtime_checks.confirm.__file__).parent / "site"
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, FOLDER: str(folder)}
    try:
        child = subprocess.Popen([sys.executable, *arguments], env=environment)  # noqa: S603  the program that the user named
    except OSError as error:
        raise UsageError(f"cannot run the program: {error}") from error
    with _signals_go_to(child):
        return child.wait()


def die_as(status: int) -> int:
    """The exit status of a program that ended with `status`; one that a signal ended ends this process in the same way."""
    if status >= 0:
        return status
    number = -status
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    sys.stdout.flush()
    os.kill(os.getpid(), number)
    return 128 + number  # where the signal is blocked


@contextmanager
def _signals_go_to(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ctrl-C reaches the program by itself, from the terminal; what is sent to this process alone is passed on."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        child.send_signal(number)

    numbers = [getattr(signal, name) for name in _PASSED_ON if hasattr(signal, name)]
    before = {number: signal.signal(number, pass_on) for number in numbers}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
