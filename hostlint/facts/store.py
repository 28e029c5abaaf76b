"""The facts of all files of a project: from the cache where the content is known, else lowered, in parallel."""
from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from hostlint.cache import Cache, digest
from hostlint.model import FileError
from hostlint.pool import chunks, spread
from hostlint.version import VERSION

if TYPE_CHECKING:
    import os

    from hostlint.facts.graph import FunctionGraph
    from hostlint.facts.schema import FileOutline
    from hostlint.project import SourceFile

Progress = Callable[[str, int, int], None]
CHUNK_BYTES = 400_000
ENGINE = ("facts", "values", "heat", "torch_ops", "fix")
SPOILERS = (SyntaxError, UnicodeDecodeError, ValueError, RecursionError, MemoryError)


@dataclass(frozen=True, slots=True)
class Stored:
    """One file's facts as bytes, or what kept it from being read."""

    source: SourceFile
    digest: bytes
    outline: bytes
    graphs: bytes
    seen: bytes  # what other files can see of this one without looking into its functions
    has_comments: bool
    error: FileError | None = None


class FactStore:
    def __init__(self, stored: Sequence[Stored]) -> None:
        self.stored = stored
        self.errors = tuple(one.error for one in stored if one.error is not None)
        self._graphs = lru_cache(maxsize=256)(self._decode)

    def outlines(self) -> list[FileOutline]:
        from hostlint.facts.codec import decode_outline

        return [decode_outline(one.outline, one.source.path) for one in self.stored]

    def graph(self, fid: tuple[int, int]) -> FunctionGraph:
        return self._graphs(fid[0])[fid[1]]

    def _decode(self, file: int) -> tuple[FunctionGraph, ...]:
        from hostlint.facts.codec import decode_graphs

        return decode_graphs(self.stored[file].graphs)


@cache
def stamp() -> bytes:
    """What the facts depend on besides the text: hostlint's own code and the interpreter whose `ast` and `marshal` are used."""
    root = Path(__file__).parent.parent
    files = sorted(file for part in ENGINE for file in (root / part).iterdir() if file.suffix in {".py", ".json"})
    state = [(file.name, (status := file.stat()).st_size, status.st_mtime_ns) for file in files]
    return digest(repr((VERSION, sys.version_info[:3], state)).encode())


def load(
    files: Sequence[SourceFile], store: Cache | None, digests: Mapping[str, bytes], jobs: int, progress: Progress | None
) -> FactStore:
    """The facts of the files, in their order; `digests` are the contents that are known without reading."""
    known = {f.path: digest(f.text.encode()) for f in files if f.text is not None}
    known |= {f.path: digests[str(f.file)] for f in files if f.text is None and str(f.file) in digests}
    keys = {source.path: _key(source, known[source.path]) for source in files if source.path in known}
    blobs = store.get_many(keys.values()) if store is not None else {}
    stored: dict[str, Stored] = {}
    for source in files:
        key = keys.get(source.path)
        if key is not None and key in blobs:
            stored[source.path] = _unpack(source, known[source.path], blobs[key])
    missing = [source for source in files if source.path not in stored]
    _lower_missing(missing, stored, store, jobs, progress)
    return FactStore([stored[source.path] for source in files])


def on_disk(files: Sequence[SourceFile], store: Cache | None, jobs: int) -> FactStore:
    """The facts of files whose texts stand for something else, as they lie there."""
    contents = {}
    for source in files:
        with suppress(OSError):
            contents[str(source.file)] = digest(source.file.read_bytes())
    return load([replace(source, text=None) for source in files], store, contents, jobs, None)


def _lower_missing(
    missing: Sequence[SourceFile], stored: dict[str, Stored], store: Cache | None, jobs: int, progress: Progress | None
) -> None:
    runs = chunks(missing, _size, CHUNK_BYTES)
    tick = (lambda done: progress("reading", done, len(runs))) if progress is not None else None
    fresh: dict[bytes, bytes] = {}
    seen: list[tuple[str, os.stat_result, bytes]] = []
    for results in spread(_lower_all, runs, jobs, tick):
        for one, status in results:
            stored[one.source.path] = one
            if store is not None and one.digest:
                fresh[_key(one.source, one.digest)] = _pack(one)
                if status is not None:
                    seen.append((str(one.source.file), status, one.digest))
    if store is not None and fresh:
        store.put_many(fresh)
        store.remember(seen)


def _size(source: SourceFile) -> int:
    try:
        return source.file.stat().st_size if source.text is None else len(source.text)
    except OSError:
        return 0


def _key(source: SourceFile, content: bytes) -> bytes:
    return digest(stamp() + content + f"{source.module}:{source.file.name == '__init__.py'}".encode())


def _pack(one: Stored) -> bytes:
    """Flag, error and the two blobs, each with its length."""
    import marshal

    error = (one.error.line, one.error.message) if one.error is not None else None
    return marshal.dumps((one.has_comments, error, one.outline, one.graphs, one.seen))


def _unpack(source: SourceFile, content: bytes, blob: bytes) -> Stored:
    import marshal

    has_comments, error, outline, graphs, seen = marshal.loads(blob)  # noqa: S302 - our own cache
    return Stored(source, content, outline, graphs, seen, has_comments, FileError(source.path, *error) if error else None)


def _lower_all(run: list[SourceFile]) -> list[tuple[Stored, os.stat_result | None]]:
    return [_lower(source) for source in run]


def _lower(source: SourceFile) -> tuple[Stored, os.stat_result | None]:
    """The facts of one file; whatever is wrong with it becomes its error, and the file counts as empty."""
    status: os.stat_result | None = None
    data = b""
    try:
        if source.text is None:
            status = source.file.stat()
            data = source.file.read_bytes()
        return _facts(source, data), status
    except OSError as error:
        return _empty(source, b"", FileError(source.path, 1, f"cannot be read: {(error.strerror or str(error)).lower()}")), None
    except SPOILERS as error:
        return _empty(source, digest(data), _describe(source.path, error)), status


def _facts(source: SourceFile, data: bytes) -> Stored:
    from hostlint.facts.codec import encode
    from hostlint.facts.lower import lower_file
    from hostlint.facts.seen import seen_of
    from hostlint.sources import decode

    text = source.text if source.text is not None else decode(data)
    facts = lower_file(text, source.path, source.module, source.file.name in {"__init__.py", "__init__.pyi"})
    outline, graphs = encode(facts)
    return Stored(source, digest(data or text.encode()), outline, graphs, seen_of(facts.outline), "hostlint" in text)


def _empty(source: SourceFile, content: bytes, error: FileError) -> Stored:
    from hostlint.facts.codec import encode
    from hostlint.facts.lower import lower_file
    from hostlint.facts.seen import seen_of

    facts = lower_file("", source.path, source.module)
    return Stored(source, content, *encode(facts), seen_of(facts.outline), False, error)


def _describe(path: str, error: Exception) -> FileError:
    if isinstance(error, SyntaxError):
        running = ".".join(map(str, sys.version_info[:2]))
        return FileError(path, error.lineno or 1, f"cannot be parsed by Python {running}: {error.msg}")
    if isinstance(error, UnicodeDecodeError):
        return FileError(path, 1, f"cannot be decoded as {error.encoding}: {error.reason}")
    if isinstance(error, (RecursionError, MemoryError)):
        return FileError(path, 1, "is nested too deeply to be parsed")
    return FileError(path, 1, f"cannot be parsed: {error}")
