"""What a call returns: functions and classes of the project by their summaries, torch by its table, the rest by convention."""
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op
from hostlint.facts.schema import FunctionFlag
from hostlint.model import Confidence
from hostlint.torch_ops import function as table_function
from hostlint.torch_ops import is_tensor_method
from hostlint.torch_ops import method as table_method
from hostlint.torch_ops.spec import Returns
from hostlint.values import annotated
from hostlint.values.arguments import Argument, Bound, bind
from hostlint.values.builtin_calls import BUILTINS, METHODS, WEIGHTS_ON_HOST
from hostlint.values.conventions import MODELS, UPLOADERS, conventional
from hostlint.values.detail import (
    Class,
    Device,
    Dtype,
    External,
    ExternalInstance,
    Function,
    Instance,
    Items,
    ListOf,
    Literal,
    Method,
    Module,
    Partial,
    Super,
)  # fmt: skip
from hostlint.values.lattice import NEVER, NUMPY, PYTHON, TENSOR, UNKNOWN, combine, element
from hostlint.values.results import has_large_shape, result
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.values.evaluator import Frame, Given

SMALL = 600  # nodes: longer functions are not run again for one call
MODULE_MOVERS = frozenset({"to", "cuda", "cpu", "eval", "train", "half", "float", "bfloat16", "requires_grad_", "double", "npu", "xpu"})
PARAMETERS = frozenset({"parameters", "buffers"})
NAMED_PARAMETERS = frozenset({"named_parameters", "named_buffers"})


def call(frame: Frame, node: Any) -> Value:
    _, line, callee_node, argument_nodes, keyword_nodes, starred = node
    callee = frame.values[callee_node]
    arguments = [Argument(frame.values[part], frame.node_name(part), part) for part in argument_nodes]
    keywords = [(name, Argument(frame.values[part], frame.node_name(part), part)) for name, part in keyword_nodes]
    return apply(frame, callee, frame.node_name(callee_node), arguments, keywords, starred, line)


def apply(
    frame: Frame, callee: Value, name: str, arguments: Sequence[Argument], keywords: Sequence[tuple[str, Argument]], starred: bool, line: int
) -> Value:
    last = name.rpartition(".")[2]
    if any(argument.value is NEVER for argument in arguments):
        return NEVER
    conventions = frame.evaluator.conventions
    if last in conventions.device_returns or last in conventions.upload_helpers:
        return conventional(f"`{last}` is named in the configuration")
    if UPLOADERS.search(last) and not isinstance(callee.detail, (Function, External)):
        return conventional(f"`{last}` moves what it is given to the device by its name")
    detail = callee.detail
    if isinstance(detail, External):
        return _library(detail.name, arguments, keywords, starred, line)
    if isinstance(detail, Method):
        return _method(frame, detail, arguments, keywords, starred, line)
    if isinstance(detail, Function):
        return _project(frame, detail, arguments, keywords, starred)
    if isinstance(detail, Class):
        return annotated.instance(detail.klass)
    if isinstance(detail, Instance):
        return _instance(frame, callee, detail, arguments, keywords, starred)
    if isinstance(detail, Partial):
        whole = [*(Argument(value) for value in detail.arguments), *arguments]
        return apply(frame, detail.function, name, whole, keywords, True, line)
    if isinstance(detail, ExternalInstance):
        return _module_output([a.value for a in arguments], last) if detail.classes[0].startswith("torch.nn.") else UNKNOWN
    if callee.is_device or (MODELS.search(last) and not last[:1].isupper()):
        return _module_output([*(a.value for a in arguments), *(a.value for _, a in keywords)], last)
    return UNKNOWN


def _module_output(values: Sequence[Value], name: str) -> Value:
    """A module's result: on the device with its inputs, or by convention where they are unknown."""
    best = combine([value for value in values if value.is_tensor] or list(values))
    if best.is_device:
        return Value(Place.DEVICE, best.why, min(best.confidence, Confidence.LIKELY))
    if best.place is Place.HOST or (values and all(value.is_host for value in values)):
        return TENSOR if best.place is Place.HOST else UNKNOWN
    return conventional(f"`{name}` is called as a model, whose results live on the device by convention")


def _library(dotted: str, arguments: Sequence[Argument], keywords: Sequence[tuple[str, Argument]], starred: bool, line: int) -> Value:
    special = BUILTINS.get(dotted)
    if special is not None:
        return special(arguments, dict(keywords))
    op = table_function(dotted)
    if (dotted.startswith("numpy.") and (op is None or op.returns is Returns.NUMPY)) or dotted.startswith("scipy."):
        return _array(dotted, arguments)
    if op is not None:
        return result(op, bind(op, arguments, keywords, starred), line)
    last = dotted.rpartition(".")[2]
    if last[:1].isupper():
        return Value(Place.PYTHON, detail=ExternalInstance((dotted,))) if dotted.startswith("torch.") else UNKNOWN
    if dotted.startswith("torch.nn.functional."):
        return replace(combine([a.value for a in arguments]), rank0=None, boolean=None, integer=None)
    return UNKNOWN


def _array(dotted: str, arguments: Sequence[Argument]) -> Value:
    made = dotted.rpartition(".")[2] in {"zeros", "ones", "empty", "full"} and bool(arguments)
    return replace(NUMPY, large=made and has_large_shape(arguments[0].value))


def _method(
    frame: Frame, detail: Method, arguments: Sequence[Argument], keywords: Sequence[tuple[str, Argument]], starred: bool, line: int
) -> Value:
    receiver, name = detail.receiver, detail.name
    if isinstance(receiver.detail, ExternalInstance):
        return _external_method(receiver, receiver.detail, name, arguments, keywords, starred, line)
    if name in PARAMETERS:
        return Value(Place.PYTHON, detail=ListOf(_parameter_value()))
    if name in NAMED_PARAMETERS:
        return Value(Place.PYTHON, detail=ListOf(Value(Place.PYTHON, detail=Items("tuple", (PYTHON, _parameter_value())))))
    if isinstance(receiver.detail, Instance):
        return receiver if name in MODULE_MOVERS and frame.evaluator.index.is_nn_module(receiver.detail.klass) else UNKNOWN
    if receiver.place is Place.UNKNOWN and name in LEGACY and (legacy := table_function(f"torch.cuda.{name}")) is not None:
        made = result(legacy, bind(legacy, arguments, keywords, starred), line)
        return replace(made, confidence=Confidence.LIKELY)
    if receiver.is_tensor or (receiver.place is Place.UNKNOWN and (name in CASTS or is_tensor_method(name) or name in _PLACING)):
        op = table_method(name)
        if op is None:
            return UNKNOWN
        base = receiver if receiver.is_tensor else replace(receiver, detail=None, place=Place.TENSOR if name in CASTS or is_tensor_method(name) else Place.UNKNOWN)
        return result(op, bind(op, [Argument(base), *arguments], keywords, starred), line)
    if receiver.place is Place.NUMPY:
        return Value(Place.PYTHON, rank0=True) if name == "item" else PYTHON if name == "tolist" else NUMPY
    special = METHODS.get(name) if receiver.place is Place.PYTHON or name in {"get", "items", "keys", "values"} else None
    if special is not None:
        return special(receiver, arguments)
    if receiver.place is Place.UNKNOWN and MODELS.search(name):
        return _module_output([*(a.value for a in arguments), *(a.value for _, a in keywords)], name)
    return PYTHON if receiver.place is Place.PYTHON and receiver.detail is not None else UNKNOWN


# Constructors of typed device tensors, also as attributes of an accelerator object.
LEGACY = frozenset(f"{kind}Tensor" for kind in ("Float", "Byte", "Long", "Int", "Half", "Double", "Bool", "BFloat16", "Short"))
# Casts without an argument: asked of an unknown receiver, they say that it is a tensor.
CASTS = frozenset({"float", "half", "double", "bfloat16", "long", "norm"})
# Methods that say where their result lives even where the receiver is unknown.
_PLACING = frozenset({"to", "cuda", "cpu", "numpy", "item", "tolist", "size", "dim", "numel", "detach"})


def _parameter_value() -> Value:
    return Value(Place.DEVICE, "it is a module's parameter", Confidence.LIKELY)


def _external_method(
    receiver: Value,
    detail: ExternalInstance,
    name: str,
    arguments: Sequence[Argument],
    keywords: Sequence[tuple[str, Argument]],
    starred: bool,
    line: int,
) -> Value:
    if name in {"compute", "forward"} and any(klass.endswith("Metric") for klass in detail.classes):
        return conventional("a metric's result lives on the device by convention")
    if name == "get_tensor" and WEIGHTS_ON_HOST in detail.classes:
        return Value(Place.HOST, "it is loaded from a file into host memory", Confidence.LIKELY)
    for klass in detail.classes:
        op = table_method(f"{klass.rpartition('.')[2]}.{name}")
        if op is not None:
            bound = bind(op, [Argument(receiver), *arguments], keywords, starred)
            made_with = {f"made with {given}": (Argument(value),) for given, value in detail.given}
            return result(op, Bound({**made_with, **bound.by_name}, starred), line)
    if name in MODULE_MOVERS:
        return receiver
    if detail.classes[0].startswith("torch.nn."):
        if name in PARAMETERS:
            return Value(Place.PYTHON, detail=ListOf(_parameter_value()))
        if name == "forward":
            return _module_output([argument.value for argument in arguments], detail.classes[0])
    return UNKNOWN


def _instance(
    frame: Frame, callee: Value, detail: Instance, arguments: Sequence[Argument], keywords: Sequence[tuple[str, Argument]], starred: bool
) -> Value:
    index = frame.evaluator.index
    is_module = index.is_nn_module(detail.klass)
    method = index.find_method(detail.klass, "forward") if is_module else None
    method = method or index.find_method(detail.klass, "__call__")
    if method is None:
        return UNKNOWN
    returned = _project(frame, Function(method, callee), arguments, keywords, starred)
    if is_module and returned.place in (Place.UNKNOWN, Place.TENSOR):
        return _module_output([*(a.value for a in arguments), *(a.value for _, a in keywords)], index.klass(detail.klass).name)
    return returned


def _project(
    frame: Frame, detail: Function, arguments: Sequence[Argument], keywords: Sequence[tuple[str, Argument]], starred: bool
) -> Value:
    """A project function's result: run for these arguments where it is short, else its general summary."""
    evaluator = frame.evaluator
    outline = evaluator.index.function(detail.function)
    declared = annotated.value_of(outline.returns, evaluator.index, *detail.function) if outline.returns else UNKNOWN
    if declared.is_host and declared.detail is None:
        return declared
    if outline.flags & (FunctionFlag.GENERATOR | FunctionFlag.ASYNC):
        return UNKNOWN if outline.flags & FunctionFlag.GENERATOR else declared
    if frame.fuel <= 0 or detail.function == frame.fid:
        evaluator.cut()
        return declared
    given = None if starred or len(evaluator.graph_of(detail.function).nodes) > SMALL else _given(frame, detail, arguments, keywords)
    value = evaluator.returned(detail.function, frame.fuel - 1, given)
    if value.place is Place.UNKNOWN or (value.place is Place.PYTHON and declared.is_tensor):
        return declared
    return replace(value, fresh=False) if value.fresh and not _is_builder(value) else value


def _is_builder(value: Value) -> bool:
    """A helper that hands on what it has just built: the caller still holds fresh host data."""
    return value.place is Place.HOST


def _given(frame: Frame, detail: Function, arguments: Sequence[Argument], keywords: Sequence[tuple[str, Argument]]) -> Given:
    outline = frame.evaluator.index.function(detail.function)
    offset = int(outline.owner >= 0 and not outline.flags & FunctionFlag.STATIC)
    named = dict(keywords)
    given = []
    for position, param in enumerate(outline.params):
        slot = position - offset
        if slot < 0:
            given.append(UNKNOWN)  # self: the frame knows its class
        elif slot < len(arguments) and param.kind == "positional":
            given.append(_simple(arguments[slot].value))
        elif param.name in named:
            given.append(_simple(named[param.name].value))
        else:
            given.append(_default(frame, detail, param.default))
    return tuple(given)


def _default(frame: Frame, detail: Function, node: int) -> Value:
    if node < 0:
        return UNKNOWN
    parent = frame.evaluator.index.function(detail.function).parent
    found = frame.evaluator.graph_of((detail.function[0], parent)).nodes[node]
    return Value(Place.PYTHON, detail=Literal(str(found[2]), found[3])) if found[0] == Op.CONST else UNKNOWN  # type: ignore[arg-type]


def _simple(value: Value) -> Value:
    """The argument without what would make every call different: containers of containers, long literals."""
    kept = (Dtype, Function, Class, Instance, External, ExternalInstance, Module, Super)
    detail = value.detail
    if detail is None or isinstance(detail, kept):
        return replace(value, fresh=False)
    if isinstance(detail, (Items, ListOf)):
        inner = element(detail)
        return Value(Place.PYTHON, value.why, value.confidence, detail=ListOf(replace(inner, detail=None, fresh=False)))
    if isinstance(detail, Device) or (isinstance(detail, Literal) and (detail.type_name in {"NoneType", "bool"} or isinstance(detail.value, str))):
        return replace(value, fresh=False)
    return replace(value, detail=None, fresh=False)
