"""What an atom of `Wait.when` means, on plain facts about the arguments of one call."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from hostlint.values.value import Place

if TYPE_CHECKING:
    from hostlint.torch_ops.spec import Op, Wait

TARGET = "->"  # the key under which a call's target (device=, the argument of `to`, cuda()) stands among the arguments
NOT_LITERAL = "?"


@dataclass(frozen=True, slots=True)
class ArgumentFacts:
    """What is known of one argument. None and False mean "not known" except where a comment says otherwise."""

    place: Place = Place.UNKNOWN
    rank0: bool | None = None
    boolean: bool | None = None
    integer: bool | None = None
    sequence: bool = False  # a Python list or tuple
    holds_device: bool = False  # a container that holds a device tensor, or an object made of one
    pinned: bool = False
    large: bool = False
    fresh: bool = False  # host data that this function built
    literal: str = NOT_LITERAL  # "True", "False", "None" where the source says so
    element: bool = False  # as an index: known to select exactly one element
    empty: bool = False  # known to hold no element: nothing is copied
    evaluating: bool = False  # a module known to be in evaluation mode
    holds_host: bool = False  # a container that holds a host tensor
    strided: bool = False  # known not to fill one block of memory: a transposed view, a column, every second item
    sparse: bool = False  # a tensor known to have a sparse layout


Given = TypeVar("Given")  # what a caller knows of one argument
Arguments = Mapping[str, Sequence[ArgumentFacts]]  # a name to what was given for it: one value, or all that `*name` took

_TESTS: dict[str, Callable[[ArgumentFacts], bool]] = {
    "device": lambda a: a.place is Place.DEVICE,
    "device-in": lambda a: a.holds_device,
    "host": lambda a: a.place is Place.HOST and not a.empty,
    "numpy": lambda a: a.place is Place.NUMPY,
    "pydata": lambda a: a.place is Place.PYTHON and not (a.holds_device or a.empty) and a.literal != "None",
    "unplaced": lambda a: a.place is Place.UNKNOWN,
    "pylist": lambda a: a.place is Place.PYTHON and a.sequence and not a.empty,
    "true": lambda a: a.literal == "True",
    "false": lambda a: a.literal == "False",
    "none": lambda a: a.literal == "None",
    "boolean": lambda a: a.boolean is True,
    "integer": lambda a: a.integer is True,
    "rank0": lambda a: a.rank0 is True,
    "not-rank0": lambda a: a.rank0 is not True,
    "pinned": lambda a: a.pinned,
    "pageable": lambda a: not a.pinned,
    "large": lambda a: a.large,
    "fresh": lambda a: a.fresh,
    "element": lambda a: a.element,
    "evaluating": lambda a: a.evaluating,
    "host-in": lambda a: a.holds_host,
    "strided": lambda a: a.strided,
    "sparse": lambda a: a.sparse,
    "not-sparse": lambda a: not a.sparse,
}
_TARGETS = {"device": Place.DEVICE, "host": Place.HOST}
ATOMS = frozenset({*_TESTS, "absent", "given", "untrue", "not-false", "to"})


def split_atom(atom: str) -> tuple[str, str]:
    """`device:self` as ("device", "self"); raises ValueError for what is no atom."""
    kind, separator, name = atom.partition(":")
    if not separator or not name or kind not in ATOMS or (kind == "to" and name not in _TARGETS):
        raise ValueError(f"not a condition of the torch table: {atom!r}")
    return kind, name


def holds(atom: str, arguments: Arguments) -> bool:
    """Whether one condition of a form is known to be met."""
    kind, name = split_atom(atom)
    if kind == "to":
        return any(given.place is _TARGETS[name] for given in arguments.get(TARGET, ()))
    given = arguments.get(name, ())
    if kind in ("absent", "given"):
        return any(one.literal != "None" for one in given) is (kind == "given")
    if kind == "not-false":
        return not any(one.literal == "False" for one in given)
    if kind == "untrue":
        return not given or all(one.literal == "False" for one in given)
    return any(map(_TESTS[kind], given))


def waits_of(op: Op, arguments: Arguments) -> Iterator[Wait]:
    """The forms of `op` that this call has, the most telling first."""
    return (wait for wait in op.waits if all(holds(atom, arguments) for atom in wait.when))


def bind(op: Op, positional: Sequence[Given], keywords: Mapping[str, Given]) -> dict[str, Sequence[Given]]:
    """Names the arguments as `op.params` does; `*name` takes the positional ones that are left, `**name` the keywords without a name."""
    bound: dict[str, Sequence[Given]] = {}
    for index, param in enumerate(op.params):
        if param.startswith("**"):
            bound[param[2:]] = tuple(given for name, given in keywords.items() if name not in op.params)
        elif param.startswith("*"):
            bound[param[1:]] = tuple(positional[index:])
            positional = ()
        elif index < len(positional):
            bound[param] = (positional[index],)
    bound.update((name, (given,)) for name, given in keywords.items())
    return bound
