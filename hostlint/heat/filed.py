"""Types of what registries hold, where a chain takes something out of one."""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.heat.kinds import Kind, Type
from hostlint.heat.registries import Registries, Table, holder_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hostlint.heat.types import Typing
    from hostlint.index import ClassId
    from hostlint.scopes import Symbol

_OF_ANY = (Kind.FILED, Kind.MADE)


class Filed:
    def __init__(self, typing: Typing, registries: Registries) -> None:
        self._typing = typing
        self._registries = registries

    def of_global(self, symbol: Symbol, bound: Iterable[Type]) -> Iterator[Type]:
        """What a module's variable is bound to, registries by the name that they are known by, and what is filed in it."""
        for found in bound:
            is_registry = found.kind is Kind.INSTANCE and not found.name and self._registries.holds(found.target)
            yield found._replace(name=holder_of(symbol.file, symbol.name)) if is_registry else found
        yield from self._elements(Table(symbol.file, -1, symbol.name))

    def of_attribute(self, cid: ClassId, name: str) -> Iterator[Type]:
        """The elements of an attribute that is a table."""
        for klass in self._typing.index.mro(cid):
            table = Table(*klass, name)
            yield from self._elements(table)
            if self._registries.is_of_instances(table):
                yield Type(Kind.FILED, klass, name, depth=1)

    def told(self, types: Iterable[Type], holder: str) -> Iterator[Type]:
        """The types with what one registry holds in the place of what any of its class may hold."""
        for found in types:
            if found.kind not in _OF_ANY:
                yield found._replace(name=holder) if found.kind is Kind.FUNCTION and not found.name else found
                continue
            for entry in self._registries.filed(Table(*found.target, found.name), holder):
                if found.kind is Kind.FILED:
                    yield entry._replace(depth=entry.depth - 1 + found.depth)
                elif entry.depth == 1:
                    yield from self._typing.called(entry._replace(depth=0))

    def _elements(self, table: Table) -> Iterator[Type]:
        """What functions store in a table, and what is filed there."""
        for fid, chain in self._registries.stored(table):
            yield from self._typing.of_chain(*fid, chain)
        yield from self._registries.filed(table)
