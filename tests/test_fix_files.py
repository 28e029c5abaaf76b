"""Files: bytes that no edit touches stay, a write is whole or not at all, and what cannot be fixed is left alone and said."""
from __future__ import annotations

import errno
import os
import stat
from codecs import BOM_UTF8
from pathlib import Path

import pytest

from hostlint.fix.files import UnfixableError, decoded, replace


@pytest.mark.parametrize(
    ("data", "codec"),
    [
        (b"x = 1\n", "utf-8"),
        (BOM_UTF8 + b"x = 1\r\n", "utf-8"),
        ("# -*- coding: latin-1 -*-\nx = '\xe9'\n".encode("latin-1"), "iso-8859-1"),
        ("#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\r\nx = '\u20ac'\r".encode("cp1252"), "cp1252"),
        ("# coding: shift_jis\nx = '\u8868'\n".encode("shift_jis"), "shift_jis"),
        (b"x = 1\rif x:\r\n\ty = 2\n\x0c", "utf-8"),
        (b"", "utf-8"),
    ],
)
def test_bytes_survive(data: bytes, codec: str) -> None:
    original = decoded(data)
    assert original.codec == codec
    assert original.encoded(original.text) == data
    assert not original.text.startswith("\ufeff")


@pytest.mark.parametrize(
    "data",
    [b"# coding: utf-7\nx = '+AGE-'\n", b"x = '\xff'\n", b"# coding: no-such\n", b"# coding: iso2022_jp\nx = '\x1b$B\x1b(B'\n"],
)
def test_bytes_that_would_not_survive_are_refused(data: bytes) -> None:
    with pytest.raises(UnfixableError):
        decoded(data)


def test_a_character_that_the_encoding_lacks_is_refused() -> None:
    with pytest.raises(UnfixableError, match="cannot be written in iso-8859-1"):
        decoded(b"# coding: latin-1\n").encoded("# coding: latin-1\n# \u20ac\n")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "mod.py"
    file.write_bytes(b"old\n")
    return file


def listed(file: Path) -> list[str]:
    return sorted(path.name for path in file.parent.iterdir())


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o2750])
def test_mode_is_kept(file: Path, mode: int) -> None:
    file.chmod(mode)
    replace(file, b"old\n", b"new\n")
    assert file.read_bytes() == b"new\n"
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert listed(file) == ["mod.py"]


def test_a_link_stays_one(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "links"
    folder.mkdir()
    link = folder / "mod.py"
    link.symlink_to(os.path.relpath(file, folder))
    replace(link, b"old\n", b"new\n")
    assert link.is_symlink()
    assert file.read_bytes() == b"new\n"
    assert listed(link) == ["mod.py"]


def test_read_only_is_respected(file: Path) -> None:
    file.chmod(0o444)
    with pytest.raises(UnfixableError, match="is read-only"):
        replace(file, b"old\n", b"new\n")
    assert file.read_bytes() == b"old\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o444


def test_what_changed_meanwhile_is_left_alone(file: Path) -> None:
    with pytest.raises(UnfixableError, match="changed while"):
        replace(file, b"older\n", b"new\n")
    assert file.read_bytes() == b"old\n"
    file.unlink()
    with pytest.raises(UnfixableError, match="no such file"):
        replace(file, b"old\n", b"new\n")
    assert not file.exists()


def test_a_change_during_the_write_is_seen(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interfere(handle: int) -> None:
        file.write_bytes(b"someone else's\n")

    monkeypatch.setattr("os.fsync", interfere)
    with pytest.raises(UnfixableError, match="changed while"):
        replace(file, b"old\n", b"new\n")
    assert file.read_bytes() == b"someone else's\n"
    assert listed(file) == ["mod.py"]


@pytest.mark.parametrize("stop", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()])
def test_nothing_is_lost_on_a_full_disk_or_an_interrupt(file: Path, monkeypatch: pytest.MonkeyPatch, stop: BaseException) -> None:
    def full(handle: int) -> None:
        raise stop

    monkeypatch.setattr("os.fsync", full)
    expected = UnfixableError if isinstance(stop, OSError) else KeyboardInterrupt
    with pytest.raises(expected, match="no space left" if isinstance(stop, OSError) else "^$"):
        replace(file, b"old\n", b"new\n")
    assert file.read_bytes() == b"old\n"
    assert listed(file) == ["mod.py"]
