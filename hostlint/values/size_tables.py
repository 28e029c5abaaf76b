"""Masks, positions and metadata that a helper builds from sizes alone, and that a step asks it for again."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op, SiteKind
from hostlint.facts.kinds import FactKind
from hostlint.facts.schema import FunctionFlag, RegionKind
from hostlint.heat.words import Walk, loop_walks
from hostlint.model import Confidence
from hostlint.values.constancy import PLACES, PURE, Steady
from hostlint.values.detail import Device, Dtype, External, Function, Items, Literal, Mapping, Method
from hostlint.values.hoisted import RANDOM
from hostlint.values.judging import Meeting
from hostlint.values.loops import around
from hostlint.values.rebuilt import UNMEASURED, reachable, site_of
from hostlint.values.scratch import allocates_scratch, is_written
from hostlint.values.value import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hostlint.facts.schema import Call
    from hostlint.facts.spans import Places
    from hostlint.index import FunctionId
    from hostlint.values.constancy import Constancy
    from hostlint.values.evaluator import Evaluator
    from hostlint.values.hoisted import Hoisted
    from hostlint.values.value import Value

SIZES = re.compile(
    r"(^|_)(len|lens|length|lengths|seqlens?|size|sizes|num|count|height|width|frames|heads|shape|shapes|dim|dims|bs|bsz|fps|patch|hw|"
    r"rows|cols|columns|slots|ratio|scale|factor|theta|base|mode|dtype|device|ranges|segments|bounds|window)(_|$)",
    re.IGNORECASE,
)
VARYING = re.compile(r"(^|_)(step|steps|idx|index|offset|start|end|pos|position|iter|seed|t|i|token|past|cache|kv_len|chunk_id|prev)(_|$)")
# Parameters of models that decode, and of engines that serve: their sizes change from step to step.
GROWING = re.compile(
    r"past_key|(^|_)cache(_|$)|cache_position|kv_cache|^(forward|schedule|model_worker)_batch$|^(attn|forward|input)_metadata$|^(spec_info|reqs?)$",
    re.IGNORECASE,
)
MAKERS = frozenset({
    "arange", "zeros", "ones", "full", "linspace", "eye", "cumsum", "cat", "concat", "stack", "meshgrid", "tril", "triu", "outer", "empty",
    "repeat_interleave", "repeat", "where", "masked_fill", "cos", "sin", "polar", "logical_not", "tril_indices", "triu_indices",
    "tensor", "as_tensor",
})  # fmt: skip
# What others build, by its name: a kernel's wrapper that the scan cannot follow, a method of a rotary module.
BUILDERS = re.compile(
    r"^_*(build|make|compute|prepare|create)_(\w+_)?(indices|index|coords|coordinates|positions|position_ids|mask|masks|freqs|rope|grid|ids)$"
)
ROTARY = re.compile(r"(^|[._])(rope|rotary\w*|pos_embed\w*)$")
MEMO = re.compile(r"cache|memo", re.IGNORECASE)
CONTAINERS = frozenset({"get", "pop", "setdefault", "append", "add", "update", "move_to_end"})
HANDFUL = 8  # along an axis
LEAST = 2  # calls and writes that make something: one alone is rebuilt-constant's business
DEPTH = 3


class SizeTables:
    """Finds the calls of pure helpers that make tensors from sizes."""

    def __init__(self, evaluator: Evaluator, constancy: Constancy, hoisted: Hoisted) -> None:
        self._evaluator = evaluator
        self._constancy = constancy
        self._hoisted = hoisted
        self._pure: dict[FunctionId, int] = {}

    def meetings(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        outline = self._evaluator.index.function(fid)
        if self._grows(fid):
            return
        if outline.owner < 0 and self.makes(fid) >= LEAST:
            return  # a helper itself, told where it is called
        for call in outline.calls:
            target = self._target(fid, call) if call.node >= 0 and is_hot(call.region) else None
            if target is not None and self._is_called_by_size(fid, call, target):
                spot = places(call, outline.calls)
                if spot is not None:
                    name = self._evaluator.index.function(target).name
                    why = f"`{name}` makes tensors of sizes alone"
                    confidence = Confidence.POSSIBLE if self._is_handful(fid, call) else Confidence.LIKELY
                    yield Meeting(FactKind.SIZE_TABLE, site_of(call, spot), call.chain, why, confidence, UNMEASURED, name)

    def _is_handful(self, fid: FunctionId, call: Call) -> bool:
        """Sizes that the source gives in numbers, all of them small: `grid(size=(1, 1, 1), device=device)`."""
        frame = self._evaluator.frame(fid)
        item: Any = frame.graph.nodes[call.node]
        details = [frame.value(node).detail for node in (*item[3], *(value for _, value in item[4]))]
        details += [part.detail for one in details if isinstance(one, Items) for part in one.items]
        sizes = [one for one in details if not isinstance(one, (Device, Dtype, Items))]
        numbers = [one.value for one in sizes if isinstance(one, Literal) and isinstance(one.value, int)]
        return len(numbers) == len(sizes) and max(numbers, default=HANDFUL) < HANDFUL

    def _grows(self, fid: FunctionId) -> bool:
        return any(GROWING.search(param.name) for param in self._evaluator.index.function(fid).params)

    def is_told_at_calls(self, fid: FunctionId) -> bool:
        """Whether every call of a helper on a step's path is told, so that nothing is left to say of what it does."""
        if self._evaluator.index.function(fid).owner >= 0 or self.makes(fid) < LEAST:
            return False
        edges = self._constancy.hot_callers(fid)
        for edge in edges:
            self._evaluator.files |= 1 << edge.caller[0]
            call = self._evaluator.index.function(edge.caller).calls[edge.call_index]
            target = self._target(edge.caller, call) if call.node >= 0 and not self._grows(edge.caller) else None
            if target != fid or not self._is_called_by_size(edge.caller, call, fid):
                return False
        return bool(edges)

    def _target(self, fid: FunctionId, call: Call) -> FunctionId | None:
        """The pure function of the project that a call runs, where it makes enough to be kept."""
        frame = self._evaluator.frame(fid)
        item: Any = frame.graph.nodes[call.node]
        detail = frame.value(item[2]).detail if item[0] == Op.CALL and not item[5] else None
        if not isinstance(detail, Function):
            return None
        self._evaluator.files |= 1 << detail.function[0]
        outline = self._evaluator.index.function(detail.function)
        if (outline.owner >= 0 and not outline.flags & FunctionFlag.STATIC) or self.makes(detail.function) < LEAST:
            return None
        if is_written(frame.graph.nodes, call.node, with_data=True) or allocates_scratch(self._evaluator, detail.function):
            return None  # to be written into
        value = frame.value(call.node)
        gives = _gives_tensors(value) or (value.place is not Place.HOST and self._returns_what_it_makes(detail.function))
        return detail.function if gives else None

    def _returns_what_it_makes(self, fid: FunctionId) -> bool:
        """Also in a dictionary, or where the annotation says no more than `dict`."""
        graph = self._evaluator.graph_of(fid)
        nodes: Any = graph.nodes
        made = {call.node for call in self._evaluator.index.function(fid).calls if _is_maker(call.chain.rpartition(".")[2])}
        return not made.isdisjoint(reachable(graph, [part for node in graph.returns for part in (node, *_entries(nodes, node))]))

    def _is_called_by_size(self, fid: FunctionId, call: Call, target: FunctionId) -> bool:
        frame = self._evaluator.frame(fid)
        item: Any = frame.graph.nodes[call.node]
        params = self._evaluator.index.function(target).params
        named = [*zip((param.name for param in params), item[3], strict=False), *item[4]]
        if any("Tensor" in param.annotation for param in params):
            return False
        if not named or len(item[3]) > len(params) or not any(SIZES.search(name) for name, _ in named):
            return False
        words = {param.name for param in params if param.annotation in ("str", "bool")}  # a mode, a switch
        return all(name in words or self._is_size(fid, call, name, node) for name, node in named)

    def _is_size(self, fid: FunctionId, call: Call, name: str, node: int) -> bool:
        """A number, shape, dtype or device that a loop over steps does not change; names decide where the value says nothing."""
        frame = self._evaluator.frame(fid)
        value = frame.value(node)
        if isinstance(value.detail, (Literal, Dtype, Device)) or self._is_steady(fid, node):
            return True
        if _gives_tensors(value) or VARYING.search(name):
            return False
        item: Any = frame.graph.nodes[node]
        while item[0] in (Op.INDEX, Op.UNPACK):
            item = frame.graph.nodes[item[2]]
        if item[0] == Op.ATTR and item[3] in PLACES | {"shape"}:
            return True
        for loop in around(frame.outline, call.region):
            head = frame.outline.regions[loop]
            if loop_walks(head.text, head.targets) is not Walk.STEPS and any(frame.node_name(node) == each for each in head.targets):
                return False
        return bool(SIZES.search(name)) and value.place in (Place.PYTHON, Place.UNKNOWN)

    def _is_steady(self, fid: FunctionId, node: int) -> bool:
        """What the step loop around the calls hands every step, or what construction set: a list of positions, a module."""
        item: Any = self._evaluator.graph_of(fid).nodes[node]
        kept = item[0] == Op.ATTR and (ROTARY.search(item[3]) or self._hoisted.is_kept(fid, node, item))
        return bool(kept) or self._constancy.of(fid, node).steady > Steady.VARIES

    def makes(self, fid: FunctionId, depth: int = DEPTH) -> int:
        """How many calls and writes in a function make something on the device; -1 where it may do anything else."""
        if fid not in self._pure:
            self._pure[fid] = -1
            self._pure[fid] = self._count(fid, depth)
        return self._pure[fid]

    def _count(self, fid: FunctionId, depth: int) -> int:
        outline = self._evaluator.index.function(fid)
        self._evaluator.files |= 1 << fid[0]
        if outline.flags & (FunctionFlag.ASYNC | FunctionFlag.GENERATOR) or outline.parent or self._keeps(fid):
            return -1
        weights = [self._weigh(fid, call, depth) for call in outline.calls]
        writes = sum(site.kind == SiteKind.WRITE for site in self._evaluator.graph_of(fid).sites)
        return -1 if min(weights, default=0) < 0 else sum(weights) + (writes if any(weights) else 0)

    def _keeps(self, fid: FunctionId) -> bool:
        """Whether a function keeps its results: by a decorator, or in a container that outlives the call."""
        outline, graph = self._evaluator.index.function(fid), self._evaluator.graph_of(fid)
        if any(MEMO.search(each) for each in outline.decorators) or any(region.kind == RegionKind.MEMO for region in outline.regions):
            return True
        nodes: Any = graph.nodes
        writes = [nodes[site.node][2] for site in graph.sites if site.kind == SiteKind.WRITE]
        callees = [nodes[nodes[call.node][2]] for call in outline.calls if call.node >= 0 and nodes[call.node][0] == Op.CALL]
        looked = [callee[2] for callee in callees if callee[0] == Op.ATTR and callee[3] in CONTAINERS]
        return any(_is_outside(nodes, node) for node in (*writes, *looked))

    def _weigh(self, fid: FunctionId, call: Call, depth: int) -> int:
        """1 for a call that makes a tensor, 0 for one that only computes, -1 for one that may do anything else."""
        frame = self._evaluator.frame(fid)
        name = call.chain.rpartition(".")[2]
        item: Any = frame.graph.nodes[call.node] if call.node >= 0 else (-1,)
        detail = frame.value(item[2]).detail if item[0] == Op.CALL else None
        if isinstance(detail, Function):
            return self.makes(detail.function, depth - 1) if depth else -1
        if BUILDERS.match(name):
            return 1
        if isinstance(detail, External):
            harmless = _is_harmless(detail.name.removeprefix("builtins."))
        else:
            harmless = isinstance(detail, Method) and not RANDOM.search(name.replace("empty", ""))
        return int(name in MAKERS) if harmless else -1


def _is_maker(name: str) -> bool:
    return name in MAKERS or bool(BUILDERS.match(name))


def _entries(nodes: Any, node: int) -> Sequence[int]:
    return [value for _, value in nodes[node][2]] if nodes[node][0] == Op.DICT else ()


def _is_outside(nodes: Any, node: int) -> bool:
    """A name of the module, or an attribute or element of one."""
    while nodes[node][0] in (Op.ATTR, Op.INDEX, Op.STORE, Op.REFINE):
        node = nodes[node][2]
    return nodes[node][0] in (Op.GLOBAL, Op.FREE)


def _is_harmless(dotted: str) -> bool:
    """A function outside the project that computes, and no more."""
    if dotted.startswith(("torch.", "math.")):
        return not RANDOM.search(dotted.replace("empty", "")) and not dotted.startswith("torch.cuda")
    return dotted in PURE | {"enumerate", "zip", "isinstance", "ValueError", "any", "all", "sorted", "set", "dict"}


def _gives_tensors(value: Value) -> bool:
    if isinstance(value.detail, Items):
        return any(_gives_tensors(item) for item in value.detail.items)
    if isinstance(value.detail, Mapping):
        return any(_gives_tensors(item) for _, item in value.detail.items)
    return value.is_tensor and value.place is not Place.HOST
