"""Work that every block repeats on what all blocks share: rotary tables joined, masks filled in, positions expanded."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op
from hostlint.facts.kinds import FactKind
from hostlint.heat.words import Walk, loop_walks
from hostlint.model import Confidence
from hostlint.values.constancy import METADATA, PLACES, Steady, argument_of
from hostlint.values.detail import External, Method
from hostlint.values.hoisted import CASTS, WORK
from hostlint.values.judging import Meeting
from hostlint.values.layers import is_layer, layer_name
from hostlint.values.per_step import MANY, StepConstancy
from hostlint.values.rebuilt import UNMEASURED, reachable, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hostlint.facts.schema import Call
    from hostlint.facts.spans import Places, Spot
    from hostlint.index import FunctionId
    from hostlint.values.evaluator import Caller, Evaluator
    from hostlint.values.hoisted import Hoisted
    from hostlint.values.per_step import Given

JOINS = WORK - CASTS - {
    "to", "embedding", "linear", "layer_norm", "rms_norm", "group_norm", "conv2d", "interpolate", "pixel_shuffle",
    "pixel_unshuffle",
}  # fmt: skip
TABLES = re.compile(
    r"^((\w+_)?(rotary_emb|rotary_pos_emb|freqs(_cis|_cos|_sin)?|rope(_cos|_sin|_cache)?|attention_mask|attn_mask)|position_embeddings)$"
)
ACTIVATIONS = re.compile(r"^(act(_fn|ivation)?|gelu|silu|relu|sigmoid|tanh)(_\d+)?$")  # layers without weights
PARTS = re.compile(r"(Block|Layer|Attention|Attn|Processor)(?!\w*(Scheduler|Pipeline|Model|Trainer|Config|Manager|Loader|Stack)s?$)\w*$")


class BlockConstancy(StepConstancy):
    """What is the same in every block of one forward. A block's own attributes are not, save numbers that construction sets."""

    def _read(self, fid: FunctionId, node: int, item: Any, depth: int, given: Given) -> str | None:
        if item[0] == Op.ATTR and item[3] in METADATA | PLACES:
            return ""
        value = self._evaluator.frame(fid).value(node)
        if isinstance(value.detail, External) or self._constancy.of(fid, node).steady is Steady.FIXED:
            return ""
        return self.of(fid, item[2], depth, given) if isinstance(value.detail, Method) and value.detail.receiver.is_tensor else None

    def _call(self, fid: FunctionId, item: Any, depth: int, given: Given) -> str | None:
        frame = self._evaluator.frame(fid)
        if not is_layer(frame, item):
            return super()._call(fid, item, depth, given)
        if not ACTIVATIONS.search(layer_name(frame, item)):
            return None  # each block has weights of its own
        return self.all_of(fid, item[3], depth, given)

    def _carried(self, fid: FunctionId, node: int, parts: Sequence[int], depth: int, given: Given) -> str | None:
        return None  # one block hands it to the next

    def _element(self, fid: FunctionId, node: int, depth: int, given: Given) -> str | None:
        return None  # of a loop over the blocks, or within each

    def _parameter(self, fid: FunctionId, position: int, node: int, depth: int) -> str | None:
        outline = self._evaluator.index.function(fid)
        if self._constancy.of(fid, node).steady > Steady.LOOP:
            return ""
        callers = self.callers(fid) if depth else []
        if not callers:
            return self._by_name(fid, outline.params[position].name)
        if len(callers) > MANY:
            return None
        whys = [why for edge in callers if (why := self.passed(fid, position, edge, depth - 1)) is not None]
        return next(filter(None, whys), "") if 2 * len(whys) > len(callers) else None

    def _by_name(self, fid: FunctionId, name: str) -> str | None:
        owner = self._evaluator.index.owner(fid)
        part = owner is not None and PARTS.search(self._evaluator.index.klass(owner).name)
        return f"`{name}` is one tensor for all blocks" if part and TABLES.match(name) else None

    def passed(self, fid: FunctionId, position: int, edge: Caller, depth: int) -> str | None:
        argument = argument_of(self._evaluator, fid, position, edge)
        if argument is None:
            return "" if self._is_number(fid, position) else None
        where, node = argument
        outline = self._evaluator.index.function(edge.caller)
        loop = self._constancy.step_loop(edge.caller, outline.calls[edge.call_index].region)
        if where == edge.caller and loop:
            head = outline.regions[loop]
            if loop_walks(head.text, head.targets) is not Walk.LAYERS or not self._hoisted.is_same(edge.caller, node, loop):
                return None
            return f"the loop over the blocks in `{outline.qualname}`, line {head.line}, hands each the same"
        item: Any = self._evaluator.graph_of(where).nodes[node]
        return "" if item[0] == Op.CONST else self.of(where, node, depth) if where == edge.caller else None


    def _is_number(self, fid: FunctionId, position: int) -> bool:
        """A parameter whose default is a number: what hands `*args` on leaves it there."""
        outline = self._evaluator.index.function(fid)
        default = outline.params[position].default
        item: Any = self._evaluator.graph_of((fid[0], outline.parent)).nodes[default] if default >= 0 else (-1,)
        return bool(item[0] == Op.CONST and item[2] in ("int", "float"))


class BlockWork:
    """Finds what every block computes again."""

    def __init__(self, evaluator: Evaluator, blocks: BlockConstancy, hoisted: Hoisted) -> None:
        self._evaluator = evaluator
        self._blocks = blocks
        self._hoisted = hoisted

    def meetings(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        outline = self._evaluator.index.function(fid)
        found: list[tuple[Call, Spot, str]] = []
        for call in outline.calls:
            joins = call.node >= 0 and call.chain.rpartition(".")[2] in JOINS and is_hot(call.region)
            if joins and self._hoisted.is_device_work(fid, call):
                why = self._blocks.of(fid, call.node)
                spot = places(call, outline.calls) if why else None
                if spot is not None and not spot.fills:
                    found.append((call, spot, why or ""))
        told: set[tuple[int, int]] = set()  # statements
        for call, spot, why in found:
            if spot.statement not in told and not self._is_part(fid, call, found):
                told.add(spot.statement)
                yield Meeting(FactKind.SAME_PER_BLOCK, site_of(call, spot), call.chain, why, Confidence.LIKELY, UNMEASURED)

    def _is_part(self, fid: FunctionId, call: Call, found: list[tuple[Call, Spot, str]]) -> bool:
        """Whether another place is made from this one: the last of a chain speaks for it."""
        graph = self._evaluator.graph_of(fid)
        return any(other is not call and call.node in reachable(graph, [other.node]) for other, _, _ in found)
