"""Which functions a parameter may hold because a call hands them in, followed through attributes and further calls."""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.schema import FunctionFlag, RegionKind
from hostlint.heat.kinds import Kind, Type
from hostlint.heat.nature import is_unused
from hostlint.heat.types import Typing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.facts.schema import Call, FunctionOutline
    from hostlint.heat.registries import Registries
    from hostlint.index import FunctionId, ProjectIndex

FEW = 4  # functions that a parameter may hold and its author have in mind; what is handed more is a tool for any function
ROUNDS = 5  # calls and attributes that a function goes through
TARGETS = 16  # functions that one call may run
_LAMBDA = "<lambda:"
Held = dict["FunctionId", dict[str, list[Type]]]


class Handed:
    """Follows functions round by round: what a parameter holds in one is handed on in the next."""

    def __init__(self, index: ProjectIndex, registries: Registries) -> None:
        self._index = index
        self._registries = registries
        self.functions: dict[FunctionId, None] = {}  # that some call hands on: who else calls them is not known
        self._files = [file for file, outline in enumerate(index.files) if not is_unused(outline)]
        # The names by which functions are known: their own at first, then those that they are handed on by.
        self._names = {function.name for file in self._files for function in index.files[file].functions}
        self._spread_names()

    def typing(self) -> Typing:
        """The types of the project, parameters that are handed functions among them."""
        held: Held = {}
        found: Held = {}
        typing = Typing(self._index, self._registries)
        for _ in range(ROUNDS):
            self._round(typing, found)
            few = {fid: {name: types[:] for name, types in params.items() if len(types) <= FEW} for fid, params in found.items()}
            if few == held:
                break
            held = few
            typing = Typing(self._index, self._registries, held)
            self._names = {name for params in held.values() for name in params}
            self._spread_names()
        return typing

    def _round(self, typing: Typing, found: Held) -> None:
        for file in self._files:
            for function in self._index.files[file].functions:
                for call in function.calls:
                    if call.passed:
                        self._call(typing, (file, function.index), call, found)

    def _call(self, typing: Typing, fid: FunctionId, call: Call, found: Held) -> None:
        placed = ((slot, self._functions(typing, fid, chain)) for chain, slot in zip(call.passed, call.slots, strict=True))
        handed = [(slot, types) for slot, types in placed if types]
        targets = list(self._targets(typing, fid, call)) if handed else []
        for target in targets if len(targets) <= TARGETS else ():
            function = self._index.function(target)
            for slot, types in handed:
                name = _parameter(function, slot)
                if name:
                    held = found.setdefault(target, {}).setdefault(name, [])
                    held.extend(each for each in types if each not in held)
                    self.functions.update((each.target, None) for each in types)

    def _functions(self, typing: Typing, fid: FunctionId, chain: str) -> list[Type]:
        if chain.startswith(_LAMBDA):
            return [Type(Kind.FUNCTION, (fid[0], int(chain[len(_LAMBDA) : -1])))]
        if chain.rpartition(".")[2] not in self._names:
            return []
        return [found for found in typing.of_chain(*fid, chain) if found.kind is Kind.FUNCTION and not found.depth]

    def _targets(self, typing: Typing, fid: FunctionId, call: Call) -> Iterator[FunctionId]:
        for found in typing.of_chain(*fid, call.chain):
            if found.depth:
                continue
            if found.kind is Kind.FUNCTION and not _keeps(self._index.function(found.target)):
                yield found.target
            elif found.kind is Kind.INSTANCE:
                yield from typing.calls_of(found)
            elif found.kind is Kind.CLASS and (made := self._index.find_method(found.target, "__init__")) is not None:
                yield made

    def _spread_names(self) -> None:
        """What is bound to something by one of the names has a name that counts, too."""
        for file in self._files:
            outline = self._index.files[file]
            bound = [pair for function in outline.functions for pair in function.assigns]
            bound += [(attribute[0], attribute[3]) for klass in outline.classes for attribute in klass.attributes]
            self._names.update(name for name, chain in bound if name.isidentifier() and chain.rpartition(".")[2] in self._names)


def _parameter(function: FunctionOutline, slot: str) -> str:
    """The parameter that an argument of a bound call is for, "" where it is not one of its own."""
    if not slot.isdecimal():
        return slot if any(param.name == slot and param.kind in ("positional", "keyword") for param in function.params) else ""
    position = int(slot) + int(function.owner >= 0 and not function.flags & FunctionFlag.STATIC)
    fits = position < len(function.params) and function.params[position].kind == "positional"
    return function.params[position].name if fits else ""


def _keeps(function: FunctionOutline) -> bool:
    """Whether a function calls a parameter of its own where its memo has no answer yet."""
    names = {param.name for param in function.params}
    return any(call.chain in names and _in_memo(function, call.region) for call in function.calls)


def _in_memo(function: FunctionOutline, region: int) -> bool:
    while region and function.regions[region].kind != RegionKind.MEMO:
        region = function.regions[region].parent
    return bool(region)
