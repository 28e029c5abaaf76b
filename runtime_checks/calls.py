"""A call of torch, as it runs, judged by the table: does it make the host wait or upload, of which kind, on what evidence."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hostlint.facts.kinds import FactKind
from hostlint.runtime_checks.arguments import Facts, is_basic, is_integer, is_tensor, target_place
from hostlint.runtime_checks.call_names import Named, named
from hostlint.runtime_checks.events import EventKind
from hostlint.torch_ops import function as table_function
from hostlint.torch_ops import method as table_method
from hostlint.torch_ops.conditions import TARGET, ArgumentFacts, bind, split_atom, waits_of
from hostlint.torch_ops.table import ARGUMENT_PARSER, measured_silent

if TYPE_CHECKING:
    import torch

    from hostlint.torch_ops.spec import Op, Wait
    from hostlint.values.value import Place

    PlaceOf = Callable[[torch.Tensor], Place]

Raw = Any  # an argument of somebody else's call
Call = Callable[..., object]
_Atoms = tuple[tuple[str, str], ...]

_READS = (
    FactKind.ITEM, FactKind.SCALAR_CAST, FactKind.TRUTH_TEST, FactKind.HOST_COPY, FactKind.TOLIST, FactKind.FORMAT, FactKind.INDEX,
    FactKind.SCALAR_ARGUMENT, FactKind.TENSOR_OF_TENSORS, FactKind.EQUALITY,
)  # fmt: skip
_SIZES = (FactKind.NONZERO, FactKind.MASK_READ, FactKind.MASK_WRITE, FactKind.DATA_DEPENDENT_SIZE)
_HIDDEN = (FactKind.CHECKED_LINALG, FactKind.VALIDATED_DISTRIBUTION, FactKind.HIDDEN_WAIT)
_UPLOADS = (
    FactKind.UPLOAD_CONSTRUCTOR, FactKind.HOST_BUILT_MOVE, FactKind.BLOCKING_UPLOAD, FactKind.HOST_INDEX, FactKind.ELEMENT_WRITE,
    FactKind.HOST_OPERAND, FactKind.PAGEABLE_NON_BLOCKING,
)  # fmt: skip
# What a fact of the scan is at run time. Facts that are missing here (pinning, work redone) do not make the host wait for the device.
KINDS: Mapping[FactKind, EventKind] = {
    **dict.fromkeys(_READS, EventKind.READ),
    **dict.fromkeys(_SIZES, EventKind.DATA_DEPENDENT_SIZE),
    **dict.fromkeys(_HIDDEN, EventKind.HIDDEN_WAIT),
    **dict.fromkeys(_UPLOADS, EventKind.UPLOAD),
    FactKind.EXPLICIT_SYNCHRONIZE: EventKind.EXPLICIT_SYNC,
    FactKind.FLUSH: EventKind.FLUSH,
    FactKind.COLLECTION: EventKind.COLLECT,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One wait or upload of a call."""

    kind: EventKind
    fact: FactKind
    call: str  # as one would write it: `Tensor.item`, `torch.linalg.solve`
    evidence: str  # the measured expression, or the reason in words
    measured: bool  # the table says so by measurement
    silent: bool  # torch's sync debug mode does not report it


def judge_call(
    func: Call, args: Sequence[Raw], kwargs: Mapping[str, Raw] | None, place_of: PlaceOf, *, is_pinned: Callable[[Raw], bool] | None = None
) -> Verdict | None:
    """What the table says of this call, or None where it does not make the host wait.

    `func` is what a TorchFunctionMode gets. `place_of` says DEVICE or HOST for a tensor; `is_pinned` is asked of host tensors (torch's own
    by default). Nothing of the call is run, no device value is read. Call it where no function mode of your own is active.
    """
    form = _FORMS.get(func)
    if form is None:
        form = _FORMS[func] = _form_of(func)
    if form.op is None:
        return None
    return form.judge(args, kwargs or {}, Facts(place_of, is_pinned))


def judge_named(name: str, args: Sequence[Raw], kwargs: Mapping[str, Raw] | None, place_of: PlaceOf) -> Verdict | None:
    """The same for a call that is known by its dotted name (`torch.nn.utils.clip_grad_norm_`), or as `Class.method`."""
    form = _BY_NAME.get(name)
    if form is None:
        form = _BY_NAME[name] = _Form(Named.from_text(name))
    return None if form.op is None else form.judge(args, kwargs or {}, Facts(place_of, None))


def known_wait(func: Call, args: Sequence[Raw], kwargs: Mapping[str, Raw] | None, place_of: PlaceOf) -> Verdict:
    """The verdict on a call that is known to have waited: where no form of its entry fits, its first one, else a hidden wait."""
    found = judge_call(func, args, kwargs, place_of)
    if found is not None:
        return found
    form = _FORMS[func]
    waits = [wait for wait in form.op.waits if wait.kind in KINDS and wait.evidence != ARGUMENT_PARSER] if form.op is not None else []
    fact = waits[0].kind if waits else FactKind.HIDDEN_WAIT
    return Verdict(KINDS[fact], fact, form.name.spelled, "the host was seen to wait", measured=False, silent=False)


def bytes_moved(verdict: Verdict, args: Sequence[Raw], result: Raw) -> int | None:
    """Bytes that the call moved between host and device: the first argument's for what reads it whole, the result's for an upload."""
    if verdict.kind is EventKind.UPLOAD and verdict.fact is not FactKind.HOST_INDEX and verdict.fact is not FactKind.ELEMENT_WRITE:
        return _size(result)
    if verdict.fact in (FactKind.ITEM, FactKind.SCALAR_CAST, FactKind.TRUTH_TEST, FactKind.HOST_COPY, FactKind.TOLIST, FactKind.FORMAT):
        return _size(args[0] if args else None)
    return None


def _size(value: Raw) -> int | None:
    try:
        size = getattr(value, "nbytes", None)
    except RuntimeError:  # a sparse tensor has no one size
        return None
    return size if isinstance(size, int) else None


class _Form:
    """The entry of one function, with the forms that a number of arguments and a set of keywords leave possible."""

    __slots__ = ("_open", "judge", "name", "op")

    def __init__(self, name: Named) -> None:
        self.name = name
        self.op = name.op()
        self._open: dict[tuple[int, tuple[str, ...]], tuple[_Atoms, ...]] = {}
        if self.op is not None and name.subscript:
            self.judge: Callable[..., Verdict | None] = self._subscript
        else:
            self.judge = self._call
            if self.op is not None and not any(wait.kind in KINDS for wait in self.op.waits):
                self.op = None

    def _call(self, args: Sequence[Raw], kwargs: Mapping[str, Raw], facts: Facts) -> Verdict | None:
        op = self.op
        assert op is not None
        shape = (len(args), tuple(kwargs))
        forms = self._open.get(shape)
        if forms is None:
            forms = self._open[shape] = _open_forms(op, bind(op, args, kwargs))
        if not forms:
            return None
        given = bind(op, args, kwargs)
        if not any(all(facts.may_be(kind, given[name]) for kind, name in form) for form in forms):
            return None
        return self._verdict(op, given, facts)

    def _verdict(self, op: Op, given: Mapping[str, Sequence[Raw]], facts: Facts, *, element: bool = False) -> Verdict | None:
        asked = _asked(op)
        known = {name: tuple(facts.of(value) for value in values) for name, values in given.items() if name in asked}
        target = target_place(op, given, facts) if TARGET in asked else None
        if target is not None:
            known[TARGET] = (ArgumentFacts(place=target),)
        if element:
            known["index"] = tuple(facts.of(value, element=True) for value in given["index"])
        wait = next((wait for wait in waits_of(op, known) if wait.kind in KINDS), None)
        return None if wait is None else self._said(wait)

    def _said(self, wait: Wait) -> Verdict:
        return Verdict(KINDS[wait.kind], wait.kind, self.name.spelled, wait.evidence, wait.measured, measured_silent(wait.evidence))

    def _subscript(self, args: Sequence[Raw], kwargs: Mapping[str, Raw], facts: Facts) -> Verdict | None:
        """An index is judged part by part: slices by their bounds, the others by what they are."""
        op = self.op
        assert op is not None
        base, index, *value = args
        parts = index if isinstance(index, tuple) else (index,)
        element = bool(value) and sum(map(is_integer, parts)) == base.dim() and all(part is Ellipsis or is_integer(part) for part in parts)
        if element and base.dim() == 0:
            return self._verdict(op, {"self": (base,), "index": (Ellipsis,), "value": tuple(value)}, facts, element=True)
        for part in parts:
            if isinstance(part, slice):
                found = self._slice(part, facts)
            elif part is None or part is Ellipsis or (isinstance(part, (int, bool)) and not value):
                continue
            else:
                given = {"self": (base,), "index": (part,), **({"value": tuple(value)} if value else {})}
                found = self._verdict(op, given, facts, element=element)
            if found is not None:
                return found
        return self._copy(base, parts, value[0], facts, element) if value else None

    def _copy(self, base: Raw, parts: tuple[Raw, ...], value: Raw, facts: Facts, element: bool) -> Verdict | None:
        """A tensor written through integers and slices alone is copied; a 0-dim one fills more than one element."""
        if not is_tensor(value) or (value.dim() == 0 and not element) or not all(map(is_basic, parts)):
            return None
        op = table_method("copy_")
        assert op is not None
        return self._verdict(op, {"self": (base,), "src": (value,)}, facts)

    def _slice(self, part: slice, facts: Facts) -> Verdict | None:
        if all(bound is None or isinstance(bound, int) for bound in (part.start, part.stop, part.step)):
            return None
        op = table_function("op.slice")
        assert op is not None
        return self._verdict(op, {"start": (part.start,), "stop": (part.stop,), "step": (part.step,)}, facts)


_FORMS: dict[Call, _Form] = {}
_BY_NAME: dict[str, _Form] = {}
_ASKED: dict[int, tuple[Op, frozenset[str]]] = {}
_MISSING_IS_ENOUGH = frozenset({"absent", "untrue", "to"})


def _form_of(func: Call) -> _Form:
    return _Form(named(func))


def _open_forms(op: Op, given: Mapping[str, Sequence[Raw]]) -> tuple[_Atoms, ...]:
    """The forms whose names are all among those given, as the conditions on these names."""
    forms = [[split_atom(atom) for atom in wait.when] for wait in op.waits if wait.kind in KINDS]
    needed = [tuple((kind, name) for kind, name in form if kind not in _MISSING_IS_ENOUGH) for form in forms]
    return tuple(form for form in needed if all(name in given for _, name in form))


def _asked(op: Op) -> frozenset[str]:
    """The names that an entry's forms speak of; facts about other arguments need not be gathered."""
    found = _ASKED.get(id(op))
    if found is None:
        pairs = [split_atom(atom) for wait in op.waits for atom in wait.when]
        names = frozenset(TARGET if kind == "to" else name for kind, name in pairs)
        found = _ASKED[id(op)] = (op, names)
    return found[1]
