"""Reads that are the cure: once a request, a whole tensor or a number beside the loop that would else read it at each step."""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.schema import RegionKind

if TYPE_CHECKING:
    from hostlint.facts.graph import Site
    from hostlint.values.evaluator import Frame

WHOLE = frozenset({"tolist", "cpu"})
NUMBER = frozenset({"item"})


def is_cure(frame: Frame, site: Site) -> bool:
    """Whether a tensor is read once a request: whole by `.tolist()` or `.cpu()`, or a number beside the step loop of the same function.

    Outside loops and off the steps' path this is what the reads of a loop are to become. A whole tensor may be read in a helper, too.
    """
    read = site.detail.rpartition(".")[2]
    if read not in WHOLE | NUMBER or _in_loop(frame, site.region) or not frame.fid[1]:
        return False
    around = frame.evaluator.surroundings
    if around.is_hot(frame.fid, site.region):
        return False
    return _holds_step_loop(frame) or (read in WHOLE and bool(around.callers(frame.fid)))


def _holds_step_loop(frame: Frame) -> bool:
    loops = (number for number, region in enumerate(frame.outline.regions) if region.kind == RegionKind.LOOP)
    return any(frame.evaluator.surroundings.is_hot(frame.fid, number) for number in loops)


def _in_loop(frame: Frame, region: int) -> bool:
    regions = frame.outline.regions
    while region:
        if regions[region].kind == RegionKind.LOOP:
            return True
        region = regions[region].parent
    return False
