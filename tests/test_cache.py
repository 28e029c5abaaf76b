"""The cache keeps what it is given, notices every change of a file, and never fails a scan."""
from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostlint import cache as module
from hostlint.cache import Cache, digest

LONG_AGO = 1_600_000_000


class Warnings(list[str]):
    def __call__(self, message: str) -> None:
        self.append(message)


@pytest.fixture
def warned() -> Warnings:
    return Warnings()


OPENED: list[Cache] = []  # by `again`; closed after each test


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    yield tmp_path / "home"
    while OPENED:
        OPENED.pop().close()


@pytest.fixture
def cache(tmp_path: Path, warned: Warnings) -> Iterator[Cache]:
    cache = Cache(tmp_path / ".hostlint_cache", warned, timeout=0.05)
    yield cache
    cache.close()


def again(cache: Cache) -> Cache:
    cache.close()
    OPENED.append(Cache(cache.folder, cache.warn, cache.timeout))
    return OPENED[-1]


def test_blobs_are_there_in_the_next_run(cache: Cache) -> None:
    blobs = {digest(str(number).encode()): bytes(number) for number in range(1200)}
    cache.put_many(blobs)
    assert again(cache).get_many([*blobs, digest(b"other")]) == blobs


def test_a_cache_that_came_with_a_project_is_not_believed(cache: Cache, home: Path) -> None:
    cache.put_many({b"key": b"value"})
    assert (home / "hostlint" / "cache-key").stat().st_mode & 0o777 == 0o600
    (home / "hostlint" / "cache-key").unlink()
    cache = again(cache)
    assert cache.get_many([b"key"]) == {}
    cache.put_many({b"key": b"value"})
    assert again(cache).get_many([b"key"]) == {b"key": b"value"}


def test_a_blob_under_another_key_or_changed_is_not_believed(cache: Cache) -> None:
    cache.put_many({b"key": b"value", b"other": b"else"})
    cache.close()
    with sqlite3.connect(cache.folder / "facts.sqlite3") as database:
        database.execute("UPDATE blob SET value = (SELECT value FROM blob WHERE key = ?) WHERE key = ?", (b"other", b"key"))
    database.close()
    assert cache.get_many([b"key", b"other"]) == {b"other": b"else"}


def test_without_a_place_for_the_key_a_run_still_has_its_cache(cache: Cache, home: Path, warned: Warnings) -> None:
    home.write_text("no folder")
    cache.put_many({b"key": b"value"})
    assert cache.get_many([b"key"]) == {b"key": b"value"}
    assert len(warned) == 1
    assert again(cache).get_many([b"key"]) == {}


def test_the_folder_keeps_itself_out_of_git_and_backups(cache: Cache) -> None:
    assert cache.get_many([b"x"]) == {}
    assert (cache.folder / ".gitignore").read_text() == "*\n"
    assert (cache.folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")


def source(tmp_path: Path, name: str = "a.py", text: str = "x = 1\n") -> str:
    file = tmp_path / name
    file.write_text(text)
    return str(file)


def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the files had been there for a while."""
    monkeypatch.setattr(module, "_RACY_NS", -module._RACY_NS)


def remember(cache: Cache, *files: str) -> None:
    cache.remember((file, Path(file).stat(), digest(Path(file).read_bytes())) for file in files)


def test_an_unchanged_file_is_known(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch)
    first, second = source(tmp_path), source(tmp_path, "b.py", "y\n")
    remember(cache, first, second)
    assert again(cache).unchanged([first, str(tmp_path / "c.py")]) == {first: digest(b"x = 1\n")}


def test_a_change_is_noticed_even_with_old_size_and_time(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch)
    file = source(tmp_path)
    os.utime(file, (LONG_AGO, LONG_AGO))
    remember(cache, file)
    assert list(cache.unchanged([file])) == [file]
    other = source(tmp_path, "b.py", "x = 2\n")
    os.utime(other, (LONG_AGO, LONG_AGO))
    Path(other).replace(file)
    assert cache.unchanged([file]) == {}


def test_a_file_that_has_just_changed_is_read_again(cache: Cache, tmp_path: Path) -> None:
    file = source(tmp_path)
    remember(cache, file)
    assert cache.unchanged([file]) == {}


def test_a_damaged_database_is_replaced(cache: Cache, warned: Warnings) -> None:
    cache.put_many({b"key": b"value"})
    cache.close()
    (cache.folder / "facts.sqlite3").write_bytes(b"not a database, but long enough to look at" * 100)
    assert cache.get_many([b"key"]) == {}
    cache.put_many({b"key": b"value"})
    assert len(warned) == 1
    assert "going on without a cache" in warned[0]
    renewed = again(cache)
    renewed.put_many({b"key": b"value"})
    assert renewed.get_many([b"key"]) == {b"key": b"value"}
    assert len(warned) == 1


def test_a_locked_database_is_left_alone(cache: Cache, warned: Warnings) -> None:
    cache.put_many({b"key": b"value"})
    with sqlite3.connect(cache.folder / "facts.sqlite3") as other:
        other.execute("BEGIN EXCLUSIVE")
        assert cache.get_many([b"key"]) == {}
        assert cache.get_many([b"key"]) == {}
        other.rollback()
    other.close()
    assert len(warned) == 1
    assert again(cache).get_many([b"key"]) == {b"key": b"value"}


def test_a_folder_that_cannot_be_made(tmp_path: Path, warned: Warnings) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "cache", warned)
    assert cache.unchanged([]) == {}
    cache.put_many({b"key": b"value"})
    assert len(warned) == 1


def test_tables_of_another_version_are_dropped(cache: Cache, warned: Warnings) -> None:
    cache.put_many({b"key": b"value"})
    cache.close()
    with sqlite3.connect(cache.folder / "facts.sqlite3") as other:
        other.execute("PRAGMA user_version = 77")
    other.close()
    assert cache.get_many([b"key"]) == {}
    cache.put_many({b"key": b"new"})
    assert cache.get_many([b"key"]) == {b"key": b"new"}
    assert warned == []


def test_what_no_run_uses_is_forgotten(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    day = module._today()
    monkeypatch.setattr(module, "_today", lambda: day)
    cache.put_many({b"used": b"1", b"unused": b"2"})
    monkeypatch.setattr(module, "_today", lambda: day + 20)
    cache = again(cache)
    cache.get_many([b"used"])
    cache = again(cache)
    monkeypatch.setattr(module, "_today", lambda: day + 40)
    cache.put_many({b"new": b"3"})
    assert set(cache.get_many([b"used", b"unused", b"new"])) == {b"used", b"new"}
    cache.close()


def test_too_much_is_cut_from_the_old_end(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    day = module._today()
    monkeypatch.setattr(module, "_KEPT_BYTES", 2 * (10 + module._SEAL) + 1)
    for number in range(3):
        monkeypatch.setattr(module, "_today", lambda number=number: day + number)
        cache.put_many({bytes([number]): bytes(10)})
    assert set(cache.get_many([b"\0", b"\1", b"\2"])) == {b"\1", b"\2"}


def test_runs_at_the_same_time_share_it(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from hostlint.cache import Cache\n"
        "cache = Cache(Path(sys.argv[1]), lambda message: sys.exit(message))\n"
        "for n in range(30): cache.put_many({f'{sys.argv[2]}-{n}'.encode(): b'v'})\n"
        "cache.close()\n"
    )
    runs = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path), name]) for name in "abc"]
    assert [run.wait() for run in runs] == [0, 0, 0]
    cache = Cache(tmp_path, pytest.fail)
    assert len(cache.get_many(f"{name}-{number}".encode() for name in "abc" for number in range(30))) == 90
    cache.close()
