"""Numbers that the host has without asking the device, and the tensors of one element that are made of them."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op, operands
from hostlint.values.detail import External
from hostlint.values.value import Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.values.evaluator import Frame

MAKERS = frozenset({"tensor", "as_tensor", "scalar_tensor", "full", "zeros", "ones", "empty", "ones_like", "zeros_like", "full_like"})
TYPED = frozenset({"Tensor", "LongTensor", "IntTensor", "FloatTensor", "DoubleTensor", "BoolTensor", "ByteTensor", "ShortTensor"})
HOLDERS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer", "torch.nn.parameter.Buffer"})
MOVES = frozenset({"to", "cuda", "long", "int", "float", "double", "clone", "detach", "contiguous"})
READS = frozenset({"item", "tolist", "int", "float", "bool", "cpu", "numpy", "nonzero", "any", "all"})


def is_given(frame: Frame, node: int) -> bool:
    """Whether a node is a number that the host has without asking the device, or a tensor made of one."""
    nodes: Sequence[Any] = frame.graph.nodes
    seen: set[int] = set()
    queue = [node]
    while queue:
        node = queue.pop()
        if node in seen:
            continue
        seen.add(node)
        item = nodes[node]
        value = frame.value(node)
        if item[0] in (Op.BINOP, Op.UNARY, Op.REFINE, Op.PHI, Op.SEQUENCE):
            queue.extend(operands(item))
        elif item[0] == Op.CALL:
            if value.place is Place.PYTHON and not _asks_device(frame, item):
                continue
            content = _content(frame, item)
            if content is None:
                return False
            queue.extend(content)
        elif value.place is not Place.PYTHON:
            return False
    return True


def _asks_device(frame: Frame, item: Any) -> bool:
    """Whether a call reads a tensor to give its number."""
    callee: Any = frame.graph.nodes[item[2]]
    name = callee[3] if callee[0] == Op.ATTR else callee[2] if callee[0] == Op.GLOBAL else ""
    parts = [*([callee[2]] if callee[0] == Op.ATTR else []), *item[3]]
    return name in READS and any(frame.value(part).place not in (Place.PYTHON, Place.NUMPY) for part in parts)


def _content(frame: Frame, item: Any) -> list[int] | None:
    """What a constructor's tensor holds; None for other calls."""
    detail = frame.value(item[2]).detail
    callee: Any = frame.graph.nodes[item[2]]
    if isinstance(detail, External):
        name = detail.name.rpartition(".")[2]
        if detail.name.startswith("torch.") and name in MAKERS | TYPED:
            given = item[3][1:] if name.endswith("_like") or name == "full" else item[3]
            return [*given, *(value for key, value in item[4] if key in ("data", "fill_value"))]
        return [item[3][0]] if detail.name in HOLDERS and item[3] else None
    if callee[0] == Op.ATTR and callee[3] in MOVES:
        return [callee[2]]
    return None


def is_one_element(frame: Frame, node: int) -> bool:
    """Whether a node is a tensor of one element that is made of a number of the host's."""
    nodes: Sequence[Any] = frame.graph.nodes
    item = nodes[node]
    while item[0] == Op.CALL:
        callee = nodes[item[2]]
        detail = frame.value(item[2]).detail
        if isinstance(detail, External):
            if detail.name in HOLDERS and item[3]:
                node = item[3][0]
            else:
                return detail.name.startswith("torch.") and _makes_one(frame, detail.name.rpartition(".")[2], item)
        elif callee[0] == Op.ATTR and callee[3] in MOVES:
            node = callee[2]
        else:
            return False
        item = nodes[node]
    return False


def _makes_one(frame: Frame, name: str, item: Any) -> bool:
    nodes: Sequence[Any] = frame.graph.nodes
    size = next((value for key, value in item[4] if key == "size"), -1)
    if name in ("zeros", "ones", "empty", "full"):
        sizes = item[3][:1] if name == "full" else item[3]
        sizes = [size] if size >= 0 else sizes
        filled = name != "full" or is_given(frame, item[3][1] if len(item[3]) > 1 else dict(item[4]).get("fill_value", sizes[0]))
        flat = [part for one in sizes for part in (nodes[one][3] if nodes[one][0] == Op.SEQUENCE else (one,))]
        return bool(sizes) and filled and all(nodes[part][0] == Op.CONST and nodes[part][3] == 1 for part in flat)
    content = item[3][:1] or [value for key, value in item[4] if key == "data"]
    if (name not in ("tensor", "as_tensor", "scalar_tensor") and name not in TYPED) or len(content) != 1:
        return False
    data = nodes[content[0]]
    if data[0] == Op.SEQUENCE:
        return len(data[3]) == 1 and nodes[data[3][0]][0] != Op.SEQUENCE and is_given(frame, data[3][0])
    if name in TYPED:
        return bool(data[0] == Op.CONST and data[3] == 1)  # a size
    value = frame.value(content[0])
    return value.place is Place.PYTHON and bool(value.rank0) and is_given(frame, content[0])
