"""Writing a report: to standard output, or to a file that is whole or untouched."""
from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from hostlint.errors import OutputError


def check(file: Path | None) -> None:
    """Refuse a target that cannot work before the work is done."""
    if file is None:
        return
    if file.is_dir():
        raise OutputError(f"cannot write {file}: it is a folder")
    if not file.parent.is_dir():
        raise OutputError(f"cannot write {file}: there is no folder {file.parent}")


def write(text: str, file: Path | None) -> None:
    if file is None:
        write_standard(text)
        return
    try:
        write_file(file, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise OutputError(f"cannot write {file}: {_reason(error)}") from error


def write_standard(text: str) -> None:
    """To standard output; a reader that has gone away is no error, anything else that stops the writing is."""
    _to_standard(lambda stream: stream.write(text))


def write_standard_bytes(data: bytes) -> None:
    """As `write_standard`, for a program in its own encoding."""
    _to_standard(lambda stream: stream.buffer.write(data))


def _to_standard(write: Callable[[TextIO], object]) -> None:
    if sys.stdout is None:
        raise OutputError("cannot write the report: standard output is closed")
    try:
        write(sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_standard_output()
    except (OSError, ValueError) as error:
        _drop_standard_output()
        raise OutputError(f"cannot write the report: {_reason(error)}") from error


def write_file(file: Path, data: bytes) -> None:
    """Replace a file in one step, its mode kept; what is no regular file (a pipe, /dev/stdout) is written as it stands."""
    target = Path(os.path.realpath(file))
    if target.exists() and not target.is_file():
        with target.open("wb") as stream:
            stream.write(data)
        return
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        Path(name).chmod(_mode(target))
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _mode(target: Path) -> int:
    """The mode of the file that is replaced, or what this process gives to new files."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _drop_standard_output() -> None:
    """Let nothing more go there: the interpreter flushes once more at its end, and would complain."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _reason(error: OSError | ValueError) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()
