"""What a call returns: functions and classes of the project by their summaries, torch by its table, the rest by convention."""
from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hostlint.model import Confidence
from hostlint.torch_ops import function as table_function
from hostlint.torch_ops import is_tensor_method
from hostlint.torch_ops import method as table_method
from hostlint.torch_ops.spec import Returns
from hostlint.values import annotated, project_calls
from hostlint.values.arguments import Argument, Bound, bind
from hostlint.values.builtin_calls import BUILTINS, METHODS, WEIGHTS_ON_HOST
from hostlint.values.conventions import MODELS, UPLOADERS, conventional
from hostlint.values.detail import (
    Class,
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
    Prepared,
)
from hostlint.values.lattice import NEVER, NUMBER, NUMPY, PYTHON, TENSOR, UNKNOWN, combine, device_name, join_all
from hostlint.values.results import has_large_shape, result
from hostlint.values.schedules import RETRIEVER, retrieved
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hostlint.torch_ops.spec import Op as TableOp
    from hostlint.values.detail import Detail
    from hostlint.values.evaluator import Frame

MODULE_MOVERS = frozenset({"to", "cuda", "cpu", "eval", "train", "half", "float", "bfloat16", "requires_grad_", "double", "npu", "xpu"})
MOVES = frozenset({"to", "cuda", "npu", "xpu"})
PARAMETERS = frozenset({"parameters", "buffers"})
ASKS = re.compile(r"_*(get|set|is|has|num|named|keys|items|empty|add|append|update|check|find|count|index)(_|$)")
PREPARES = re.compile(r"(^|_)(tokenizer|processor|feature_extractor|extractor|processing_class)(_?\d+)?$")
NAMED_PARAMETERS = frozenset({"named_parameters", "named_buffers"})


@dataclass(frozen=True, slots=True)
class Call:
    """One call: in which function, of what, by which name, with what."""

    frame: Frame
    callee: Value
    name: str  # the last part of the name that the callee was read through
    arguments: Sequence[Argument]
    keywords: Sequence[tuple[str, Argument]]
    starred: bool
    line: int

    def values(self) -> list[Value]:
        return [*(argument.value for argument in self.arguments), *(argument.value for _, argument in self.keywords)]

    def by_table(self, op: TableOp, receiver: Value | None = None) -> Value:
        """What an entry of the table returns for these arguments."""
        first = [Argument(receiver)] if receiver is not None else []
        return result(op, bind(op, [*first, *self.arguments], self.keywords, self.starred), self.line)


def call(frame: Frame, node: Any) -> Value:
    """What a CALL node evaluates to."""
    _, line, callee_node, argument_nodes, keyword_nodes, starred = node
    arguments = [Argument(frame.values[part], frame.node_name(part), part) for part in argument_nodes]
    keywords = [(name, Argument(frame.values[part], frame.node_name(part), part)) for name, part in keyword_nodes]
    name = frame.node_name(callee_node).rpartition(".")[2]
    value = _returned(Call(frame, frame.values[callee_node], name, arguments, keywords, starred, line))
    if value.place is Place.UNKNOWN and any(name == "device" and _is_host(argument.value) for name, argument in keywords):
        return Value(Place.TENSOR, confidence=Confidence.POSSIBLE)  # nobody knows what was made, but it was asked for on the host
    if value.place is Place.UNKNOWN and PREPARES.search(name) and "return_tensors" in (given := dict(keywords)) and "device" not in given:
        return Value(Place.UNKNOWN, confidence=Confidence.POSSIBLE, detail=Prepared())
    return value


def _is_host(value: Value) -> bool:
    return value.detail is not None and device_name(value.detail) == "host"


def _returned(made: Call) -> Value:
    if any(argument.value is NEVER for argument in made.arguments):
        return NEVER
    conventions = made.frame.evaluator.conventions
    if made.name in conventions.device_returns or made.name in conventions.upload_helpers:
        return conventional(f"`{made.name}` is named in the configuration")
    detail = made.callee.detail
    if UPLOADERS.search(made.name) and not isinstance(detail, (Function, External)):
        return conventional(f"`{made.name}` moves what it is given to the device by its name")
    by_detail = _BY_DETAIL.get(type(detail))
    if by_detail is not None:
        return by_detail(made, detail)
    if made.callee.is_device and ASKS.match(made.name):  # a method of an object that is taken for a model's output
        return UNKNOWN
    if made.callee.is_device or (MODELS.search(made.name) and not made.name[:1].isupper()):
        return _module_output(made.values(), made.name)
    return UNKNOWN


def _module_output(values: Sequence[Value], name: str) -> Value:
    """A module's result: on the device with its inputs, or by convention where they are unknown."""
    best = combine([value for value in values if value.is_tensor] or list(values))
    if best.is_device:
        return Value(Place.DEVICE, best.why, min(best.confidence, Confidence.LIKELY), output=True)
    if best.place is Place.HOST or (values and all(value.is_host for value in values)):
        return TENSOR if best.place is Place.HOST else UNKNOWN
    return conventional(f"`{name}` is called as a model, whose results live on the device by convention")


def _library(made: Call, detail: External) -> Value:
    dotted = detail.name
    if dotted == "builtins.getattr":
        return _by_name(made)
    special = BUILTINS.get(dotted)
    if special is not None:
        return special(made.arguments, dict(made.keywords))
    op = table_function(dotted)
    if (dotted.startswith("numpy.") and (op is None or op.returns is Returns.NUMPY)) or dotted.startswith("scipy."):
        return _array(dotted, made.arguments)
    if op is not None:
        return made.by_table(op)
    last = dotted.rpartition(".")[2]
    if last == RETRIEVER:
        return retrieved(made.arguments, dict(made.keywords))
    if last[:1].isupper():
        return Value(Place.PYTHON, detail=ExternalInstance((dotted,))) if dotted.startswith("torch.") else UNKNOWN
    if dotted.startswith("torch.nn.functional."):
        return replace(combine([argument.value for argument in made.arguments]), rank0=None, boolean=None, integer=None)
    return UNKNOWN


def _by_name(made: Call) -> Value:
    """`getattr(pool, "table", None)`: the attribute of an object that is known, or the default."""
    from hostlint.values.members import attribute

    if not 2 <= len(made.arguments) <= 3:
        return UNKNOWN
    base, name = made.arguments[0].value, made.arguments[1].value.detail
    if not isinstance(base.detail, (Instance, Class, Module)) or not isinstance(name, Literal) or not isinstance(name.value, str):
        return UNKNOWN
    return join_all([attribute(made.frame, base, name.value), *(argument.value for argument in made.arguments[2:])])


def _array(dotted: str, arguments: Sequence[Argument]) -> Value:
    made = dotted.rpartition(".")[2] in {"zeros", "ones", "empty", "full"} and bool(arguments)
    return replace(NUMPY, large=made and has_large_shape(arguments[0].value))


def _method(made: Call, detail: Method) -> Value:
    receiver, name = detail.receiver, detail.name
    if receiver.confidence is Confidence.POSSIBLE and not receiver.is_host and _moves(made, name):
        receiver = UNKNOWN  # that it was likely the host's says nothing of what was moved
    unknown = receiver.place is Place.UNKNOWN
    if isinstance(receiver.detail, ExternalInstance):
        return _external_method(made, receiver, receiver.detail, name)
    if name in PARAMETERS or name in NAMED_PARAMETERS:
        return _parameters(named=name in NAMED_PARAMETERS)
    if isinstance(receiver.detail, Instance):
        return receiver if name in MODULE_MOVERS and made.frame.evaluator.index.is_nn_module(receiver.detail.klass) else UNKNOWN
    if unknown and name in LEGACY and (legacy := table_function(f"torch.cuda.{name}")) is not None:
        return replace(made.by_table(legacy), confidence=Confidence.LIKELY)
    if receiver.is_tensor or (unknown and (_says_tensor(name) or name in _PLACING)):
        return _tensor_method(made, receiver, name)
    if receiver.place is Place.NUMPY:
        return NUMBER if name == "item" else PYTHON if name == "tolist" else NUMPY
    return _object_method(made, receiver, name)


def _moves(made: Call, name: str) -> bool:
    """Whether a method's call names a place to move to, rather than a dtype."""
    given = [*made.arguments[:1], *(value for keyword, value in made.keywords if keyword == "device")]
    return name in MOVES and (name != "to" or any(not isinstance(each.value.detail, Dtype) for each in given))


def _says_tensor(name: str) -> bool:
    """Whether only tensors have such a method, so that an unknown receiver is one."""
    return name in CASTS or is_tensor_method(name)


def _tensor_method(made: Call, receiver: Value, name: str) -> Value:
    op = table_method(name)
    if op is None:
        return UNKNOWN
    if not receiver.is_tensor:
        receiver = replace(receiver, detail=None, place=Place.TENSOR if _says_tensor(name) else Place.UNKNOWN)
    return made.by_table(op, receiver)


def _object_method(made: Call, receiver: Value, name: str) -> Value:
    is_python = receiver.place is Place.PYTHON
    special = METHODS.get(name) if is_python or name in {"get", "items", "keys", "values"} else None
    if special is not None:
        return special(receiver, made.arguments)
    if receiver.place is Place.UNKNOWN and MODELS.search(name):
        return _module_output(made.values(), name)
    return PYTHON if is_python and receiver.detail is not None else UNKNOWN


# Constructors of typed device tensors, also as attributes of an accelerator object.
LEGACY = frozenset(f"{kind}Tensor" for kind in ("Float", "Byte", "Long", "Int", "Half", "Double", "Bool", "BFloat16", "Short"))
# Casts without an argument: asked of an unknown receiver, they say that it is a tensor.
CASTS = frozenset({"float", "half", "double", "bfloat16", "long", "norm"})
# Methods that say where their result lives even where the receiver is unknown.
_PLACING = frozenset({"to", "cuda", "cpu", "numpy", "item", "tolist", "size", "dim", "numel", "detach"})


def _parameters(*, named: bool = False) -> Value:
    one = Value(Place.DEVICE, "it is a module's parameter", Confidence.LIKELY, bare=True)
    return Value(Place.PYTHON, detail=ListOf(Value(Place.PYTHON, detail=Items("tuple", (PYTHON, one))) if named else one))


def _external_method(made: Call, receiver: Value, detail: ExternalInstance, name: str) -> Value:
    if name in {"compute", "forward"} and any(klass.endswith("Metric") for klass in detail.classes):
        return conventional("a metric's result lives on the device by convention")
    if name == "get_tensor" and WEIGHTS_ON_HOST in detail.classes:
        return Value(Place.HOST, "it is loaded from a file into host memory", Confidence.LIKELY)
    for klass in detail.classes:
        op = table_method(f"{klass.rpartition('.')[2]}.{name}")
        if op is not None:
            bound = bind(op, [Argument(receiver), *made.arguments], made.keywords, made.starred)
            made_with = {f"made with {given}": (Argument(value),) for given, value in detail.given}
            return result(op, Bound({**made_with, **bound.by_name}, made.starred), made.line)
    if name in MODULE_MOVERS:
        return receiver
    if detail.classes[0].startswith("torch.nn."):
        if name in PARAMETERS:
            return _parameters()
        if name == "forward":
            return _module_output([argument.value for argument in made.arguments], detail.classes[0])
    return UNKNOWN


def _class(made: Call, detail: Class) -> Value:
    return annotated.instance(detail.klass)


def _partial(made: Call, detail: Partial) -> Value:
    given = [Argument(value) for value in detail.arguments]
    return _returned(replace(made, callee=detail.function, arguments=[*given, *made.arguments], starred=True))


def _external_instance(made: Call, detail: ExternalInstance) -> Value:
    if not detail.classes[0].startswith("torch.nn."):
        return UNKNOWN
    return _module_output([argument.value for argument in made.arguments], made.name)


def _instance(made: Call, detail: Instance) -> Value:
    index = made.frame.evaluator.index
    is_module = index.is_nn_module(detail.klass)
    method = index.find_method(detail.klass, "forward") if is_module else None
    method = method or index.find_method(detail.klass, "__call__")
    if method is None:
        return UNKNOWN
    returned = project_calls.returned(made, Function(method, made.callee))
    if is_module and returned.place in (Place.UNKNOWN, Place.TENSOR):
        return _module_output(made.values(), index.klass(detail.klass).name)
    return returned


# Each takes its own subclass of Detail; the table guarantees the match, which types cannot say.
_BY_DETAIL: dict[type[Detail | None], Callable[[Call, Any], Value]] = {
    External: _library, Method: _method, Function: project_calls.returned, Class: _class, Instance: _instance, Partial: _partial,
    ExternalInstance: _external_instance,
}  # fmt: skip
