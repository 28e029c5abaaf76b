"""What calls on a step's path ask for: parameters that they leave out, give, hand on or give in their first pass alone."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from hostlint.facts.graph import Op
from hostlint.facts.schema import LEFT_OUT, FunctionOutline
from hostlint.heat.nature import is_unused
from hostlint.heat.seldom import is_check
from hostlint.values.detail import Instance, Literal
from hostlint.values.lattice import is_none
from hostlint.values.parameters import (
    MANY_CALLERS,
    TIME,
    declared_value,
    default_value,
    is_hot_call,
    is_module_call,
    passed_by,
    self_offset,
)
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.index import FunctionId
    from hostlint.values.evaluator import Caller, Evaluator, Frame

INPUTS = re.compile(r"^(input_ids|inputs?(_embeds)?|hidden_states|pixel_values\w*|input_(features|values)|tokens?|token_ids|x)$")
FEW = 4  # functions that one call may run, and its author have in mind
HANDED_ON = 3  # functions that hand a parameter on


def left_out(evaluator: Evaluator, fid: FunctionId, names: Sequence[str], depth: int = HANDED_ON) -> bool:
    """Whether a call on a step's path is seen to leave out one of these parameters, or to pass None for it, or a number where the test is
    for a tensor; also where it leaves out what another function hands on. A module whose calls nobody sees runs as it does by default,
    save a denoiser."""
    frame = evaluator.frame(fid)
    positions = [position for position, param in enumerate(frame.outline.params) if param.name in names]
    callers = [caller for caller in evaluator.surroundings.callers(fid) if caller.certain and is_hot_call(evaluator, caller)]
    if not callers and LEFT_OUT in names and is_module_call(frame, frame.outline) and not _takes_time(frame.outline):
        return any(_may_be_left_out(frame, position) for position in positions)
    test = [name for name in names if name == LEFT_OUT]
    return any(_leaves_out(frame, caller, position, depth, test) for caller in callers[:MANY_CALLERS] for position in positions)


def _takes_time(outline: FunctionOutline) -> bool:
    """Whether a forward is a denoiser's, which pipelines give what it takes."""
    return any(TIME.match(param.name) for param in outline.params)


def _may_be_left_out(frame: Frame, position: int) -> bool:
    """Not what a model is there for, nor a number or the host's copy of something: who asks for these spares those a wait who hand them
    over, as its own callers do."""
    param = frame.outline.params[position]
    default, conventions = default_value(frame, param), frame.evaluator.conventions
    if default is None or not is_none(default) or INPUTS.search(param.name):
        return False
    if conventions.is_host_name(param.name) or conventions.is_setting(param.name):
        return False
    return not declared_value(frame, position, param).is_host


def _leaves_out(frame: Frame, caller: Caller, position: int, depth: int, test: Sequence[str]) -> bool:
    value = passed_by(frame, caller, position)
    if value is None or is_none(value) or (not test and value.place is Place.PYTHON and value.rank0):
        return True
    given = _optional(frame, caller, position) if depth else ""
    if given:
        return left_out(frame.evaluator, caller.caller, [given, *test], depth - 1)
    return bool(depth) and _is_dispatched(frame, caller, frame.outline.params[position].name, position - self_offset(frame.outline))


def _is_dispatched(frame: Frame, caller: Caller, name: str, slot: int) -> bool:
    """Whether a base class hands `*args, **kwargs` on to this method of its subclass, and a call of such an object leaves the parameter
    out."""
    evaluator, owner = frame.evaluator, frame.evaluator.index.owner(frame.fid)
    handing = evaluator.index.function(caller.caller)
    if owner is None or {"*", "**"} - {param.kind for param in handing.params}:
        return False
    for edge in evaluator.surroundings.callers(caller.caller):
        node = evaluator.index.function(edge.caller).calls[edge.call_index].node
        item: Any = evaluator.graph_of(edge.caller).nodes[node] if edge.certain and node >= 0 and is_hot_call(evaluator, edge) else (-1,)
        if item[0] != Op.CALL or item[5] or slot < len(item[3]) or any(key == name for key, _ in item[4]):
            continue
        detail = evaluator.frame(edge.caller).value(item[2]).detail
        if isinstance(detail, Instance) and owner in evaluator.index.mro(detail.klass):
            return True
    return False


def _given_at(frame: Frame, caller: Caller, position: int) -> int:
    """The node of the caller's graph that a call gives for a parameter, -1 where none is seen."""
    outline, graph = frame.evaluator.index.function(caller.caller), frame.evaluator.graph_of(caller.caller)
    node = outline.calls[caller.call_index].node
    if node < 0 or graph.nodes[node][0] != Op.CALL:
        return -1
    _, _, _, arguments, keywords, _ = graph.nodes[node]
    slot = position - self_offset(frame.outline)
    by_name = dict(cast("tuple[tuple[str, int], ...]", keywords)).get(frame.outline.params[position].name, -1)
    placed = cast("tuple[int, ...]", arguments)
    return by_name if by_name >= 0 else placed[slot] if 0 <= slot < len(placed) else -1


def _is_for_first_pass(frame: Frame, caller: Caller, position: int) -> bool:
    """Whether a loop sets what it hands over to None at its end: `pixel_values = None` after the pass that reads the prompt."""
    given, nodes = _given_at(frame, caller, position), cast("Any", frame.evaluator.graph_of(caller.caller).nodes)
    if given < 0 or nodes[given][0] != Op.PHI:
        return False
    return any(part > given and nodes[part][0] == Op.CONST and nodes[part][2] == "NoneType" for part in nodes[given][2])


def _optional(frame: Frame, caller: Caller, position: int, default_type: str = "NoneType") -> str:
    """The caller's own parameter that it hands on as it is, where None is its default, or a bool; "" for anything else."""
    evaluator = frame.evaluator
    outline, graph = evaluator.index.function(caller.caller), evaluator.graph_of(caller.caller)
    given = _given_at(frame, caller, position)
    if given < 0 or graph.nodes[given][0] != Op.PARAM:
        return ""
    param = outline.params[cast("int", graph.nodes[given][2])]
    default = evaluator.graph_of((caller.caller[0], outline.parent)).nodes[param.default] if param.default >= 0 else (-1,)
    return param.name if default[0] == Op.CONST and default[2] == default_type else ""


def asked_for(evaluator: Evaluator, fid: FunctionId, names: Sequence[str], depth: int = HANDED_ON) -> bool:
    """Whether a call on a step's path may set one of these parameters, which are off by default; it may where none is seen, or many, or
    one that is written for any model. A switch of checks is set only where a call says so; what another function hands on is set where
    that function's calls set it."""
    if "." in names[0]:
        return _is_switched_on(evaluator, fid, names[0].rpartition(".")[2])
    frame = evaluator.frame(fid)
    positions = [position for position, param in enumerate(frame.outline.params) if param.name in names]
    callers = [caller for caller in evaluator.surroundings.callers(fid) if caller.certain and is_hot_call(evaluator, caller)]
    if is_check(names[0]):
        passed = (passed_by(frame, caller, position) for caller in callers[:MANY_CALLERS] for position in positions)
        return any(not _is_off(value) and value.place is not Place.UNKNOWN for value in passed if value is not None)
    if not 0 < len(callers) <= MANY_CALLERS or any(caller.among > FEW for caller in callers):
        return True
    return any(_asks(frame, caller, position, depth) for caller in callers for position in positions)


def left_off(evaluator: Evaluator, fid: FunctionId, name: str, depth: int = HANDED_ON) -> bool:
    """Whether a call on a step's path may leave a switch off that is False by default; it may where none is seen, or many, or one that is
    written for any model."""
    frame = evaluator.frame(fid)
    positions = [position for position, param in enumerate(frame.outline.params) if param.name == name]
    callers = [caller for caller in evaluator.surroundings.callers(fid) if is_hot_call(evaluator, caller)]
    sure = all(caller.certain and caller.among <= FEW for caller in callers)
    if not sure or not positions or not 0 < len(callers) <= MANY_CALLERS:
        return True
    return any(_leaves_off(frame, caller, positions[0], depth) for caller in callers)


def _leaves_off(frame: Frame, caller: Caller, position: int, depth: int) -> bool:
    value = passed_by(frame, caller, position)
    if value is not None and isinstance(value.detail, Literal) and value.detail.value is True:
        return False
    given = _optional(frame, caller, position, "bool") if depth else ""
    return not given or left_off(frame.evaluator, caller.caller, given, depth - 1)


def _asks(frame: Frame, caller: Caller, position: int, depth: int) -> bool:
    if _is_off(passed_by(frame, caller, position)) or _is_for_first_pass(frame, caller, position):
        return False
    given = _optional(frame, caller, position) if depth else ""
    return not given or asked_for(frame.evaluator, caller.caller, [given], depth - 1)


def _is_switched_on(evaluator: Evaluator, fid: FunctionId, name: str) -> bool:
    """Whether objects may have the attribute set that construction takes from an argument which is False by default: where another method
    sets it, no construction is seen, one sets it, or configurations do."""
    index, owner = evaluator.index, evaluator.index.owner(fid)
    stores = index.attribute_stores(owner, name) if owner is not None else []
    if len(stores) != 1:
        return True
    made, node, _ = stores[0]
    frame = evaluator.frame(made)
    item = frame.graph.nodes[node]
    calls = [one for one in evaluator.surroundings.callers(made) if one.certain and not is_unused(index.files[one.caller[0]])]
    if item[0] != Op.PARAM or not calls or len(calls) > MANY_CALLERS or frame.outline.decorators:  # a decorator keeps a configuration
        return True
    return any(not _is_off(passed_by(frame, call, cast("int", item[2]))) for call in calls)


def _is_off(value: Value | None) -> bool:
    return value is None or is_none(value) or (isinstance(value.detail, Literal) and value.detail.value is False)
