"""Modules whose forward is no entry: the project calls them, and never from a step, or calls another method in its place."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hostlint.facts.schema import RegionKind
from hostlint.heat import words
from hostlint.heat.loops import LoopKind
from hostlint.heat.nature import Nature, is_unused
from hostlint.heat.spread import Allowed, Reached

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping

    from hostlint.heat.callgraph import CallGraph, Edge
    from hostlint.heat.entries import Entries
    from hostlint.heat.loops import StepLoops
    from hostlint.index import FunctionId

_CALLS = ("forward", "__call__")
_SAYS_NOTHING = frozenset({"model", "module", "network", "net", "layer", "block", "backward", "step", "grad"})
_SHORTEST = 3
# A step's `self.transformer(…)` is no tower that reads a request's pictures, sound or text.
_TRUNKS = frozenset({"transformer", "encoder", "decoder", "backbone", "unet"})
_TOWER = re.compile(r"vision|visual|audio|speech|whisper|siglip|clip|image(encoder|tower|model)|text(encoder|model)")
_NAME = re.compile(r"(self\.)?\w+(\[\])?")


def quiet_modules(
    graph: CallGraph,
    loops: StepLoops,
    natures: Mapping[FunctionId, Nature],
    entries: Entries,
    steps: Collection[FunctionId],
    stops: Container[FunctionId],
) -> set[FunctionId]:
    """The forwards among the entries whose callers are all seen and none of them runs at every step."""
    called = {fid for fid in steps if _is_forward(graph, fid) and any(_is_seen(graph, edge) for edge in graph.edges_in(fid))}
    if not called:
        return set()
    others = [fid for fid in steps if fid not in called]
    starts = set(others)
    open_ended = {fid for fid in natures if fid in starts or fid in graph.escaping or entries.is_request(fid)}
    reached = Reached(graph, loops, natures, Allowed(graph, natures, open_ended), stops, called)
    reached.spread(others, ())
    hot = reached.ways.keys() | reached.rounds.keys()
    quiet = called - hot - _called_by_unknown(graph, natures, entries, hot)
    seldom = quiet | {fid for fid, nature in natures.items() if nature is Nature.ONCE}
    repeated = [fid for fid in quiet if any(edge.caller not in seldom and _is_repeated(graph, loops, edge) for edge in graph.edges_in(fid))]
    quiet -= _reach(graph, repeated)
    names = {name for fid in graph.functions() for name in _unresolved(graph, loops, fid, fid in hot)}
    return quiet - _reach(graph, [fid for fid in quiet if _may_be(graph, fid, names)])


def is_passed_over(graph: CallGraph, fid: FunctionId) -> bool:
    """A forward that nobody is seen to call, beside another one of its class (`forward_uncached`) that others call for certain."""
    if not _is_forward(graph, fid) or any(not is_unused(graph.index.files[edge.caller[0]]) for edge in graph.edges_in(fid)):
        return False
    owner = (fid[0], graph.index.function(fid).owner)
    others = [(fid[0], method) for name, method in graph.index.klass(owner).methods if name.startswith("forward_")]
    return any(_is_seen(graph, edge) and graph.index.owner(edge.caller) != owner for other in others for edge in graph.edges_in(other))


def _is_forward(graph: CallGraph, fid: FunctionId) -> bool:
    function = graph.index.function(fid)
    return function.name in _CALLS and function.owner >= 0 and graph.index.is_nn_module((fid[0], function.owner))


def _is_seen(graph: CallGraph, edge: Edge) -> bool:
    return edge.certain and edge.call_index >= 0 and edge.caller != edge.callee and not is_unused(graph.index.files[edge.caller[0]])


def _is_repeated(graph: CallGraph, loops: StepLoops, edge: Edge) -> bool:
    """A call in a loop that is the only kind of loop its function has: the innermost one around a model call, whatever it walks over."""
    regions = graph.index.function(edge.caller).regions
    region = edge.region
    while region and regions[region].kind != RegionKind.LOOP:
        region = regions[region].parent
    return bool(region) and LoopKind.STEPS not in loops.kinds(edge.caller).values()


def _called_by_unknown(
    graph: CallGraph, natures: Mapping[FunctionId, Nature], entries: Entries, hot: Container[FunctionId]
) -> set[FunctionId]:
    """What functions reach of which nobody knows when they run, and what only calls itself."""
    unknown = _reach(graph, (fid for fid in natures if fid not in hot and _is_unknown(graph, natures, entries, fid)))
    rooted = _reach(graph, (fid for fid in natures if not graph.edges_in(fid)))
    return unknown | (natures.keys() - rooted)


def _reach(graph: CallGraph, starts: Iterable[FunctionId]) -> set[FunctionId]:
    waiting = list(starts)
    found = set(waiting)
    while waiting:
        callees = {edge.callee for edge in graph.edges_out(waiting.pop())} - found
        found |= callees
        waiting.extend(callees)
    return found


def _is_unknown(graph: CallGraph, natures: Mapping[FunctionId, Nature], entries: Entries, fid: FunctionId) -> bool:
    if fid[1] == 0 or natures[fid] in (Nature.COLD, Nature.ONCE) or entries.is_request(fid):
        return False
    return fid in graph.escaping or not any(edge.caller != fid for edge in graph.edges_in(fid))


def _unresolved(graph: CallGraph, loops: StepLoops, fid: FunctionId, hot: bool) -> Iterator[str]:
    """The names that steps of this function call and whose meaning is not known: they may be modules."""
    function = graph.index.function(fid)
    if not hot and not loops.kinds(fid):
        return
    resolved = {edge.call_index for edge in graph.edges_out(fid)}
    for position, call in enumerate(function.calls):
        if position not in resolved and (hot or loops.surrounding(fid, call.region)):
            name = _called_name(call.chain)
            if len(name) >= _SHORTEST and name not in _SAYS_NOTHING:
                yield name.replace("_", "").lower()


def _called_name(chain: str) -> str:
    name = words.last_name(chain)
    if name in ("forward", "encode", "decode"):
        return words.receiver_name(chain)
    return name if _NAME.fullmatch(chain) else ""


def _may_be(graph: CallGraph, fid: FunctionId, names: Collection[str]) -> bool:
    function = graph.index.function(fid)
    owner = graph.index.klass((fid[0], function.owner)).name.lower()
    tower = bool(_TOWER.search(owner))
    return any(name in owner and not (tower and name in _TRUNKS) for name in names)
