"""Calls that pause the whole process: allocator flushes and collections, outside the places that are there to release memory."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import SiteKind
from hostlint.facts.kinds import FactKind
from hostlint.heat.nature import is_unused
from hostlint.heat.words import names_model
from hostlint.model import Confidence
from hostlint.torch_ops import pauses
from hostlint.values.detail import Class, External, Function, Instance
from hostlint.values.judging import Meeting
from hostlint.values.observers import hidden_in, is_left_on

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostlint.facts.graph import Site
    from hostlint.facts.schema import FileOutline, FunctionOutline
    from hostlint.values.evaluator import Frame
    from hostlint.values.value import Value

FLUSH_COST = "not measured: the flush waits for the device and hands its free blocks back; the next step has to ask for them again"
COLLECTION_COST = "not measured: a full collection walks every container of the process, while the device runs dry"
NEAR = 4  # lines between a flush and the call that makes room, or needs it
OFF_COST = "not measured: cycles (modules, exceptions, hooks) are never freed, and memory grows until the process dies"
PROJECT = (Function, Class, Instance)
_BACKEND = re.compile(r"torch(_npu)?\.\w+\.empty_cache$")


def pauses_of(frame: Frame) -> Iterator[Meeting]:
    """Flushes and collections of a function, unless they follow the release of a model; one for several backends."""
    found = [(kind, site) for site in frame.graph.sites if (kind := kind_of(frame, site)) is not None]
    for kind, site in found:
        alike = [other for same, other in found if same is kind]
        if _is_released(frame, site) or _is_alternative(site, alike) or not is_left_on(frame, site) or _is_told_at_calls(frame):
            continue
        cost = FLUSH_COST if kind is FactKind.FLUSH else COLLECTION_COST
        observer = hidden_in(frame)
        told = FactKind.OBSERVER_PAUSE if observer else kind
        yield Meeting(told, site, _last(site.detail), observer or "the call says so", Confidence.CERTAIN, cost)


def _is_told_at_calls(frame: Frame) -> bool:
    """A method of that name, behind an object that the scan cannot follow: its calls are told by their name."""
    if frame.outline.name not in pauses.FLUSHES or frame.outline.owner < 0:
        return False
    callers = frame.evaluator.surroundings.callers(frame.fid)
    for edge in callers:
        frame.evaluator.files |= 1 << edge.caller[0]
    return bool(callers) and not any(edge.certain for edge in callers)


def collector_off(frame: Frame) -> Iterator[Meeting]:
    """`gc.disable()` in a project in which nothing collects, or switches the collector on again."""
    switches = [site for site in frame.graph.sites if site.kind == SiteKind.CALL and _switches_off(frame, site)]
    index = frame.evaluator.index
    if not switches or is_unused(index.files[frame.fid[0]]):
        return
    frame.evaluator.files |= (1 << len(index.files)) - 1  # a collection anywhere would change the answer
    if not any(_collects(outline) for outline in index.files):
        for site in switches:
            why = "nothing in the project collects or switches it on again"
            yield Meeting(FactKind.COLLECTOR_OFF, site, _last(site.detail), why, Confidence.CERTAIN, OFF_COST, wrong=True)


def _switches_off(frame: Frame, site: Site) -> bool:
    detail = frame.value(_callee(frame, site)).detail if _last(site.detail) in pauses.OFF_SWITCHES else None
    dotted = detail.name if isinstance(detail, External) else ""
    node: Any = frame.graph.nodes[site.node]
    zero = bool(node[3]) and getattr(frame.value(node[3][0]).detail, "value", None) == 0
    return dotted == "gc.disable" or (dotted == "gc.set_threshold" and zero)


def _collects(outline: FileOutline) -> bool:
    """A call of `gc.collect` or `gc.enable`, by whatever name the file imports it."""
    imports = [*outline.imports, *(pair for function in outline.functions for pair in function.imports)]
    modules = {name for name, target in imports if target == "gc"}
    names = {name for name, target in imports if target in pauses.ON_SWITCHES}
    wanted = names | {f"{module}.{switch.partition('.')[2]}" for module in modules for switch in pauses.ON_SWITCHES}
    calls = (call for function in outline.functions for call in function.calls)
    return any(call.chain in wanted or not wanted.isdisjoint(call.passed) for call in calls)


def kind_of(frame: Frame, site: Site) -> FactKind | None:
    """What a call pauses for: FLUSH, COLLECTION, or None where it is something else or a function of the project."""
    name = _last(site.detail)
    if site.kind != SiteKind.CALL or (name not in pauses.FLUSHES and name not in pauses.COLLECTIONS):
        return None
    callee = frame.value(_callee(frame, site))
    dotted = callee.detail.name if isinstance(callee.detail, External) else ""
    if name in pauses.COLLECTIONS:
        return FactKind.COLLECTION if _is_full_collection(frame, site, dotted) else None
    return FactKind.FLUSH if dotted or _is_allocator(site.detail, callee) else None


def _is_alternative(site: Site, found: Sequence[Site]) -> bool:
    """`torch.xpu.empty_cache()` beside `torch.cuda.empty_cache()`: branches of one flush, of which CUDA's (or the first) stands for all."""
    beside = [other for other in found if other.region == site.region]
    chosen = next((other for other in beside if other.detail == "torch.cuda.empty_cache"), beside[0])
    return site.detail != chosen.detail and bool(_BACKEND.match(site.detail)) and bool(_BACKEND.match(chosen.detail))


def _is_allocator(chain: str, callee: Value) -> bool:
    if isinstance(callee.detail, PROJECT):
        return False
    receiver, _, _ = chain.rpartition(".")
    return not receiver or bool(pauses.ALLOCATOR.search(receiver))


def _is_full_collection(frame: Frame, site: Site, dotted: str) -> bool:
    """`gc.collect()`; collections of the young generations alone are short."""
    if dotted != "gc.collect":
        return False
    node: Any = frame.graph.nodes[site.node]
    given = [*node[3], *(value for _, value in node[4])]
    literals = [getattr(frame.value(part).detail, "value", None) for part in given]
    return not literals or literals[0] == 2


def _is_released(frame: Frame, site: Site) -> bool:
    """A model was deleted or moved away before, in the same piece of the function: the memory is given back on purpose."""
    hot = frame.evaluator.surroundings.is_hot(frame.fid, site.region)
    for other in frame.graph.sites:
        if other.line > site.line or other.region not in (site.region, 0):
            continue
        if other.kind == SiteKind.DELETE and (not hot or names_model(_last(other.subject))):
            return True
        if other.kind == SiteKind.BARE and names_model(_last(other.subject)) and other.detail != "cuda":
            return True
    return _is_asked_for(frame, site) or _makes_room(frame.outline, site.line) or _is_called_to_make_room(frame)


def _is_asked_for(frame: Frame, site: Site) -> bool:
    """A setting is tested right above: whoever switches it on wants the release."""
    tests = [each for each in frame.graph.sites if each.kind == SiteKind.TRUTH and 0 < site.line - each.line <= NEAR]
    return any(pauses.ASKED_FOR.search(each.subject) and each.column - len("if ") < site.column for each in tests)


def _makes_room(outline: FunctionOutline, line: int, near: int = NEAR) -> bool:
    """Close to the line a model is moved out, or something is woken up that needs the room."""
    return any(abs(call.line - line) <= near and _moves_out(call.chain) for call in outline.calls)


def _is_called_to_make_room(frame: Frame) -> bool:
    """A function that only flushes, where each of its calls stands beside one that needs the room."""
    if frame.outline.params:
        return False
    evaluator = frame.evaluator
    callers = [edge for edge in evaluator.surroundings.callers(frame.fid) if edge.certain]
    outlines = [(evaluator.index.function(edge.caller), edge.call_index) for edge in callers]
    for edge in callers:
        evaluator.files |= 1 << edge.caller[0]
    return bool(outlines) and all(_makes_room(outline, outline.calls[index].line, 1) for outline, index in outlines)


def _moves_out(chain: str) -> bool:
    return bool(pauses.MOVES_OUT.search(_last(chain)) or pauses.MOVES_OUT.search(chain))


def _callee(frame: Frame, site: Site) -> int:
    node: Any = frame.graph.nodes[site.node]
    callee: int = node[2]
    return callee


def _last(chain: str) -> str:
    return chain.rpartition(".")[2]
