"""The evaluator: runs value graphs on the lattice, on demand, across functions and files, with bounded depth.

Every question that leaves a function (what a caller passes, what a callee returns, what an attribute holds) spends one unit of fuel, so
that answers do not depend on the order in which they are asked for. An answer that no lack of fuel has cut serves every later question.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hostlint.facts.graph import FunctionGraph, Node, Op
from hostlint.facts.schema import FunctionOutline
from hostlint.index import ClassId, FunctionId, ProjectIndex
from hostlint.values.conventions import Conventions
from hostlint.values.lattice import UNKNOWN, join_all
from hostlint.values.value import Value

FUEL = 5
PASSES = 3
REGISTRATIONS = frozenset({"self.register_buffer", "self.register_parameter"})

Given = tuple[Value, ...]


class Caller(Protocol):
    """One call of a function that was found in the project."""

    @property
    def caller(self) -> FunctionId: ...
    @property
    def call_index(self) -> int: ...
    @property
    def certain(self) -> bool: ...


class Surroundings(Protocol):
    """What the evaluator asks of the rest of the project."""

    def callers(self, fid: FunctionId) -> Sequence[Caller]: ...
    def is_hot(self, fid: FunctionId) -> bool: ...


@dataclass(slots=True)
class Frame:
    """One function run on the lattice; `given` are argument values where it was run for one call, else it stands for all calls."""

    evaluator: Evaluator
    fid: FunctionId
    outline: FunctionOutline
    graph: FunctionGraph
    fuel: int
    given: Given | None
    names: dict[int, str]  # of the nodes, as far as they were asked for; shared by all runs of the function
    values: list[Value] = field(default_factory=list)

    def value(self, node: int) -> Value:
        return self.values[node] if 0 <= node < len(self.values) else UNKNOWN

    def node_name(self, node: int) -> str:
        """The name in the source that a node was read through: `device`, `self.device`, or ""."""
        if node not in self.names:
            self.names[node] = ""  # a PHI that leads back to itself has no name of its own
            self.names[node] = self._name(node)
        return self.names[node]

    def _name(self, node: int) -> str:
        if not 0 <= node < len(self.graph.nodes):
            return ""
        op, _, *rest = self.graph.nodes[node]
        if op == Op.PARAM:
            return self.outline.params[_index(rest[0])].name
        if op in (Op.GLOBAL, Op.FREE):
            return str(rest[0])
        if op == Op.ATTR:
            base = self.node_name(_index(rest[0]))
            return f"{base}.{rest[1]}" if base else str(rest[1])
        if op in (Op.REFINE, Op.STORE, Op.STAR, Op.CALL):
            return self.node_name(_index(rest[0]))
        if op == Op.PHI and isinstance(rest[0], tuple):
            return next((name for part in rest[0] if part < node and (name := self.node_name(part))), "")
        return ""


def _index(operand: object) -> int:
    return operand if isinstance(operand, int) else -1


class Evaluator:
    def __init__(
        self, index: ProjectIndex, graph_of: Callable[[FunctionId], FunctionGraph], surroundings: Surroundings, conventions: Conventions
    ) -> None:
        self.index = index
        self.surroundings = surroundings
        self.conventions = conventions
        self.graph_of = graph_of
        self._complete: dict[tuple[FunctionId, Given | None], Frame] = {}
        self._cut_frames: dict[tuple[FunctionId, Given | None, int], Frame] = {}
        self._attributes: dict[tuple[object, ...], Value] = {}
        self._registered: dict[ClassId, frozenset[str]] = {}
        self._names: dict[FunctionId, dict[int, str]] = {}
        self._cut = False

    def cut(self) -> None:
        """An answer was left open for lack of fuel."""
        self._cut = True

    def frame(self, fid: FunctionId, fuel: int = FUEL, given: Given | None = None) -> Frame:
        complete = self._complete.get((fid, given))
        if complete is not None:
            return complete
        known = self._cut_frames.get((fid, given, fuel))
        if known is not None:
            self._cut = True
            return known
        outer, self._cut = self._cut, False
        made = Frame(self, fid, self.index.function(fid), self.graph_of(fid), fuel, given, self._names.setdefault(fid, {}))
        _run(made)
        if self._cut:
            self._cut_frames[fid, given, fuel] = made
        else:
            self._complete[fid, given] = made
        self._cut = self._cut or outer
        return made

    def returned(self, fid: FunctionId, fuel: int, given: Given | None = None) -> Value:
        frame = self.frame(fid, fuel, given)
        return join_all(frame.value(node) for node in frame.graph.returns)

    def registered_names(self, cid: ClassId) -> frozenset[str]:
        """The names of buffers and parameters that a class and its bases register by string."""
        known = self._registered.get(cid)
        if known is None:
            calls = (
                call
                for klass in self.index.mro(cid)
                for _, method in self.index.klass(klass).methods
                for call in self.index.files[klass[0]].functions[method].calls
            )
            names = frozenset(call.strings[0] for call in calls if call.chain in REGISTRATIONS and call.strings)
            known = self._registered[cid] = names
        return known

    def remember(self, key: tuple[object, ...], compute: Callable[[], Value]) -> Value:
        """An answer that several functions ask for; kept unless the lack of fuel cut it (the key holds the fuel)."""
        known = self._attributes.get(key)
        if known is None:
            known = self._attributes[key] = compute()
        return known


def _run(frame: Frame) -> None:
    """Evaluate the nodes in order; loops make PHI nodes that look ahead, so go round until nothing changes."""
    from hostlint.values.nodes import evaluate

    nodes, values = frame.graph.nodes, frame.values
    for position, node in enumerate(nodes):
        values.append(evaluate(frame, node, position))
    ahead = [(position, node) for position, node in enumerate(nodes) if node[0] == Op.PHI and _looks_ahead(position, node)]
    for _ in range(PASSES - 1):
        if all(evaluate(frame, node, position) == values[position] for position, node in ahead):
            return
        for position, node in enumerate(nodes):
            values[position] = evaluate(frame, node, position)


def _looks_ahead(position: int, node: Node) -> bool:
    operands = node[2]
    return isinstance(operands, tuple) and any(part >= position for part in operands)
