"""From sites to waits: asks the table of torch whether a place makes the host wait, given the values that meet there."""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hostlint.facts.calls import LAZY_LOGGERS
from hostlint.facts.graph import Op, Site, SiteKind
from hostlint.facts.kinds import FactKind
from hostlint.model import Confidence
from hostlint.torch_ops import conditions
from hostlint.torch_ops import function as table_function
from hostlint.torch_ops import method as table_method
from hostlint.torch_ops.conditions import TARGET, ArgumentFacts
from hostlint.torch_ops.spec import Op as TableOp
from hostlint.torch_ops.spec import Returns, Wait
from hostlint.values.calls import LEGACY
from hostlint.values.conventions import MASK_NAMES
from hostlint.values.detail import Device, External, ExternalInstance, Function, Items, ListOf, Literal, Mapping, Method
from hostlint.values.devices import Target, target_of
from hostlint.values.evaluator import Frame
from hostlint.values.lattice import UNKNOWN, is_none
from hostlint.values.results import Argument, Bound, bind, move_target
from hostlint.values.value import Place, Value


@dataclass(frozen=True, slots=True)
class Meeting:
    """A site at which the host waits or uploads, and by which form of which entry."""

    kind: FactKind
    site: Site
    call: str
    evidence: str
    confidence: Confidence
    measured: str
    detail: str = ""
    at_use: bool = False  # a constructor whose object waits each time it is used


DATA_CONSTRUCTORS = frozenset({"torch.tensor", "new_tensor"})
NUMBERS = re.compile(r"%[-+ #0-9.]*[diouxXeEfFgG]")
TEXTS = re.compile(r"%[-0-9.]*[sra]")
EMITTED_LOGGERS = LAZY_LOGGERS - {"debug"}


def meetings(frame: Frame) -> Iterator[Meeting]:
    """Every wait and upload of a function that has been evaluated."""
    for site in frame.graph.sites:
        found = _JUDGES[SiteKind(site.kind)](frame, site)
        if found is not None:
            yield found


def facts_of(value: Value, *, element: bool = False) -> ArgumentFacts:
    """The value in the terms of the table's conditions."""
    detail = value.detail
    literal = conditions.NOT_LITERAL
    if isinstance(detail, Literal):
        literal = "None" if detail.type_name == "NoneType" else str(detail.value) if detail.type_name == "bool" else literal
    boolean = value.boolean or (any(item.boolean for item in _held(value)) or None)
    sequence = isinstance(detail, ListOf) or (isinstance(detail, Items) and detail.kind != "set")
    return ArgumentFacts(
        place=value.place,
        rank0=value.rank0,
        boolean=boolean,
        integer=value.integer,
        sequence=sequence,
        holds_device=any(item.is_device for item in _held(value)),
        pinned=value.pinned,
        large=value.large,
        fresh=value.fresh,
        literal=literal,
        element=element,
    )


def _held(value: Value) -> Sequence[Value]:
    if isinstance(value.detail, Items):
        return [inner for item in value.detail.items for inner in (_held(item) or [item])]
    if isinstance(value.detail, ListOf):
        return _held(value.detail.element) or [value.detail.element]
    if isinstance(value.detail, ExternalInstance):
        return [given for _, given in value.detail.given]
    return ()


def _judge(op: TableOp, bound: Bound, site: Site, call: str, target: Target | None = None, *, element: bool = False) -> Meeting | None:
    arguments = {name: tuple(facts_of(a.value, element=element and name == "index") for a in given) for name, given in bound.by_name.items()}
    if target is not None:
        arguments[TARGET] = (ArgumentFacts(place=target.place),)
    wait = next(iter(conditions.waits_of(op, arguments)), None)
    if wait is None:
        return None
    confidence, why = _evidence(wait, bound, target)
    gpu = f"measured on an H200 with torch {wait.torch}: `{wait.evidence}`" if wait.measured else f"not measured: {wait.evidence}"
    at_use = bool(op.makes) and wait.kind in {FactKind.HIDDEN_WAIT, FactKind.VALIDATED_DISTRIBUTION} and not _reads_device(wait)
    return Meeting(wait.kind, site, call, why, confidence, gpu, " ".join(wait.when), at_use)


def _reads_device(wait: Wait) -> bool:
    return any(atom.startswith("device") for atom in wait.when)


def _evidence(wait: Wait, bound: Bound, target: Target | None) -> tuple[Confidence, str]:
    """The weakest confidence among the values that the form rests on, and why the value that is read lives where it does."""
    confidence, whys = Confidence.CERTAIN, []
    for atom in wait.when:
        kind, name = conditions.split_atom(atom)
        if kind == "to" and target is not None:
            confidence = min(confidence, target.confidence)
            continue
        if kind not in {"device", "device-in", "host", "numpy", "pydata", "pylist", "boolean", "rank0"}:
            continue
        chosen = _chosen(kind, [argument.value for argument in bound.by_name.get(name, ())])
        if chosen is not None and kind not in {"boolean", "rank0"}:
            confidence = min(confidence, chosen.confidence)
            whys += [chosen.why] if chosen.why else []
    return confidence, whys[0] if whys else _plain(wait)


def _chosen(kind: str, values: Sequence[Value]) -> Value | None:
    """The argument that satisfies the atom, by the best evidence."""
    if kind == "device-in":
        values = [item for value in values for item in _held(value)]
    wanted = {"device": Place.DEVICE, "device-in": Place.DEVICE, "host": Place.HOST, "numpy": Place.NUMPY}.get(kind)
    fitting = [value for value in values if wanted is None or value.place is wanted]
    return max(fitting, key=lambda value: value.confidence, default=None)


def _plain(wait: Wait) -> str:
    if any(atom.startswith(("pydata", "pylist")) for atom in wait.when):
        return "the data are Python numbers, which lie in pageable host memory"
    return "the call says so"


def _at_call(frame: Frame, site: Site) -> Meeting | None:
    node: Any = frame.graph.nodes[site.node]
    _, _, callee_node, argument_nodes, keyword_nodes, starred = node
    callee = frame.value(callee_node)
    arguments = [Argument(frame.value(part), frame.node_name(part), part) for part in argument_nodes]
    keywords = [(name, Argument(frame.value(part), frame.node_name(part), part)) for name, part in keyword_nodes]
    op, receiver, name = _entry(callee, site.detail)
    if op is None:
        return _logged(callee, arguments, site, name)
    if receiver is not None:
        receiver = _by_name(frame, receiver, site.subject) if op.name in READERS else receiver
        arguments.insert(0, Argument(receiver))
    bound = _guessed(op, bind(op, arguments, keywords, starred))
    if receiver is not None and isinstance(receiver.detail, ExternalInstance):
        made_with = {name: (Argument(value),) for name, value in receiver.detail.given}
        bound = Bound({**made_with, **bound.by_name}, starred)
    if op.name == "Event.synchronize" and not _just_recorded(frame, site):
        return None
    return _judge(op, bound, site, name, _target(op, bound))


READERS = frozenset({"item", "tolist", "cpu", "numpy", "to", "nonzero"})
IDENTIFIER = re.compile(r"[A-Za-z_]\w*$")


def _by_name(frame: Frame, receiver: Value, subject: str) -> Value:
    """A value of unknown place that is named as device tensors are, or a tensor of unknown place on a step's path, likely is one."""
    if receiver.place not in (Place.UNKNOWN, Place.TENSOR) or receiver.confidence is Confidence.POSSIBLE and receiver.place is Place.TENSOR:
        return receiver
    evaluator = frame.evaluator
    found = IDENTIFIER.search(subject)
    if evaluator.conventions.is_host_name(subject) or not evaluator.surroundings.is_hot(frame.fid):
        return receiver
    if found and evaluator.conventions.is_device_name(found.group()):
        return replace(receiver, place=Place.DEVICE, confidence=Confidence.LIKELY, why=f"`{found.group()}` is a device tensor by convention", detail=None)
    if receiver.place is Place.TENSOR:
        return replace(receiver, place=Place.DEVICE, confidence=Confidence.LIKELY, why=f"`{subject}` is a tensor on a step's path")
    return receiver


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


def _guessed(op: TableOp, bound: Bound) -> Bound:
    """`torch.tensor(x)` is written for Python data: where x is unknown, that is likely."""
    name = op.name if op.name.startswith("torch.") else op.name.rpartition(".")[2]
    data, receiver = bound.get("data"), bound.get("self")
    if name == "new_tensor" and receiver is not None and receiver.value.place is Place.TENSOR and receiver.value.confidence > Confidence.POSSIBLE:
        on_device = replace(receiver.value, place=Place.DEVICE, confidence=Confidence.LIKELY, why="`new_tensor` is written for device tensors")
        bound = Bound({**bound.by_name, "self": (replace(receiver, value=on_device),)}, bound.starred)
    if data is None or data.value.place is not Place.UNKNOWN or not (name in DATA_CONSTRUCTORS or name.startswith("torch.cuda.")):
        return bound
    guess = Value(Place.PYTHON, f"`{name}` is written for Python data", Confidence.LIKELY, detail=ListOf(UNKNOWN))
    return Bound({**bound.by_name, "data": (replace(data, value=guess),)}, bound.starred)


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


def _operator(op_name: str, site: Site, call: str, **operands: Value) -> Meeting | None:
    op = table_function(op_name)
    assert op is not None, op_name
    return _judge(op, Bound({name: (Argument(value),) for name, value in operands.items()}), site, call)


def _at_truth(frame: Frame, site: Site) -> Meeting | None:
    node: Any = frame.graph.nodes[site.node]
    if node[0] == Op.COMPARE and len(node[2]) > 1:
        value = next((v for part in node[3] if (v := frame.value(part)).is_device), UNKNOWN)
    else:
        value = frame.value(site.node)
    return _operator("op.truth", site, site.detail, self=value)


def _at_member(frame: Frame, site: Site) -> Meeting | None:
    node: Any = frame.graph.nodes[site.node]
    item, container = frame.value(node[3][0]), frame.value(node[3][-1])
    return _operator("op.contains", site, "in", item=item, container=container)


def _at_format(frame: Frame, site: Site) -> Meeting | None:
    return _operator("op.format", site, site.detail, self=frame.value(site.node))


def _at_percent(frame: Frame, site: Site) -> Meeting | None:
    node: Any = frame.graph.nodes[site.node]
    text = frame.value(node[3]).detail
    number = isinstance(text, Literal) and isinstance(text.value, str) and NUMBERS.search(text.value) and not TEXTS.search(text.value)
    name = "op.percent_number" if number else "op.percent"
    return _operator(name, site, "%", self=frame.value(node[3]), value=frame.value(node[4]))


def _at_load(frame: Frame, site: Site) -> Meeting | None:
    node: Any = frame.graph.nodes[site.node]
    return _indexed(frame, site, "op.getitem", node[2], node[3], None)


def _at_write(frame: Frame, site: Site) -> Meeting | None:
    node: Any = frame.graph.nodes[site.node]
    return _indexed(frame, site, "op.setitem", node[2], node[3], frame.value(node[4]))


def _at_augmented(frame: Frame, site: Site) -> Meeting | None:
    node: Any = frame.graph.nodes[site.node]
    return _indexed(frame, site, "op.augsetitem", node[2], node[3], frame.value(node[4]))


def _indexed(frame: Frame, site: Site, op_name: str, base_node: int, index_node: int, value: Value | None) -> Meeting | None:
    """An index is judged part by part: slices by their bounds, the others by what they are."""
    index: Any = frame.graph.nodes[index_node]
    parts = index[3] if index[0] == Op.SEQUENCE and index[2] == "tuple" else (index_node,)
    base = frame.value(base_node)
    for part in parts:
        node: Any = frame.graph.nodes[part]
        if node[0] == Op.SLICE:
            bounds = {name: frame.value(n) for name, n in zip(("start", "stop", "step"), node[2:5], strict=True) if n >= 0}
            found = _operator("op.slice", site, "slice", **bounds)
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
    if isinstance(base.detail, (Mapping, Device)) or (isinstance(index.detail, Items) and index.detail.kind != "list"):
        return None
    if index.is_device and base.place in (Place.UNKNOWN, Place.TENSOR) and (index.boolean or index.integer) and not index.rank0:
        base = replace(base, place=Place.DEVICE, confidence=Confidence.LIKELY)  # a device mask or index needs a device tensor
    operands = {"self": base, "index": index}
    if value is not None:
        operands["value"] = value
    op = table_function(op_name)
    assert op is not None
    single = alone and base.vector and bool(index.rank0) and index.place is Place.PYTHON
    return _judge(op, Bound({name: (Argument(v),) for name, v in operands.items()}), site, "[]", element=single)


_JUDGES = {
    SiteKind.CALL: _at_call, SiteKind.TRUTH: _at_truth, SiteKind.MEMBER: _at_member, SiteKind.FORMAT: _at_format, SiteKind.LOAD: _at_load,
    SiteKind.WRITE: _at_write, SiteKind.AUGMENTED: _at_augmented, SiteKind.PERCENT: _at_percent,
}  # fmt: skip
