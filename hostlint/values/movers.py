"""Objects that can be moved: what their own `to(device)` stores says where they go when somebody calls it, not where they are."""
from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hostlint.facts.calls import UPLOAD_HELPER
from hostlint.facts.graph import Op
from hostlint.model import Confidence
from hostlint.values.conventions import conventional
from hostlint.values.detail import Function, Instance, Items, ListOf, Mapping
from hostlint.values.lattice import device_name, element
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.index import ClassId, FunctionId, ProjectIndex
    from hostlint.values.evaluator import Frame

MOVERS = re.compile(r"_*(to|cuda|npu|xpu|(move|send|copy|transfer)?_?to_?(device|cuda|gpu|accelerator)?)_*")
BATCH = re.compile(r"(^|[._])(batch|(mini|micro)_?batch|inputs?|encodings?|encoded|tokenized|samples?|examples?|items?)$", re.IGNORECASE)
TO_HOST = re.compile(r"_*((move|send|copy|transfer)?_?to_?)?(cpu|host)_*")


def is_mover(index: ProjectIndex, fid: FunctionId) -> bool:
    """Whether a method moves its own object: modules are left out, which are moved by convention."""
    owner = index.owner(fid)
    return owner is not None and bool(MOVERS.fullmatch(index.function(fid).name)) and not index.is_nn_module(owner)


def can_move(index: ProjectIndex, cid: ClassId) -> bool:
    """Whether objects of a class have a method that moves them."""
    return any(is_mover(index, (klass[0], number)) for klass in index.mro(cid) for number in index.methods(klass).values())


def after_move(value: Value, method: FunctionId, arguments: Sequence[Value], index: ProjectIndex) -> Value:
    """What `batch.to(device)` returns: an object whose parts lie where they were sent."""
    back = bool(TO_HOST.fullmatch(index.function(method).name))
    if not isinstance(value.detail, Instance) or not (back or is_mover(index, method)):
        return value
    to_host = back or any(given.detail is not None and device_name(given.detail) == "host" for given in arguments)
    return replace(value, detail=replace(value.detail, moved=not to_host))


def part(value: Value, name: str) -> Value:
    """A tensor that an object which was moved holds."""
    if value.place is not Place.TENSOR or value.confidence is Confidence.POSSIBLE:
        return value
    return replace(value, place=Place.DEVICE, why=f"`.{name}` was moved to the device with its object", confidence=Confidence.LIKELY)


def if_moved(value: Value) -> Value:
    """What a mover stores, asked of an object that nobody is seen to move: it lies there at most possibly."""
    return replace(value, confidence=Confidence.POSSIBLE)


def as_passed(declared: Value, passed: Value) -> Value:
    """A parameter that is declared as an object of the project: moved where a call passes one that was."""
    detail = passed.detail
    return passed if isinstance(detail, Instance) and detail.moved and isinstance(declared.detail, Instance) else declared


def in_place(frame: Frame, base: Value, call: int, named: str) -> Value:
    """What a statement left of the object that it moved: `batch.to(device)`, `batch_to_device(batch, device)`."""
    node: Any = frame.graph.nodes[call]
    result, detail, name = frame.value(call), frame.value(node[2]).detail, frame.node_name(node[2]).rpartition(".")[2]
    if base.is_tensor or base.place is Place.NUMPY:
        return base
    if isinstance(base.detail, Instance):
        return result if isinstance(result.detail, Instance) and result.detail.klass == base.detail.klass else base
    if isinstance(detail, Function):
        return _after_helper(base, name) if frame.fuel > 0 and _stores_moved(frame, detail) else base
    if name in {"to", "cuda"}:  # of what it was called on: nobody drops what a tensor's `to` returns
        return result if result.is_device and BATCH.search(named) else base
    return _after_helper(base, name) if UPLOAD_HELPER.match(name) else base


def _after_helper(base: Value, name: str) -> Value:
    moved = conventional(f"`{name}` moves it to the device in place")
    if isinstance(base.detail, Mapping):
        return replace(base, detail=Mapping(tuple((key, _sent(value, moved)) for key, value in base.detail.items)))
    if isinstance(base.detail, (Items, ListOf)):
        one = element(base.detail)
        return replace(base, detail=ListOf(moved if one.place is Place.UNKNOWN else _sent(one, moved), base.detail.kind))
    return moved


def _sent(value: Value, moved: Value) -> Value:
    return replace(value, place=moved.place, why=moved.why, confidence=moved.confidence) if value.is_tensor else value


def _stores_moved(frame: Frame, helper: Function) -> bool:
    """Whether a function of the project writes what it moved to the device back into what it is given."""
    offset = int(helper.receiver is not None)
    params = frame.evaluator.index.function(helper.function).params[offset:]
    inner = frame.evaluator.frame(helper.function, frame.fuel - 1)
    stores: list[Any] = [node for node in inner.graph.nodes if node[0] == Op.STORE]
    return bool(params) and any(inner.node_name(node[2]) == params[0].name and inner.value(node[4]).is_device for node in stores)
