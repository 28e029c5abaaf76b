"""What a registry holds: the functions and classes that decorators, calls and assignments file in a table by a name."""
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hostlint.facts.schema import FunctionFlag
from hostlint.heat.kinds import Kind, Type
from hostlint.heat.nature import is_unused
from hostlint.scopes import SymbolKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.facts.schema import FunctionOutline
    from hostlint.heat.types import Typing
    from hostlint.index import ClassId, FunctionId, ProjectIndex

MANY = 64  # entries: of a larger registry, as of all the models of a library, a call has none in mind
HOPS = 3  # functions that hand on what is to be filed
_LAMBDA = "<lambda>"


class Table(NamedTuple):
    """Where things are filed: a global of a module, or an attribute of a class or of its instances ("": the instance itself)."""

    file: int
    klass: int  # -1: a global
    name: str


class _Way(NamedTuple):
    """A function files what it is given for a parameter: in which table, how deep in it, and whether that is its own instance's."""

    table: Table
    depth: int
    of_instance: bool


class Registries:
    """Read once for a project, with types of their own: what a chain means may depend on what is found here."""

    def __init__(self, index: ProjectIndex, typing: Typing) -> None:
        self._index = index
        self._typing = typing
        self._stores: dict[Table, list[tuple[FunctionId, str]]] = {}  # elements that are no parameters: chains in a function
        self._filed: dict[tuple[Table, str], dict[Type, None]] = {}  # by the object whose table it is, "" for the class's and a global
        self._ways: dict[tuple[FunctionId, int], dict[_Way, None]] = {}
        self._of_instances: set[Table] = set()
        self._classes: set[ClassId] = set()
        for file, outline in enumerate(index.files):
            for function in outline.functions:
                for name, chain in function.assigns:
                    if name.endswith("[]") and "()" not in name:
                        self._store((file, function.index), name, chain)
        if self._ways:
            self._hand_on()
            self._apply()

    def stored(self, table: Table) -> Iterator[tuple[FunctionId, str]]:
        """Elements of a table that its functions store by names of their own, as chains."""
        yield from self._stores.get(table, ())

    def filed(self, table: Table, holder: str = "") -> tuple[Type, ...]:
        """What was filed in a table; `holder` is the object whose attribute it is."""
        found = self._filed.get((table, holder), {})
        return tuple(found) if len(found) <= MANY else ()

    def is_of_instances(self, table: Table) -> bool:
        return table in self._of_instances

    def holds(self, cid: ClassId) -> bool:
        """Whether instances of the class are registries."""
        return any(klass in self._classes for klass in self._index.mro(cid))

    def functions(self) -> Iterator[FunctionId]:
        """Every function that some registry holds."""
        for entries in self._filed.values():
            yield from (found.target for found in entries if found.kind is Kind.FUNCTION)

    def _store(self, fid: FunctionId, name: str, chain: str) -> None:
        held = name.rstrip("[]")
        depth = (len(name) - len(held)) // 2
        table, of_instance = self._table(fid, held)
        if table is None:
            return
        while chain.startswith("[]"):
            chain, depth = chain[2:], depth + 1
        position = self._position(self._index.function(fid), chain)
        if position < 0:
            self._stores.setdefault(table, []).append((fid, "[]" * depth + chain))
            return
        self._ways.setdefault((fid, position), {})[_Way(table, depth, of_instance)] = None
        if of_instance:
            self._of_instances.add(table)
            self._classes.add((table.file, table.klass))

    def _table(self, fid: FunctionId, held: str) -> tuple[Table | None, bool]:
        base, _, attribute = held.rpartition(".")
        owner, is_class = self._self(fid, base or held)
        if owner is not None:
            return Table(*owner, attribute if base else ""), not is_class
        if not base and fid[1] and self._is_local(fid, held):
            return None, False
        symbol = self._index.resolve(fid[0], held, fid[1])
        if symbol is not None and symbol.kind is SymbolKind.GLOBAL:
            return Table(symbol.file, -1, symbol.name), False
        symbol = self._index.resolve(fid[0], base, fid[1]) if base else None
        return (Table(*symbol.id, attribute), False) if symbol is not None and symbol.kind is SymbolKind.CLASS else (None, False)

    def _self(self, fid: FunctionId, name: str) -> tuple[ClassId | None, bool]:
        """The class whose instance (or which itself, then True) a name is in a method, or in a function inside it."""
        while fid[1]:
            function = self._index.function(fid)
            if self._typing.is_self(function, name):
                return (fid[0], function.owner), bool(function.flags & FunctionFlag.CLASS)
            if self._is_local(fid, name):
                break
            fid = (fid[0], function.parent)
        return None, False

    def _is_local(self, fid: FunctionId, name: str) -> bool:
        function = self._index.function(fid)
        return any(param.name == name for param in function.params) or any(local == name for local, _ in function.assigns)

    def _position(self, function: FunctionOutline, name: str) -> int:
        own = (position for position, param in enumerate(function.params) if param.name == name and param.kind in ("positional", "keyword"))
        position = next(own, -1)
        return -1 if position == 0 and self._typing.is_self(function, name) else position

    def _hand_on(self) -> None:
        """Functions that hand what they are given to one that files it."""
        for _ in range(HOPS):
            names = {self._index.function(fid).name for fid, _ in self._ways}
            found: dict[tuple[tuple[FunctionId, int], _Way], None] = {}
            for fid, chain, passed, slot in self._calls(names):
                position = self._position(self._index.function(fid), passed)
                for way in self._ways_of(fid, chain, slot) if position >= 0 else ():
                    kept = way.of_instance and self._self(fid, chain.rpartition(".")[0])[0] is None
                    if not kept and way not in self._ways.get((fid, position), ()):
                        found[(fid, position), way] = None
            for key, way in found:
                self._ways.setdefault(key, {})[way] = None
            if not found:
                return

    def _calls(self, names: set[str]) -> Iterator[tuple[FunctionId, str, str, str]]:
        """The calls of functions of these names that are given names: who calls, the callee's chain, the name and its slot."""
        for file, outline in enumerate(self._index.files):
            if is_unused(outline):
                continue
            for function in outline.functions:
                for call in function.calls:
                    if call.passed and call.chain.removesuffix("()").rpartition(".")[2] in names:
                        for passed, slot in zip(call.passed, call.slots, strict=True):
                            yield (file, function.index), call.chain, passed, slot

    def _ways_of(self, fid: FunctionId, chain: str, slot: str) -> dict[_Way, None]:
        """Where a call of that chain files what stands in the slot."""
        ways: dict[_Way, None] = {}
        for found in self._typing.of_chain(*fid, chain.removesuffix("()")):
            if found.kind is Kind.FUNCTION and not found.depth:
                for filer in self._makes(found.target) if chain.endswith("()") else (found.target,):
                    function = self._index.function(filer)
                    bound = int(function.owner >= 0 and not function.flags & FunctionFlag.STATIC)
                    named = [position for position, param in enumerate(function.params) if param.name == slot]
                    position = int(slot) + bound if slot.isdecimal() else named[0] if named else -1
                    ways.update(self._ways.get((filer, position), {}))
        return ways

    def _makes(self, maker: FunctionId) -> Iterator[FunctionId]:
        """The functions inside one that it may return: a decorator that was asked for with arguments."""
        returned = {chain for name, chain in self._index.function(maker).assigns if name == "return"}
        for function in self._index.files[maker[0]].functions:
            if function.parent == maker[1] and function.index and (function.name in returned or function.name == _LAMBDA):
                yield (maker[0], function.index)

    def _apply(self) -> None:
        """File what is decorated, and what is handed in."""
        for file, outline in enumerate(self._index.files):
            if is_unused(outline):
                continue
            for function in outline.functions[1:]:
                for decorator in function.decorators:
                    self._file((file, function.parent), decorator, "0", [Type(Kind.FUNCTION, (file, function.index))])
                for name, chain in function.assigns:
                    self._decorate((file, function.index), name, chain)
            for name, chain in outline.functions[0].assigns:
                self._decorate((file, 0), name, chain)
        names = {self._index.function(fid).name for fid, _ in self._ways}
        names |= {self._index.function((fid[0], self._index.function(fid).parent)).name for fid, _ in self._ways}
        for fid, chain, passed, slot in self._calls(names):
            types = self._typing.of_chain(*fid, passed)
            things = [found for found in types if found.kind in (Kind.FUNCTION, Kind.CLASS) and not found.depth]
            if things:
                self._file(fid, chain, slot, things)

    def _decorate(self, fid: FunctionId, name: str, chain: str) -> None:
        if name.startswith("@"):
            klass = [found for found in self._typing.of_chain(*fid, chain) if found.kind is Kind.CLASS]
            self._file(fid, name[1:], "0", klass)

    def _file(self, fid: FunctionId, chain: str, slot: str, things: list[Type]) -> None:
        for way in self._ways_of(fid, chain, slot):
            holder = self._holder(fid, chain) if way.of_instance else ""
            if holder or not way.of_instance:
                entries = self._filed.setdefault((way.table, holder), {})
                entries.update((thing._replace(depth=way.depth), None) for thing in things)

    def _holder(self, fid: FunctionId, chain: str) -> str:
        """The global that holds the registry whose method is called."""
        base = chain.removesuffix("()").rpartition(".")[0]
        symbol = self._index.resolve(fid[0], base, fid[1]) if base else None
        return holder_of(symbol.file, symbol.name) if symbol is not None and symbol.kind is SymbolKind.GLOBAL else ""


def holder_of(file: int, name: str) -> str:
    """How a global that holds a registry is told from others."""
    return f"{file}:{name}"
