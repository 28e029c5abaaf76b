"""Fields of data classes that no method stores: what the class's own builders are given decides where they lie."""
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op
from hostlint.facts.schema import FunctionFlag
from hostlint.model import Confidence
from hostlint.values import annotated
from hostlint.values.conventions import ON_HOST, SHAPES, conventional
from hostlint.values.detail import Instance, Literal
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.index import ClassId
    from hostlint.values.evaluator import Frame

MEMBERS = frozenset({"labels", "loss_mask", "position_ids", "responses", "response_mask", "input_mask", "token_type_ids"})


def as_built(frame: Frame, cid: ClassId, declared: Value) -> Value:
    """A field that is declared as a tensor: the host's where all that the builders (`Meta.from_values(v)`) are given is."""
    if declared.place is not Place.TENSOR or frame.fuel <= 1:
        return declared
    given = [value for value in _given(frame, cid) if value.is_tensor]
    if not given or any(value.place is not Place.HOST for value in given):
        return declared
    return replace(declared, place=Place.HOST, why=given[0].why, confidence=Confidence.LIKELY)


def handed_down(frame: Frame, value: Value, base: int, name: str) -> Value:
    """A field that is declared as a tensor, of an object that a step's function was given: it lives with the step's tensors."""
    evaluator, detail = frame.evaluator, frame.value(base).detail
    if value.place is not Place.TENSOR or value.confidence is Confidence.POSSIBLE or not isinstance(detail, Instance):
        return value
    if evaluator.conventions.is_host_name(name):
        return value
    if not _is_given(frame, base) or evaluator.index.attribute_annotation(detail.klass, name) is None:
        return value
    if not evaluator.surroundings.is_hot(frame.fid) or evaluator.drivers.drives(frame.fid):
        return value
    sure = Confidence.POSSIBLE if SHAPES.search(name) else Confidence.LIKELY
    return replace(value, place=Place.DEVICE, why=f"`.{name}` is a tensor of an object that is handed down a step's path", confidence=sure)


def member(frame: Frame, value: Value, base: int, key: int) -> Value:
    """`data["attention_mask"]` of a dictionary that a step's function was given with its tensors: by its name a tensor of the step."""
    if value.place is not Place.UNKNOWN or value.confidence is Confidence.POSSIBLE or not is_entry(frame, base, key):
        return value
    evaluator, detail = frame.evaluator, frame.value(key).detail
    name = str(detail.value) if isinstance(detail, Literal) else ""
    if not (evaluator.conventions.is_device_name(name) or name in MEMBERS) or not is_with_tensors(frame):
        return value
    return conventional(f"`{name}` of the batch is a tensor that is handed down a step's path")


def is_entry(frame: Frame, base: int, key: int) -> bool:
    """Whether a node and a key are a dictionary that the function was given, and the name of one of its entries."""
    detail = frame.value(key).detail
    return isinstance(detail, Literal) and detail.type_name == "str" and _is_given(frame, base)


def is_with_tensors(frame: Frame) -> bool:
    """Whether the function stands on a step's path and is given tensors by its annotations."""
    evaluator = frame.evaluator
    if not evaluator.surroundings.is_hot(frame.fid) or evaluator.drivers.drives(frame.fid):
        return False
    declared = (param.annotation for param in frame.outline.params if param.annotation)
    return any(annotated.value_of(text, evaluator.index, *frame.fid).is_tensor for text in declared)


def _is_given(frame: Frame, node: int) -> bool:
    """Whether a node is a parameter, but not the method's own object."""
    item: Any = frame.graph.nodes[node]
    while item[0] == Op.REFINE:
        item = frame.graph.nodes[item[2]]
    own = frame.outline.owner >= 0 and not frame.outline.flags & FunctionFlag.STATIC
    return bool(item[0] == Op.PARAM and item[2] >= int(own))


def _given(frame: Frame, cid: ClassId) -> Iterator[Value]:
    """What the parameters of the class's builders hold: class methods that are called and hand tensors on to the class."""
    evaluator = frame.evaluator
    for number in evaluator.index.methods(cid).values():
        builder = (cid[0], number)
        if evaluator.index.function(builder).flags & FunctionFlag.CLASS and evaluator.surroundings.callers(builder):
            inner = evaluator.frame(builder, frame.fuel - 1)
            yield from (inner.value(place) for place, node in enumerate(inner.graph.nodes) if node[0] == Op.PARAM and node[2])


def unsure_of_host(frame: Frame, value: Value, owner: int) -> Value:
    """`pair.host_io.ids`: what hangs on a thing named as the host's is on the device at most possibly."""
    named = ON_HOST.search(frame.node_name(owner).rpartition(".")[2])
    return replace(value, confidence=Confidence.POSSIBLE) if named and _is_likely(value) else value


def unsure_of_rows(frame: Frame, value: Value, source: int) -> Value:
    """`for start, end, kind in layout["spans"]`: what a dictionary holds under a name and gives in rows to take apart is a list of tuples
    as often as a tensor."""
    nodes: Any = frame.graph.nodes
    if not _is_likely(value) or nodes[source][0] != Op.ITER or nodes[nodes[source][2]][0] != Op.INDEX:
        return value
    key = nodes[nodes[nodes[source][2]][3]]
    return replace(value, confidence=Confidence.POSSIBLE) if key[0] == Op.CONST and key[2] == "str" else value


def _is_likely(value: Value) -> bool:
    return value.is_device and value.confidence is Confidence.LIKELY
