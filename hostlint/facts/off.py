"""What a function does not do unless its caller asks: parameters, and attributes taken from such, that are None or False by default."""
from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hostlint.facts.graph import Op

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.facts.builder import FunctionBuilder
    from hostlint.facts.schema import Param


def off_by_default(b: FunctionBuilder) -> dict[str, bool]:
    """The parameters that are None or False by default, and what they were given; attributes that construction sets to such a parameter.
    Each with whether it is a switch of the function's own: a parameter that is False."""
    env = b.env or {}
    defaults = ((param.name, _default(b, param)) for param in b.params)
    off = {name: default == ("bool", False) for name, default in defaults if default in (("NoneType", None), ("bool", False))}
    if b.off_attributes is None:
        b.off_attributes = frozenset(_off_attributes(b))
    given = {name: switch for name, switch in off.items() if b.nodes[env.get(name, 0)][0] == Op.PARAM}
    return given | dict.fromkeys((name for name in b.off_attributes if name not in env), False)


def _default(b: FunctionBuilder, param: Param) -> tuple[object, ...]:
    """The type and value of a default that is a constant."""
    node = b.file.functions[b.parent].nodes[param.default] if param.default >= 0 else (-1,)
    return node[2:] if node[0] == Op.CONST else ()


def _off_attributes(b: FunctionBuilder) -> Iterator[str]:
    """`self.check` of a method, where `__init__` takes it from an argument that is False by default."""
    if b.owner < 0 or not b.self_name or b.name == "__init__":
        return
    for name, function, value, _ in b.file.classes[b.owner].attributes:
        made = b.file.functions[function]
        node = made.nodes[value] if made.name == "__init__" else (-1,)
        if node[0] == Op.PARAM and _default(made, made.params[cast("int", node[2])]) == ("bool", False):
            yield f"{b.self_name}.{name}"
