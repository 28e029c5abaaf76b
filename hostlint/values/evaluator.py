"""The evaluator: runs value graphs on the lattice, on demand, across functions and files, with bounded depth."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from hostlint.facts.graph import FunctionGraph, Op, operands
from hostlint.values.drivers import Drivers
from hostlint.values.lattice import UNKNOWN, join_all
from hostlint.values.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hostlint.facts.schema import FunctionOutline
    from hostlint.index import ClassId, FunctionId, ProjectIndex
    from hostlint.model import Heat
    from hostlint.values.conventions import Conventions

FUEL = 5
PASSES = 4
NAME_DEPTH = 40
MOST_FRAMES = 30_000
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
    @property
    def among(self) -> int: ...


class Surroundings(Protocol):
    """What the evaluator asks of the rest of the project."""

    def callers(self, fid: FunctionId) -> Sequence[Caller]: ...
    def is_hot(self, fid: FunctionId, region: int = 0) -> bool: ...
    def heat_of(self, fid: FunctionId, region: int) -> Heat: ...


@dataclass(slots=True)
class Frame:
    """One function on the lattice, worked out as far as it was asked for; `given` are the arguments of one call, else it stands for all."""

    evaluator: Evaluator
    fid: FunctionId
    outline: FunctionOutline
    graph: FunctionGraph
    fuel: int
    given: Given | None
    names: dict[int, str]  # of the nodes, as far as they were asked for; shared by all frames of the function
    values: list[Value] = field(init=False)  # None where not worked out yet: see `value`
    files: int = 0  # the files whose graphs these values rest on, a bit each
    running: bool = False

    def __post_init__(self) -> None:
        self.values = [None] * len(self.graph.nodes)  # type: ignore[list-item]  # read only after `value` filled what is needed

    def value(self, node: int) -> Value:
        """The value of a node, worked out with all that it needs if it was not yet."""
        if not 0 <= node < len(self.values):
            return UNKNOWN
        if self.values[node] is None:
            if self.running:  # a value that depends on itself
                return UNKNOWN
            work_out(self, node)
        self.evaluator.files |= self.files
        return self.values[node]

    def node_name(self, node: int) -> str:
        """The name in the source that a node was read through: `device`, `self.device`, or ""."""
        return self._name(node, NAME_DEPTH)

    def _name(self, node: int, depth: int) -> str:
        if node not in self.names:
            if not depth:
                return ""
            self.names[node] = ""  # a PHI that leads back to itself has no name of its own
            self.names[node] = self._read_through(node, depth - 1)
        return self.names[node]

    def _read_through(self, node: int, depth: int) -> str:
        if not 0 <= node < len(self.graph.nodes):
            return ""
        op, _, *rest = self.graph.nodes[node]
        if op == Op.PARAM:
            return self.outline.params[_index(rest[0])].name
        if op in (Op.GLOBAL, Op.FREE):
            return str(rest[0])
        if op == Op.ATTR:
            base = self._name(_index(rest[0]), depth)
            return f"{base}.{rest[1]}" if base else str(rest[1])
        if op in (Op.REFINE, Op.STORE, Op.STAR, Op.CALL, Op.MOVED):
            return self._name(_index(rest[0]), depth)
        if op == Op.PHI and isinstance(rest[0], tuple):
            return next((name for part in rest[0] if part < node and (name := self._name(part, depth))), "")
        return ""


def _index(operand: object) -> int:
    return operand if isinstance(operand, int) else -1


class Evaluator:
    """Every question that leaves a function (what a caller passes, what a callee returns, what an attribute holds) spends one unit of fuel,
    so that answers do not depend on the order in which they are asked for.
    """

    def __init__(
        self, index: ProjectIndex, graph_of: Callable[[FunctionId], FunctionGraph], surroundings: Surroundings, conventions: Conventions
    ) -> None:
        self.index = index
        self.surroundings = surroundings
        self.conventions = conventions
        self.graph_of = graph_of
        self._frames: dict[tuple[FunctionId, Given | None, int], Frame] = {}
        self._attributes: dict[tuple[object, ...], tuple[Value, int]] = {}
        self._schedules: dict[int, bool | None] = {}
        self._registered: dict[ClassId, frozenset[str]] = {}
        self._names: dict[FunctionId, dict[int, str]] = {}
        self._tensors: dict[FunctionId, frozenset[int]] = {}
        self.drivers = Drivers(self)
        self.files = 0  # what the answers since it was last cleared rest on

    def frame(self, fid: FunctionId, fuel: int = FUEL, given: Given | None = None) -> Frame:
        key = (fid, given, fuel)
        known = self._frames.get(key)
        if known is None:
            names = self._names.setdefault(fid, {})
            known = self._frames[key] = Frame(self, fid, self.index.function(fid), self.graph_of(fid), fuel, given, names)
        return known

    def trim(self) -> None:
        """Let go of what was worked out, where it is much; it can be worked out again."""
        if len(self._frames) > MOST_FRAMES:
            self._frames.clear()
            self._attributes.clear()

    def returned(self, fid: FunctionId, fuel: int, given: Given | None = None) -> Value:
        frame = self.frame(fid, fuel, given)
        return join_all(frame.value(node) for node in frame.graph.returns)

    def schedules_on_device(self, file: int) -> bool | None:
        """Whether a call of set_timesteps in the file names a device; None where there is no call."""
        if file not in self._schedules:
            functions = self.index.files[file].functions
            calls = [((file, f.index), call.node) for f in functions for call in f.calls if call.chain.endswith(".set_timesteps")]
            self._schedules[file] = any(self._names_device(fid, node) for fid, node in calls) if calls else None
        return self._schedules[file]

    def _names_device(self, fid: FunctionId, node: int) -> bool:
        call: Any = self.graph_of(fid).nodes[node]
        _, _, _, arguments, keywords, starred = call
        return bool(starred) or len(arguments) > 1 or any(name == "device" for name, _ in keywords)

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

    def tensors_by_use(self, frame: Frame) -> frozenset[int]:
        """The positions of the parameters that a function uses as tensors."""
        from hostlint.values.usage import tensors_by_use

        known = self._tensors.get(frame.fid)
        if known is None:
            known = self._tensors[frame.fid] = tensors_by_use(frame)
        return known

    def remember(self, key: tuple[object, ...], compute: Callable[[], Value]) -> Value:
        """An answer that several functions ask for; the key holds the fuel."""
        known = self._attributes.get(key)
        if known is None:
            outer, self.files = self.files, 0
            known = self._attributes[key] = (compute(), self.files)
            self.files = outer
        self.files |= known[1]
        return known[0]


def work_out(frame: Frame, wanted: int) -> None:
    """Evaluate a node and all that it needs, in the graph's order; PHI nodes of loops look ahead, so go round until nothing changes."""
    needed = _needed(frame, wanted)
    nodes = frame.graph.nodes
    ahead = [node for node in needed if nodes[node][0] == Op.PHI and any(part >= node for part in operands(nodes[node]))]
    frame.running = True
    outer, frame.evaluator.files = frame.evaluator.files, 1 << frame.fid[0]
    try:
        _evaluate(frame, needed)
        if ahead:
            _go_round(frame, needed, ahead)
    finally:
        frame.running = False
        frame.files |= frame.evaluator.files
        frame.evaluator.files = outer


def _go_round(frame: Frame, needed: Sequence[int], ahead: Sequence[int]) -> None:
    """Evaluate again until the loops' PHI nodes are stable; those that are not after a few rounds may be anything."""
    for _ in range(PASSES):
        before = [frame.values[node] for node in ahead]
        _evaluate(frame, needed)
        if before == [frame.values[node] for node in ahead]:
            return
    restless = {node for node, old in zip(ahead, before, strict=True) if frame.values[node] != old}
    for node in restless:
        frame.values[node] = UNKNOWN
    _evaluate(frame, [node for node in needed if node not in restless])


def _evaluate(frame: Frame, needed: Sequence[int]) -> None:
    from hostlint.values.nodes import evaluate

    nodes, values = frame.graph.nodes, frame.values
    for position in needed:
        values[position] = evaluate(frame, nodes[position], position)


def _needed(frame: Frame, wanted: int) -> list[int]:
    nodes, values = frame.graph.nodes, frame.values
    found, queue = {wanted}, [wanted]
    while queue:
        for part in operands(nodes[queue.pop()]):
            if part not in found and values[part] is None:
                found.add(part)
                queue.append(part)
    return sorted(found)
