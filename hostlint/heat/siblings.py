"""Loops that prepare or finish a request whose steps another loop takes: they are as hot as the function around them."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hostlint.facts.schema import RegionKind
from hostlint.heat import owners, words
from hostlint.heat.words import Walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hostlint.facts.schema import FunctionOutline, Region
    from hostlint.heat.callgraph import CallGraph
    from hostlint.index import FunctionId

_REQUEST = re.compile(r"^_*(generate|sample|fit|train|serve|rollout|chat|forward|denoise|beam_search|search)(_|$)")  # a request of its own
CALLERS = 3  # how many calls up the request's own step loop is looked for
_PREPARES = re.compile(
    r"^_*(prepare|encode|pack|unpack|preprocess|postprocess|tiled|tile|get|build|make|check|(un)?patchify|add|load|compute_text)(_|$)"
)
_PROCESSES = re.compile(r"^_*(pre|post)_?process(_|$)")  # a request's pictures, some at a time
_FINISHES = re.compile(r"^_*(decode|convert|upsample|interpolate)(_|$)")
_ADVANCES = re.compile(r"(sched\w*|optim\w*|opt|solver|sampler|scaler|engine)$", re.IGNORECASE)


class Siblings:
    """Which functions hold the loop that takes the steps of their request."""

    def __init__(self, graph: CallGraph, steps: Mapping[FunctionId, Iterable[int]]) -> None:
        self._graph = graph
        self._holders = {fid for fid, loops in steps.items() if any(self._takes_steps(fid, loop) for loop in loops)}

    def is_preparation(self, fid: FunctionId, loop: int, walk: Walk) -> bool:
        """Whether the loop goes over data beside the steps: no denoising, decoding or training happens in it."""
        function = self._graph.index.function(fid)
        region = function.regions[loop]
        processes = bool(_PROCESSES.search(function.name))
        if walk is Walk.STEPS or (region.text.startswith("while") and not processes) or self._takes_steps(fid, loop):
            return False
        if processes or (words.loop_walks(region.text, ()) is not Walk.DATA and _is_helper(function, region)):
            return True
        if owners.works_around_steps(self._graph.index, fid):
            return True
        return walk is not Walk.LAYERS and fid[1] > 0 and self._has_holder(fid)

    def _has_holder(self, fid: FunctionId) -> bool:
        """Whether the function, or one of its callers, holds the step loop of the request."""
        seen = waiting = {fid}
        for _ in range(CALLERS + 1):
            if waiting & self._holders:
                return True
            inner = (each for each in waiting if not _REQUEST.search(self._graph.index.function(each).name))
            waiting = {edge.caller for each in inner for edge in self._graph.edges_in(each) if edge.caller[1]} - seen
            seen = seen | waiting
        return False

    def _takes_steps(self, fid: FunctionId, loop: int) -> bool:
        function = self._graph.index.function(fid)
        region = function.regions[loop]
        if words.loop_walks(region.text, region.targets) is Walk.STEPS:
            return True
        calls = (function.calls[call] for call in self._graph.step_calls(fid))
        return any(_advances(call.chain) and _lies_in(function.regions, call.region, loop) for call in calls)


def _advances(chain: str) -> bool:
    """A backward, or a step of an optimizer or scheduler."""
    name = words.last_name(chain)
    return name == "backward" or (name == "step" and bool(_ADVANCES.search(words.receiver_name(chain))))


def _is_helper(function: FunctionOutline, region: Region) -> bool:
    if _PREPARES.search(function.name):
        return True
    return bool(_FINISHES.search(function.name)) and not region.text.startswith("range(")


def _lies_in(regions: tuple[Region, ...], region: int, loop: int) -> bool:
    while region and region != loop:
        region = regions[region].parent
    return region == loop and regions[region].kind == RegionKind.LOOP
