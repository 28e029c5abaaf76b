"""What is kept between runs: blobs by content key, and which files have not changed since their content was last hashed."""
from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
FOLDER = ".hostlint_cache"
_DATABASE = "facts.sqlite3"
_LAYOUT = 2  # PRAGMA user_version; another number means another hostlint's tables
_DAY = 86_400
_SECRET, _SEAL = 32, 16  # bytes
_KEPT_DAYS = 30
_KEPT_BYTES = 1 << 30
# A file changed within this time of being hashed might change again without a new time stamp.
_RACY_NS = 2_000_000_000
_TABLES = """
CREATE TABLE blob (key BLOB PRIMARY KEY, value BLOB NOT NULL, used INTEGER NOT NULL);
CREATE TABLE file (path TEXT PRIMARY KEY, stamp TEXT NOT NULL, digest BLOB NOT NULL);
CREATE TABLE pruned (day INTEGER NOT NULL);
"""
_TAG = """Signature: 8a477f597d28d172789f06886806bc55
# This folder holds what hostlint keeps between runs; it may be deleted at any time.
"""


def secret() -> bytes:
    """This user's key. Blobs are unpickled, and a cache folder can come with a project: only what this key has sealed is taken back."""
    home = os.environ.get("XDG_CACHE_HOME")
    file = (Path(home) if home else Path.home() / ".cache") / "hostlint" / "cache-key"
    for _ in range(2):
        with suppress(FileNotFoundError):
            found = file.read_bytes()
            if len(found) == _SECRET:
                return found
            file.unlink()
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(f"{file.name}.{os.getpid()}")
        try:
            fresh.touch(mode=0o600)
            fresh.write_bytes(os.urandom(_SECRET))
            with suppress(FileExistsError):  # another run was faster: its key counts
                os.link(fresh, file)
        finally:
            fresh.unlink(missing_ok=True)
    return file.read_bytes()


def digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=20).digest()


@dataclass
class Cache:
    """A cache that never fails a scan: at the first trouble it says so once through `warn` and from then on holds nothing."""

    folder: Path
    warn: Callable[[str], None]
    timeout: float = 5.0
    _connection: sqlite3.Connection | None = field(default=None, init=False)
    _off: bool = field(default=False, init=False)
    _stale: list[bytes] = field(default_factory=list, init=False)  # used in this run, not yet marked so

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The blobs that are there and that this user's hostlint has written."""
        return self._attempt(lambda database: self._get(database, keys), {})

    def put_many(self, blobs: Mapping[bytes, bytes]) -> None:
        self._attempt(lambda database: _put(database, {key: self._sealed(key, value) for key, value in blobs.items()}), None)

    def unchanged(self, files: Iterable[str]) -> dict[str, bytes]:
        """The digests of the files whose stat is still what `remember` saw; the others have to be read."""
        return self._attempt(lambda database: _unchanged(database, files), {})

    def remember(self, files: Iterable[tuple[str, os.stat_result, bytes]]) -> None:
        """Keep digests; the stat must have been taken before the content was read."""
        self._attempt(lambda database: _remember(database, files), None)

    def close(self) -> None:
        if self._connection is None:
            return
        # A cache that cannot be written has served its reads all the same.
        with suppress(sqlite3.Error, OSError):
            if self._stale:
                self._connection.executemany("UPDATE blob SET used = ? WHERE key = ?", ((_today(), key) for key in self._stale))
                self._connection.commit()
        self._connection.close()
        self._connection = None

    def _attempt(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        if self._off:
            return otherwise
        try:
            if self._connection is None:
                self._connection = self._connect()
            return work(self._connection)
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)
            return otherwise

    def _get(self, database: sqlite3.Connection, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        database.execute("CREATE TEMP TABLE IF NOT EXISTS wanted (key BLOB PRIMARY KEY)")
        database.execute("DELETE FROM wanted")
        database.executemany("INSERT OR IGNORE INTO wanted VALUES (?)", ((key,) for key in keys))
        rows = database.execute("SELECT key, value, used FROM wanted JOIN blob USING (key)").fetchall()
        database.commit()
        today = _today()
        self._stale.extend(key for key, _, used in rows if used < today)
        return {key: value[_SEAL:] for key, value, _ in rows if value == self._sealed(key, value[_SEAL:])}

    def _sealed(self, key: bytes, value: bytes) -> bytes:
        return blake2b(key + value, key=self._secret, digest_size=_SEAL).digest() + value

    @cached_property
    def _secret(self) -> bytes:
        try:
            return secret()
        except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
            self.warn(f"nothing of the cache can be used in another run: {error}")
            return os.urandom(_SECRET)

    def _connect(self) -> sqlite3.Connection:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, text in ((".gitignore", "*\n"), ("CACHEDIR.TAG", _TAG)):
            if not (self.folder / name).exists():
                (self.folder / name).write_text(text, encoding="utf-8")
        connection = sqlite3.connect(self.folder / _DATABASE, timeout=self.timeout)
        try:
            connection.execute("PRAGMA synchronous = OFF")
            if connection.execute("PRAGMA user_version").fetchone() != (_LAYOUT,):
                self._lay_out(connection)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    @staticmethod
    def _lay_out(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone() != (_LAYOUT,):  # another run may have been faster
            for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                connection.execute(f'DROP TABLE "{table}"')
            for statement in _TABLES.strip().split("\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_LAYOUT}")
        connection.commit()

    def _give_up(self, error: sqlite3.Error | OSError) -> None:
        self._off = True
        self.warn(f"going on without a cache: {self.folder}: {error}")
        self.close()
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            with suppress(OSError):
                (self.folder / _DATABASE).unlink()  # damaged: the next run starts a new one


def _put(database: sqlite3.Connection, blobs: Mapping[bytes, bytes]) -> None:
    today = _today()
    database.executemany("INSERT OR REPLACE INTO blob VALUES (?, ?, ?)", ((key, value, today) for key, value in blobs.items()))
    if not database.execute("SELECT 1 FROM pruned WHERE day >= ?", (today,)).fetchone():
        _prune(database, today)
    database.commit()


def _prune(database: sqlite3.Connection, today: int) -> None:
    """Once a day: forget what no run has used for a month, and the longest unused while there is too much."""
    database.execute("DELETE FROM pruned")
    database.execute("INSERT INTO pruned VALUES (?)", (today,))
    database.execute("DELETE FROM blob WHERE used < ?", (today - _KEPT_DAYS,))
    total = 0
    for day, size in database.execute("SELECT used, SUM(LENGTH(value)) FROM blob GROUP BY used ORDER BY used DESC").fetchall():
        total += size
        if total > _KEPT_BYTES and day < today:
            database.execute("DELETE FROM blob WHERE used <= ?", (day,))
            break
    gone = [(path,) for (path,) in database.execute("SELECT path FROM file") if _stamp_of(path) is None]
    database.executemany("DELETE FROM file WHERE path = ?", gone)


def _unchanged(database: sqlite3.Connection, files: Iterable[str]) -> dict[str, bytes]:
    known = {path: (stamp, content) for path, stamp, content in database.execute("SELECT path, stamp, digest FROM file")}
    return {file: known[file][1] for file in files if file in known and known[file][0] == _stamp_of(file)}


def _remember(database: sqlite3.Connection, files: Iterable[tuple[str, os.stat_result, bytes]]) -> None:
    limit = time.time_ns() - _RACY_NS
    settled = [(path, status, content) for path, status, content in files if max(status.st_mtime_ns, status.st_ctime_ns) < limit]
    database.executemany("INSERT OR REPLACE INTO file VALUES (?, ?, ?)", ((path, _stamp(s), content) for path, s, content in settled))
    database.commit()


def _today() -> int:
    return int(time.time()) // _DAY


def _stamp(status: os.stat_result) -> str:
    # ctime and inode too: a copy that keeps times, or a file put back from a backup, has the old mtime and size.
    return f"{status.st_mtime_ns}:{status.st_size}:{status.st_ctime_ns}:{status.st_ino}"


def _stamp_of(file: str) -> str | None:
    try:
        return _stamp(Path(file).stat())
    except OSError:
        return None
