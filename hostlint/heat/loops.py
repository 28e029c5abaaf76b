"""Which loops are step loops: the innermost ones that reach a model call, by their own calls or through the call graph."""
from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from hostlint.facts.schema import RegionKind
from hostlint.heat import owners, words
from hostlint.heat.nature import Nature, innermost_loops, installs, nature_of, region_limits
from hostlint.heat.siblings import Siblings
from hostlint.heat.words import Walk
from hostlint.model import HeatLevel

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from hostlint.facts.schema import Call, FunctionOutline
    from hostlint.heat.callgraph import CallGraph, Edge
    from hostlint.index import FunctionId

_DEVICE_WORK = frozenset({"cuda", "to", "backward"})
LOOPS_AWAY = 2  # calls between a function that is named after all the steps and the loop that takes them


class LoopKind(IntEnum):
    NEUTRAL = 0  # as hot as its function
    OUTER = 1  # around step loops: requests, epochs, files
    LAYERS = 2  # a step loop that is itself one step of what is around it: layers, blocks, parameters
    STEPS = 3


class Shape:
    """The loops of one function and what happens in each: the parts of the outline that the step loops are judged by."""

    __slots__ = ("children", "edges", "limits", "loop_of", "outline", "steps")

    def __init__(self, outline: FunctionOutline, edges: list[Edge], step_calls: list[Call], setups: Container[FunctionId] = ()) -> None:
        self.outline = outline
        self.limits = region_limits(outline.regions)
        self.loop_of = innermost_loops(outline.regions)
        hot = [limit is HeatLevel.LOOP for limit in self.limits]
        self.edges: dict[int, list[Edge]] = {}
        for edge in edges:
            if hot[edge.region] and edge.certain and edge.callee not in setups:
                self.edges.setdefault(self.loop_of[edge.region], []).append(edge)
        self.steps: dict[int, list[str]] = {}  # loop -> the callees of its model calls
        for call in step_calls:
            if hot[call.region]:
                self.steps.setdefault(self.loop_of[call.region], []).append(call.chain)
        self.children: dict[int, list[int]] = {}
        for position, region in enumerate(outline.regions):
            if region.kind == RegionKind.LOOP and hot[position]:
                self.children.setdefault(self.loop_of[region.parent], []).append(position)

    def loops(self) -> Iterator[int]:
        """Every loop that its guards let be hot, inner loops first."""
        yield from sorted((loop for loops in self.children.values() for loop in loops), reverse=True)

    def walk(self, loop: int) -> Walk:
        region = self.outline.regions[loop]
        return words.loop_walks(region.text, region.targets)


class StepLoops:
    """Judges every loop. A function *exposes* a model call that no step loop of its own surrounds; it *hides* step loops below it."""

    def __init__(self, graph: CallGraph) -> None:
        self._graph = graph
        self._shapes: dict[FunctionId, Shape] = {}
        self._exposes: set[FunctionId] = set()
        self._hides: set[FunctionId] = set()
        self._kinds: dict[FunctionId, dict[int, LoopKind]] = {}
        self._setups = {  # construction, loading, hooks put in place: what they call is no step of the loop around them
            (file, function.index)
            for file, outline in enumerate(graph.index.files)
            for function in outline.functions
            if installs(function.name) or nature_of(function, outline) is Nature.COLD
        }
        for file, outline in enumerate(graph.index.files):
            for function in outline.functions:
                self._prepare((file, function.index))
        self._settle()
        for fid, shape in self._shapes.items():
            if shape.children:
                self._kinds[fid] = self._judge(shape)
        self._cool_preparations()

    def unresolved(self, fid: FunctionId) -> Iterator[tuple[str, int]]:
        """The callees that nobody knows for certain, with their regions."""
        known = {edge.call_index for edge in self._graph.edges_out(fid) if edge.certain}
        calls = self._graph.index.function(fid).calls
        yield from ((call.chain, call.region) for position, call in enumerate(calls) if position not in known)

    def kinds(self, fid: FunctionId) -> dict[int, LoopKind]:
        """The function's loops by region."""
        return self._kinds.get(fid, {})

    def is_step(self, fid: FunctionId, region: int) -> bool:
        return self.kinds(fid).get(region, LoopKind.NEUTRAL) >= LoopKind.LAYERS

    def _cool_preparations(self) -> None:
        """Loops that prepare or finish a request whose steps another loop takes are no step loops."""
        hot = {fid: [loop for loop, kind in kinds.items() if kind >= LoopKind.LAYERS] for fid, kinds in self._kinds.items()}
        siblings = Siblings(self._graph, hot)
        for fid, loops in hot.items():
            for loop in loops:
                if siblings.is_preparation(fid, loop, self._shapes[fid].walk(loop)):
                    self._kinds[fid][loop] = LoopKind.NEUTRAL

    def surrounding(self, fid: FunctionId, region: int) -> int:
        """The innermost step loop around a region, 0 where there is none."""
        regions = self._graph.index.function(fid).regions
        while region and not self.is_step(fid, region):
            region = regions[region].parent
        return region

    def _prepare(self, fid: FunctionId) -> None:
        outline = self._graph.index.function(fid)
        edges = self._graph.edges_out(fid)
        steps = [call for call in self._graph.step_calls(fid) if not self._serves_request(edges, call)]
        if edges or steps or len(outline.regions) > 1:
            self._shapes[fid] = Shape(outline, list(edges), [outline.calls[call] for call in steps], self._setups)

    def _serves_request(self, edges: Sequence[Edge], call: int) -> bool:
        """Whether a call named like a step, as `stage.forward(batch)`, serves a whole request."""
        callees = [edge.callee for edge in edges if edge.call_index == call]
        return bool(callees) and all(owners.is_request_method(self._graph.index, callee) for callee in callees)

    def _settle(self) -> None:
        """Carry "exposes" and "hides" up the call graph until nothing changes; both only grow."""
        waiting = list(self._shapes)
        queued = set(waiting)
        while waiting:
            fid = waiting.pop()
            queued.discard(fid)
            shape = self._shapes[fid]
            before = fid in self._exposes, fid in self._hides
            if not before[0] and self._does_expose(shape):
                self._exposes.add(fid)
            if not before[1] and self._does_hide(shape):
                self._hides.add(fid)
            if before != (fid in self._exposes, fid in self._hides):
                callers = dict.fromkeys(edge.caller for edge in self._graph.edges_in(fid) if edge.caller not in queued)
                waiting.extend(callers)
                queued.update(callers)

    def _does_expose(self, shape: Shape) -> bool:
        return self._reaches(shape, 0) or any(self._reaches(shape, loop) and self._is_layers(shape, loop) for loop in shape.loops())

    def _does_hide(self, shape: Shape) -> bool:
        if any(edge.callee in self._hides for edges in shape.edges.values() for edge in edges):
            return True
        return any(self._reaches(shape, loop) and not self._is_layers(shape, loop) for loop in shape.loops())

    def _reaches(self, shape: Shape, loop: int) -> bool:
        return loop in shape.steps or any(edge.callee in self._exposes for edge in shape.edges.get(loop, ()))

    def _is_layers(self, shape: Shape, loop: int) -> bool:
        walk = shape.walk(loop)
        return walk is Walk.LAYERS or (walk is Walk.UNKNOWN and shape.outline.name == "forward" and shape.outline.owner >= 0)

    def _judge(self, shape: Shape) -> dict[int, LoopKind]:
        kinds: dict[int, LoopKind] = {}
        for loop in shape.loops():
            kinds[loop] = self._kind(shape, loop, [kinds[child] for child in shape.children.get(loop, ())])
        return kinds

    def _kind(self, shape: Shape, loop: int, inner: list[LoopKind]) -> LoopKind:
        walk = shape.walk(loop)
        edges = shape.edges.get(loop, [])
        step = LoopKind.LAYERS if self._is_layers(shape, loop) else LoopKind.STEPS
        exposing = [edge for edge in edges if edge.callee in self._exposes]
        hides = LoopKind.STEPS in inner or LoopKind.OUTER in inner or any(edge.callee in self._hides for edge in edges)
        if walk is Walk.REQUESTS or (walk is Walk.UNKNOWN and self._serves(shape, loop, exposing, edges)):
            return LoopKind.OUTER
        if walk is Walk.UNKNOWN and (self._goes_through_stages(shape, loop) or (hides and self._receives(shape, loop))):
            return LoopKind.OUTER
        if loop in shape.steps and not (hides and (all(map(words.codes, shape.steps[loop])) or self._turns_epochs(shape, loop, walk))):
            return step
        if not hides:
            if exposing or LoopKind.LAYERS in inner:
                return step
            return LoopKind.STEPS if self._feeds_device(shape, loop) else LoopKind.NEUTRAL
        if words.names_requests(shape.outline.name) or (walk is Walk.STEPS and self._lie_steps_in(shape, loop, inner)):
            return LoopKind.OUTER
        if walk is Walk.STEPS or (walk is Walk.DATA and LoopKind.STEPS in inner):
            return step
        if any(self._is_rate(shape, edge) for edge in edges if edge in exposing or walk is Walk.DATA):
            return step
        return LoopKind.OUTER

    def _serves(self, shape: Shape, loop: int, exposing: list[Edge], edges: list[Edge]) -> bool:
        """Whether all that reaches a model in the loop is a whole request: the stages of one, or what an endless loop receives."""
        works = [*exposing, *(edge for edge in edges if edge.callee in self._hides)]
        if not works or loop in shape.steps:
            return False
        if all(owners.is_request_method(self._graph.index, edge.callee) for edge in works):
            return True
        endless = shape.outline.regions[loop].text.startswith("while")
        return endless and all(words.names_request(self._graph.index.function(edge.callee).name) for edge in works)

    def _goes_through_stages(self, shape: Shape, loop: int) -> bool:
        """Whether each round is a stage of a request; the stages of a network are hot with its forward."""
        region = shape.outline.regions[loop]
        return words.walks_stages(region.text, region.targets)

    def _receives(self, shape: Shape, loop: int) -> bool:
        """Whether each round of an endless loop waits for a message, which is a request, unless it forms batches of what has come."""
        if not shape.outline.regions[loop].text.startswith("while"):
            return False
        chains = [call.chain for call in shape.outline.calls if shape.loop_of[call.region] == loop]
        return any(map(words.receives, chains)) and not any(words.names_batch(words.last_name(chain)) for chain in chains)

    def _turns_epochs(self, shape: Shape, loop: int, walk: Walk) -> bool:
        """Whether only a schedule advances beside a loop over batches: `while True: scheduler.step(); for batch in loader: …`."""
        if walk is not Walk.UNKNOWN or not all(map(words.advances_schedule, shape.steps[loop])):
            return False
        return any(shape.walk(child) is Walk.DATA for child in shape.children.get(loop, ()))

    def _lie_steps_in(self, shape: Shape, loop: int, inner: list[LoopKind]) -> bool:
        """Whether a loop in this one walks over steps as well: then this one goes over the parts of a request."""
        loops = zip(shape.children.get(loop, ()), inner, strict=True)
        return any(kind is LoopKind.STEPS and shape.walk(child) is Walk.STEPS for child, kind in loops)

    def _is_rate(self, shape: Shape, edge: Edge) -> bool:
        name = words.last_name(shape.outline.calls[edge.call_index].chain) if edge.call_index >= 0 else ""
        return words.names_rate(name) and not (words.names_denoising(name) and self._walks_steps(edge.callee))

    def _walks_steps(self, fid: FunctionId, depth: int = LOOPS_AWAY) -> bool:
        """Whether a loop of the function, or of what it calls outside of any, takes the steps: one call is a whole request of them."""
        shape = self._shapes.get(fid)
        if shape is None or fid not in self._hides:
            return False
        if any(shape.walk(loop) is Walk.STEPS and self._reaches(shape, loop) for loop in shape.loops()):
            return True
        return depth > 0 and any(self._walks_steps(edge.callee, depth - 1) for edge in shape.edges.get(0, ()))

    def _feeds_device(self, shape: Shape, loop: int) -> bool:
        """Whether batches go to the device in the loop: it is their source, not a name that it binds, that says so."""
        if words.loop_walks(shape.outline.regions[loop].text, ()) is not Walk.DATA:
            return False
        calls = (call for call in shape.outline.calls if shape.loop_of[call.region] == loop)
        return any(words.last_name(call.chain) in _DEVICE_WORK or call.chain.startswith("torch.") for call in calls)
