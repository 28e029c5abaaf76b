"""Findings kept file by file: after a change, only files that the change can reach are judged again."""
from __future__ import annotations

import pickle
from functools import cached_property
from typing import TYPE_CHECKING

from hostlint.cache import Cache, digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hostlint.facts.store import FactStore
    from hostlint.heat import HeatMap
    from hostlint.index import FunctionId, ProjectIndex
    from hostlint.judge import Judged


class Reuse:
    """A file's findings hold as long as its own text, every graph that they were worked out from, who calls the functions of those files
    and how hot they are, and the meaning of names in the whole project stay as they were."""

    def __init__(self, cache: Cache | None, settings: bytes, store: FactStore, index: ProjectIndex, heat: HeatMap) -> None:
        self._cache = cache
        self._settings = settings
        self._store = store
        self._index = index
        self._heat = heat
        self._contexts: dict[int, bytes] = {}

    def recall(self, files: Sequence[int]) -> dict[int, Judged]:
        """What is known of these files and still holds."""
        if self._cache is None:
            return {}
        keys = {file: self._key(file) for file in files}
        blobs = self._cache.get_many(keys.values())
        known = {}
        for file, key in keys.items():
            if key in blobs:
                rests_on, state, judged = pickle.loads(blobs[key])  # noqa: S301 - our own cache
                if state == self._state(file, rests_on):
                    known[file] = judged
        return known

    def keep(self, judged: Mapping[int, Judged]) -> None:
        """Remember what was found in these files, and what that rests on."""
        if self._cache is None or not judged:
            return
        blobs = {}
        for file, one in judged.items():
            rests_on = tuple(self._store.stored[number].source.path for number in _bits(one.rests_on))
            blobs[self._key(file)] = pickle.dumps((rests_on, self._state(file, rests_on), one))
        self._cache.put_many(blobs)

    def _key(self, file: int) -> bytes:
        source = self._store.stored[file].source
        return digest(self._settings + self._names + repr((source.path, source.module)).encode())

    @cached_property
    def _names(self) -> bytes:
        """What names mean in the project."""
        return digest(b"".join(one.names for one in self._store.stored))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {one.source.path: number for number, one in enumerate(self._store.stored)}

    def _state(self, file: int, rests_on: Sequence[str]) -> bytes:
        numbers = [self._numbers.get(path, -1) for path in rests_on]
        if -1 in numbers:
            return b""
        return digest(self._sites(file) + b"".join(self._context(number) for number in (file, *numbers)))

    def _context(self, file: int) -> bytes:
        """The file's text, who calls its functions, and how hot they are."""
        if file not in self._contexts:
            functions = [(file, function.index) for function in self._index.files[file].functions]
            callers = [self._callers(fid) for fid in functions]
            levels = [int(self._heat.function(fid).level) for fid in functions]
            self._contexts[file] = digest(self._store.stored[file].digest + repr((callers, levels)).encode())
        return self._contexts[file]

    def _callers(self, fid: FunctionId) -> list[tuple[str, int, int, bool]]:
        """Who calls a function, by paths: numbers of files change with every file that is added."""
        edges = self._heat.graph.edges_in(fid)
        return [(self._index.files[edge.caller[0]].path, edge.caller[1], edge.call_index, edge.certain) for edge in edges]

    def _sites(self, file: int) -> bytes:
        """How hot each region of the file is, and why."""
        outline = self._index.files[file]
        heats = [
            self._heat.site((file, function.index), region)
            for function in outline.functions
            for region in range(len(function.regions))
        ]
        return digest(repr(heats).encode())

def _bits(number: int) -> list[int]:
    return [position for position in range(number.bit_length()) if number >> position & 1]
