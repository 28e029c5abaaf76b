"""Asks the table of torch about one meeting of a call and its arguments: does the host wait, by which form, on what evidence."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.model import Confidence
from hostlint.torch_ops import conditions
from hostlint.torch_ops.conditions import TARGET, ArgumentFacts
from hostlint.values.detail import ExternalInstance, Items, ListOf, Literal, is_empty
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.facts.fact import Repeated
    from hostlint.facts.graph import Site
    from hostlint.model import Heat
    from hostlint.torch_ops.spec import Op as TableOp
    from hostlint.torch_ops.spec import Wait
    from hostlint.values.arguments import Bound
    from hostlint.values.devices import Target

HELD_DEPTH = 4
UNPLACED = "the data are no tensor of this function's, and a tensor would be given to `as_tensor` or `clone`"


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
    wrong: bool = False  # results or memory suffer, however seldom the place runs
    repeated: Repeated | None = None
    heat: Heat | None = None  # of what pays for it, where that is not the place itself


def facts_of(value: Value, *, element: bool = False) -> ArgumentFacts:
    """The value in the terms of the table's conditions."""
    detail = value.detail
    literal = conditions.NOT_LITERAL
    if isinstance(detail, Literal):
        literal = "None" if detail.type_name == "NoneType" else str(detail.value) if detail.type_name == "bool" else literal
    boolean = value.boolean or (any(item.boolean for item in held(value)) or None)
    sequence = isinstance(detail, ListOf) or (isinstance(detail, Items) and detail.kind != "set")
    return ArgumentFacts(
        place=value.place,
        rank0=value.rank0,
        boolean=boolean,
        integer=value.integer,
        sequence=sequence,
        holds_device=any(item.is_device for item in held(value)),
        pinned=value.pinned,
        large=value.large,
        fresh=value.fresh,
        literal=literal,
        element=element,
        empty=is_empty(value),
    )


def held(value: Value, depth: int = HELD_DEPTH) -> Sequence[Value]:
    """What lies in a container, down to a few levels, or was given to an object's constructor."""
    if not depth:
        return ()
    if isinstance(value.detail, Items):
        return [inner for item in value.detail.items for inner in (held(item, depth - 1) or [item])]
    if isinstance(value.detail, ListOf):
        return held(value.detail.element, depth - 1) or [value.detail.element]
    if isinstance(value.detail, ExternalInstance):
        return [given for _, given in value.detail.given]
    return ()


def judge(op: TableOp, bound: Bound, site: Site, call: str, target: Target | None = None, *, element: bool = False) -> Meeting | None:
    """The wait that an entry of the table has for these arguments; `element`: the index is known to select one element."""
    arguments = {
        name: tuple(facts_of(argument.value, element=element and name == "index") for argument in given)
        for name, given in bound.by_name.items()
    }
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
    confidence = Confidence.CERTAIN
    whys: list[str] = []
    for atom in wait.when:
        kind, name = conditions.split_atom(atom)
        if kind == "to" and target is not None:
            confidence = min(confidence, target.confidence)
            continue
        if kind == "unplaced":
            confidence, whys = min(confidence, Confidence.LIKELY), [*whys, UNPLACED]
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
        values = [item for value in values for item in held(value)]
    wanted = {"device": Place.DEVICE, "device-in": Place.DEVICE, "host": Place.HOST, "numpy": Place.NUMPY}.get(kind)
    fitting = [value for value in values if wanted is None or value.place is wanted]
    return max(fitting, key=lambda value: value.confidence, default=None)


def _plain(wait: Wait) -> str:
    if any(atom.startswith(("pydata", "pylist")) for atom in wait.when):
        return "the data are Python numbers, which lie in pageable host memory"
    return "the call says so"
