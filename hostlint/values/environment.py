"""Environment variables that every block or step reads again: a look-up, a decoding and often a parse each time."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hostlint.facts.fact import Repeated
from hostlint.facts.graph import Op
from hostlint.facts.kinds import FactKind
from hostlint.heat.words import Walk, loop_walks
from hostlint.model import Confidence, Span
from hostlint.values.detail import External
from hostlint.values.judging import Meeting
from hostlint.values.rebuilt import site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hostlint.facts.schema import Call
    from hostlint.facts.spans import Places, Spot
    from hostlint.index import FunctionId
    from hostlint.values.constancy import Constancy
    from hostlint.values.evaluator import Evaluator

READS = frozenset({"os.getenv", "os.environ.get", "os.environ.setdefault", "os.environ.copy"})
DEPTH = 4  # calls between the loop over the blocks and the read
COST = "not measured: about a microsecond of the host's time for each read"


class Environment:
    """Finds reads of the environment in the blocks of a model."""

    def __init__(self, evaluator: Evaluator, constancy: Constancy) -> None:
        self._evaluator = evaluator
        self._constancy = constancy

    def meetings(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        outline = self._evaluator.index.function(fid)
        found: list[tuple[Call, Spot, str]] = []
        for call in outline.calls:
            if call.chain.rpartition(".")[2] in ("getenv", "get") and call.node >= 0 and self._reads(fid, call) and is_hot(call.region):
                why = self._why(fid, call)
                spot = places(call, outline.calls) if why else None
                if spot is not None:
                    found.append((call, spot, why))
        if found:  # one for a function: most that read twice ask for an older name, too
            call, spot, why = found[0]
            others = tuple(Span(*other.span) for _, other, _ in found[1:] if other.statement != spot.statement)
            yield Meeting(
                FactKind.ENVIRONMENT_READ, site_of(call, spot), call.chain, why, Confidence.CERTAIN, COST, repeated=Repeated(others=others)
            )

    def _reads(self, fid: FunctionId, call: Call) -> bool:
        frame = self._evaluator.frame(fid)
        item: Any = frame.graph.nodes[call.node]
        detail = frame.value(item[2]).detail if item[0] == Op.CALL else None
        return isinstance(detail, External) and detail.name in READS

    def _why(self, fid: FunctionId, call: Call) -> str:
        """Which loop over blocks repeats it; "" where none is seen to."""
        outline = self._evaluator.index.function(fid)
        if loop := self._over_blocks(fid, call.region):
            return f"the loop at line {outline.regions[loop].line} walks over the blocks"
        return "a loop over the blocks calls this function" if self._in_blocks(fid, DEPTH) else ""

    def _over_blocks(self, fid: FunctionId, region: int) -> int:
        """The loop of a model over its blocks around a region, 0 where there is none."""
        index = self._evaluator.index
        owner = index.owner(fid)
        if owner is None or not index.is_nn_module(owner):
            return 0
        outline = index.function(fid)
        loop = self._constancy.step_loop(fid, region)
        return loop if loop and loop_walks(outline.regions[loop].text, outline.regions[loop].targets) is Walk.LAYERS else 0

    def _in_blocks(self, fid: FunctionId, depth: int) -> bool:
        for edge in self._evaluator.surroundings.callers(fid) if depth else ():
            self._evaluator.files |= 1 << edge.caller[0]
            region = self._evaluator.index.function(edge.caller).calls[edge.call_index].region
            if edge.certain and (self._over_blocks(edge.caller, region) or self._in_blocks(edge.caller, depth - 1)):
                return True
        return False
