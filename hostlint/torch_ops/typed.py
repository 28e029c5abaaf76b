"""What is known of one value of a measured call, and what an entry of the table says of a call's result."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from hostlint.torch_ops.conditions import TARGET, ArgumentFacts
from hostlint.torch_ops.spec import Op, Returns
from hostlint.values.value import Place

TENSORS = (Place.DEVICE, Place.HOST)
_FLAGS = (
    "rank0", "boolean", "integer", "sequence", "holds_device", "holds_host", "pinned", "large", "literal", "evaluating",
    "strided", "sparse",
)
Bound = Mapping[str, Sequence[ArgumentFacts]]


@dataclass(frozen=True, slots=True)
class Typed:
    """`facts` is what conditions ask; the rest is what a reader of expressions carries along."""

    facts: ArgumentFacts = field(default_factory=ArgumentFacts)
    makes: tuple[str, ...] = ()
    made_with: Bound = field(default_factory=dict)  # the arguments of its constructor
    device: Place | None = None  # what it means as a target: a device's name, or where a tensor lives
    rank: int = -1  # -1: not known
    item: Typed | None = None  # what a list gives when iterated


def python(*, literal: str = "?", sequence: bool = False, holds_device: bool = False) -> Typed:
    return Typed(ArgumentFacts(Place.PYTHON, literal=literal, sequence=sequence, holds_device=holds_device))


def from_facts(known: Mapping[str, object]) -> Typed:
    """A name of the measurement, from the facts in its file."""
    flags = {flag: known[flag] for flag in _FLAGS if flag in known}
    options = cast("Mapping[str, str]", known.get("made_with", {}))
    target = known.get("target")
    return Typed(
        ArgumentFacts(Place[str(known["place"])], **flags),  # type: ignore[arg-type]  # the file's own flags
        makes=tuple(cast("Sequence[str]", known.get("makes", ()))),
        made_with={name: (ArgumentFacts(Place.PYTHON, literal=text),) for name, text in options.items()},
        device=Place[str(target)] if target else None,
        rank=cast("int", known.get("rank", -1)),
    )


def result_of(op: Op, bound: Bound, target: Place | None) -> ArgumentFacts:
    """The result's facts, by the entry alone."""
    every = [one for name, given in bound.items() if name != TARGET for one in given]
    tensors = [one for one in every if one.place in TENSORS]
    on_device = any(one.place is Place.DEVICE or one.holds_device for one in every)
    first = tensors[0] if op.keeps_type and tensors else ArgumentFacts(boolean=op.boolean, integer=op.integer)
    transposed = op.name == "t"
    return ArgumentFacts(
        _place(op, Place.DEVICE if on_device else Place.HOST, target),
        rank0=_rank0(op, bound, tensors),
        boolean=first.boolean,
        integer=first.integer,
        sequence=op.returns is Returns.SEQUENCE or op.name == "builtins.range",
        holds_device=op.returns is Returns.UNKNOWN and on_device,
        pinned=_pinned(op, bound) or (transposed and tensors[0].pinned),
        large=op.keeps_type and any(one.large for one in tensors),
        fresh=op.returns is Returns.FACTORY,
        strided=transposed,
        sparse="to_sparse" in op.name or any(one.sparse for one in tensors),
    )


def _place(op: Op, own: Place, target: Place | None) -> Place:
    return {
        Returns.PYTHON: Place.PYTHON,
        Returns.NONE: Place.PYTHON,
        Returns.NUMPY: Place.NUMPY,
        Returns.SAME: own,
        Returns.SEQUENCE: own,
        Returns.FACTORY: target or Place.HOST,
        Returns.LIKE: target or own,
        Returns.MOVE: target or own,
        Returns.HOST: Place.HOST,
        Returns.DEVICE: Place.DEVICE,
        Returns.UNKNOWN: Place.UNKNOWN,
    }[op.returns]


def _rank0(op: Op, bound: Bound, tensors: Sequence[ArgumentFacts]) -> bool | None:
    if op.rank0_without and not any(name in bound for name in op.rank0_without):
        return True
    if op.broadcasts and tensors:
        return all(one.rank0 for one in tensors)
    return not bound["data"][0].sequence if "data" in bound else op.rank0


def _pinned(op: Op, bound: Bound) -> bool:
    return op.name == "pin_memory" or any(one.literal == "True" for one in bound.get("pin_memory", ()))
