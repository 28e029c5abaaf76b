"""The arguments of a call, by position, keyword and the names of the table."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlint.torch_ops import conditions
from hostlint.values.lattice import is_none

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hostlint.torch_ops.spec import Op
    from hostlint.values.value import Value


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call: its value, the name it was read through, and its node."""

    value: Value
    name: str = ""
    node: int = -1


@dataclass(frozen=True, slots=True)
class Bound:
    """A call's arguments by the parameter names of the table's entry; `*name` parameters hold several."""

    by_name: Mapping[str, Sequence[Argument]]
    starred: bool = False

    def get(self, name: str) -> Argument | None:
        given = self.by_name.get(name)
        return given[0] if given else None

    def given(self, name: str) -> bool:
        return any(not is_none(argument.value) for argument in self.by_name.get(name, ()))

    def values(self) -> list[Value]:
        return [argument.value for name, given in self.by_name.items() if name != "device" for argument in given]


def bind(op: Op, positional: Sequence[Argument], keywords: Sequence[tuple[str, Argument]], starred: bool) -> Bound:
    """The arguments by the names of the table's entry; `starred` where the call has more of them than the source shows."""
    return Bound(conditions.bind(op, positional, dict(keywords)), starred)
