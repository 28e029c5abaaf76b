"""Numbers of a configuration (`config.means`) that are uploaded again and again: one upload for their values, device and dtype."""
from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlint.fix.hoist import expression
from hostlint.fix.kept_text import assumed_defaults
from hostlint.fix.loops import bindings_of, bound_in, chain, own, shared_with_nested, written_in
from hostlint.fix.memo import TABLE
from hostlint.fix.sums import is_number
from hostlint.model import Applicability
from hostlint.values.constancy import CONFIGS
from hostlint.values.detail import Device, Literal
from hostlint.values.value import Place as Lives

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.fix.loops import Function
    from hostlint.fix.place import Place
    from hostlint.model import Edit, Fix
    from hostlint.values.value import Value

SHAPING = frozenset({"view", "reshape", "unsqueeze", "float", "double", "half", "bfloat16"})
PLACES = frozenset({"device", "dtype"})


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What is uploaded, as a key, and whether the function itself shows that it is a flat row of numbers."""

    data: ast.expr
    key: str
    shown: bool = False


def kept_attribute(place: Place) -> Fix | None:
    """`torch.tensor(config.means, device=d)` to `kept_table(tuple(config.means), device=d)`; `new_tensor` and moved ones too."""
    node = expression(place)
    if node is None or place.function is None or place.outline.meaning("torch", ()) != "torch":
        return None
    cache = place.spelled("functools.lru_cache")
    there = any(isinstance(one, ast.FunctionDef) and one.name == "kept_table" for one in place.outline.tree.body)
    if cache is None or ("made_table" in place.outline.names and not there):
        return None
    helper = place.helper("kept_table", TABLE.format(cache=cache.text))
    found = _edits(place, node, helper.text)
    if found is None:
        return None
    numbers, edits = found
    name = _source(place, numbers.data)
    assumed = "" if numbers.shown else f"`{name}` is a flat list of Python numbers and "
    shared = f"nothing writes into the one tensor that all calls share{assumed_defaults(node)}"
    message = f"upload it once for its values, device and dtype, where {assumed}{shared}"
    return place.fix(Applicability.REVIEW, message, edits, helper.edits, cache.edits)


def _edits(place: Place, node: ast.expr, helper: str) -> tuple[_Numbers, list[Edit]] | None:
    """The numbers, and what asks the function for their tensor."""
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr="new_tensor"), args=[data], keywords=[]) if chain(base):
            numbers = _numbers(place, data, place.known.argument(0))
            if numbers is None:
                return None
            of = _source(place, base)
            return numbers, [place.replace(f"{helper}({numbers.key}, {of}.device, {of}.dtype)", node)]
        case ast.Call(func=ast.Attribute() as function, args=[data], keywords=keywords) if _is_tensor(place, function):
            if "device" not in {one.arg for one in keywords} or not {one.arg for one in keywords} <= PLACES:
                return None
            numbers = _numbers(place, data, place.known.argument(0))
            return None if numbers is None else (numbers, [place.replace(helper, function), place.replace(numbers.key, data)])
        case ast.Call(func=ast.Attribute(value=inner, attr="to")) as move:
            return _moved(place, move, inner, helper)
    return None


def _moved(place: Place, move: ast.Call, inner: ast.expr, helper: str) -> tuple[_Numbers, list[Edit]] | None:
    """`torch.tensor(config.means).view(1, -1).to(d, t)` to `kept_table(tuple(config.means), d).view(1, -1).to(d, t)`."""
    made, known = _innermost(inner), place.known.base
    device = _device(place, move)
    if device is None or not isinstance(made.func, ast.Attribute) or not _is_tensor(place, made.func) or len(made.args) != 1:
        return None
    if not {one.arg for one in made.keywords} <= {"dtype"}:
        return None
    for _ in range(_depth(inner, made)):
        known = known.base
    numbers = _numbers(place, made.args[0], known.argument(0))
    if numbers is None:
        return None
    text = f"{numbers.key}, {_source(place, device)}"
    return numbers, [place.replace(helper, made.func), place.replace(text, made.args[0])]


def _device(place: Place, move: ast.Call) -> ast.expr | None:
    """What `.to(…)` is told as a device; None where that may be something else."""
    given = {one.arg: one.value for one in move.keywords}
    if not given.keys() <= {"device", "dtype", "non_blocking"}:
        return None
    device = given.get("device") or (move.args[0] if move.args else None)
    if device is None or not isinstance(device, ast.Name | ast.Attribute | ast.Constant):
        return None
    value = place.known.keyword("device") if "device" in given else place.known.argument(0)
    named = (device.attr if isinstance(device, ast.Attribute) else getattr(device, "id", "")).lower().endswith("device")
    proved = isinstance(value.detail, Device) or (isinstance(value.detail, Literal) and value.detail.type_name == "str")
    return device if named or proved else None


def _innermost(node: ast.expr) -> ast.Call:
    """The call that makes what methods of shape and dtype are called on."""
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr=name)) if name in SHAPING:
                node = inner
            case ast.Call():
                return node
            case _:
                return ast.Call(ast.Name("unknown", ast.Load()), [], [])


def _depth(node: ast.expr, made: ast.Call) -> int:
    """How many methods stand between a call and what is made from it."""
    depth = 0
    while node is not made and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node, depth = node.func.value, depth + 1
    return depth


def _is_tensor(place: Place, function: ast.Attribute) -> bool:
    return function.attr == "tensor" and place.outline.meaning(chain(function.value), place.path) == "torch"


# What the numbers are


def _numbers(place: Place, data: ast.expr, value: Value) -> _Numbers | None:
    """The numbers as a key: of an attribute, of a constant of the module, of a row that the function itself writes down."""
    if value.is_tensor or value.place is Lives.NUMPY or place.function is None:
        return None
    source, name = _source(place, data), chain(data)
    match data:
        case ast.Attribute() if name and not any(f"{one}.".startswith(f"{name}.") for one in written_in(place.function)):
            return _Numbers(data, f"tuple({source})") if _is_configured(place.function, data) else None
        case ast.Name(id=name) if name not in bound_in(place.function):
            rows = list(_module_rows(place.outline.tree, name))
            return _Numbers(data, f"tuple({source})", rows == [True]) if len(rows) == 1 and rows[0] is not False else None
        case ast.Name(id=name):
            row = _written_down(place.function, name)
            if row is not None:
                return _Numbers(data, source if isinstance(row, ast.Tuple) else f"tuple({source})", all(map(_is_plain, row.elts)))
    return None


def _is_configured(function: Function, data: ast.Attribute) -> bool:
    """Whether an attribute is one of the object itself or of a configuration: what else hangs on others changes with them."""
    root, *parts = chain(data).split(".")
    if root == "self":
        return True
    bound = bindings_of(function, root)
    value = next((one.value for one in ast.walk(function) if isinstance(one, ast.Assign) and one.targets == bound), None)
    given = chain(value).split(".") if len(bound) == 1 and value is not None else []
    return any(word in CONFIGS for one in (root, *given, *parts[:-1]) for word in one.lower().split("_"))


def _module_rows(tree: ast.Module, name: str) -> Iterator[bool | None]:
    """For each binding of a name in the module: True for a row of numbers, None for what is imported, False for anything else."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Global) and name in node.names:
            yield False
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=value) if chain(target) == name:
                yield isinstance(value, ast.List | ast.Tuple) and all(map(_is_plain, value.elts))
            case ast.ImportFrom() if name in bound_in(statement):
                yield None
            case _ if name in bound_in(*own(statement)):
                yield False


def _written_down(function: Function, name: str) -> ast.List | ast.Tuple | None:
    """The row of numbers and attributes to which a function binds a name, once, and which it never writes to."""
    bound = bindings_of(function, name)
    parameters = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
    handed = [one for one in ast.walk(function) if isinstance(one, ast.Attribute) and chain(one.value) == name]  # `row.append(1)`
    if len(bound) != 1 or name in parameters or shared_with_nested(function, name) or name in written_in(function) or handed:
        return None
    for node in own(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.List(elts=parts) | ast.Tuple(elts=parts) as row) if target == name:
                lasting = all(_is_plain(one) or (isinstance(one, ast.Attribute) and chain(one).startswith("self.")) for one in parts)
                return row if parts and lasting else None
    return None


def _is_plain(node: ast.expr) -> bool:
    return is_number(node.operand if isinstance(node, ast.UnaryOp) else node)


def _source(place: Place, node: ast.expr) -> str:
    return place.outline.source(place.outline.span(node))
