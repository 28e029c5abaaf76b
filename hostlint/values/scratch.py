"""Helpers that only allocate: buffers that somebody writes into are no tables that could be kept, nor is what a caller changes."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op
from hostlint.values.detail import Function
from hostlint.values.loops import VIEWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostlint.index import FunctionId
    from hostlint.values.evaluator import Evaluator

UNSET = frozenset({"empty", "new_empty", "empty_like", "empty_strided"})
BLANK = UNSET | {"zeros", "new_zeros", "zeros_like"}
THROUGH = frozenset({Op.INDEX, Op.UNPACK, Op.REFINE, Op.STORE, Op.ITER, Op.STAR})
KEPT_BLANK = frozenset({"zero_", "requires_grad_"})
IN_PLACE = frozenset({"+=", "-=", "*=", "/=", "//=", "%=", "**=", "&=", "|=", "^=", "<<=", ">>="})
DEPTH = 3


def allocates_scratch(evaluator: Evaluator, fid: FunctionId) -> bool:
    """Whether a function hands out memory to be written into: something that nobody has set, or nothing but zeros."""
    parts = list(_returned(evaluator, fid, DEPTH))
    return any(part in UNSET for part in parts) or (bool(parts) and BLANK.issuperset(parts))


def is_written(nodes: Sequence[Any], made: int, *, with_data: bool = False) -> bool:
    """Whether a function writes into a tensor that it was given, or into a view of it; `with_data`: anything but a constant, which could
    be written once into what is kept."""
    writes = (item for item in nodes if not (with_data and item[0] == Op.STORE and nodes[item[4]][0] == Op.CONST))
    return any(made in _behind(nodes, target) for item in writes for target in _targets(nodes, item))


def _returned(evaluator: Evaluator, fid: FunctionId, depth: int) -> Iterator[str]:
    """What each tensor that a function returns is at first: the name of the call that allocates it, "" for anything that has content."""
    graph = evaluator.graph_of(fid)
    evaluator.files |= 1 << fid[0]
    nodes: Sequence[Any] = graph.nodes
    queue, seen = list(graph.returns), set()
    while queue:
        node = queue.pop()
        item = nodes[node]
        if node in seen or item[0] == Op.CONST:
            continue
        seen.add(node)
        if item[0] in (Op.PHI, Op.SEQUENCE):
            queue.extend(item[2] if item[0] == Op.PHI else item[3])
        elif item[0] == Op.DICT:
            queue.extend(value for _, value in item[2])
        elif item[0] == Op.REFINE:
            queue.append(item[2])
        elif item[0] != Op.CALL:
            yield ""
        elif (receiver := _viewed(nodes, item)) >= 0:
            queue.append(receiver)
        else:
            yield from _allocated(evaluator, fid, node, depth)


def _allocated(evaluator: Evaluator, fid: FunctionId, node: int, depth: int) -> Iterator[str]:
    nodes: Sequence[Any] = evaluator.graph_of(fid).nodes
    detail = evaluator.frame(fid).value(nodes[node][2]).detail
    callee = nodes[nodes[node][2]]
    name = str(callee[3]) if callee[0] == Op.ATTR else ""
    if isinstance(detail, Function) and depth:
        yield from _returned(evaluator, detail.function, depth - 1)
    else:
        yield name if name in BLANK and not is_written(nodes, node) and not _is_empty(nodes, nodes[node]) else ""


def _is_empty(nodes: Sequence[Any], call: Any) -> bool:
    """`torch.empty((0,))` is no memory at all, but what stands for a list of nothing."""
    sizes = [part for given in call[3] for part in (nodes[given][3] if nodes[given][0] == Op.SEQUENCE else (given,))]
    return any(nodes[size][0] == Op.CONST and nodes[size][3] == 0 for size in sizes)


def _viewed(nodes: Sequence[Any], item: Any) -> int:
    """The tensor that a call gives another shape of, or sets to zero; -1 for other calls."""
    callee = nodes[item[2]]
    return int(callee[2]) if callee[0] == Op.ATTR and callee[3] in VIEWS | KEPT_BLANK else -1


def _targets(nodes: Sequence[Any], item: Any) -> Iterator[int]:
    """What a node writes into."""
    if item[0] == Op.STORE:
        yield item[2]
    elif item[0] == Op.BINOP and item[2] in IN_PLACE:
        yield item[3]
    elif item[0] == Op.CALL:
        callee = nodes[item[2]]
        if callee[0] == Op.ATTR and callee[3].endswith("_") and not callee[3].endswith("__") and callee[3] not in KEPT_BLANK:
            yield callee[2]
        yield from (value for key, value in item[4] if key == "out")


def _behind(nodes: Sequence[Any], node: int) -> set[int]:
    """The tensor that a target is, or is a view of: all nodes that may stand for it."""
    found: set[int] = set()
    queue = [node]
    while queue:
        node = queue.pop()
        if node in found:
            continue
        found.add(node)
        item = nodes[node]
        if item[0] in THROUGH:
            queue.append(item[2])
        elif item[0] == Op.PHI:
            queue.extend(item[2])
        elif item[0] == Op.CALL and (receiver := _viewed(nodes, item)) >= 0:
            queue.append(receiver)
    return found
