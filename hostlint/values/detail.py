"""What is known of a Python object beyond its being one: literals, containers, devices, dtypes, functions, classes, instances."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.scopes import ClassId, FunctionId
    from hostlint.values.value import Value


@dataclass(frozen=True, slots=True)
class Detail:
    """Base of all details."""


@dataclass(frozen=True, slots=True)
class Literal(Detail):
    """A number, string, bool or None of the source; `type_name` also where the value itself was too long to keep."""

    type_name: str
    value: int | float | str | bool | None = None


@dataclass(frozen=True, slots=True)
class Items(Detail):
    """A tuple, list or set with known items."""

    kind: str
    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class ListOf(Detail):
    """A list, tuple, set, generator or dictionary of which only an element's value is known."""

    element: Value
    kind: str = "list"


@dataclass(frozen=True, slots=True)
class NoElements(Detail):
    """A tensor of nothing, of which no byte is ever copied."""


@dataclass(frozen=True, slots=True)
class Mapping(Detail):
    """A dictionary with known literal keys."""

    items: tuple[tuple[str | int | None, Value], ...]


@dataclass(frozen=True, slots=True)
class Device(Detail):
    """A device or its name; the Value's `place` of a tensor made on it is `on`."""

    on: str  # "device", "host" or "unknown"
    why: str = ""


@dataclass(frozen=True, slots=True)
class Dtype(Detail):
    name: str


@dataclass(frozen=True, slots=True)
class External(Detail):
    """A module, function or class outside the project, by its dotted name."""

    name: str


@dataclass(frozen=True, slots=True)
class ExternalInstance(Detail):
    """An object of a class outside the project, nearest class first, with the arguments that its constructor was given by name."""

    classes: tuple[str, ...]
    given: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared(Detail):
    """What a tokenizer or an image processor gives: a mapping of tensors that the host made."""


@dataclass(frozen=True, slots=True)
class Module(Detail):
    """A module of the project."""

    file: int


@dataclass(frozen=True, slots=True)
class Function(Detail):
    function: FunctionId
    receiver: Value | None = None


@dataclass(frozen=True, slots=True)
class Class(Detail):
    klass: ClassId


@dataclass(frozen=True, slots=True)
class Instance(Detail):
    klass: ClassId
    moved: bool = False  # by its own `to(device)`


@dataclass(frozen=True, slots=True)
class Super(Detail):
    klass: ClassId


@dataclass(frozen=True, slots=True)
class Method(Detail):
    """A method of a tensor, an outside object, a Python object or an unknown receiver."""

    receiver: Value
    name: str


@dataclass(frozen=True, slots=True)
class Partial(Detail):
    function: Value
    arguments: tuple[Value, ...]


def is_empty(value: Value) -> bool:
    """Whether something is a list without items, or a tensor that was made of one."""
    return isinstance(value.detail, NoElements) or (isinstance(value.detail, Items) and not value.detail.items)
