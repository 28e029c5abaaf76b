"""Reads the table of torch from the JSON files beside it; entries become `Op` objects only when they are asked for."""
from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypedDict

from hostlint.facts.kinds import FactKind
from hostlint.torch_ops.spec import Op, Returns, Wait

FOLDER = Path(__file__).parent
FILES = (
    "elementwise", "reductions", "shapes", "indexing", "factories", "moves", "attributes",
    "linalg", "nn", "distributions", "python", "libraries", "runtime",
)
MEASUREMENT = "waits_h200"
MEASURED_TORCH = "2.11"
ARGUMENT_PARSER = "a 0-dim tensor given where torch wants a number is read while the arguments are parsed"


@dataclass(frozen=True, slots=True)
class Measurement:
    gpu: str
    torch: str
    date: str


class Entry(TypedDict, total=False):
    """One line of a file: several names that share everything else (docs/torch-table.md)."""

    names: str
    on: str
    params: str
    returns: str
    rank0: bool
    boolean: bool
    integer: bool
    rank0_without: str
    keeps_type: bool
    broadcasts: bool
    sequence_with: str
    sequence_without: str
    integer_items: list[int]
    makes: str
    scalars: str
    sizes: str
    waits: list[list[str]]
    defaults: Entry  # alone on its line: what the lines after it leave out


class Index:
    """Where each name's entry is: functions by dotted name, methods of tensors by name, of other objects by `Class.name`."""

    __slots__ = ("duplicates", "functions", "methods")

    def __init__(self) -> None:
        self.functions: dict[str, Entry] = {}
        self.methods: dict[str, Entry] = {}
        self.duplicates: list[str] = []

    def add(self, entry: Entry) -> None:
        for place in entry["on"].split():
            for name in entry["names"].split():
                if place == "inplace":
                    self._put(self.methods, f"{name}_", entry)
                elif place == "method":
                    self._put(self.methods, name, entry)
                elif place[0].isupper():
                    self._put(self.methods, f"{place}.{name}", entry)
                else:
                    self._put(self.functions, f"{place}.{name}", entry)

    def _put(self, names: dict[str, Entry], name: str, entry: Entry) -> None:
        if name in names:
            self.duplicates.append(name)
        names.setdefault(name, entry)


@cache
def index() -> Index:
    result = Index()
    for file in FILES:
        defaults = Entry()
        for line in read_lines(file):
            if "defaults" in line:
                defaults = line["defaults"]
            else:
                result.add({**defaults, **line})
    return result


def read_lines(file: str) -> list[Entry]:
    """One object a line: an entry, or `{"defaults": ...}` for the entries that follow."""
    lines: list[Entry] = json.loads((FOLDER / f"{file}.json").read_text(encoding="utf-8"))
    return lines


@cache
def function_op(dotted: str) -> Op | None:
    entry = index().functions.get(dotted) or _in_place(dotted) or index().functions.get(f"{dotted.rpartition('.')[0]}.*")
    return None if entry is None else build(dotted, entry, receiver=dotted.startswith("op."))


def _in_place(dotted: str) -> Entry | None:
    """`torch.relu_(x)` is `x.relu_()`."""
    name = dotted.removeprefix("torch.")
    return index().methods.get(name) if name.endswith("_") and "." not in name else None


@cache
def method_op(name: str) -> Op | None:
    entry = index().methods.get(name)
    return None if entry is None else build(name, entry, receiver=True)


def build(name: str, entry: Entry, *, receiver: bool) -> Op:
    """The entry as seen from one of its names; a function calls the receiver `input`, as torch does."""
    in_place = name.endswith("_") and not name.endswith("__") and "." not in name.removeprefix("torch.")
    waits = tuple(_waits(entry))
    return Op(
        name=name,
        params=_renamed(entry.get("params", "self"), receiver),
        returns=Returns(entry.get("returns", "same")),
        rank0=entry.get("rank0"),
        boolean=None if in_place else entry.get("boolean"),
        integer=None if in_place else entry.get("integer"),
        waits=waits if receiver else tuple(map(_for_function, waits)),
        rank0_without=tuple(entry.get("rank0_without", "").split()),
        keeps_type=in_place or entry.get("keeps_type", False),
        broadcasts=entry.get("broadcasts", False),
        sequence_with=tuple(entry.get("sequence_with", "").split()),
        sequence_without=_renamed(entry.get("sequence_without", ""), receiver),
        integer_items=tuple(entry.get("integer_items", ())),
        makes=tuple(entry.get("makes", "").split()),
    )


def _renamed(names: str, receiver: bool) -> tuple[str, ...]:
    return tuple("input" if name == "self" and not receiver else name for name in names.split())


def _waits(entry: Entry) -> list[Wait]:
    waits = [_wait(*fields) for fields in entry.get("waits", ())]
    seen = {wait.when for wait in waits}
    for key, kind in (("sizes", FactKind.INDEX), ("scalars", FactKind.SCALAR_ARGUMENT)):
        for name in str(entry.get(key, "")).split():
            atoms = ("device", "device-in") if kind is FactKind.INDEX else ("device",)
            forms = ((f"{atom}:{name}",) for atom in atoms)
            waits += [Wait(kind, when, ARGUMENT_PARSER, measured=False, torch="any") for when in forms if when not in seen]
    return waits


def _wait(kind: str, when: str, evidence: str, torch: str = "") -> Wait:
    """Four fields are a belief with the versions it is held for; three are a measured call of the file in `MEASURED`."""
    return Wait(FactKind(kind), tuple(when.split()), evidence, measured=not torch, torch=torch or MEASURED_TORCH)


def _for_function(wait: Wait) -> Wait:
    when = tuple("input".join(atom.rsplit("self", 1)) if atom.endswith(":self") else atom for atom in wait.when)
    return wait if when == wait.when else Wait(wait.kind, when, wait.evidence, wait.measured, wait.torch)


@cache
def measurement() -> Measurement:
    head = json.loads((FOLDER / f"{MEASUREMENT}.json").read_text(encoding="utf-8"))
    return Measurement(head["gpu"], head["torch"], head["date"])


@cache
def measured_silent(evidence: str) -> bool:
    """Whether the evidence is, or names, a measured call that blocked while torch's sync debug mode said nothing."""
    return any(call in evidence for call in _silent_calls())


@cache
def _silent_calls() -> tuple[str, ...]:
    measured = json.loads((FOLDER / f"{MEASUREMENT}.json").read_text(encoding="utf-8"))
    return tuple(entry["call"] for entry in measured["calls"] if entry["blocks"] and not entry["debug_mode_warns"])
