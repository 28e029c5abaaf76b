"""Calls that may wait: which entry of the table a callee is, and what is known of its receiver and arguments."""
from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hostlint.facts.calls import LAZY_LOGGERS
from hostlint.facts.graph import Op, Site, SiteKind
from hostlint.facts.kinds import FactKind
from hostlint.model import Confidence
from hostlint.torch_ops import function as table_function
from hostlint.torch_ops import method as table_method
from hostlint.torch_ops.spec import Op as TableOp
from hostlint.torch_ops.spec import Returns
from hostlint.values import fields
from hostlint.values.arguments import Argument, Bound, bind
from hostlint.values.calls import LEGACY
from hostlint.values.containers import one_of
from hostlint.values.cures import is_cure
from hostlint.values.detail import External, ExternalInstance, Function, Items, ListOf, Literal, Method
from hostlint.values.devices import Target, target_of
from hostlint.values.judging import Meeting, judge
from hostlint.values.lattice import NEVER, UNKNOWN, is_none
from hostlint.values.results import move_target
from hostlint.values.upload_helpers import left_blocking
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.values.evaluator import Frame

DATA_CONSTRUCTORS = frozenset({"torch.tensor", "new_tensor"})
EMITTED_LOGGERS = LAZY_LOGGERS - {"debug"}
READERS = frozenset({"item", "tolist", "cpu", "numpy", "to", "nonzero"})
COPIERS = frozenset({"cpu", "to", "numpy"})  # on a host tensor they cost nothing, and are written where the place is open
EVENTS = re.compile(r"(^|_)(events?|evt|done|ready|finish(ed)?|completed?|fence|marker)$", re.IGNORECASE)
PLAIN = re.compile(r"[\w.]+(\[[^\]]*\])*")  # a name, an attribute or an element: nothing was computed that only a tensor can be
DEVICES = re.compile(r"stream|device|accelerator|platform|cuda|gpu|event|torch", re.IGNORECASE)
IDENTIFIER = re.compile(r"[A-Za-z_]\w*$")


def at_call(frame: Frame, site: Site) -> Meeting | None:
    """The wait of a call, by the table's entry for its callee."""
    node: Any = frame.graph.nodes[site.node]
    _, _, callee_node, argument_nodes, keyword_nodes, starred = node
    callee = frame.value(callee_node)
    arguments = [Argument(frame.value(part), frame.node_name(part), part) for part in argument_nodes]
    keywords = [(name, Argument(frame.value(part), frame.node_name(part), part)) for name, part in keyword_nodes]
    op, receiver, name = _entry(callee, site.detail)
    if isinstance(callee.detail, External) and callee.detail.name == "builtins.filter" and (picked := _picked(frame, arguments)).is_device:
        return _tested(site, picked)
    if op is None:
        return left_blocking(frame, callee, arguments, keywords, site) or _logged(callee, arguments, site, name)
    if receiver is not None:
        receiver = likely_device(frame, site, receiver, op.name) if op.name in READERS else receiver
        arguments.insert(0, Argument(receiver))
    bound = _guessed(frame, op, bind(op, arguments, keywords, starred))
    if receiver is not None and isinstance(receiver.detail, ExternalInstance):
        made_with = {name: (Argument(value),) for name, value in receiver.detail.given}
        bound = Bound({**made_with, **bound.by_name}, starred)
    if (op.name == "Event.synchronize" or EVENTS.search(_waited_for(site, name))) and not _just_recorded(frame, site):
        return None
    if any(given.name and frame.evaluator.conventions.says_host(given.name) for given in bound.by_name.get("group", ())):
        return None  # a collective of the hosts: the device has no part in it
    if _is_idle(bound) or (receiver is not None and is_cure(frame, site)):
        return None
    meeting = judge(op, bound, site, name, _target(op, bound))
    return _undeclared(meeting, site) if receiver is None and callee.place is Place.UNKNOWN else meeting


def _undeclared(meeting: Meeting | None, site: Site) -> Meeting | None:
    """`x.synchronize()` of an object that nobody declared: by its name it is a stream or a device, or perhaps something else."""
    if meeting is None or meeting.kind is not FactKind.EXPLICIT_SYNCHRONIZE:
        return meeting
    if not DEVICES.search(site.subject):
        return replace(meeting, confidence=Confidence.POSSIBLE, evidence="nobody says what the object is")
    return replace(meeting, confidence=Confidence.LIKELY, evidence=f"`{site.subject}` is a stream or a device by its name")


def _picked(frame: Frame, arguments: Sequence[Argument]) -> Value:
    """What the function of `filter(lambda t: t < limit, steps)` returns for one element."""
    picker = arguments[0].value.detail if len(arguments) == 2 else None
    if not isinstance(picker, Function) or len(frame.evaluator.index.function(picker.function).params) != 1 or frame.fuel <= 0:
        return UNKNOWN
    return frame.evaluator.returned(picker.function, frame.fuel - 1, (one_of(arguments[1].value),))


def _tested(site: Site, value: Value) -> Meeting | None:
    op = table_function("op.truth")
    assert op is not None
    return judge(op, Bound({"self": (Argument(value),)}), site, "filter()")


def _waited_for(site: Site, name: str) -> str:
    """The name of what `x.synchronize()` waits for."""
    found = IDENTIFIER.search(site.subject) if name.rstrip("()").rpartition(".")[2] == "synchronize" else None
    return found.group() if found else ""


def _is_idle(bound: Bound) -> bool:
    """A call that is never reached with these values, or that has nothing to upload: `torch.tensor([], device=…)`."""
    if any(value is NEVER or NEVER in _items(value) for value in bound.values()):
        return True
    data = bound.get("data")
    return data is not None and isinstance(data.value.detail, Items) and not data.value.detail.items


def _items(value: Value) -> Sequence[Value]:
    return value.detail.items if isinstance(value.detail, Items) else ()


def likely_device(frame: Frame, site: Site, value: Value, reader: str) -> Value:
    """A value of unknown place on a step's path: likely on the device where it is a tensor, is named as device tensors are, or is asked
    for its item."""
    if value.place not in (Place.UNKNOWN, Place.TENSOR) or (value.confidence is Confidence.POSSIBLE and value.place is Place.TENSOR):
        return value
    conventions = frame.evaluator.conventions
    if conventions.says_host(site.subject) or conventions.is_host_name(site.subject) or _waits_for_copies(frame, site):
        return value
    if not frame.evaluator.surroundings.is_hot(frame.fid, site.region) or frame.evaluator.drivers.drives(frame.fid):
        return value
    found = IDENTIFIER.search(site.subject)
    if found and conventions.is_setting(found.group()):
        return value
    if found and conventions.is_device_name(found.group()):
        why = f"`{found.group()}` is a device tensor by convention"
    elif PLAIN.fullmatch(site.subject) and (value.place is Place.UNKNOWN or "." in site.subject) and not _is_among_tensors(frame, site):
        return value
    elif reader == "item" or (value.place is Place.TENSOR and reader not in COPIERS):
        why = f"`{site.subject}` is a tensor on a step's path"
    else:
        return value
    return replace(value, place=Place.DEVICE, confidence=Confidence.LIKELY, why=why, detail=None)


def _waits_for_copies(frame: Frame, site: Site) -> bool:
    """Whether the function has waited for an event before: what it reads then are the copies that the event was recorded for."""
    before = (other for other in frame.graph.sites if other.kind == SiteKind.CALL and other.line < site.line)
    return any(EVENTS.search(_waited_for(other, other.detail)) for other in before)


def _is_among_tensors(frame: Frame, site: Site) -> bool:
    return _in_module(frame) or _of_given(frame, site)


def _of_given(frame: Frame, site: Site) -> bool:
    """Whether what is read is a named entry of a dictionary that the function was given with its tensors: `int(cache["end"].item())`."""
    nodes: Any = frame.graph.nodes
    callee: Any = nodes[nodes[site.node][2]] if nodes[site.node][0] == Op.CALL else (-1,)
    read: Any = nodes[callee[2]] if callee[0] == Op.ATTR else (-1,)
    while read[0] == Op.REFINE:
        read = nodes[read[2]]
    return read[0] == Op.INDEX and fields.is_entry(frame, read[2], read[3]) and fields.is_with_tensors(frame)


def _in_module(frame: Frame) -> bool:
    owner = frame.evaluator.index.owner(frame.fid)
    return owner is not None and frame.evaluator.index.is_nn_module(owner)


def _just_recorded(frame: Frame, site: Site) -> bool:
    """Whether the event was recorded earlier in the same run of the loop's body: else the wait is for a step that is long done."""
    around = _regions(frame, site.region)
    return any(
        other.detail.endswith(".record") and other.subject == site.subject and other.line <= site.line and other.region in around
        for other in frame.graph.sites
        if other.kind == SiteKind.CALL
    )


def _regions(frame: Frame, region: int) -> set[int]:
    around = {region}
    while region:
        region = frame.outline.regions[region].parent
        around.add(region)
    return around


def _entry(callee: Value, text: str) -> tuple[TableOp | None, Value | None, str]:
    """The table's entry for a callee, with the receiver where it is a method, and the spelling for messages."""
    detail = callee.detail
    last = text.rpartition(".")[2]
    if isinstance(detail, External):
        return table_function(detail.name), None, detail.name.removeprefix("builtins.")
    if isinstance(detail, Method):
        receiver = detail.receiver
        if isinstance(receiver.detail, ExternalInstance):
            names = [f"{klass.rpartition('.')[2]}.{detail.name}" for klass in receiver.detail.classes]
            return next((op for name in names if (op := table_method(name)) is not None), None), receiver, f"{detail.name}()"
        if receiver.is_tensor or (receiver.place is Place.UNKNOWN and detail.name in READERS):
            return table_method(detail.name), receiver, f"{detail.name}()"
        if detail.name == "format" and isinstance(receiver.detail, Literal):
            return table_function("builtins.print"), None, "format()"
    if isinstance(detail, (Method, type(None))) and callee.place is Place.UNKNOWN:
        if last == "synchronize":
            return table_function("torch.cuda.synchronize"), None, "synchronize()"
        if last in LEGACY:
            return table_function(f"torch.cuda.{last}"), None, last
    return None, None, last


def _guessed(frame: Frame, op: TableOp, bound: Bound) -> Bound:
    """`torch.tensor(x)` is written for Python data: where x is unknown, that is likely; what an unknown function returned must go up."""
    name = op.name if op.name.startswith("torch.") else op.name.rpartition(".")[2]
    data, receiver = bound.get("data"), bound.get("self")
    if name == "new_tensor" and receiver is not None and _may_be_on_device(receiver.value):
        why = "`new_tensor` is written for device tensors"
        on_device = replace(receiver.value, place=Place.DEVICE, confidence=Confidence.LIKELY, why=why)
        bound = Bound({**bound.by_name, "self": (replace(receiver, value=on_device),)}, bound.starred)
    if data is None or data.value.place is not Place.UNKNOWN or not (name in DATA_CONSTRUCTORS or name.startswith("torch.cuda.")):
        return bound
    if data.node >= 0 and frame.graph.nodes[data.node][0] == Op.CALL:
        return bound
    guess = Value(Place.PYTHON, f"`{name}` is written for Python data", Confidence.LIKELY, detail=ListOf(UNKNOWN))
    return Bound({**bound.by_name, "data": (replace(data, value=guess),)}, bound.starred)


def _may_be_on_device(value: Value) -> bool:
    return value.place is Place.TENSOR and value.confidence > Confidence.POSSIBLE


def _target(op: TableOp, bound: Bound) -> Target | None:
    if op.returns is Returns.MOVE:
        return move_target(bound)[0]
    if op.returns is Returns.DEVICE:
        return Target(Place.DEVICE)
    if op.returns is Returns.HOST:
        return Target(Place.HOST)
    device = bound.get("device")
    if device is not None and not is_none(device.value):
        return target_of(device.value, device.name)
    if device is None or op.returns is Returns.LIKE:
        receiver = bound.get("self")
        return Target(receiver.value.place, receiver.value.confidence) if receiver is not None else Target(Place.HOST)
    return None


def _logged(callee: Value, arguments: Sequence[Argument], site: Site, name: str) -> Meeting | None:
    """A log line that is emitted formats its arguments; debug lines are taken to be off."""
    text = site.detail.lower()
    if name not in EMITTED_LOGGERS or "log" not in text.rpartition(".")[0] or isinstance(callee.detail, Function):
        return None
    for argument in arguments[1:]:
        if argument.value.is_device:
            evidence = "measured on an H200 with torch 2.11: `log.warning('v %s', s)`"
            return Meeting(FactKind.FORMAT, site, f"{name}()", argument.value.why, argument.value.confidence, evidence, "log")
    return None
