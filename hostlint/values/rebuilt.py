"""Constants that are built again on a step's path: from numbers that stay the same, by the same few factories."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op, Site, SiteKind, operands
from hostlint.facts.kinds import FactKind
from hostlint.heat.words import Walk, loop_walks
from hostlint.model import Confidence
from hostlint.values.constancy import Steady
from hostlint.values.detail import External
from hostlint.values.judging import Meeting
from hostlint.values.loops import HEAD_OPS, VIEWS, around

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hostlint.facts.graph import FunctionGraph
    from hostlint.facts.schema import Call
    from hostlint.facts.spans import Places, Spot
    from hostlint.index import FunctionId
    from hostlint.values.constancy import Constancy
    from hostlint.values.evaluator import Evaluator

CONTENT = frozenset({"arange", "linspace", "logspace", "eye", "tril_indices", "triu_indices", "vander", "range"})
INDICES = frozenset({"arange", "range", "linspace", "eye"})
WINDOWS = frozenset({"hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window", "fftfreq", "rfftfreq"})
TRIANGLES = frozenset({"tril", "triu"})
FILLED = frozenset({"torch.ones", "torch.full", "torch.new_ones", "torch.new_full"})
FACTORIES = frozenset(f"torch.{name}" for name in CONTENT | WINDOWS) | {"torch.fft.fftfreq", "torch.fft.rfftfreq"}
NAMES = CONTENT | WINDOWS | TRIANGLES
CASTS = frozenset({"to", "float", "double", "half", "int", "long", "type", "clone", "repeat", "bfloat16"})
TABLES = frozenset({"meshgrid", "outer", "exp", "pow", "cos", "sin", "cartesian_prod", "float_power", "log", "sqrt", "polar"})
PLACEMENT = frozenset({"device", "dtype", "layout", "requires_grad", "pin_memory", "out"})
UNMEASURED = "not measured: one launch or more for each repetition, and the host's time to make it"


class Rebuilt:
    """Finds the constants that the functions of a project build again."""

    def __init__(self, evaluator: Evaluator, constancy: Constancy) -> None:
        self._evaluator = evaluator
        self._constancy = constancy

    def meetings(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        """Every constant that a hot place of the function builds again, once for each chain of operations."""
        outline = self._evaluator.index.function(fid)
        told: set[tuple[int, int]] = set()  # statements
        for call in outline.calls:
            if call.node >= 0 and call.chain.rpartition(".")[2] in NAMES and is_hot(call.region):
                verdict = self._rebuilt(fid, call)
                where = places(call, outline.calls) if verdict else None
                if verdict and where is not None and where.statement not in told:
                    told.add(where.statement)
                    yield Meeting(
                        FactKind.REBUILT_CONSTANT, site_of(call, where), call.chain, verdict[1], Confidence.LIKELY, UNMEASURED, verdict[0]
                    )

    def _rebuilt(self, fid: FunctionId, call: Call) -> tuple[str, str] | None:
        """How steady the content of what a factory makes is, and why; None where it changes or is not known."""
        frame = self._evaluator.frame(fid)
        node: Any = frame.graph.nodes[call.node]
        if node[0] != Op.CALL or node[5]:
            return None
        detail = frame.value(node[2]).detail
        name = detail.name if isinstance(detail, External) else ""
        content = [*node[3], *(value for key, value in node[4] if key not in PLACEMENT)]
        if any(key == "out" for key, _ in node[4]) or not content:
            return None
        if call.chain.rpartition(".")[2] in TRIANGLES:
            filled = self._filled(fid, node)
            if filled is None:
                return None
            content = filled
        elif name not in FACTORIES:
            return None
        if any(frame.value(part).is_tensor for part in content):
            return None
        verdict = self._constancy.all_of(fid, content)
        if self._follows_data(fid, call.region, content):
            return None
        if not verdict.steady or (verdict.steady > Steady.LOOP and not self._is_costly(fid, call)):
            return None
        return verdict.steady.name.lower(), verdict.why

    def _is_costly(self, fid: FunctionId, call: Call) -> bool:
        """Whether more than one small index is at stake: every block or a loop makes it, or a mask or table is computed from it alone."""
        name = call.chain.rpartition(".")[2]
        if name not in INDICES or self._constancy.step_loop(fid, call.region) or self._in_blocks(fid):
            return True
        nodes: Any = self._evaluator.graph_of(fid).nodes
        same = {call.node}  # the index, seen as another shape or type
        for place in range(call.node + 1, len(nodes)):
            node = nodes[place]
            if node[0] == Op.INDEX and node[2] in same:
                same.add(place)
            elif node[0] == Op.CALL:
                callee = nodes[node[2]]
                if callee[0] == Op.ATTR and callee[2] in same and callee[3] in VIEWS | CASTS:
                    same.add(place)
                elif callee[0] == Op.ATTR and callee[3] in TABLES and (callee[2] in same or not same.isdisjoint(_flat(nodes, node[3]))):
                    return True
            elif node[0] in (Op.BINOP, Op.COMPARE):
                parts = [part for part in (node[3:5] if node[0] == Op.BINOP else node[3]) if part not in same]
                if len(parts) < 2 and not same.isdisjoint(operands(node)) and self._constancy.all_of(fid, parts).steady:
                    return True
        return False

    def _in_blocks(self, fid: FunctionId, depth: int = 2) -> bool:
        """Whether a loop over layers calls the function, or calls what calls it."""
        for edge in self._evaluator.surroundings.callers(fid) if depth else ():
            outline = self._evaluator.index.function(edge.caller)
            loop = self._constancy.step_loop(edge.caller, outline.calls[edge.call_index].region)
            layers = loop and loop_walks(outline.regions[loop].text, outline.regions[loop].targets) is Walk.LAYERS
            if edge.certain and (layers or self._in_blocks(edge.caller, depth - 1)):
                return True
        return False

    def _follows_data(self, fid: FunctionId, region: int, nodes: Sequence[int]) -> bool:
        """Whether the values follow what a loop around walks over, or binds: batches and layers differ in shape, steps keep theirs."""
        outline, graph = self._evaluator.index.function(fid), self._evaluator.graph_of(fid)
        for loop in around(outline, region):
            head = outline.regions[loop]
            if loop_walks(head.text, head.targets) is not Walk.STEPS:
                start = self._constancy.body(fid, loop).start
                reached = reachable(graph, nodes)
                if start < 0 or any(node >= start and graph.nodes[node][0] in HEAD_OPS for node in reached):
                    return True
        return False

    def _filled(self, fid: FunctionId, node: Any) -> list[int] | None:
        """What a triangle of ones is made of: `torch.ones(n, n).tril()`."""
        frame = self._evaluator.frame(fid)
        nodes: Any = frame.graph.nodes
        callee = nodes[node[2]]
        function = isinstance(frame.value(node[2]).detail, External)
        given = [*node[3], *(value for key, value in node[4] if key not in PLACEMENT)]
        source = given.pop(0) if function and given else callee[2] if callee[0] == Op.ATTR else -1
        made = nodes[source] if source >= 0 else None
        if made is None or made[0] != Op.CALL or made[5]:
            return None
        detail = frame.value(made[2]).detail
        if not isinstance(detail, External) or detail.name not in FILLED:
            return None
        return [*given, *made[3], *(value for key, value in made[4] if key not in PLACEMENT)]


def _flat(nodes: Any, given: Sequence[int]) -> list[int]:
    """Arguments, and the elements of those that are lists or tuples."""
    return [part for each in given for part in ((each, *nodes[each][3]) if nodes[each][0] == Op.SEQUENCE else (each,))]


def reachable(graph: FunctionGraph, nodes: Sequence[int]) -> set[int]:
    """Everything that these nodes are made of."""
    found, queue = set(nodes), list(nodes)
    while queue:
        for part in operands(graph.nodes[queue.pop()]):
            if part not in found:
                found.add(part)
                queue.append(part)
    return found


def site_of(call: Call, where: Spot) -> Site:
    return Site(SiteKind.CALL, call.node, call.chain, call.region, *where.span, *where.statement, where.subject)

