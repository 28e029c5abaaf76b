"""Constants that are built again on a step's path: from numbers that stay the same, by the same few factories."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from hostlint.facts.fact import Repeated
from hostlint.facts.graph import Op, Site, SiteKind, operands
from hostlint.facts.kinds import FactKind
from hostlint.heat.words import Walk, loop_walks
from hostlint.model import Span
from hostlint.values.constancy import METADATA, Steady, Verdict
from hostlint.values.detail import External
from hostlint.values.judging import Meeting
from hostlint.values.loops import HEAD_OPS, VIEWS, around
from hostlint.values.value import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hostlint.facts.graph import FunctionGraph
    from hostlint.facts.schema import Call
    from hostlint.facts.spans import Places, Spot
    from hostlint.index import FunctionId
    from hostlint.values.chains import Chains
    from hostlint.values.constancy import Constancy
    from hostlint.values.evaluator import Evaluator
    from hostlint.values.worth import Worth

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


class SameEverywhere(Protocol):
    """Why nodes hold the same in every block; None where they may not."""

    def all_of(self, fid: FunctionId, nodes: Iterable[int]) -> str | None: ...


class _Found(NamedTuple):
    call: Call
    spot: Spot
    verdict: Verdict
    sizes: Sequence[int]


class Rebuilt:
    """Finds the constants that the functions of a project build again."""

    def __init__(self, evaluator: Evaluator, constancy: Constancy, blocks: SameEverywhere, chains: Chains, worth: Worth) -> None:
        self._evaluator = evaluator
        self._constancy = constancy
        self._blocks = blocks
        self._chains = chains
        self._worth = worth

    def meetings(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        """Every constant that a hot place of the function builds again, once for each thing that it goes into."""
        outline = self._evaluator.index.function(fid)
        found: dict[int, _Found] = {}
        for call in outline.calls:
            if call.node >= 0 and call.chain.rpartition(".")[2] in NAMES and is_hot(call.region):
                rebuilt = self._rebuilt(fid, call)
                spot = places(call, outline.calls) if rebuilt is not None else None
                if rebuilt is not None and spot is not None:
                    found[call.node] = _Found(call, spot, *rebuilt)
        for chain in self._chains.of(fid, list(found)) if found else ():
            yield self._told(fid, [found[node] for node in chain.seeds], chain.launches)

    def _told(self, fid: FunctionId, found: Sequence[_Found], launches: int) -> Meeting:
        """The first of the constants that go into one thing, with the others by their lines."""
        first = found[0]
        sizes = [node for one in found for node in one.sizes]
        square = any(one.call.chain.rpartition(".")[2] in TRIANGLES | {"eye"} for one in found)
        launches += sum(one.call.chain.rpartition(".")[2] in TRIANGLES for one in found)  # of the ones that they are cut from
        confidence = self._worth.of_constant(fid, first.call.region, sizes, launches, square)
        others = tuple(dict.fromkeys(Span(*one.spot.span) for one in found[1:] if one.spot.statement != first.spot.statement))
        verdict = min((one.verdict for one in found), key=lambda verdict: verdict.steady)
        on_host = self._evaluator.frame(fid).value(first.call.node).place is Place.HOST
        in_blocks = self._worth.is_in_blocks(fid, first.call.region)
        return Meeting(
            FactKind.REBUILT_CONSTANT, site_of(first.call, first.spot), first.call.chain, verdict.why, confidence, UNMEASURED,
            verdict.steady.name.lower(), repeated=Repeated(launches, others, on_host, in_blocks),
        )  # fmt: skip

    def _rebuilt(self, fid: FunctionId, call: Call) -> tuple[Verdict, Sequence[int]] | None:
        """How steady the content of what a factory makes is, and what decides its size; None where it changes or is not known."""
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
        if not verdict.steady:
            verdict = self._in_every_block(fid, call.region, content)
        if self._follows_data(fid, call.region, content):
            return None
        if not verdict.steady or (verdict.steady > Steady.LOOP and not self._is_costly(fid, call, content)):
            return None
        return verdict, content

    def _in_every_block(self, fid: FunctionId, region: int, content: Sequence[int]) -> Verdict:
        """What another step may change, but no block: an offset that all of them are given."""
        nodes: Any = self._evaluator.graph_of(fid).nodes
        sizes = [nodes[node] for node in reachable(self._evaluator.graph_of(fid), content)]
        if any(item[0] == Op.ATTR and item[3] in METADATA and not self._constancy.shapes.is_steady(fid, item[2]) for item in sizes):
            return Verdict(Steady.VARIES)
        why = self._blocks.all_of(fid, content) if self._worth.is_repeated(fid, region) else None
        return Verdict(Steady.VARIES) if why is None else Verdict(Steady.LOOP, why or "every block gets the same")

    def _is_costly(self, fid: FunctionId, call: Call, sizes: Sequence[int]) -> bool:
        """Whether more than one small index is at stake: every block or a loop makes it, it grows, or a table is computed from it."""
        name = call.chain.rpartition(".")[2]
        if name not in INDICES or self._constancy.step_loop(fid, call.region) or self._worth.is_in_blocks(fid, call.region):
            return True
        return self._worth.grows_in_steps(fid, call.region, sizes) or self._makes_table(fid, call)

    def _makes_table(self, fid: FunctionId, call: Call) -> bool:
        """Whether a mask or a table is computed from the index alone."""
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
            elif node[0] == Op.UNARY and node[3] in same:
                return True  # `~torch.eye(n)`
            elif node[0] in (Op.BINOP, Op.COMPARE):
                parts = [part for part in (node[3:5] if node[0] == Op.BINOP else node[3]) if part not in same]
                if len(parts) < 2 and not same.isdisjoint(operands(node)) and self._constancy.all_of(fid, parts).steady:
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

