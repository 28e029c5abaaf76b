"""Operators that may wait: truth tests, membership, formatting and subscripts, each an `op.*` entry of the table."""
from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op, Site
from hostlint.model import Confidence
from hostlint.torch_ops import function as table_function
from hostlint.values.arguments import Argument, Bound
from hostlint.values.at_calls import likely_device
from hostlint.values.conventions import IDENTIFIERS, MASK_NAMES, NUMBERS_AND_FLAGS
from hostlint.values.detail import Device, Items, ListOf, Literal, Mapping
from hostlint.values.judging import Meeting, judge
from hostlint.values.lattice import UNKNOWN, element
from hostlint.values.parameters import is_module_call
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from hostlint.values.evaluator import Frame

KEYS = re.compile(r"(^|_)(names?|keys?|attr|field|tag|path|text|mode|kind|prefix|suffix|k)$")
SINGLE = re.compile(r"(^|_)(loss|norm|timestep|sigma|scale|found_inf|overflow|finite|done|finished|t|s)$")  # names of one number
NUMBERS = re.compile(r"%[-+ #0-9.]*[diouxXeEfFgG]")
TEXTS = re.compile(r"%[-0-9.]*[sra]")


def operator(op_name: str, site: Site, call: str, **operands: Value) -> Meeting | None:
    """The wait of an operator, by the table's entry of that name."""
    op = table_function(op_name)
    assert op is not None, op_name
    return judge(op, Bound({name: (Argument(value),) for name, value in operands.items()}), site, call)


def at_truth(frame: Frame, site: Site) -> Meeting | None:
    """`if x`, `while x`, `assert x`, `not x`, `0 < x < 1` …"""
    node: Any = frame.graph.nodes[site.node]
    if node[0] == Op.COMPARE and len(node[2]) > 1:
        value = next((v for part in node[3] if (v := frame.value(part)).is_device), UNKNOWN)
    else:
        value = _last(frame, site.node)
        if _is_whole(frame, value, site.node):
            return None
        if value.place is Place.TENSOR and value.boolean and not any(map(NUMBERS_AND_FLAGS.match, IDENTIFIERS.findall(site.subject)[:1])):
            value = likely_device(frame, site, value, "truth")
        elif value.place is Place.UNKNOWN and _is_reduction(frame, node) and is_module_call(frame, frame.outline):
            value = likely_device(frame, site, replace(value, place=Place.TENSOR), "truth")
    return operator("op.truth", site, site.detail, self=value)


def _last(frame: Frame, node: int) -> Value:
    """The value whose truth is read: of `a and b` that was kept under a name the last, for the others were read where it was made; of one
    that is a mask in some round of a loop, or in one arm of a choice, the mask."""
    value = frame.value(node)
    parts: Any = frame.graph.nodes[node]
    if value.is_device or parts[0] not in (Op.BOOL, Op.PHI):
        return value
    operands = parts[3][-1:] if parts[0] == Op.BOOL else parts[2]
    masks = (each for part in operands if (each := frame.value(part)).is_device and each.boolean)
    return next(masks, value)


def _is_whole(frame: Frame, value: Value, node: int) -> bool:
    """A name that convention takes for a whole tensor: the truth test would fail if it were one, so it is a flag, a list or None."""
    if not value.is_device or value.confidence is Confidence.CERTAIN or value.rank0 or value.boolean or value.bare:
        return False
    parts: Any = frame.graph.nodes[node]
    if parts[0] == Op.INDEX:  # `caches[0]`, but not `finished[i]`
        name = frame.node_name(parts[2]).rpartition(".")[2]
        return not (MASK_NAMES.search(name) or SINGLE.search(name.removesuffix("s")))
    if parts[0] not in (Op.PARAM, Op.ATTR, Op.GLOBAL, Op.FREE, Op.UNPACK):
        return False
    return not SINGLE.search(frame.node_name(node).rpartition(".")[2])


def _is_reduction(frame: Frame, node: Any) -> bool:
    """`x.any()` or `x.all()`, which only arrays and tensors have."""
    if node[0] != Op.CALL:
        return False
    callee: Any = frame.graph.nodes[node[2]]
    return callee[0] == Op.ATTR and callee[3] in {"any", "all"}


def at_member(frame: Frame, site: Site) -> Meeting | None:
    """`x in y`."""
    node: Any = frame.graph.nodes[site.node]
    item, container = frame.value(node[3][0]), frame.value(node[3][-1])
    if _is_key(item, frame.node_name(node[3][0])):
        return None
    return operator("op.contains", site, "in", item=item, container=container)


def _is_key(item: Value, name: str) -> bool:
    """Whether something is looked for that no tensor holds, so that the container is a dictionary or the like."""
    if item.place is Place.PYTHON and not item.rank0 and not isinstance(item.detail, (Items, ListOf)):
        return True  # a string, None, an object
    return item.place is Place.UNKNOWN and bool(KEYS.search(name.rpartition(".")[2]))


def at_format(frame: Frame, site: Site) -> Meeting | None:
    """`f"{x}"`."""
    return operator("op.format", site, site.detail, self=frame.value(site.node))


def at_percent(frame: Frame, site: Site) -> Meeting | None:
    """`"…" % x`."""
    node: Any = frame.graph.nodes[site.node]
    text = frame.value(node[3]).detail
    number = isinstance(text, Literal) and isinstance(text.value, str) and NUMBERS.search(text.value) and not TEXTS.search(text.value)
    name = "op.percent_number" if number else "op.percent"
    return operator(name, site, "%", self=frame.value(node[3]), value=frame.value(node[4]))


def at_load(frame: Frame, site: Site) -> Meeting | None:
    """`x[i]`."""
    node: Any = frame.graph.nodes[site.node]
    return _indexed(frame, site, "op.getitem", node[2], node[3], None)


def at_write(frame: Frame, site: Site) -> Meeting | None:
    """`x[i] = v`."""
    node: Any = frame.graph.nodes[site.node]
    return _indexed(frame, site, "op.setitem", node[2], node[3], frame.value(node[4]))


def at_augmented(frame: Frame, site: Site) -> Meeting | None:
    """`x[i] op= v`."""
    node: Any = frame.graph.nodes[site.node]
    return _indexed(frame, site, "op.augsetitem", node[2], node[3], frame.value(node[4]))


def _indexed(frame: Frame, site: Site, op_name: str, base_node: int, index_node: int, value: Value | None) -> Meeting | None:
    """An index is judged part by part: slices by their bounds, the others by what they are."""
    index: Any = frame.graph.nodes[index_node]
    parts = index[3] if index[0] == Op.SEQUENCE and index[2] == "tuple" else (index_node,)
    base = frame.value(base_node)
    for part in parts:
        node: Any = frame.graph.nodes[part]
        if node[0] == Op.STAR:  # several parts, of which nothing is known one by one
            continue
        if node[0] == Op.SLICE:
            bounds = {name: frame.value(n) for name, n in zip(("start", "stop", "step"), node[2:5], strict=True) if n >= 0}
            found = operator("op.slice", site, "slice", **bounds)
        else:
            found = _at_index(op_name, site, base, _as_mask(frame, part), value, alone=len(parts) == 1)
        if found is not None:
            return found
    return None


def _as_mask(frame: Frame, node: int) -> Value:
    """An index of unknown type whose name says that it is a mask is likely one."""
    index, name = frame.value(node), frame.node_name(node).rpartition(".")[2]
    if index.is_device and index.boolean is None and index.integer is None and index.rank0 is not True and MASK_NAMES.search(name):
        return replace(index, boolean=True, confidence=min(index.confidence, Confidence.LIKELY))
    return index


def _at_index(op_name: str, site: Site, base: Value, index: Value, value: Value | None, *, alone: bool) -> Meeting | None:
    text = isinstance(index.detail, Literal) and index.detail.type_name == "str"  # a dictionary's key, whatever it was taken for
    if text or isinstance(base.detail, (Mapping, Device)):
        return None
    if isinstance(index.detail, (Items, ListOf)) and index.detail.kind != "list":
        part = element(index.detail)  # one tensor for each dimension, as `nonzero(as_tuple=True)` gives them
        return _at_index(op_name, site, base, part, value, alone=False) if part.place is Place.HOST else None
    if index.is_device and base.place in (Place.UNKNOWN, Place.TENSOR) and (index.boolean or index.integer) and not index.rank0:
        base = replace(base, place=Place.DEVICE, confidence=Confidence.LIKELY)  # a device mask or index needs a device tensor
    operands = {"self": base, "index": index}
    if value is not None:
        operands["value"] = value
    op = table_function(op_name)
    assert op is not None
    single = alone and base.vector and bool(index.rank0) and index.place is Place.PYTHON
    return judge(op, Bound({name: (Argument(v),) for name, v in operands.items()}), site, "[]", element=single)
