"""Files as bytes: read with their encoding, written back whole or not at all, mode and links kept."""
from __future__ import annotations

import contextlib
import io
import os
import stat
import tempfile
import tokenize
from codecs import BOM_UTF8
from dataclasses import dataclass
from pathlib import Path


class UnfixableError(Exception):
    """Why a file cannot be fixed; the words go after its path."""


@dataclass(frozen=True, slots=True)
class Original:
    """A file as it was read. `bom` is its byte-order mark, which is no part of `text`; the text has the file's own line ends."""

    data: bytes
    text: str
    codec: str
    bom: bytes = b""

    def encoded(self, text: str) -> bytes:
        """A new text as the file's bytes; UnfixableError where its encoding has no bytes for a character."""
        try:
            return self.bom + text.encode(self.codec)
        except UnicodeEncodeError as error:
            raise UnfixableError(f"{error.object[error.start : error.end]!r} cannot be written in {self.codec}") from error


def decoded(data: bytes) -> Original:
    """By the coding line or byte-order mark; UnfixableError where the bytes would not survive being read and written."""
    try:
        codec, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        bom = BOM_UTF8 if codec == "utf-8-sig" else b""
        codec = "utf-8" if bom else codec
        original = Original(data, data[len(bom) :].decode(codec), codec, bom)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise UnfixableError(f"cannot be decoded: {error}") from error
    if original.encoded(original.text) != data:
        raise UnfixableError(f"its bytes would not stay as they are when written as {codec}")
    return original


def replace(file: Path, before: bytes, after: bytes) -> None:
    """Put new content in the place of what was read, in one step: a reader, a crash or a full disk finds the old file or the new one.

    A link's target is replaced, never the link. UnfixableError where the file is read-only, or is not what was read any more."""
    target = Path(os.path.realpath(file))
    try:
        status = target.stat()
        if not status.st_mode & 0o222 or not os.access(target, os.W_OK):
            raise UnfixableError("is read-only")
        _check_same(target, before)
        _swap(target, after, status, before)
    except OSError as error:
        raise UnfixableError(f"cannot be written: {(error.strerror or str(error)).lower()}") from error


def _check_same(target: Path, before: bytes) -> None:
    if target.read_bytes() != before:
        raise UnfixableError("changed while it was being fixed; it is left as it is")


def _swap(target: Path, after: bytes, status: os.stat_result, before: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=".hostlint-", dir=target.parent)
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(after)
            stream.flush()
            os.fsync(stream.fileno())
        with contextlib.suppress(OSError, AttributeError):  # not everywhere, and not for everybody
            os.chown(fresh, status.st_uid, status.st_gid)
        fresh.chmod(stat.S_IMODE(status.st_mode))
        _check_same(target, before)
        fresh.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise
