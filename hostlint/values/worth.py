"""Whether repeated work is worth telling: how often a step does it, in how many launches, and whether its size grows with the tokens."""
from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from hostlint.facts.graph import Op, operands
from hostlint.facts.schema import RegionKind
from hostlint.heat.words import Walk, loop_walks, walks_blocks
from hostlint.model import Confidence
from hostlint.values.constancy import Steady
from hostlint.values.detail import Literal
from hostlint.values.loops import is_training

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostlint.facts.schema import Region
    from hostlint.index import FunctionId
    from hostlint.model import Heat
    from hostlint.values.constancy import Constancy
    from hostlint.values.evaluator import Evaluator, Frame

MANY = 6  # launches on a few elements, once a step: about 30 microseconds of the host's time
LEAST = 2  # launches on a tensor that grows with the tokens
BATCH = re.compile(r"(^|[._])(bs|bsz|b|batch(_size)?|num_(seqs|reqs|requests|prompts|images))$", re.IGNORECASE)
WIDTH = re.compile(r"(^|[._])(\w*dims?(_\w+)?|half(_\w+)?|channels|hidden(_size)?|embed_size|num_heads|head_\w+)$", re.IGNORECASE)
TINY = re.compile(
    r"(^|[._])(\w*(time_?steps?|time_ids|guidance(_scale)?|sigmas?|noise_level|pooled\w*|lengths?|lens|scales?|ratios?|alphas?|betas?|"
    r"seeds?|fps|strength|rates?|counts?|epsilon|eps|lr|sizes?|shapes?))$",
    re.IGNORECASE,
)
METHODS = frozenset({
    "to", "cuda", "float", "half", "bfloat16", "type", "detach", "clone", "contiguous", "repeat", "expand", "unsqueeze", "view", "reshape",
})  # fmt: skip
PARTS = re.compile(r"(Block|Layer|Attention|Attn|Processor)(?!\w*(Scheduler|Pipeline|Model|Trainer|Config|Manager|Loader|Stack)s?$)\w*$")
PAIR = 2  # axes: tokens and features
HANDFUL = 64  # elements
LARGE = 4096  # elements
PACED = re.compile(
    r"_if_(needed|necessary|required|missing|changed|stale|absent)$|^_*(ensure|lazy|lazily)_|^_*maybe_(init|build|make|create|extend|grow|"
    r"update|refresh|rebuild)"
)
TRAINERS_AWAY = 3  # calls between what trains and the place
UNEVEN = re.compile(r"^while\b|token", re.IGNORECASE)
BLOCKS_AWAY = 2  # calls between the loop over the blocks and the place


class Heats(Protocol):
    """How hot a place is, with the chain that heats it."""

    def site(self, fid: FunctionId, region: int) -> Heat: ...


class Worth:
    """Answers for places of any function."""

    def __init__(self, evaluator: Evaluator, constancy: Constancy, heats: Heats) -> None:
        self._evaluator = evaluator
        self._constancy = constancy
        self._heats = heats
        self._blocks: dict[tuple[FunctionId, int], bool] = {}

    def is_repeated(self, fid: FunctionId, region: int) -> bool:
        """Whether one step comes by more than once, in every block: by the loops that are seen, or by the name of the class."""
        owner = self._evaluator.index.owner(fid)
        part = owner is not None and PARTS.search(self._evaluator.index.klass(owner).name)
        return bool(part) or self.is_in_blocks(fid, region)

    def is_in_blocks(self, fid: FunctionId, region: int) -> bool:
        """Whether a loop over blocks is seen to reach the place: one that calls the function, or the one that heats it."""
        outline = self._evaluator.index.function(fid)
        loop = self._constancy.step_loop(fid, region)
        if loop and walks_blocks(outline.regions[loop].text, outline.regions[loop].targets):
            return True
        chain = self._heats.site(fid, region).chain
        return (bool(chain) and (chain[0].path, chain[0].line) in self._loops_over_blocks) or self._is_called_in_blocks(fid)

    @cached_property
    def _loops_over_blocks(self) -> frozenset[tuple[str, int]]:
        """The project's, by file and line."""
        return frozenset((path, loop.line) for path, loop in self._loops() if walks_blocks(loop.text, loop.targets))

    @cached_property
    def _loops_over_steps(self) -> frozenset[tuple[str, int]]:
        """Not over tokens, whose passes differ in length, and none that goes on for ever, as a server's."""
        steps = ((path, loop) for path, loop in self._loops() if loop_walks(loop.text, loop.targets) is Walk.STEPS)
        return frozenset((path, loop.line) for path, loop in steps if not any(map(UNEVEN.search, (loop.text, *loop.targets))))

    def _loops(self) -> Iterator[tuple[str, Region]]:
        """The project's loops with the files that they are in."""
        for file in self._evaluator.index.files:
            for function in file.functions:
                yield from ((file.path, region) for region in function.regions if region.kind == RegionKind.LOOP)

    def _is_called_in_blocks(self, fid: FunctionId, depth: int = BLOCKS_AWAY) -> bool:
        """Whether a loop over layers calls the function, or calls what calls it."""
        if (fid, depth) not in self._blocks:
            self._blocks[fid, depth] = False
            self._blocks[fid, depth] = self._is_in_blocks(fid, depth)
        return self._blocks[fid, depth]

    def _is_in_blocks(self, fid: FunctionId, depth: int) -> bool:
        for edge in self._evaluator.surroundings.callers(fid) if depth else ():
            outline = self._evaluator.index.function(edge.caller)
            loop = self._constancy.step_loop(edge.caller, outline.calls[edge.call_index].region)
            layers = loop and walks_blocks(outline.regions[loop].text, outline.regions[loop].targets)
            if edge.certain and (layers or self._is_called_in_blocks(edge.caller, depth - 1)):
                return True
        return False

    def of_constant(self, fid: FunctionId, region: int, sizes: Sequence[int], launches: int, square: bool) -> Confidence:
        """How surely a constant of these sizes is worth keeping: a few launches on a few elements are told to who asks for all, and so is
        what is known to be made when it must be, or for the sizes of a batch."""
        if self._is_paced(fid, region) or (launches <= LEAST and self._is_handful(fid, sizes)):
            return Confidence.POSSIBLE
        fixed = all(self._constancy.of(fid, node).steady is Steady.FIXED for node in sizes)
        if not fixed and not self.is_repeated(fid, region) and self._trains(fid):
            return Confidence.POSSIBLE
        if launches >= MANY or self.is_repeated(fid, region):
            return Confidence.LIKELY
        loop = self._constancy.step_loop(fid, region)
        head = self._evaluator.index.function(fid).regions[loop]
        if loop and loop_walks(head.text, head.targets) is Walk.STEPS and not self._are_literal(fid, sizes):
            return Confidence.LIKELY  # moved before its loop it costs nobody anything
        grows = any(self._grows(fid, node) for node in sizes)
        if grows and self._is_in_steps(fid, region):
            return Confidence.LIKELY
        large = grows or self._is_large(fid, sizes) or (square and not self._are_literal(fid, sizes))
        return Confidence.LIKELY if large and launches >= LEAST else Confidence.POSSIBLE

    def grows_in_steps(self, fid: FunctionId, region: int, sizes: Sequence[int]) -> bool:
        """Whether a size follows the tokens of a request whose steps, a loop over them seen, come by: it is the same in all of them."""
        return self._is_in_steps(fid, region) and any(self._grows(fid, node) for node in sizes)

    def _is_in_steps(self, fid: FunctionId, region: int) -> bool:
        chain = self._heats.site(fid, region).chain
        return bool(chain) and (chain[0].path, chain[0].line) in self._loops_over_steps

    def _is_paced(self, fid: FunctionId, region: int) -> bool:
        """Whether a name on the way says that the work is done where it is needed only: `_extend_table_if_needed`."""
        names = [link.function for link in self._heats.site(fid, region).chain] + [self._evaluator.index.function(fid).qualname]
        return any(PACED.search(name.rpartition(".")[2]) for name in names)

    def _trains(self, fid: FunctionId, depth: int = TRAINERS_AWAY) -> bool:
        """Whether all that calls a function trains."""
        outline = self._evaluator.index.function(fid)
        if is_training(outline):
            return True
        callers = {edge.caller for edge in self._constancy.hot_callers(fid)} - {fid} if depth else set()
        return bool(callers) and len(callers) <= MANY and all(self._trains(caller, depth - 1) for caller in callers)

    def is_tiny(self, fid: FunctionId, node: int) -> bool:
        """Whether a tensor is known to hold a few elements: one, or a number for each sample by its name."""
        frame = self._evaluator.frame(fid)
        return bool(frame.value(node).rank0) or bool(TINY.search(tensor_name(frame, node)))

    def _grows(self, fid: FunctionId, node: int) -> bool:
        """Whether a size follows the tokens or pixels: the length of an axis that is neither the batch's nor the features'."""
        frame = self._evaluator.frame(fid)
        name = frame.node_name(node)
        item: Any = frame.graph.nodes[node]
        if BATCH.search(name) or WIDTH.search(name) or item[0] == Op.CONST:
            return False
        if item[0] == Op.UNPACK and _is_shape(frame.graph.nodes, item[2]):
            return bool(item[3] != item[4] - 1 and (item[3] or item[4] == PAIR))
        if item[0] == Op.INDEX and _is_shape(frame.graph.nodes, item[2]):
            return not self._is_small_axis(fid, item[3])
        if item[0] == Op.CALL and (callee := frame.graph.nodes[item[2]])[0] == Op.ATTR and callee[3] == "size":
            return not any(self._is_small_axis(fid, part) for part in item[3])
        if item[0] in (Op.ATTR, Op.GLOBAL, Op.FREE, Op.IMPORT):
            return False
        if item[0] == Op.PARAM:
            return self._constancy.of(fid, node).steady is not Steady.FIXED
        return any(self._grows(fid, part) for part in (operands(item)[1:] if item[0] == Op.CALL else operands(item)) if part < node)

    def _is_small_axis(self, fid: FunctionId, index: int) -> bool:
        """The batch's or the features', by convention the first and the last."""
        detail = self._evaluator.frame(fid).value(index).detail
        return isinstance(detail, Literal) and detail.value in (0, -1)

    def _is_large(self, fid: FunctionId, sizes: Sequence[int]) -> bool:
        return max(self._literals(fid, sizes), default=0) >= LARGE

    def _is_handful(self, fid: FunctionId, sizes: Sequence[int]) -> bool:
        return self._are_literal(fid, sizes) and max(self._literals(fid, sizes), default=LARGE) <= HANDFUL

    def _are_literal(self, fid: FunctionId, sizes: Sequence[int]) -> bool:
        return len(self._literals(fid, sizes)) == len(sizes)

    def _literals(self, fid: FunctionId, sizes: Sequence[int]) -> list[int]:
        details = [self._evaluator.frame(fid).value(node).detail for node in sizes]
        return [detail.value for detail in details if isinstance(detail, Literal) and isinstance(detail.value, int)]


def tensor_name(frame: Frame, node: int) -> str:
    """The name that a tensor was read through, also as another shape or type; "" for what a call gave."""
    item: Any = frame.graph.nodes[node]
    if item[0] == Op.PHI:
        return next((name for part in item[2] if part < node and (name := tensor_name(frame, part))), "")
    while item[0] == Op.CALL:
        callee: Any = frame.graph.nodes[item[2]]
        if callee[0] != Op.ATTR or callee[3] not in METHODS:
            return ""
        node = callee[2]
        item = frame.graph.nodes[node]
    return frame.node_name(node)


def _is_shape(nodes: Any, node: int) -> bool:
    return bool(nodes[node][0] == Op.ATTR and nodes[node][3] == "shape")
