"""What a call of a function of the project returns: by a run for its arguments where that is short, else by the function's summary."""
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hostlint.facts.graph import Op
from hostlint.facts.schema import FunctionFlag
from hostlint.values import annotated, movers
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
    Module,
    Super,
)
from hostlint.values.lattice import UNKNOWN, element
from hostlint.values.parameters import constant
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from hostlint.values.calls import Call
    from hostlint.values.evaluator import Frame, Given

SMALL = 600  # nodes: longer functions are not run again for one call


def returned(made: Call, detail: Function) -> Value:
    """The function's result: run for these arguments where it is short, else its general summary."""
    frame, evaluator = made.frame, made.frame.evaluator
    outline = evaluator.index.function(detail.function)
    declared = annotated.value_of(outline.returns, evaluator.index, *detail.function) if outline.returns else UNKNOWN
    if declared.is_host and declared.detail is None:
        return declared
    if outline.flags & (FunctionFlag.GENERATOR | FunctionFlag.ASYNC):
        return UNKNOWN if outline.flags & FunctionFlag.GENERATOR else declared
    if frame.fuel <= 0 or detail.function == frame.fid:
        return declared
    general = made.starred or len(evaluator.graph_of(detail.function).nodes) > SMALL
    given = None if general else _given(made, detail)
    value = evaluator.returned(detail.function, frame.fuel - 1, given)
    value = movers.after_move(value, detail.function, made.values(), evaluator.index)
    if value.place is Place.UNKNOWN or (value.place is Place.PYTHON and declared.is_tensor):
        return declared
    return replace(value, fresh=False) if value.fresh and not _is_builder(value) else value


def _is_builder(value: Value) -> bool:
    """A helper that hands on what it has just built: the caller still holds fresh host data."""
    return value.place is Place.HOST


def _given(made: Call, detail: Function) -> Given:
    outline = made.frame.evaluator.index.function(detail.function)
    offset = int(outline.owner >= 0 and not outline.flags & FunctionFlag.STATIC)
    named = dict(made.keywords)
    given = []
    for position, param in enumerate(outline.params):
        slot = position - offset
        if slot < 0:
            given.append(UNKNOWN)  # self: the frame knows its class
        elif slot < len(made.arguments) and param.kind == "positional":
            given.append(_simple(made.arguments[slot].value))
        elif param.name in named:
            given.append(_simple(named[param.name].value))
        else:
            given.append(_default(made.frame, detail, param.default))
    return tuple(given)


def _default(frame: Frame, detail: Function, node: int) -> Value:
    if node < 0:
        return UNKNOWN
    parent = frame.evaluator.index.function(detail.function).parent
    found = frame.evaluator.graph_of((detail.function[0], parent)).nodes[node]
    return constant(found) if found[0] == Op.CONST else UNKNOWN


def _simple(value: Value) -> Value:
    """The argument without what would make every call different: containers of containers, long literals."""
    kept = (Dtype, Function, Class, Instance, External, ExternalInstance, Module, Super)
    detail = value.detail
    if detail is None or isinstance(detail, kept):
        return replace(value, fresh=False)
    if isinstance(detail, (Items, ListOf)):
        inner = element(detail)
        return Value(Place.PYTHON, value.why, value.confidence, detail=ListOf(replace(inner, detail=None, fresh=False)))
    chooses = isinstance(detail, Literal) and (detail.type_name in {"NoneType", "bool"} or isinstance(detail.value, str))
    if isinstance(detail, Device) or chooses:
        return replace(value, fresh=False)
    return replace(value, detail=None, fresh=False)
