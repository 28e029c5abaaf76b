"""Which of several functions a call can run at all: those that take its arguments, on objects whose class runs the caller."""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.schema import FunctionFlag
from hostlint.heat import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.facts.schema import Call, FunctionOutline
    from hostlint.index import ClassId, FunctionId, ProjectIndex

# Decorators that leave the parameters as they are; what another one makes of them is not known.
_SAME_PARAMETERS = frozenset({
    "abstractmethod", "abc.abstractmethod", "classmethod", "staticmethod", "property", "override", "final", "torch.no_grad()",
    "torch.no_grad", "torch.inference_mode()", "torch.inference_mode", "torch.compile", "torch.compile()", "torch.jit.script",
    "torch.enable_grad()",
})  # fmt: skip


def takes(function: FunctionOutline, call: Call) -> bool:
    """Whether a call with these arguments fits the function's parameters."""
    if call.given < 0 or not _SAME_PARAMETERS.issuperset(function.decorators):
        return True
    return any(_fits(function, call.given + receiver, call.keywords) for receiver in _receivers(function, call.chain))


def _receivers(function: FunctionOutline, chain: str) -> tuple[int, ...]:
    """How many arguments there may be beside those that the call writes: the object of a method, save in `Base.method(self)`."""
    if function.owner < 0 and not function.parent:
        return (0,)
    if function.flags & FunctionFlag.STATIC:
        return (0,)
    on_object = function.owner >= 0 and "." in chain and not words.receiver_name(chain)[:1].isupper()
    return (1,) if on_object else (0, 1)


def _fits(function: FunctionOutline, given: int, keywords: Sequence[str]) -> bool:
    kinds = {param.kind for param in function.params}
    placed = [param for param in function.params if param.kind == "positional"]
    if given > len(placed) and "*" not in kinds:
        return False
    filled, named = {param.name for param in placed[:given]}, set(keywords)
    left = [*placed[given:], *(param for param in function.params if param.kind == "keyword")]
    if named & filled or not (named <= {param.name for param in left} or "**" in kinds):
        return False
    return all(param.default >= 0 or param.name in named for param in left)


class Possible:
    """The targets of a call that are left when what cannot be is taken away."""

    def __init__(self, index: ProjectIndex) -> None:
        self._index = index
        self._running: dict[FunctionId, frozenset[ClassId] | None] = {}

    def taking(self, found: Sequence[FunctionId], call: Call) -> list[FunctionId]:
        return [fid for fid in found if takes(self._index.function(fid), call)]

    def on_self(self, caller: FunctionId, found: Sequence[FunctionId], chain: str) -> list[FunctionId]:
        """Of what `self.name()` may run, what belongs to an object on which the caller runs: a class that overrides the caller, and never
        calls what it overrides, runs its own."""
        function = self._index.function(caller)
        receiver, _, name = chain.partition(".")
        if function.owner < 0 or function.flags & FunctionFlag.STATIC or not function.params or function.params[0].name != receiver:
            return list(found)
        classes = self._classes(caller)
        if classes is None or "." in name:
            return list(found)
        runs = {self._index.find_method(klass, name) for klass in classes}
        below = self._index.subclasses((caller[0], function.owner))
        return [fid for fid in found if fid in runs or self._index.owner(fid) not in below]  # what an attribute holds stays

    def _classes(self, caller: FunctionId) -> frozenset[ClassId] | None:
        """The classes on whose objects a method runs; None where all that have it do."""
        if caller not in self._running:
            owner = (caller[0], self._index.function(caller).owner)
            below = self._index.subclasses(owner)
            running = frozenset(klass for klass in below if self._runs(klass, owner, caller))
            self._running[caller] = None if len(running) == len(below) else running | {owner}
        return self._running[caller]

    def _runs(self, klass: ClassId, owner: ClassId, caller: FunctionId) -> bool:
        name = self._index.function(caller).name
        if self._index.find_method(klass, name) == caller:
            return True
        between = [each for each in self._index.mro(klass) if each != owner and owner in self._index.mro(each)]
        return any(self._calls_parent(each, name) for each in between)

    def _calls_parent(self, cid: ClassId, name: str) -> bool:
        """Whether a method of the class calls a base's method of that name: `super().name()`, `Base.name(self)`."""
        functions = self._index.files[cid[0]].functions
        methods = (functions[method] for _, method in self._index.klass(cid).methods)
        return any(
            words.last_name(call.chain) == name and "." in call.chain and not call.chain.startswith(("self.", "cls."))
            for method in methods
            for call in method.calls
        )
