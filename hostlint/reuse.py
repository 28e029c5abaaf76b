"""Findings kept file by file: after a change, only files that the change can reach are judged again."""
from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from hostlint.cache import Cache, digest
from hostlint.model import ChainLink, Finding, Heat

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from hostlint.facts.store import FactStore
    from hostlint.heat import HeatMap
    from hostlint.heat.callgraph import Edge
    from hostlint.index import ProjectIndex
    from hostlint.judge import Judged

VERSIONS = 3  # of a file's findings that are kept: a change that is taken back finds the ones from before
Chain = tuple[ChainLink, ...]


@dataclass(frozen=True, slots=True)
class _Kept:
    """What was found in a file, on what that rests, and the chains of its regions as they were then."""

    rests_on: tuple[str, ...]
    state: bytes
    chains: tuple[Chain, ...]
    judged: Judged


class Reuse:
    """A file's findings hold as long as its own text, every graph that they were worked out from, who calls the functions of those files
    and how hot they are, and the meaning of names in the whole project (`names`; `others`: as far as other files ask for them) stay as they
    were. Where nothing but lines of other files moved in the chains, they are told with the new ones."""

    def __init__(
        self, cache: Cache | None, settings: bytes, store: FactStore, index: ProjectIndex, heat: HeatMap, names: bytes, others: bytes
    ) -> None:
        self._cache = cache
        self._settings = digest(settings + others)
        self._settings_of_now = digest(settings + names)
        self._store = store
        self._index = index
        self._heat = heat
        self._contexts: dict[int, bytes] = {}
        self._callables: dict[int, list[str]] = {}
        self._known: dict[int, list[_Kept]] = {}

    def recall(self, files: Sequence[int]) -> dict[int, Judged]:
        """What is known of these files and still holds."""
        if self._cache is None:
            return {}
        keys = {file: self._key(file) for file in files}
        blobs = self._cache.get_many(keys.values())
        found = {}
        for file, key in keys.items():
            if key in blobs:
                self._known[file] = pickle.loads(blobs[key])  # noqa: S301 - our own cache
                judged = next(filter(None, (self._as_now(file, kept) for kept in self._known[file])), None)
                if judged is not None:
                    found[file] = judged
        return found

    def keep(self, judged: Mapping[int, Judged], fresh: Collection[int]) -> None:
        """Remember what was found in the files that were judged now (`fresh`), and what that rests on; for what names mean now, of all."""
        if self._cache is None:
            return
        blobs = {}
        for file in fresh:
            kept = self._kept(file, judged[file])
            older = [other for other in self._known.get(file, ()) if other.state != kept.state]
            blobs[self._key(file)] = pickle.dumps([kept, *older[: VERSIONS - 1]])
        if self._settings_of_now != self._settings:
            blobs |= {self._key(file, self._settings_of_now): pickle.dumps([self._kept(file, one)]) for file, one in judged.items()}
        self._cache.put_many(blobs)

    def _kept(self, file: int, judged: Judged) -> _Kept:
        rests_on = tuple(self._store.stored[number].source.path for number in _bits(judged.rests_on))
        return _Kept(rests_on, self._state(file, rests_on), self._chains(file) if judged.findings else (), judged)

    def _as_now(self, file: int, kept: _Kept) -> Judged | None:
        if kept.state != self._state(file, kept.rests_on):
            return None
        return kept.judged if not kept.judged.findings else _moved(kept.judged, kept.chains, self._chains(file))

    def _key(self, file: int, settings: bytes = b"") -> bytes:
        source = self._store.stored[file].source
        return digest((settings or self._settings) + repr((source.path, source.module)).encode())

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
            callers = [[self._caller(edge) for edge in self._heat.graph.edges_in(fid)] for fid in functions]
            levels = [int(self._heat.function(fid).level) for fid in functions]
            replaced = [fid for fid in functions if self._index.replaces_forward(fid)]
            told = repr((callers, levels, [number for _, number in replaced]))
            self._contexts[file] = digest(self._store.stored[file].digest + told.encode())
        return self._contexts[file]

    def _caller(self, edge: Edge) -> tuple[object, ...]:
        """Who calls a function, and how, without numbers that change with whatever else stands in that file or project."""
        file, number = edge.caller
        if file not in self._callables:
            self._callables[file] = list(_numbered([function.qualname for function in self._index.files[file].functions]))
        outline = self._index.files[file].functions[number]
        chain = outline.calls[edge.call_index].chain if edge.call_index >= 0 else ""
        called = edge.call_index >= 0, edge.region, edge.certain, edge.among
        return self._index.files[file].path, self._callables[file][number], chain, *called

    def _sites(self, file: int) -> bytes:
        """How hot each region of the file is, and why; lines of other files aside."""
        path = self._index.files[file].path

        def told(link: ChainLink) -> tuple[str, str, int]:
            return link.path, link.function, link.line if link.path == path else 0

        return digest(repr([(heat.level, [told(link) for link in heat.chain]) for heat in self._heats(file)]).encode())

    def _chains(self, file: int) -> tuple[Chain, ...]:
        return tuple(heat.chain for heat in self._heats(file))

    def _heats(self, file: int) -> Iterator[Heat]:
        for function in self._index.files[file].functions:
            for region in range(len(function.regions)):
                yield self._heat.site((file, function.index), region)


def _moved(judged: Judged, before: Sequence[Chain], now: Sequence[Chain]) -> Judged | None:
    """The findings with the lines that their chains have now; None where that cannot be told."""
    if tuple(before) == tuple(now):
        return judged
    chains: dict[Chain, Chain] = {(): ()}
    for old, new in zip(before, now, strict=True):
        if chains.setdefault(old, new) != new:
            return None
    if any(finding.heat.chain not in chains for finding in judged.findings):
        return None
    return replace(judged, findings=tuple(_retold(finding, chains[finding.heat.chain]) for finding in judged.findings))


def _retold(finding: Finding, chain: Chain) -> Finding:
    message = finding.message
    for old, new in zip(finding.heat.chain, chain, strict=True):
        if old != new:
            message = message.replace(f"{old.path}:{old.line})", f"{new.path}:{new.line})")
    return replace(finding, message=message, heat=Heat(finding.heat.level, chain))


def _numbered(names: Sequence[str]) -> Iterator[str]:
    """The names, those that stand there more than once with a number."""
    seen: Counter[str] = Counter()
    for name in names:
        yield f"{name}#{seen[name]}" if seen[name] else name
        seen[name] += 1


def _bits(number: int) -> list[int]:
    return [position for position in range(number.bit_length()) if number >> position & 1]
