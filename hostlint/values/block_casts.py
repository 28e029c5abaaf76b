"""The same tensor cast in every block: a cast of a parameter for which the loop over the blocks hands each the same object."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hostlint.facts.fact import Repeated
from hostlint.facts.graph import Op, operands
from hostlint.facts.kinds import FactKind
from hostlint.heat.words import Walk, loop_walks
from hostlint.model import Confidence
from hostlint.values.block_work import PARTS, TABLES
from hostlint.values.causes import Work, gathered, others, whatever
from hostlint.values.constancy import MANY_CALLERS, argument_of
from hostlint.values.conventions import MASK_NAMES
from hostlint.values.detail import Dtype
from hostlint.values.hoisted import CASTS
from hostlint.values.judging import Meeting
from hostlint.values.loops import VIEWS
from hostlint.values.rebuilt import UNMEASURED, site_of
from hostlint.values.shapes import is_fixed_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hostlint.facts.schema import Call
    from hostlint.facts.spans import Places
    from hostlint.index import FunctionId
    from hostlint.values.chains import Chains
    from hostlint.values.constancy import Constancy
    from hostlint.values.evaluator import Caller, Evaluator
    from hostlint.values.hoisted import Hoisted

SHORT = {
    "float": "float32", "half": "float16", "double": "float64", "bfloat16": "bfloat16", "bool": "bool", "long": "int64", "int": "int32",
}  # fmt: skip
# What a forward makes of the time, once for all its blocks.
TIMES = re.compile(r"^(temb|t_emb|time_emb|timestep_emb|timestep_proj|time_proj|adaln_input|modulation)$")
MORE = 2  # launches of a cast and what is made of it
DEPTH = 3  # calls between the loop over the blocks and the cast


class BlockCasts:
    """Finds casts that every block repeats."""

    def __init__(self, evaluator: Evaluator, constancy: Constancy, hoisted: Hoisted, chains: Chains) -> None:
        self._evaluator = evaluator
        self._constancy = constancy
        self._hoisted = hoisted
        self._chains = chains

    def meetings(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        outline = self._evaluator.index.function(fid)
        found: list[Work] = []
        whys: dict[int, str] = {}
        for call in outline.calls:
            name = call.chain.rpartition(".")[2]
            if call.node < 0 or not (name in CASTS or name == "to") or not is_hot(call.region):
                continue
            position = self._cast_parameter(fid, call)
            wanted = position > 0 and self._hoisted.is_device_work(fid, call)
            cast = self._cast_of(fid, call) if wanted else ""
            why = (self._shared(fid, position, DEPTH, cast) or self._by_name(fid, position, call, cast)) if wanted else ""
            spot = places(call, outline.calls) if why else None
            if spot is not None:
                found.append(Work(call, spot, position))
                whys[call.node] = why
        for works in gathered(self._evaluator.graph_of(fid), found, alike=whatever):
            launches = [self._chains.of(fid, [work.call.node])[0].launches for work in works]
            call, spot, position = works[launches.index(max(launches))]  # of two branches the one that does more
            repeated = Repeated(max(launches), others(spot, works))
            name = outline.params[position].name
            yield Meeting(
                FactKind.CAST_PER_BLOCK, site_of(call, spot), call.chain, whys[call.node], Confidence.LIKELY, UNMEASURED, name,
                repeated=repeated,
            )  # fmt: skip

    def _cast_parameter(self, fid: FunctionId, call: Call) -> int:
        """The parameter that is cast, as it is or as a view; -1 for anything else, and where the type may be what it is already."""
        frame = self._evaluator.frame(fid)
        nodes: Any = frame.graph.nodes
        node = nodes[call.node]
        callee = nodes[node[2]] if node[0] == Op.CALL else node
        if callee[0] != Op.ATTR:
            return -1
        source = nodes[callee[2]]
        while self._is_view(nodes, source):
            source = nodes[source[2]] if source[0] != Op.CALL else nodes[nodes[source[2]][2]]
        if source[0] != Op.PARAM:
            return -1
        position = int(source[2])
        return position if callee[3] in CASTS or self._is_other_type(fid, node, position) else -1

    def _is_view(self, nodes: Any, item: Any) -> bool:
        if item[0] == Op.INDEX:
            return is_fixed_index(nodes[item[3]], nodes)
        viewed = item[0] == Op.CALL and nodes[item[2]][0] == Op.ATTR and nodes[item[2]][3] in VIEWS
        return viewed or bool(item[0] == Op.REFINE)

    def _is_other_type(self, fid: FunctionId, node: Any, position: int) -> bool:
        """A type that the source names, or any for a mask: `x.to(y.dtype)` of activations is most often free."""
        frame = self._evaluator.frame(fid)
        given = [*node[3], *(value for _, value in node[4])]
        named = any(isinstance(detail := frame.value(part).detail, Dtype) and detail.name != "?" for part in given)
        return named or bool(MASK_NAMES.search(frame.outline.params[position].name))

    def _cast_of(self, fid: FunctionId, call: Call) -> str:
        """The type that a cast gives, by torch's short name; "" where the source does not say."""
        frame = self._evaluator.frame(fid)
        node: Any = frame.graph.nodes[call.node]
        name = call.chain.rpartition(".")[2]
        if name in SHORT:
            return SHORT[name]
        return next(self._dtypes(fid, node), "")

    def _dtypes(self, fid: FunctionId, call: Any) -> Iterator[str]:
        """The types that the source names among a call's arguments."""
        for part in (*call[3], *(value for _, value in call[4])):
            detail = self._evaluator.frame(fid).value(part).detail
            if isinstance(detail, Dtype) and detail.name != "?":
                yield SHORT.get(detail.name, detail.name)

    def _is_cast(self, fid: FunctionId, node: int, cast: str) -> bool:
        """Whether a tensor has the type already, on some path: it was cast before, and seen as other shapes since."""
        frame = self._evaluator.frame(fid)
        nodes: Any = frame.graph.nodes
        queue, seen = [node], set()
        while queue:
            node = queue.pop()
            if node in seen:
                continue
            seen.add(node)
            item = nodes[node]
            if cast == "bool" and frame.value(node).boolean:
                return True
            if item[0] in (Op.PHI, Op.SEQUENCE):
                queue.extend(operands(item))
            elif item[0] in (Op.REFINE, Op.INDEX, Op.UNPACK):
                queue.append(item[2])
            elif item[0] == Op.CALL:
                callee = nodes[item[2]]
                name = callee[3] if callee[0] == Op.ATTR else ""
                if SHORT.get(name) == cast or cast in self._dtypes(fid, item):
                    return True
                if name in VIEWS | {"cat", "concat", "repeat", "to"}:
                    queue.extend([*item[3][:1], callee[2]])
        return False

    def _shared(self, fid: FunctionId, position: int, depth: int, cast: str) -> str:
        """Why every block gets the same object for a parameter; "" where that is not known."""
        callers = self._constancy.hot_callers(fid) if depth else []
        if not callers or len(callers) > MANY_CALLERS:
            return ""
        whys = [self._handed(fid, position, edge, depth, cast) if edge.certain else "" for edge in callers]
        known = [why for why in whys if why is not None]
        return known[0] if known and all(known) else ""

    def _by_name(self, fid: FunctionId, position: int, call: Call, cast: str) -> str:
        """An attention mask, or what modulates by the time, in a block whose calls are not seen, or too many: by convention one for all.
        A mask that is made boolean, and no more, may well be boolean already: then nothing is launched."""
        if cast == "bool" and self._chains.of(fid, [call.node])[0].launches < MORE:
            return ""
        name = self._evaluator.index.function(fid).params[position].name
        owner = self._evaluator.index.owner(fid)
        part = owner is not None and PARTS.search(self._evaluator.index.klass(owner).name)
        if not part or not ((TABLES.match(name) and MASK_NAMES.search(name)) or TIMES.match(name)):
            return ""
        return "" if 0 < len(self._constancy.hot_callers(fid)) <= MANY_CALLERS else f"`{name}` is one tensor for all blocks"

    def _handed(self, fid: FunctionId, position: int, edge: Caller, depth: int, cast: str) -> str | None:
        """Why a call passes the same object in every block, "" where it does not; None where the call passes nothing for the parameter."""
        argument = argument_of(self._evaluator, fid, position, edge)
        if argument is None:
            return None
        if argument[0] != edge.caller or (cast and self._is_cast(edge.caller, argument[1], cast)):
            return ""
        outline = self._evaluator.index.function(edge.caller)
        loop = self._constancy.step_loop(edge.caller, outline.calls[edge.call_index].region)
        if loop and loop_walks(outline.regions[loop].text, outline.regions[loop].targets) is Walk.LAYERS:
            same = self._hoisted.is_same(edge.caller, argument[1], loop)
            line = outline.regions[loop].line
            return f"the loop over the blocks in `{outline.qualname}`, line {line}, hands each the same object" if same else ""
        node: Any = self._evaluator.graph_of(edge.caller).nodes[argument[1]]
        return self._shared(edge.caller, node[2], depth - 1, cast) if node[0] == Op.PARAM and node[2] else ""
