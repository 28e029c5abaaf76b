"""Flushes and collections hidden in what only observes: getters, loggers, profilers, log lines; through defaults and helpers."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hostlint.facts.calls import LAZY_LOGGERS
from hostlint.facts.graph import Op, SiteKind, operands
from hostlint.facts.schema import FunctionFlag

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hostlint.facts.graph import FunctionGraph, Site
    from hostlint.index import FunctionId
    from hostlint.values.evaluator import Caller, Evaluator, Frame

DEPTH = 6
PASSED_ON = frozenset({"format", "round", "int", "float", "str", "len", "sum", "max", "min"})
GUARDED = 3  # lines that a flush may lie below its `if`
NAMES = re.compile(
    r"^_*(log|report|print|describe)_|^_*(available|free|used|current)_\w*(mem|memory|usage)|"
    r"^_*(get|read|query|measure|track|snapshot|sample)_\w*(mem|memory|usage|stats|statistics|info|metrics|utili[sz]ation)",
    re.IGNORECASE,
)
CLASSES = re.compile(r"(Profiler|Timer|Monitor|Tracker|Logger|Meter|Watch|Observer|Tracer)$")
BOUNDS = frozenset({"__enter__", "__exit__", "start", "stop", "tick"})


def hidden_in(frame: Frame) -> str:
    """Which observer hides the pauses of a function, in words; "" where none does."""
    evaluator = frame.evaluator
    if is_observer(evaluator, frame.fid):
        return f"`{frame.outline.qualname}`, which only observes"
    return _observed(evaluator, frame.fid, DEPTH)


def is_observer(evaluator: Evaluator, fid: FunctionId) -> bool:
    outline = evaluator.index.function(fid)
    owner = evaluator.index.owner(fid)
    if owner is not None and outline.name in BOUNDS:
        return bool(CLASSES.search(evaluator.index.klass(owner).name))
    return bool(NAMES.search(outline.name))


def _observed(evaluator: Evaluator, fid: FunctionId, depth: int) -> str:
    """The observer that calls a function, where every call of it comes from one, or from a log line."""
    callers = [edge for edge in evaluator.surroundings.callers(fid) if edge.caller != fid]
    words = [_observer_of(evaluator, edge, depth) for edge in callers]
    return words[0] if words and all(words) else ""


def _observer_of(evaluator: Evaluator, edge: Caller, depth: int) -> str:
    evaluator.files |= 1 << edge.caller[0]
    outline = evaluator.index.function(edge.caller)
    call = outline.calls[edge.call_index]
    if _is_logged(evaluator, edge.caller, call.node):
        return f"the arguments of a log line (line {call.line}), which are worked out even where the level is off"
    if is_observer(evaluator, edge.caller):
        return f"`{outline.qualname}`, which only observes"
    return _observed(evaluator, edge.caller, depth - 1) if depth else ""


def _is_logged(evaluator: Evaluator, fid: FunctionId, node: int) -> bool:
    """The result goes into the call of a logger: as it is, worked on, or formatted in a string."""
    graph, outline = evaluator.graph_of(fid), evaluator.index.function(fid)
    for call in outline.calls:
        receiver, _, name = call.chain.rpartition(".")
        if name in LAZY_LOGGERS and "log" in receiver.lower() and call.node >= 0:
            parts: Any = graph.nodes[call.node]
            if parts[0] != Op.CALL:
                continue
            logged = _worked_on(graph, parts[3])
            if any(graph.nodes[part][0] == Op.TEXT for part in logged):
                formatted = [site.node for site in graph.sites if site.kind == SiteKind.FORMAT and _spans(site, call.line)]
                logged |= _worked_on(graph, formatted)
            if node in logged:
                return True
    return False


def _spans(site: Site, line: int) -> bool:
    return site.first_line <= line <= site.last_line


def _worked_on(graph: FunctionGraph, nodes: Iterable[int]) -> set[int]:
    """What these nodes are made of in the same breath: arithmetic, elements, numbers, formatted strings."""
    found: set[int] = set()
    queue = list(nodes)
    while queue:
        node = queue.pop()
        if node in found:
            continue
        found.add(node)
        item: Any = graph.nodes[node]
        if item[0] in (Op.BINOP, Op.UNARY, Op.SEQUENCE, Op.INDEX):
            queue.extend(operands(item))
        elif item[0] == Op.CALL:
            callee: Any = graph.nodes[item[2]]
            name = callee[3] if callee[0] == Op.ATTR else callee[2] if callee[0] == Op.GLOBAL else ""
            queue.extend(item[3] if name in PASSED_ON else ())
    return found


def is_left_on(frame: Frame, site: Site) -> bool:
    """Whether the parameter that guards the flush, if there is one, is true in some call, by its default or as it is passed."""
    position = _guard(frame, site)
    return position < 0 or _may_be_true(frame.evaluator, frame.fid, position, DEPTH)


def _guard(frame: Frame, site: Site) -> int:
    """The parameter that the `if` right above the flush tests; -1 where there is none."""
    above = [each for each in frame.graph.sites if each.kind == SiteKind.TRUTH and each.detail == "if" and each.line < site.line]
    nearest = max(above, key=lambda each: each.line, default=None)
    if nearest is None or site.line - nearest.last_line > GUARDED or site.column <= nearest.column - len("if "):
        return -1
    node: Any = frame.graph.nodes[nearest.node]
    return int(node[2]) if node[0] == Op.PARAM else -1


def _may_be_true(evaluator: Evaluator, fid: FunctionId, position: int, depth: int) -> bool:
    callers = [edge for edge in evaluator.surroundings.callers(fid) if edge.caller != fid]
    if not callers or not depth:
        return _is_on_by_default(evaluator, fid, position)
    return any(_passes_true(evaluator, fid, position, edge, depth) for edge in callers)


def _passes_true(evaluator: Evaluator, fid: FunctionId, position: int, edge: Caller, depth: int) -> bool:
    evaluator.files |= 1 << edge.caller[0]
    outline, graph = evaluator.index.function(fid), evaluator.graph_of(edge.caller)
    made = evaluator.index.function(edge.caller).calls[edge.call_index].node
    call: Any = graph.nodes[made] if made >= 0 else (-1,)
    if call[0] != Op.CALL:
        return False
    given = dict(call[4]).get(outline.params[position].name, -1)
    slot = position - int(outline.owner >= 0 and not outline.flags & FunctionFlag.STATIC)
    if given < 0 and 0 <= slot < len(call[3]):
        given = call[3][slot]
    if given < 0:
        return _is_on_by_default(evaluator, fid, position)
    node: Sequence[Any] = graph.nodes[given]
    return _is_true(node) or (node[0] == Op.PARAM and _may_be_true(evaluator, edge.caller, node[2], depth - 1))


def _is_on_by_default(evaluator: Evaluator, fid: FunctionId, position: int) -> bool:
    outline = evaluator.index.function(fid)
    default = outline.params[position].default
    return default >= 0 and _is_true(evaluator.graph_of((fid[0], outline.parent)).nodes[default])


def _is_true(node: Sequence[Any]) -> bool:
    return node[0] == Op.CONST and node[2] == "bool" and node[3] is True
