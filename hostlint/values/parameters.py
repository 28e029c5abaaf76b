"""What a parameter holds: by its annotation, by the calls that the project makes, and by the conventions of the field."""
from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from hostlint.facts.graph import Op
from hostlint.facts.schema import FunctionFlag, FunctionOutline, Param
from hostlint.heat.nature import is_unused
from hostlint.model import Confidence
from hostlint.values import annotated, movers
from hostlint.values.conventions import MODELS, SHAPES, conventional
from hostlint.values.detail import Class, Instance, ListOf, Literal
from hostlint.values.lattice import PYTHON, TENSOR, UNKNOWN, is_none, join_all
from hostlint.values.schedules import is_of_host_schedule
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.facts.graph import Node
    from hostlint.values.evaluator import Caller, Evaluator, Frame

MANY_CALLERS = 24
TIME = re.compile(r"^(\w+_)?(timesteps?|time_?steps?|sigmas?|noise_level)$|^t$|^times?$")
# Calls that are given a function to call later: their arguments are not, or not in these places, its own.
HANDERS_ON = frozenset(
    (
        "map", "filter", "partial", "starmap", "reduce", "submit", "Thread", "Process", "Timer", "checkpoint", "apply", "apply_async",
        "run_in_executor",
    )
)  # fmt: skip


def parameter(frame: Frame, position: int) -> Value:
    """What a parameter holds: in one call where the frame stands for one, else in any."""
    outline = frame.outline
    param = outline.params[position]
    if position == 0 and outline.owner >= 0 and not outline.flags & FunctionFlag.STATIC:
        cid = (frame.fid[0], outline.owner)
        return Value(Place.PYTHON, detail=Class(cid)) if outline.flags & FunctionFlag.CLASS else annotated.instance(cid)
    if param.kind in {"*", "**"}:
        return Value(Place.PYTHON, detail=ListOf(UNKNOWN))
    if frame.given is not None:
        return _narrowed(frame.given[position], declared_value(frame, position, param))
    return _general(frame, position, param)


def _narrowed(given: Value, declared: Value) -> Value:
    """The value of one call, unless the annotation knows more."""
    if given.place is Place.UNKNOWN:
        return declared
    return given


def declared_value(frame: Frame, position: int, param: Param) -> Value:
    """What the annotation says; without one, what the function does with the parameter."""
    if param.annotation:
        return annotated.value_of(param.annotation, frame.evaluator.index, *frame.fid)
    used = position in frame.evaluator.tensors_by_use(frame) and not MODELS.search(param.name)  # modules go `.cpu()`, too
    return TENSOR if used else UNKNOWN


def _general(frame: Frame, position: int, param: Param) -> Value:
    declared = declared_value(frame, position, param)
    conventions = frame.evaluator.conventions
    if param.name in conventions.device_names:
        return conventional(f"`{param.name}` is named in `device-names`")
    if declared.is_host and not _contains_unplaced(declared):
        movable = isinstance(declared.detail, Instance) and movers.can_move(frame.evaluator.index, declared.detail.klass)
        return movers.as_passed(declared, _from_callers(frame, position)) if movable else declared
    passed = _from_callers(frame, position)
    if passed.place in (Place.DEVICE, Place.HOST, Place.NUMPY) and passed.confidence > Confidence.POSSIBLE:
        return passed
    says_less = is_none(passed) if declared.is_tensor else passed.detail is None and _contains_unplaced(declared)
    if passed.place is Place.PYTHON and not says_less:
        return passed
    if conventions.is_host_name(param.name):
        on_host = declared.is_tensor and conventions.says_host(param.name)
        return replace(declared, confidence=Confidence.POSSIBLE) if on_host else declared
    if passed.confidence is Confidence.POSSIBLE and passed.place is not Place.UNKNOWN:
        return replace(declared, confidence=Confidence.POSSIBLE) if declared.is_tensor else UNKNOWN
    by_convention = _by_convention(frame, param, declared)
    return by_convention if by_convention is not None else declared


def _contains_unplaced(value: Value) -> bool:
    return isinstance(value.detail, ListOf) and value.detail.element.place in (Place.TENSOR, Place.UNKNOWN)


def _by_convention(frame: Frame, param: Param, declared: Value) -> Value | None:
    value = _conventional(frame, param, declared)
    unsure = bool(SHAPES.search(param.name)) or is_of_host_schedule(frame, param.name)
    if value is not None and unsure:  # some keep the grids of pictures on the host, some move them along
        return replace(value, confidence=Confidence.POSSIBLE)
    return value


def _conventional(frame: Frame, param: Param, declared: Value) -> Value | None:
    evaluator, outline = frame.evaluator, frame.outline
    default = default_value(frame, param)
    if default is not None and default.place is Place.PYTHON and not is_none(default):
        return None
    is_self = param is outline.params[0] and outline.owner < 0  # of a function that is put in the place of a forward
    module_call = not is_self and is_module_call(frame, outline)
    named = evaluator.conventions.is_device_name(param.name) and not evaluator.drivers.drives(frame.fid)
    if declared.is_tensor:
        if module_call:
            return conventional(f"`{param.name}` is an input of {outline.qualname}, which lives on the device by convention")
        if evaluator.surroundings.is_hot(frame.fid) and not evaluator.drivers.drives(frame.fid):
            return conventional(f"`{param.name}` is a tensor that is handed down a step's path")
        return conventional(f"`{param.name}` is a device tensor by convention") if named else None
    if param.annotation:
        return None
    if module_call and not (evaluator.conventions.is_setting(param.name) or outline.flags & FunctionFlag.STATIC or _counts(frame, param)):
        return conventional(f"`{param.name}` is an input of {outline.qualname}, which lives on the device by convention")
    if named and evaluator.surroundings.is_hot(frame.fid):
        return conventional(f"`{param.name}` is a device tensor by convention")
    return None


def _counts(frame: Frame, param: Param) -> bool:
    """Whether the function counts up to the parameter: `range(groups)` is written for a number."""
    nodes: Any = frame.graph.nodes
    calls = (node for node in nodes if node[0] == Op.CALL and len(node[3]) == 1 and frame.node_name(node[2]) == "range")
    return any(frame.node_name(call[3][0]) == param.name and nodes[call[3][0]][0] == Op.PARAM for call in calls)


def is_module_call(frame: Frame, outline: FunctionOutline) -> bool:
    """Whether the function is the forward of a torch module, or put in the place of one."""
    if frame.evaluator.index.replaces_forward(frame.fid):
        return True
    return outline.name == "forward" and outline.owner >= 0 and frame.evaluator.index.is_nn_module((frame.fid[0], outline.owner))


def default_value(frame: Frame, param: Param) -> Value | None:
    if param.default < 0:
        return None
    node = frame.evaluator.graph_of((frame.fid[0], frame.outline.parent)).nodes[param.default]
    if node[0] == Op.CONST:
        return constant(node)
    return PYTHON if node[0] in (Op.SEQUENCE, Op.DICT) else None


def constant(node: Node) -> Value:
    """A default that is a constant, without more than the constant itself."""
    literal = node[3] if isinstance(node[3], (int, float, str)) else None
    return Value(Place.PYTHON, detail=Literal(str(node[2]), literal))


def _from_callers(frame: Frame, position: int) -> Value:
    """The join of what the project's calls pass; a default that some call leaves in place counts too."""
    evaluator = frame.evaluator
    files = evaluator.index.files  # what tests and benchmarks pass is whatever suits them
    callers = [one for one in evaluator.surroundings.callers(frame.fid) if one.certain and not is_unused(files[one.caller[0]])]
    if not callers or len(callers) > MANY_CALLERS:
        return UNKNOWN
    if frame.fuel <= 0:
        return UNKNOWN
    values = [passed_by(frame, one, position) for one in callers if one.caller != frame.fid and not _tries(frame, one, position)]
    return _join_passed([value for value in values if value is not None])


def _tries(frame: Frame, caller: Caller, position: int) -> bool:
    """Whether a call beside any step shows a module host tensors: what builds a module tries it with what is at hand."""
    if not is_module_call(frame, frame.outline) or is_hot_call(frame.evaluator, caller):
        return False
    value = passed_by(frame, caller, position)
    return value is not None and value.place is Place.HOST


def _join_passed(values: list[Value]) -> Value:
    """Calls that pass something unknown do not undo what the others say, but leave it likely at best."""
    known = [value for value in values if value.place is not Place.UNKNOWN and not is_none(value)]
    if not known:
        return UNKNOWN
    result = join_all(known)
    if len(known) < len([value for value in values if not is_none(value)]):
        if result.place is Place.DEVICE:
            return replace(result, confidence=min(result.confidence, Confidence.LIKELY))
        return UNKNOWN if result.is_host else result
    return result


def passed_by(frame: Frame, caller: Caller, position: int) -> Value | None:
    """The argument of one call for a parameter; None where the call leaves the default in place."""
    evaluator = frame.evaluator
    outline = evaluator.index.function(caller.caller)
    node = outline.calls[caller.call_index].node
    nodes = evaluator.graph_of(caller.caller).nodes
    if node < 0 or nodes[node][0] != Op.CALL or outline.calls[caller.call_index].chain.rpartition(".")[2] in HANDERS_ON:
        return UNKNOWN
    _, _, _, arguments, keywords, starred = nodes[node]
    assert isinstance(arguments, tuple)
    assert isinstance(keywords, tuple)
    param = frame.outline.params[position]
    argument = dict(keywords).get(param.name, -1)
    if argument < 0:
        slot = position - self_offset(frame.outline)
        argument = arguments[slot] if 0 <= slot < len(arguments) and param.kind == "positional" else -1
    if argument < 0:
        return UNKNOWN if starred else default_value(frame, param)
    if any(nodes[part][0] == Op.STAR for part in arguments):
        return UNKNOWN
    passing = evaluator.frame(caller.caller, frame.fuel - 1)
    value = passing.value(argument)
    if value.place in (Place.UNKNOWN, Place.TENSOR) and evaluator.conventions.says_host(passing.node_name(_whole(nodes, argument))):
        return Value(Place.TENSOR, confidence=Confidence.POSSIBLE)  # `lengths=plan.lengths_cpu[i]`
    return replace(value, fresh=False)


def _whole(nodes: Sequence[Node], node: int) -> int:
    """What an element or a part was taken from."""
    while nodes[node][0] == Op.INDEX:
        node = cast("int", nodes[node][2])
    return node


def self_offset(outline: FunctionOutline) -> int:
    return int(outline.owner >= 0 and not outline.flags & FunctionFlag.STATIC)


def is_hot_call(evaluator: Evaluator, caller: Caller) -> bool:
    region = evaluator.index.function(caller.caller).calls[caller.call_index].region
    return evaluator.surroundings.is_hot(caller.caller, region)
