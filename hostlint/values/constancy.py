"""Whether a Python value stays the same over the steps, and why: through shapes, attributes set in `__init__` only, and calls."""
from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from hostlint.facts.graph import Op, operands
from hostlint.facts.schema import FunctionFlag
from hostlint.values.detail import Class, External, Function, Instance, Module, Super
from hostlint.values.loops import LoopBody, around
from hostlint.values.shapes import Shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.index import FunctionId
    from hostlint.model import Heat
    from hostlint.values.evaluator import Caller, Evaluator


class Steady(IntEnum):
    VARIES = 0
    LOOP = 1  # the same in every pass of a step loop around the call
    SHAPE = 2  # a function of shapes, dtypes and devices
    FIXED = 3  # a function of literals and of attributes that are set in `__init__` only


class Verdict(NamedTuple):
    steady: Steady
    why: str = ""


class StepLoops(Protocol):
    def is_step_loop(self, fid: FunctionId, region: int) -> bool: ...
    def site(self, fid: FunctionId, region: int) -> Heat: ...


VARIES = Verdict(Steady.VARIES)
FIXED = Verdict(Steady.FIXED, "literals and attributes that only `__init__` sets")
SHAPE = Verdict(Steady.SHAPE, "shapes and attributes that only `__init__` sets")
SIDE = Verdict(Steady.SHAPE, "the sides of a picture or grid, which no step changes")
METADATA = frozenset({"shape", "ndim", "itemsize"})
PLACES = frozenset({"device", "dtype"})
SHAPE_CALLS = frozenset({"size", "dim", "numel", "ndimension", "element_size", "get_device"})
PURE = frozenset({
    "int", "float", "bool", "round", "min", "max", "abs", "len", "sum", "range", "tuple", "list", "reversed", "pow", "divmod", "str",
    "slice",
})
SETUPS = frozenset({"__init__", "__post_init__", "setup", "build", "_build", "post_init", "reset_parameters", "init_weights"})
CONFIGS = frozenset({"config", "cfg", "hparams", "args", "opt", "opts", "arch", "params", "_config"})
# Sides of a picture or of a grid of patches, which no step changes; lengths of sequences may grow.
SIDES = re.compile(
    r"^(h|w|hw|height|width|(\w+_)?(feat|grid|patch|window|spatial|img|image|q|k|kv)_?(size|shape|hw|resolution|height|width|h|w))$",
    re.IGNORECASE,
)
INTS = re.compile(r"^(typing\.)?(int|(List|list|Tuple|tuple|Sequence)\[int(, ?(int|\.\.\.))*\]|torch\.Size)$")
HANDS_ON = re.compile(r"checkpoint|(^|[._])(partial|map|filter|reduce|vmap|apply|run_in_executor|to_thread)$")
DEPTH = 6
MANY_CALLERS = 8


def weakest(one: Verdict, other: Verdict) -> Verdict:
    return other if other.steady < one.steady else one


class Constancy:
    """Answers for nodes of any function, kept; what a caller passes is looked up at its calls."""

    def __init__(self, evaluator: Evaluator, loops: StepLoops) -> None:
        self._evaluator = evaluator
        self._loops = loops
        self.shapes = Shapes(evaluator)
        self._known: dict[tuple[FunctionId, int, int], Verdict] = {}
        self._bodies: dict[tuple[FunctionId, int], LoopBody] = {}

    def of(self, fid: FunctionId, node: int, depth: int = DEPTH) -> Verdict:
        """How steady a node's value is; the weakest of what it is made of."""
        key = (fid, node, depth)
        if key not in self._known:
            self._known[key] = VARIES  # what depends on itself changes
            self._evaluator.files |= 1 << fid[0]
            self._known[key] = self._judge(fid, node, depth)
        return self._known[key]

    def all_of(self, fid: FunctionId, nodes: Sequence[int], depth: int = DEPTH) -> Verdict:
        result = FIXED
        for node in nodes:
            result = weakest(result, self.of(fid, node, depth))
            if not result.steady:
                break
        return result

    def body(self, fid: FunctionId, loop: int) -> LoopBody:
        key = (fid, loop)
        if key not in self._bodies:
            self._bodies[key] = LoopBody(self._evaluator.index.function(fid), self._evaluator.graph_of(fid), loop)
        return self._bodies[key]

    def step_loop(self, fid: FunctionId, region: int) -> int:
        """The innermost step loop around a region, 0 where there is none."""
        outline = self._evaluator.index.function(fid)
        return next((loop for loop in around(outline, region) if self._loops.is_step_loop(fid, loop)), 0)

    def _judge(self, fid: FunctionId, node: int, depth: int) -> Verdict:
        item: Any = self._evaluator.graph_of(fid).nodes[node]
        op = item[0]
        if op == Op.CONST:
            return FIXED
        if op in (Op.GLOBAL, Op.IMPORT):
            return self._global(fid, node)
        if op == Op.PARAM:
            return self._parameter(fid, item[2], depth)
        if op == Op.ATTR:
            return self._attribute(fid, item, depth)
        if op == Op.CALL:
            return self._call(fid, item, depth)
        if op == Op.PHI:
            return VARIES if any(part >= node for part in item[2]) else self.all_of(fid, item[2], depth)
        if op in (Op.INDEX, Op.SLICE, Op.BINOP, Op.UNARY, Op.COMPARE, Op.BOOL, Op.SEQUENCE, Op.UNPACK, Op.REFINE, Op.STAR):
            return self.all_of(fid, operands(item), depth)
        return VARIES

    def _global(self, fid: FunctionId, node: int) -> Verdict:
        value = self._evaluator.frame(fid).value(node)
        if isinstance(value.detail, (External, Function, Class, Module)):
            return FIXED
        name = self._evaluator.frame(fid).node_name(node)
        return FIXED if name.isupper() and value.is_host else VARIES

    def _attribute(self, fid: FunctionId, item: Any, depth: int) -> Verdict:
        base, name = item[2], item[3]
        if name in METADATA:
            return SHAPE if self.shapes.is_steady(fid, base) else VARIES
        if name in PLACES:
            return FIXED
        value = self._evaluator.frame(fid).value(base)
        if isinstance(value.detail, (Instance, Super)) and self._is_self(fid, base):
            return self._of_self(value.detail.klass, name)
        if isinstance(value.detail, (External, Module)):
            return FIXED
        owner: Any = self._evaluator.graph_of(fid).nodes[base]
        if owner[0] == Op.ATTR and owner[3] in CONFIGS and self._is_self(fid, owner[2]):
            return FIXED
        if owner[0] == Op.ATTR and self._is_self(fid, owner[2]) and isinstance(value.detail, Instance):
            return self._of_self(value.detail.klass, name)  # an attribute of a submodule
        return VARIES

    def _is_self(self, fid: FunctionId, node: int) -> bool:
        outline = self._evaluator.index.function(fid)
        method = outline.owner >= 0 and not outline.flags & (FunctionFlag.STATIC | FunctionFlag.CLASS)
        item: Any = self._evaluator.graph_of(fid).nodes[node]
        return method and item[0] == Op.PARAM and item[2] == 0

    def _of_self(self, klass: Any, name: str) -> Verdict:
        """An attribute that only construction sets, to a Python value."""
        evaluator = self._evaluator
        index = evaluator.index
        if name in CONFIGS:
            return FIXED
        stores = index.attribute_stores(klass, name)
        if not stores:
            return VARIES
        for fid, node, _ in stores:
            if index.function(fid).name not in SETUPS:
                return VARIES
            if evaluator.frame(fid).value(node).is_tensor:
                return VARIES
        return FIXED

    def _call(self, fid: FunctionId, item: Any, depth: int) -> Verdict:
        _, _, callee, arguments, keywords, _ = item
        nodes = self._evaluator.graph_of(fid).nodes
        target: Any = nodes[callee]
        given = [*arguments, *(value for _, value in keywords)]
        if target[0] == Op.ATTR and target[3] in SHAPE_CALLS:
            return weakest(SHAPE, self.all_of(fid, given, depth)) if self.shapes.is_steady(fid, target[2]) else VARIES
        value = self._evaluator.frame(fid).value(callee)
        if isinstance(value.detail, External):
            name = value.detail.name
            last = name.removeprefix("builtins.")
            if last == "len" and given:
                return weakest(SHAPE, self._sized(fid, given[0], depth)) if self.shapes.is_steady(fid, given[0]) else VARIES
            if last in PURE or name.startswith("math.") or name in ("torch.device", "torch.finfo", "torch.Size", "torch.iinfo"):
                return self.all_of(fid, given, depth)
        return VARIES

    def _sized(self, fid: FunctionId, node: int, depth: int) -> Verdict:
        """`len(x)`: of a tensor its shape, of anything else how steady the thing is."""
        return SHAPE if self._evaluator.frame(fid).value(node).is_tensor else self.of(fid, node, depth)

    def _parameter(self, fid: FunctionId, position: int, depth: int) -> Verdict:
        if depth <= 0 or self._evaluator.frame(fid).value(self._node_of(fid, position)).is_tensor:
            return VARIES
        callers = self.hot_callers(fid)
        result = FIXED
        if not callers or len(callers) > MANY_CALLERS or not all(edge.certain for edge in callers):
            result = VARIES
        for edge in callers if result.steady else ():
            result = weakest(result, self._passed(fid, position, edge, depth))
        if result.steady or not self._is_side(fid, position) or any(self._is_of_item(fid, position, edge) for edge in callers):
            return result
        return SIDE

    def _is_side(self, fid: FunctionId, position: int) -> bool:
        param = self._evaluator.index.function(fid).params[position]
        return bool(SIDES.match(param.name) and INTS.match(param.annotation))

    def _is_of_item(self, fid: FunctionId, position: int, edge: Caller) -> bool:
        """Whether a call passes what a loop over data brings: each batch has its own pictures."""
        where, node = argument_of(self._evaluator, fid, position, edge) or (fid, -1)
        nodes: Any = self._evaluator.graph_of(where).nodes
        while node >= 0 and nodes[node][0] in (Op.UNPACK, Op.INDEX, Op.REFINE):
            node = nodes[node][2]
        return node >= 0 and nodes[node][0] == Op.ITER

    def hot_callers(self, fid: FunctionId) -> list[Caller]:
        """The calls of a function on a step's path, save those that hand the function on to something that calls it (a checkpoint)."""
        hot = [edge for edge in self._evaluator.surroundings.callers(fid) if self._evaluator.surroundings.is_hot(*self._place(edge))]
        return [edge for edge in hot if not HANDS_ON.search(self._evaluator.index.function(edge.caller).calls[edge.call_index].chain)]

    def _node_of(self, fid: FunctionId, position: int) -> int:
        nodes = self._evaluator.graph_of(fid).nodes
        return next((place for place, node in enumerate(nodes) if node[0] == Op.PARAM and node[2] == position), -1)

    def _place(self, edge: Caller) -> tuple[FunctionId, int]:
        return edge.caller, self._evaluator.index.function(edge.caller).calls[edge.call_index].region

    def _passed(self, fid: FunctionId, position: int, edge: Caller, depth: int) -> Verdict:
        argument = argument_of(self._evaluator, fid, position, edge)
        if argument is None:
            return VARIES
        where, node = argument
        verdict = self.of(where, node, depth - 1)
        if verdict.steady or where != edge.caller:
            return verdict
        caller, region = self._place(edge)
        loop = self.step_loop(caller, region)
        if loop and self.is_invariant(caller, node, loop):
            name = self._evaluator.index.function(fid).params[position].name
            line = self._evaluator.index.function(caller).regions[loop].line
            function = self._evaluator.index.function(caller).qualname
            return Verdict(Steady.LOOP, f"the loop in `{function}`, line {line}, hands every call the same `{name}`")
        return VARIES

    def is_invariant(self, fid: FunctionId, node: int, loop: int) -> bool:
        """Whether a node is the same in every pass of a loop of its function."""
        nodes = self._evaluator.graph_of(fid).nodes

        def leaf(place: int) -> bool | None:
            item: Any = nodes[place]
            if item[0] == Op.ATTR and item[3] in PLACES:
                return True
            if item[0] == Op.ATTR and item[3] in METADATA:
                return None
            return self.of(fid, place).steady > Steady.LOOP

        return self.body(fid, loop).is_invariant(node, leaf)


def argument_of(evaluator: Evaluator, fid: FunctionId, position: int, edge: Caller) -> tuple[FunctionId, int] | None:
    """The node that one call passes for a parameter, with the function whose graph holds it; a default is the enclosing function's."""
    outline = evaluator.index.function(fid)
    param = outline.params[position]
    call = evaluator.index.function(edge.caller).calls[edge.call_index]
    nodes = evaluator.graph_of(edge.caller).nodes
    if call.node < 0 or nodes[call.node][0] != Op.CALL or param.kind in ("*", "**"):
        return None
    item: Any = nodes[call.node]
    _, _, _, arguments, keywords, starred = item
    named = dict(keywords)
    slot = position - int(outline.owner >= 0 and not outline.flags & FunctionFlag.STATIC)
    if param.name in named:
        return edge.caller, named[param.name]
    if any(nodes[part][0] == Op.STAR for part in arguments):
        return None
    if param.kind == "positional" and 0 <= slot < len(arguments):
        return edge.caller, arguments[slot]
    if starred or param.default < 0:
        return None
    return (fid[0], outline.parent), param.default
