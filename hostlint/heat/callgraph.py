"""The project's call graph: who may call whom, from which line and region, and how sure that is."""
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hostlint.facts.schema import FunctionFlag, RegionKind
from hostlint.heat.dispatch import Dispatch
from hostlint.heat.handed import Handed
from hostlint.heat.kinds import Kind
from hostlint.heat.nature import installs
from hostlint.heat.registries import Registries
from hostlint.heat.types import Typing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostlint.facts.schema import Call, FunctionOutline
    from hostlint.index import FunctionId, ProjectIndex

SEVERAL = 8  # more functions that a call may run than this are not told apart
NO_CALL = -1  # the call index of an edge that no call expression stands for


class Edge(NamedTuple):
    caller: FunctionId
    callee: FunctionId
    call_index: int  # into the caller's calls, or NO_CALL
    line: int
    region: int  # of the caller
    certain: bool
    among: int = 1  # how many functions the call may run, this one with them


class CallGraph:
    """Every edge of the project, with the calls that are steps of a model and the functions registered as hooks."""

    def __init__(self, index: ProjectIndex) -> None:
        self.index = index
        self.hooks: dict[FunctionId, None] = {}
        self.passing: dict[FunctionId, tuple[FunctionId, int]] = {}  # hooks, and where the function that takes them away puts them in place
        self.serves_only = False  # known once the loops are: whether no model is trained
        self.escaping: set[FunctionId] = set()  # handed on as values: who calls them is not known
        registries = Registries(index, Typing(index))
        handed = Handed(index, registries)
        self._typing = handed.typing()
        self._dispatch = Dispatch(index, self._typing)
        self._out: dict[FunctionId, list[Edge]] = {}
        self._in: dict[FunctionId, list[Edge]] = {}
        self._steps: dict[FunctionId, list[int]] = {}
        self._property_names = {
            function.name for outline in index.files for function in outline.functions if function.flags & FunctionFlag.PROPERTY
        }
        for file, outline in enumerate(index.files):
            for function in outline.functions:
                self._add_function((file, function.index))
        self.escaping.update(registries.functions(), handed.functions)
        self._add_orphans()

    def functions(self) -> Iterator[FunctionId]:
        for file, outline in enumerate(self.index.files):
            for function in outline.functions:
                yield (file, function.index)

    def edges_out(self, fid: FunctionId) -> Sequence[Edge]:
        return self._out.get(fid, ())

    def edges_in(self, fid: FunctionId) -> Sequence[Edge]:
        return self._in.get(fid, ())

    def step_calls(self, fid: FunctionId) -> Sequence[int]:
        """Indices of the function's calls that are model calls, backwards, or steps of an optimizer or scheduler."""
        return self._steps.get(fid, ())

    def _add_function(self, fid: FunctionId) -> None:
        function = self.index.function(fid)
        for position, call in enumerate(function.calls):
            found = self._dispatch.dispatch(fid, call)
            if found.steps:
                self._steps.setdefault(fid, []).append(position)
            if found.escaping:
                if found.hooks and _is_taken_away(function, call):
                    self.passing.update(dict.fromkeys(found.hooks, (fid, call.region)))
                    for hook in found.hooks:
                        self._add(Edge(fid, hook, NO_CALL, call.line, 0, True))
                else:
                    self.hooks.update(dict.fromkeys(found.hooks))
                self.escaping.update(found.escaping)
            targets = dict.fromkeys(found.targets)
            for callee, certain in targets:
                self._add(Edge(fid, callee, position, call.line, call.region, certain, min(len(targets), SEVERAL)))
            for keeper, region, callee in found.kept:
                self._add(Edge(keeper, callee, NO_CALL, self.index.function(keeper).regions[region].line, region, True))
        for edge in self._implied(fid):
            self._add(edge)

    def _add(self, edge: Edge) -> None:
        self._out.setdefault(edge.caller, []).append(edge)
        self._in.setdefault(edge.callee, []).append(edge)

    def _implied(self, fid: FunctionId) -> Iterator[Edge]:
        """Properties that are read, iterators that a loop walks, wrappers that decorators put around the function."""
        function = self.index.function(fid)
        for chain in function.reads:
            yield from (Edge(fid, found, NO_CALL, function.line, 0, True) for found in self._properties(fid, chain))
        for position, region in enumerate(function.regions):
            if region.kind == RegionKind.LOOP and region.text and not region.text.startswith(("while", "range(")):
                yield from (Edge(fid, found, NO_CALL, region.line, position, True) for found in self._iterators(fid, region.text))
        for decorator in function.decorators:
            yield from (Edge(fid, found, NO_CALL, function.line, 0, True) for found in self._wrappers(fid, decorator))

    def _properties(self, fid: FunctionId, chain: str) -> Iterator[FunctionId]:
        base, _, name = chain.rpartition(".")
        if name not in self._property_names:
            return
        for found in self._typing.of_chain(*fid, base):
            if found.kind is Kind.INSTANCE and not found.depth:
                for method in self._typing.methods(found.target, name, found.exact):
                    if self.index.function(method).flags & FunctionFlag.PROPERTY:
                        yield method

    def _iterators(self, fid: FunctionId, chain: str) -> Iterator[FunctionId]:
        for found in self._typing.of_chain(*fid, chain):
            if found.kind is Kind.INSTANCE and not found.depth:
                for name in ("__iter__", "__next__", "__getitem__"):
                    yield from self._typing.methods(found.target, name, found.exact)

    def _wrappers(self, fid: FunctionId, decorator: str) -> Iterator[FunctionId]:
        function = self.index.function(fid)
        for found in self._typing.of_chain(fid[0], function.parent, decorator.removesuffix("()")):
            if found.kind is Kind.FUNCTION:
                file, outer = found.target
                yield from ((file, inner.index) for inner in self.index.files[file].functions if self._lies_in(file, inner.index, outer))
            elif found.kind is Kind.CLASS:
                yield from self._typing.methods(found.target, "__call__", exact=True)

    def _lies_in(self, file: int, inner: int, outer: int) -> bool:
        functions = self.index.files[file].functions
        parent = functions[inner].parent
        while parent and parent != outer:
            parent = functions[parent].parent
        return parent == outer and functions[inner].name != "<lambda>"

    def _add_orphans(self) -> None:
        """A nested function that nobody is seen to call is taken to run where it is defined."""
        for file, outline in enumerate(self.index.files):
            for function in outline.functions[1:]:
                fid = (file, function.index)
                if not function.parent or function.owner >= 0 or fid in self._in or fid in self.hooks:
                    continue
                if installs(outline.functions[function.parent].name):  # it is what is put in place
                    self.hooks[fid] = None
                else:
                    self._add(Edge((file, function.parent), fid, NO_CALL, function.line, function.region, False))
                self.escaping.add(fid)


def _is_taken_away(function: FunctionOutline, call: Call) -> bool:
    """Whether the same function removes the hook that a call puts in place: `handle = m.register_…(f); …; handle.remove()`."""
    bound = [name for name, text in function.assigns if text == f"{call.chain}()"]
    kept = {other.chain.removesuffix(".append") for other in function.calls if other.chain.endswith(".append") and other.line == call.line}
    bound += [name for name, text in function.assigns if text.endswith("[]") and text[:-2] in kept]
    return any(other.chain == f"{name}.remove" for other in function.calls for name in bound)
