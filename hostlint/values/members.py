"""What `base.name` is: attributes of tensors, of the project's objects and modules, and of things that the scan cannot see into."""
from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op
from hostlint.facts.schema import FunctionFlag
from hostlint.model import Confidence
from hostlint.torch_ops import method as table_method
from hostlint.values import annotated, fields, movers
from hostlint.values.conventions import DEVICE_ATTRIBUTES, ON_HOST, conventional
from hostlint.values.detail import (
    Class,
    Device,
    Dtype,
    External,
    ExternalInstance,
    Function,
    Instance,
    Items,
    Method,
    Module,
    Prepared,
    Super,
)
from hostlint.values.lattice import PYTHON, SHAPE, UNKNOWN, is_none, join_all
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from hostlint.index import ClassId
    from hostlint.values.evaluator import Frame

TENSOR_METADATA = frozenset({
    "shape", "ndim", "is_cuda", "is_cpu", "is_meta", "is_leaf", "is_sparse", "is_quantized", "is_nested", "requires_grad", "grad_fn",
    "layout", "names", "itemsize", "nbytes", "_version", "placements", "device_mesh",
})
RESULT_PARTS = {"values": 0, "indices": 1}  # of what `max(dim=)`, `sort` and `topk` return
LAYER_TENSORS = frozenset({"weight", "bias", "running_mean", "running_var", "num_batches_tracked"})  # what layers of torch hold
_RECURRENT = re.compile(r"torch\.nn\.(\w+\.)*(RNN|GRU|LSTM)(Base|Cell|CellBase)?")  # their `bias` is the flag they were made with
MAPPING_METHODS = frozenset({*dir(dict), "to", "data", "convert_to_tensors"})
SCHEDULES = frozenset({"timesteps"})
TENSOR_PARTS = frozenset({"T", "mT", "H", "mH", "data", "real", "imag", "grad", "values", "indices"})


def attribute(frame: Frame, base: Value, name: str) -> Value:
    """What `base.name` evaluates to; what is named as the host's copy is on the device at most possibly."""
    value = _attribute(frame, base, name)
    if value.place in (Place.UNKNOWN, Place.TENSOR) and ON_HOST.search(name):
        return replace(value, confidence=Confidence.POSSIBLE)
    return value


def _attribute(frame: Frame, base: Value, name: str) -> Value:
    if base.is_tensor:
        return _of_tensor(frame, base, name)
    detail = base.detail
    if name in SCHEDULES and isinstance(detail, Instance) and _is_host_schedule(frame, detail):
        return _schedule(frame, name)
    if isinstance(detail, (Instance, Super)):
        return _of_instance(frame, base, detail.klass, name, is_super=isinstance(detail, Super))
    if isinstance(detail, Class):
        return _of_class(frame, detail.klass, name)
    if isinstance(detail, External):
        return of_external(f"{detail.name}.{name}")
    if isinstance(detail, Module):
        return _of_module(frame, detail.file, name)
    if isinstance(detail, Items) and name in RESULT_PARTS and len(detail.items) > RESULT_PARTS[name]:
        return detail.items[RESULT_PARTS[name]]
    if isinstance(detail, ExternalInstance):
        return _of_external_instance(base, detail, name)
    if base.place is Place.UNKNOWN or detail is None:
        return _of_unknown(frame, base, name)
    return Value(Place.PYTHON, detail=Method(base, name))


def _of_tensor(frame: Frame, base: Value, name: str) -> Value:
    if name == "device":
        elsewhere = "host" if base.place is Place.TENSOR and frame.evaluator.drivers.drives(frame.fid) else "unknown"
        on = {Place.DEVICE: "device", Place.HOST: "host"}.get(base.place, elsewhere)
        return Value(Place.PYTHON, confidence=base.confidence, detail=Device(on, base.why))
    if name == "dtype":
        return Value(Place.PYTHON, detail=Dtype("?"))
    if name in TENSOR_METADATA or name.startswith("__"):
        return SHAPE if name == "shape" else PYTHON
    if name in TENSOR_PARTS:
        return replace(base, fresh=False, detail=None)
    if not base.is_device or table_method(name) is not None:
        return Value(Place.PYTHON, detail=Method(base, name))
    hung = base.bare or (name not in DEVICE_ATTRIBUTES and frame.evaluator.conventions.is_setting(name))
    if hung and not base.output:  # what code hangs on a tensor, and the settings of a module that was moved: numbers, lists, states
        return Value(Place.UNKNOWN, detail=Method(base, name))
    confidence = min(base.confidence, Confidence.LIKELY)  # a model's output object: its parts live where it does
    return replace(base, rank0=None, vector=False, boolean=None, integer=None, confidence=confidence, detail=None)


def of_external(dotted: str) -> Value:
    """A name inside a library: torch's dtypes, device names and everything else by its dotted name."""
    if dotted.startswith("torch.") and dotted.count(".") == 1:
        last = dotted[6:]
        if last.startswith(("float", "int", "uint", "bfloat", "complex")) or last in {"half", "double", "long", "bool", "short"}:
            return Value(Place.PYTHON, detail=Dtype(last))
    if dotted.startswith("math.") and dotted[5:] in {"pi", "e", "inf", "nan", "tau"}:
        return Value(Place.PYTHON, rank0=True)
    return Value(Place.PYTHON, detail=External(dotted))


def _of_module(frame: Frame, file: int, name: str) -> Value:
    from hostlint.values.nodes import of_symbol

    return of_symbol(frame, frame.evaluator.index.module_attribute(file, name))


def _of_class(frame: Frame, cid: ClassId, name: str) -> Value:
    method = frame.evaluator.index.find_method(cid, name)
    if method is not None:
        return Value(Place.PYTHON, detail=Function(method))
    return _stored(frame, cid, name)


def _of_instance(frame: Frame, base: Value, cid: ClassId, name: str, *, is_super: bool) -> Value:
    evaluator = frame.evaluator
    index = evaluator.index
    classes = index.mro(cid)[1:] if is_super else (cid,)
    method = next((found for klass in classes if (found := index.find_method(klass, name)) is not None), None)
    if method is not None:
        if index.function(method).flags & FunctionFlag.PROPERTY:
            return _property(frame, base, method)
        return Value(Place.PYTHON, detail=Function(method, annotated.instance(cid) if is_super else base))
    moved = isinstance(base.detail, Instance) and base.detail.moved
    key = (cid, name, frame.fuel, moved)
    kept = evaluator.remember(key, lambda: _stored(frame, cid, name, moved=moved))
    if moved:
        kept = movers.part(kept, name)
    if kept == UNKNOWN and index.is_nn_module(cid) and not index.attribute_stores(cid, name) and not index.inherits_layers(cid):
        return Value(Place.PYTHON, detail=Method(base, name))  # what nn.Module brings along: cuda(), parameters() …
    return kept


def _property(frame: Frame, base: Value, method: tuple[int, int]) -> Value:
    declared = annotated.value_of(frame.evaluator.index.function(method).returns, frame.evaluator.index, *method)
    if frame.fuel <= 0:
        return declared
    value = frame.evaluator.returned(method, frame.fuel - 1)
    return declared if value.place is Place.UNKNOWN else value


def _stored(frame: Frame, cid: ClassId, name: str, *, moved: bool = False) -> Value:
    """The join of every `self.name = …` of the class; buffers and parameters of a module live where the module was moved to."""
    evaluator, index = frame.evaluator, frame.evaluator.index
    declared = index.attribute_annotation(cid, name)
    known = annotated.value_of(declared[1], index, declared[0][0]) if declared is not None else UNKNOWN
    if index.is_nn_module(cid) and (buffer := _registered(frame, cid, name)) is not None:
        return buffer
    stores = index.attribute_stores(cid, name)
    if not stores:
        return _unstored(frame, cid, name, known)
    if frame.fuel <= 0:
        return known
    values: list[Value] = []
    first: list[Value] = []
    later: list[Value] = []  # what its movers store
    for fid, node, text in stores:
        storing = evaluator.frame(fid, frame.fuel - 1)
        value = storing.value(node)
        if not value.is_device and _advances(storing, node, name):
            continue  # it lives where it did
        if value.place is Place.UNKNOWN and text:
            value = annotated.value_of(text, index, fid[0], fid[1]) if not text.startswith("[]") else value
        on_move = not moved and movers.is_mover(index, fid)
        (first if index.function(fid).name == "__init__" else later if on_move else values).append(_kept(value, name))
    result = _of_stores(first, values)
    if later and result.place is Place.UNKNOWN:
        result = movers.if_moved(join_all(later))
    if is_none(result):
        result = UNKNOWN  # a placeholder that others fill
    if (result.place is Place.TENSOR and known.place is Place.UNKNOWN) or result.place is not Place.UNKNOWN:
        return result
    return fields.as_built(frame, cid, known) if known.place is not Place.UNKNOWN else _by_name(frame, name, result)


def _advances(frame: Frame, node: int, name: str) -> bool:
    """Whether what is stored is the attribute itself and something that does not move it: `self.n = self.n + 1`, `self.n += rows`."""
    item: Any = frame.graph.nodes[node] if 0 <= node < len(frame.graph.nodes) else (-1,)
    if item[0] != Op.BINOP:
        return False
    operands: list[Any] = [frame.graph.nodes[part] for part in item[3:5]]
    return any(part[0] == Op.ATTR and part[3] == name and frame.graph.nodes[part[2]][0] == Op.PARAM for part in operands)


def _of_stores(first: list[Value], later: list[Value]) -> Value:
    """What other methods store replaces what `__init__` starts with, where that is a tensor on both sides."""
    before, after = join_all(first), join_all(later)
    if after.is_device and before.place in (Place.HOST, Place.NUMPY, Place.TENSOR):
        return replace(after, confidence=min(after.confidence, Confidence.LIKELY))
    return join_all([*first, *later])


def _kept(value: Value, name: str) -> Value:
    why = f"`self.{name}`: {value.why}" if value.why and not value.why.startswith("`self.") else value.why
    return replace(value, fresh=False, why=why if value.is_tensor and len(why) < 160 else value.why)


def _unstored(frame: Frame, cid: ClassId, name: str, known: Value) -> Value:
    if known.place is not Place.UNKNOWN:
        return fields.as_built(frame, cid, known)
    external = tuple(sorted(frame.evaluator.index.external_bases(cid)))
    if name == "bias" and any(map(_RECURRENT.fullmatch, external)):
        return PYTHON
    if name in LAYER_TENSORS and any(base.startswith("torch.nn.") and base != "torch.nn.Module" for base in external):
        return Value(Place.DEVICE, f"`self.{name}` is a buffer or parameter, which moves with its module", Confidence.LIKELY, bare=True)
    if external and frame.evaluator.index.is_nn_module(cid) and name in {"device", "dtype"}:
        if name == "dtype":
            return Value(Place.PYTHON, detail=Dtype("?"))
        return Value(Place.PYTHON, confidence=Confidence.LIKELY, detail=Device("device"))
    return _by_name(frame, name, UNKNOWN)


def _registered(frame: Frame, cid: ClassId, name: str) -> Value | None:
    """A buffer or parameter of a module, which moves with it."""
    if name in frame.evaluator.registered_names(cid):
        return Value(Place.DEVICE, f"`self.{name}` is a buffer or parameter, which moves with its module", Confidence.LIKELY, bare=True)
    return None


def _of_external_instance(base: Value, detail: ExternalInstance, name: str) -> Value:
    if detail.classes[0].startswith("torch.nn."):
        if name == "bias" and _RECURRENT.fullmatch(detail.classes[0]):
            return PYTHON
        if name in LAYER_TENSORS:
            return Value(Place.DEVICE, f"`{name}` of a module", Confidence.LIKELY, bare=True)
        if name == "device":
            return Value(Place.PYTHON, detail=Device("unknown"))
    return Value(Place.PYTHON, detail=Method(base, name))


def _of_unknown(frame: Frame, base: Value, name: str) -> Value:
    if name == "device":
        return Value(Place.PYTHON, detail=Device("unknown"))
    if name in {"dtype", "weight_dtype", "compute_dtype"}:
        return Value(Place.PYTHON, detail=Dtype("?"))
    if name in TENSOR_METADATA:
        return SHAPE if name == "shape" else PYTHON
    if isinstance(base.detail, Prepared) and name not in MAPPING_METHODS:
        return Value(Place.TENSOR, confidence=Confidence.POSSIBLE)
    found = _by_name(frame, name, UNKNOWN)
    if found.place is not Place.UNKNOWN:
        return found
    if name in SCHEDULES:
        return _schedule(frame, name)
    return Value(Place.UNKNOWN, detail=Method(base, name))


def _is_host_schedule(frame: Frame, owner: Instance) -> bool:
    """Whether this file asks for another's timesteps without a device, whatever others ask of the same class."""
    return owner.klass[0] != frame.fid[0] and frame.evaluator.schedules_on_device(frame.fid[0]) is False


def _schedule(frame: Frame, name: str) -> Value:
    """A scheduler's timesteps: where the file's `set_timesteps` calls put them; without any such call, the device by convention."""
    if frame.evaluator.schedules_on_device(frame.fid[0]) is False:
        return Value(Place.HOST, "`set_timesteps` is called without a device", Confidence.LIKELY, vector=True, rank0=False)
    why = f"`.{name}` is a schedule, made on the device by convention"
    return Value(Place.DEVICE, why, Confidence.LIKELY, vector=True, rank0=False)


def _by_name(frame: Frame, name: str, otherwise: Value) -> Value:
    conventions = frame.evaluator.conventions
    if name in DEVICE_ATTRIBUTES or name in conventions.device_names:
        return conventional(f"`.{name}` is a device tensor by convention")
    return otherwise
