"""Whether the shape of a tensor stays the same over the steps: not where a loop appends to it, a cache grows, or values decide the size."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op, operands

if TYPE_CHECKING:
    from hostlint.index import FunctionId
    from hostlint.values.evaluator import Evaluator

GROWING = re.compile(r"(^|_|\.)(past|cache\w*|kv|kvs|keys?|values?|mem(ory)?|mems|history|prefix|buffer)(_|$)", re.IGNORECASE)
DATA_SIZED = frozenset({
    "unique", "unique_consecutive", "nonzero", "argwhere", "masked_select", "where", "tolist", "item", "nonzero_static", "nms",
})  # fmt: skip
JOINS = frozenset({"cat", "concat", "concatenate", "pad", "hstack", "vstack"})
DEPTH = 12


class Shapes:
    """Walks back from a tensor to what its shape comes from."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def is_steady(self, fid: FunctionId, node: int, depth: int = DEPTH) -> bool:
        frame = self._evaluator.frame(fid)
        item: Any = frame.graph.nodes[node]
        if depth <= 0 or GROWING.search(frame.node_name(node)):
            return False
        if item[0] == Op.PHI:
            return self._joined(fid, node, item, depth)
        if item[0] == Op.CALL:
            return self._made(fid, item, depth)
        if item[0] == Op.INDEX and not is_fixed_index(frame.graph.nodes[item[3]], frame.graph.nodes):
            return False
        if item[0] in (Op.UNPACK, Op.REFINE, Op.STORE, Op.INDEX):
            return self.is_steady(fid, item[2], depth - 1)
        return bool(item[0] != Op.ITER)  # the elements of a list may differ

    def _joined(self, fid: FunctionId, node: int, item: Any, depth: int) -> bool:
        """A name that a loop binds again keeps its shape unless something is joined to it there."""
        nodes = self._evaluator.graph_of(fid).nodes
        if any(_name_of_call(nodes[part], nodes) in JOINS for part in item[2] if part >= node):
            return False
        return all(self.is_steady(fid, part, depth - 1) for part in item[2] if part < node)

    def _made(self, fid: FunctionId, item: Any, depth: int) -> bool:
        frame = self._evaluator.frame(fid)
        nodes: Any = frame.graph.nodes
        name = _name_of_call(item, nodes)
        if name in DATA_SIZED and (name != "where" or len(item[3]) == 1):
            return False
        if name in JOINS:
            listed = (nodes[part] for part in item[3] if nodes[part][0] == Op.SEQUENCE)
            return not any(GROWING.search(frame.node_name(part)) for each in listed for part in operands(each))
        callee = nodes[item[2]]
        sources = [callee[2]] if callee[0] == Op.ATTR else []
        return all(self.is_steady(fid, part, depth - 1) for part in (*sources, *item[3]) if frame.value(part).is_tensor)


def _name_of_call(item: Any, nodes: Any) -> str:
    if item[0] != Op.CALL:
        return ""
    callee = nodes[item[2]]
    return str(callee[3]) if callee[0] == Op.ATTR else ""


def is_fixed_index(index: Any, nodes: Any) -> bool:
    parts = [nodes[part] for part in index[3]] if index[0] == Op.SEQUENCE else [index]
    return all(
        part[0] == Op.CONST or (part[0] == Op.SLICE and all(nodes[edge][0] in (Op.CONST, Op.UNARY) for edge in operands(part)))
        for part in parts
    )
