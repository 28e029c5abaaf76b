"""Program order inside one function: what a value is made from, and whether the host waits between two places."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op
from hostlint.facts.kinds import FactKind
from hostlint.facts.schema import RegionKind
from hostlint.values.detail import Function, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostlint.facts.graph import Site
    from hostlint.facts.schema import Call
    from hostlint.values.evaluator import Frame
    from hostlint.values.judging import Meeting

WAITERS = re.compile(r"sync|wait|query|elapsed|barrier|join|flush|finish|drain|ready|result|done|complete", re.IGNORECASE)
READERS = frozenset({"item", "tolist", "cpu"})
# Meetings at which the host goes on at once.
NO_WAIT = frozenset({FactKind.PIN_PER_CALL, FactKind.PAGEABLE_NON_BLOCKING, FactKind.COLLECTION})
METADATA = frozenset({
    "size", "numel", "dim", "stride", "data_ptr", "element_size", "nelement", "is_pinned", "storage", "untyped_storage", "get_device",
    "is_contiguous", "record_stream",
})  # fmt: skip


def literal(frame: Frame, node: int) -> object:
    """The Python constant that a node is, or None."""
    detail = frame.value(node).detail
    return detail.value if isinstance(detail, Literal) else None


def is_non_blocking(frame: Frame, node: int) -> bool:
    """A call that is told `non_blocking=True`."""
    call: Any = frame.graph.nodes[node]
    return call[0] == Op.CALL and any(name == "non_blocking" and literal(frame, value) in (True, "True") for name, value in call[4])


def method(frame: Frame, node: int) -> tuple[str, int]:
    """The name and the receiver of a call of a method; "" and -1 for any other node."""
    call: Any = frame.graph.nodes[node] if node >= 0 else (-1,)
    if call[0] != Op.CALL:
        return "", -1
    callee: Any = frame.graph.nodes[call[2]]
    return (callee[3], callee[2]) if callee[0] == Op.ATTR else ("", -1)


def shape_of(frame: Frame, node: int, depth: int = 6) -> object:
    """A node without its lines: two nodes of one shape read the same name, attribute or element."""
    parts: Any = frame.graph.nodes[node]
    opaque = (Op.CALL, Op.PHI, Op.UNKNOWN, Op.ITER, Op.SEQUENCE, Op.DICT, Op.COMPREHENSION, Op.STORE, Op.APPEND, Op.MOVED)
    if depth == 0 or parts[0] in opaque:
        return node
    if parts[0] in (Op.ATTR, Op.REFINE):
        return (int(parts[0]), shape_of(frame, parts[2], depth - 1), parts[3])
    if parts[0] == Op.INDEX:
        return (int(parts[0]), shape_of(frame, parts[2], depth - 1), shape_of(frame, parts[3], depth - 1))
    if parts[0] == Op.BINOP:
        return (int(parts[0]), parts[2], shape_of(frame, parts[3], depth - 1), shape_of(frame, parts[4], depth - 1))
    return (int(parts[0]), *parts[2:])


def one_of(frame: Frame, node: int) -> set[int]:
    """The nodes that a node stands for: itself and what its branches give it."""
    seen: set[int] = set()
    queue = [node]
    while queue:
        node = queue.pop()
        if node not in seen:
            seen.add(node)
            parts: Any = frame.graph.nodes[node]
            queue.extend(parts[2] if parts[0] == Op.PHI else [parts[2]] if parts[0] == Op.REFINE else [])
    return seen


def made_from(frame: Frame, node: int) -> Iterator[int]:
    """The nodes whose data a value reads: the receiver of a method, what is indexed, compared, added, iterated; never a PHI's."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node < 0 or node in seen:
            continue
        seen.add(node)
        yield node
        waiting.extend(_data_of(frame, node))


def _data_of(frame: Frame, node: int) -> Sequence[int]:
    parts: Any = frame.graph.nodes[node]
    op = parts[0]
    if op == Op.CALL:
        name, receiver = method(frame, node)
        return [] if name in METADATA else [receiver, *parts[3]]
    if op in (Op.INDEX, Op.UNPACK, Op.ITER, Op.STAR, Op.REFINE, Op.STORE, Op.MOVED):
        return [parts[2]]
    if op == Op.BINOP:
        return [parts[3], parts[4]]
    if op in (Op.COMPARE, Op.SEQUENCE):
        return list(parts[3])
    if op in (Op.UNARY, Op.COMPREHENSION):
        return [parts[3]]
    return []


def waits_between(frame: Frame, found: Sequence[Meeting], after: int, site: Site | None) -> bool:
    """Whether the host waits in some call or meeting after a node and before a site (or the function's end), in the source's order."""

    def lies_between(node: int, line: int) -> bool:
        return node > after and (site is None or (node < site.node if site.node > after else line < site.line))

    if any(lies_between(call.node, call.line) and call_waits(frame, call) for call in frame.outline.calls):
        return True
    return any(lies_between(meeting.site.node, meeting.site.line) and meeting.kind not in NO_WAIT for meeting in found)


def call_waits(frame: Frame, call: Call) -> bool:
    """A call that waits by its name, or a function of the project that makes one."""
    if _waits_by_name(frame, call.chain, call.node):
        return True
    node: Any = frame.graph.nodes[call.node] if call.node >= 0 else None
    detail = frame.value(node[2]).detail if node is not None and node[0] == Op.CALL else None
    if not isinstance(detail, Function):
        return False
    frame.evaluator.graph_of(detail.function)
    frame.evaluator.files |= 1 << detail.function[0]
    inner = frame.evaluator.index.function(detail.function)
    return any(WAITERS.search(each.chain) or each.chain.rpartition(".")[2] in READERS for each in inner.calls)


def _waits_by_name(frame: Frame, chain: str, node: int) -> bool:
    if WAITERS.search(chain):
        return True
    name = chain.rpartition(".")[2]
    if name == "to" and node >= 0 and not is_non_blocking(frame, node):
        return frame.value(node).is_host
    return name in READERS


def loops_around(frame: Frame, region: int) -> Iterator[int]:
    """The loops that a region lies in, innermost first."""
    regions = frame.outline.regions
    while region:
        if regions[region].kind == RegionKind.LOOP:
            yield region
        region = regions[region].parent
