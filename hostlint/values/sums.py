"""Sums and lists over the steps of a loop: losses that keep their graphs, and running sums in a low precision."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op, SiteKind
from hostlint.facts.kinds import FactKind
from hostlint.model import Confidence
from hostlint.values import order
from hostlint.values.detail import Dtype, Literal
from hostlint.values.judging import Meeting
from hostlint.values.value import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.facts.graph import Site
    from hostlint.values.evaluator import Frame

GRAPHS = "not measured: every kept loss holds the graph of its step, and memory grows until the run dies"
ROUNDS = "not measured: bf16 has 8 bits: once the sum is 256 times a term, adding the term changes nothing"
REDUCES = frozenset({"mean", "sum"})
MOVES = frozenset({"to", "cpu", "cuda", "float", "double", "half", "bfloat16", "clone", "squeeze", "unsqueeze", "view", "reshape"})
SCALES = frozenset({"scale"})
KEPT_ELSEWHERE = (Op.PHI, Op.ATTR, Op.GLOBAL, Op.FREE, Op.PARAM)
LOW = {"float16": "fp16", "half": "fp16", "bfloat16": "bf16"}
START = frozenset({"zeros", "zeros_like", "tensor", "scalar_tensor", "new_zeros", "full"})


def kept_graphs(frame: Frame) -> Iterator[Meeting]:
    """Losses on which backward() is called and that are summed or listed over the steps with their graphs."""
    sites = [(site, kept) for site in frame.graph.sites if (kept := _kept(frame, site)) >= 0]
    losses = _losses(frame) if sites else {}
    for site, kept in sites:
        shapes = (order.shape_of(frame, part) for part in _carriers(frame, kept, MOVES | REDUCES))
        line = next((losses[shape] for shape in shapes if shape in losses), 0)
        if line and not _is_let_go(frame, site):
            why = f"backward() at line {line} needs its graph"
            yield Meeting(FactKind.GRAPH_KEPT, site, site.detail, why, Confidence.CERTAIN, GRAPHS, wrong=True)


def _kept(frame: Frame, site: Site) -> int:
    """The value that a loop adds to a sum, or puts into a list, that outlives its rounds; -1 for other sites."""
    node: Any = frame.graph.nodes[site.node]
    if not any(order.loops_around(frame, site.region)):
        return -1
    if site.kind == SiteKind.AUGMENTED:
        return int(node[4])
    if site.kind != SiteKind.SUM:
        return -1
    if node[0] == Op.BINOP:
        return int(node[4]) if _outlives(frame, node[3]) else -1
    _, receiver = order.method(frame, site.node)
    return int(node[3][0]) if receiver >= 0 and node[3] and _outlives(frame, receiver) else -1


def _outlives(frame: Frame, node: int) -> bool:
    return frame.graph.nodes[node][0] in KEPT_ELSEWHERE


def _losses(frame: Frame) -> dict[object, int]:
    """What backward() is called on, with the line of the call."""
    found: dict[object, int] = {}
    for call in frame.outline.calls:
        if call.chain.rpartition(".")[2] in {"backward", "manual_backward"} and call.node >= 0:
            node: Any = frame.graph.nodes[call.node]
            _, receiver = order.method(frame, call.node)
            for start in [*([receiver] if receiver >= 0 else []), *node[3][:1]]:
                found.update((order.shape_of(frame, part), call.line) for part in _carriers(frame, start))
    return found


def _carriers(frame: Frame, node: int, follow: frozenset[str] = MOVES) -> Iterator[int]:
    """The value and what it is scaled, summed or moved from, as long as the graph goes with it."""
    waiting, seen = [node], set()
    while waiting:
        node = waiting.pop()
        if node in seen or node < 0:
            continue
        seen.add(node)
        parts: Any = frame.graph.nodes[node]
        if parts[0] in (Op.CONST, Op.GLOBAL, Op.IMPORT, Op.FUNCTION, Op.CLASS, Op.UNKNOWN) or frame.value(node).place is Place.PYTHON:
            continue
        yield node
        name, receiver = order.method(frame, node)
        if parts[0] == Op.BINOP:
            waiting += [parts[3], parts[4]] if parts[2].startswith(("+", "-")) else [parts[3]]
        elif name in SCALES:
            waiting += parts[3][:1]
        elif name in follow or parts[0] == Op.REFINE:
            waiting.append(receiver if name else parts[2])


def _is_let_go(frame: Frame, site: Site) -> bool:
    """The sum is detached or the list emptied in the same loop."""
    loops = set(order.loops_around(frame, site.region))
    released = {f"{site.detail}.{name}" for name in ("detach", "detach_", "clear", "pop", "popleft", "backward")}
    return any(call.chain in released and loops & set(order.loops_around(frame, call.region)) for call in frame.outline.calls)


def low_sums(frame: Frame) -> Iterator[Meeting]:
    """Running sums of one number that a loop keeps in half precision."""
    for site in frame.graph.sites:
        node: Any = frame.graph.nodes[site.node] if site.kind == SiteKind.SUM else (-1,)
        if node[0] != Op.BINOP or node[2] != "+=":
            continue
        start: Any = frame.graph.nodes[node[3]]
        firsts = [low for part in start[2] if (low := _low_start(frame, part))] if start[0] == Op.PHI else []
        if firsts and any(order.loops_around(frame, site.region)):
            why = f"`{site.detail}` is made in {firsts[0]}"
            yield Meeting(FactKind.LOW_PRECISION_SUM, site, site.detail, why, Confidence.CERTAIN, ROUNDS, firsts[0], wrong=True)


def _low_start(frame: Frame, node: int) -> str:
    """`bf16` or `fp16` where the node makes a single number of that precision; else ""."""
    parts: Any = frame.graph.nodes[node]
    if parts[0] != Op.CALL:
        return ""
    callee: Any = frame.graph.nodes[parts[2]]
    if callee[0] != Op.ATTR or callee[3] not in START or not _is_single(frame, node, parts[3]):
        return ""
    detail = next((frame.value(value).detail for name, value in parts[4] if name == "dtype"), None)
    return LOW.get(detail.name, "") if isinstance(detail, Dtype) else ""


def _is_single(frame: Frame, node: int, arguments: tuple[int, ...]) -> bool:
    if frame.value(node).rank0:
        return True
    detail = frame.value(arguments[0]).detail if len(arguments) == 1 else None
    return isinstance(detail, Literal) and detail.value == 1


def dropped_moves(frame: Frame) -> Iterator[Meeting]:
    """`x.to(device)` as a statement: a tensor stays where it is, only modules move in place."""
    for site in frame.graph.sites:
        if site.kind == SiteKind.BARE:
            _, receiver = order.method(frame, site.node)
            value = frame.value(receiver)
            if value.is_tensor and value.confidence is Confidence.CERTAIN:
                evidence = value.why or "it is a tensor"
                yield Meeting(FactKind.DROPPED_MOVE, site, f"{site.detail}()", evidence, value.confidence, "the call says so", wrong=True)
