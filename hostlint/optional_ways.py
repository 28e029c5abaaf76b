"""What optional arguments decide: branches, and what they alone call, that no call on a step's path is seen to ask for."""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.schema import RegionKind
from hostlint.model import HeatLevel
from hostlint.values.asked import asked_for, left_off, left_out

if TYPE_CHECKING:
    from hostlint.index import FunctionId
    from hostlint.model import Heat
    from hostlint.values.evaluator import Evaluator

MOST_CALLERS = 24  # where more functions call one, some of them do so without a condition


class OptionalWays:
    """Answers are kept: every finding of a function asks the same."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._reached: dict[FunctionId, tuple[bool, int]] = {}

    def is_open(self, fid: FunctionId, region: int, heat: Heat) -> bool:
        """Whether a step gets to a region: none of the branches around it waits for an argument that the calls give (or leave out), and
        the function is not called in such branches alone. A step loop of the function's own needs no caller."""
        if self._is_spared(fid, region):
            return False
        return (heat.level is HeatLevel.LOOP and len(heat.chain) == 1) or self._is_reached(fid, heat)

    def _is_spared(self, fid: FunctionId, region: int) -> bool:
        regions = self._evaluator.index.function(fid).regions
        while region:
            kind, names = regions[region].kind, regions[region].targets
            if kind == RegionKind.FALLBACK and not left_out(self._evaluator, fid, names):
                return True
            if kind == RegionKind.OPTION and not asked_for(self._evaluator, fid, names):
                return True
            if kind == RegionKind.UNSET and not left_off(self._evaluator, fid, names[0]):
                return True
            region = regions[region].parent
        return False

    def _is_reached(self, fid: FunctionId, heat: Heat) -> bool:
        if len(heat.chain) <= 1:  # a step by convention
            return True
        if fid not in self._reached:
            self._reached[fid] = (True, 0)  # what calls itself in a circle
            outer, self._evaluator.files = self._evaluator.files, 0
            found = self._is_called(fid)
            self._reached[fid] = (found, self._evaluator.files)
            self._evaluator.files = outer
        found, files = self._reached[fid]
        self._evaluator.files |= files
        return found

    def _is_called(self, fid: FunctionId) -> bool:
        surroundings, index = self._evaluator.surroundings, self._evaluator.index
        calls = [(one.caller, index.function(one.caller).calls[one.call_index].region) for one in surroundings.callers(fid)]
        hot = [(caller, region) for caller, region in dict.fromkeys(calls) if surroundings.is_hot(caller, region)]
        if not 0 < len(hot) <= MOST_CALLERS:
            return True
        return any(self.is_open(caller, region, surroundings.heat_of(caller, region)) for caller, region in hot)
