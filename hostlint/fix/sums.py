"""Numbers that a loop reads to add or to collect them: kept on the device, and read once after the loop."""
from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlint.fix.loops import bindings_of, block_of, direct_loop, is_caught, loads_of, shared_with_nested, siblings_before
from hostlint.fix.reads import without_graph
from hostlint.model import Applicability, Confidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostlint.fix.loops import Function
    from hostlint.fix.outline import Loop
    from hostlint.fix.place import Place
    from hostlint.fix.reads import Read
    from hostlint.model import Edit, Fix

NEW = frozenset({"mean", "sum", "norm", "abs", "square", "sqrt", "max", "min", "exp", "log"})  # methods whose result has memory of its own
WHOLE_SUMS = frozenset({"sum", "count_nonzero", "argmax", "argmin", "numel"})  # int64 whatever they add up


# Running sums


@dataclass(frozen=True, slots=True)
class Sum:
    """`name += read`, or `name = name + read`: perhaps times and over factors, which are Python numbers or assumed to be."""

    name: str
    statement: ast.stmt
    factors: tuple[ast.expr, ...]
    divides: bool


def summed(place: Place, read: Read) -> Fix | None:
    """`total += loss.item()` to `total += loss.detach().double()`, and `total = float(total)` after the loop."""
    here = direct_loop(place)
    found = _sum(place, read) if here is not None else None
    if here is None or found is None or place.function is None:
        return None
    loop = here[0]
    start = _start(place, loop, found.name)
    whole = isinstance(start, int) and read.is_integer and read.how != "float" and not found.factors
    if start is None or not _is_local(place, loop, found.name) or len(bindings_of(loop, found.name)) != 1:
        return None
    converted = "int" if whole else "float"
    if isinstance(start, int) and not (whole or read.is_float or read.is_integer or _is_loss(loop, read)):
        return None  # a sum of ints would become a float
    if isinstance(start, int) and read.is_integer and not whole:
        return None
    looks = _looks(place, loop, found, converted)
    after = place.after(loop, f"{found.name} = {converted}({found.name})")
    if looks is None or after is None:
        return None
    added = without_graph(place, read) + (_long(read) if whole else ".double()")
    assumed = _assumed(place, loop, read, found, start, whole)
    what = "add on the device and read the sum once after the loop"
    kind = "in int64" if whole else "in float64, which gives the bits of Python's float sum"
    if not assumed:
        return place.fix(Applicability.EXACT, f"{what} ({kind})", place.replace(added), looks, after)
    return place.fix(Applicability.REVIEW, f"{what} ({kind}), where {' and '.join(assumed)}", place.replace(added), looks, after)


def _sum(place: Place, read: Read) -> Sum | None:
    match place.statement:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value) as statement:
            pass
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(ast.Name(id=same), ast.Add(), value)) as statement if name == same:
            pass
        case _:
            return None
    factors: list[ast.expr] = []
    divides = False
    while value is not read.node:
        match value:
            case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as operator, right=right) if left in place.path:
                divides = divides or isinstance(operator, ast.Div)
                factors, value = [*factors, right], left
            case ast.BinOp(left=left, op=ast.Mult(), right=right) if right in place.path:
                factors, value = [*factors, left], right
            case _:
                return None
    return Sum(name, statement, tuple(factors), divides)


def _assumed(place: Place, loop: Loop, read: Read, found: Sum, start: float, whole: bool) -> list[str]:
    """What the bits rest on, in words; nothing where all of it is proved."""
    source = place.outline.source(place.outline.span(read.tensor))
    assumed = []
    on_device = read.value.is_device and read.value.confidence is Confidence.CERTAIN
    proved = on_device and (_is_loss(loop, read) or (read.is_integer and read.is_proved_scalar))
    if not proved:
        assumed.append(f"`{source}` is one {'number' if whole else 'real number on a device that has float64 (MPS has not)'}")
    if isinstance(start, int) and not whole:
        assumed.append("a sum of no passes may be 0.0 instead of 0")
    if whole:
        assumed.append("the sum stays below 2**63")
    names = [place.outline.source(place.outline.span(one)) for one in found.factors if not is_number(one)]
    if names:
        assumed.append(f"{' and '.join(f'`{one}`' for one in names)} is a Python number")
    if found.divides:
        assumed.append("nothing is divided by 0 (an error before, inf now)")
    return assumed


def _is_loss(loop: Loop, read: Read) -> bool:
    """Whether `backward()` is called on it in every pass, which only one real number of a float dtype takes."""
    if not isinstance(read.tensor, ast.Name) or len(bindings_of(loop, read.tensor.id)) != 1:
        return False
    for statement in loop.body:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="backward"), args=[])) if name == read.tensor.id:
                return True
    return False


def is_number(node: ast.expr) -> bool:
    """Whether an expression can only be a Python number: a literal, a length, an element of a shape."""
    match node:
        case ast.Constant(value=int() | float()):
            return True
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant(value=int())):
            return True
        case ast.Call(func=ast.Name(id="len"), args=[_]) | ast.Call(func=ast.Attribute(attr="numel"), args=[]):
            return True
        case ast.Call(func=ast.Attribute(attr="size"), args=[_]):
            return True
    return False


def _long(read: Read) -> str:
    match read.tensor:
        case ast.Call(func=ast.Attribute(attr=name), keywords=[]) if name in WHOLE_SUMS:
            return ""
    return ".long()"


def _looks(place: Place, loop: Loop, found: Sum, converted: str) -> Sequence[Edit] | None:
    """Edits of the places in the loop that look at the sum so far; None where they cannot be told."""
    formatted = list(_formatted(loop))
    edits = []
    for node in loads_of(loop, found.name):
        text = next((one for one in formatted if node in ast.walk(one)), None)
        if text is not None:  # a 0-dim tensor is formatted as its number is; places in f-strings are known from 3.12 on only
            if text.conversion != -1 or any(isinstance(one, ast.Call) for one in ast.walk(text.value)):
                return None
        elif not any(node is one for one in ast.walk(found.statement)):
            edits.append(place.replace(f"{converted}({found.name})", node))
    return edits


def _formatted(loop: Loop) -> Iterator[ast.FormattedValue]:
    return (node for node in ast.walk(loop) if isinstance(node, ast.FormattedValue))


# What the loop starts from


def _is_local(place: Place, loop: Loop, name: str) -> bool:
    """Whether only this function sees the name, and nothing looks at it after a pass that failed."""
    function: Function | None = place.function
    if function is None or shared_with_nested(function, name):
        return False
    return not is_caught(place.path, loop) and not is_caught(place.path, place.path[-1])


def _start(place: Place, loop: Loop, name: str) -> float | None:
    """The number that a name holds when the loop begins; None where that is not certain."""
    path = place.path
    inner: ast.stmt = loop
    while True:
        for statement in siblings_before(path, inner):
            if bindings_of(statement, name):
                return _number(statement, name)
        outer = next((one for one in reversed(path[: path.index(inner)]) if isinstance(one, ast.stmt)), None)
        if outer is None or outer is place.function or not block_of(path, outer):
            return None
        if sum(len(bindings_of(one, name)) for one in ast.walk(outer) if one is outer) != len(bindings_of(loop, name)):
            return None  # something around the loop binds it too
        inner = outer


def _number(statement: ast.stmt, name: str) -> float | None:
    match statement:
        case ast.Assign(targets=targets, value=value):
            pairs = [pair for target in targets for pair in _paired(target, value)]
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            pairs = [(target, value)]
        case _:
            return None
    for one, given in pairs:
        if isinstance(one, ast.Name) and one.id == name and isinstance(given, ast.Constant):
            return given.value if isinstance(given.value, int | float) and not isinstance(given.value, bool) else None
    return None


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield target, value


# Lists


def kept_list(place: Place, read: Read) -> Fix | None:
    """`losses.append(loss.item())` to `losses.append(loss.detach().clone())`, and one `tolist()` after the loop."""
    here = direct_loop(place)
    match place.statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(id=name), "append"), args=[one], keywords=[])) if one is read.node:
            pass
        case _:
            return None
    if here is None or not _is_local(place, here[0], name) or not _starts_empty(place, here[0], name):
        return None
    loop = here[0]
    uses = len(loads_of(loop, name)) - sum(_is_length(node, name) for node in ast.walk(loop))
    spelled = place.spelled("torch.stack")
    if uses != 1 or bindings_of(loop, name) or spelled is None or read.how == "int":
        return None
    kept = without_graph(place, read)
    if read.how == "float":
        dtype = place.spelled("torch.float64")
        if dtype is None:
            return None
        kept += f".to({dtype.text}, copy=True)"
    elif not _is_new(read.tensor):
        kept += ".clone()"
    after = place.after(loop, f"{name}[:] = {spelled.text}({name}).tolist() if {name} else []")
    if after is None:
        return None
    source = place.outline.source(place.outline.span(read.tensor))
    assumed = f"`{source}` is a 0-dim tensor of one dtype and device in all passes"
    message = f"collect on the device and read all of them once after the loop, where {assumed}"
    return place.fix(Applicability.REVIEW, message, place.replace(kept), after, spelled.edits)


def _is_length(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=same)]):
            return name == same
    return False


def _is_new(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in NEW
    return isinstance(node, ast.BinOp)


def _starts_empty(place: Place, loop: Loop, name: str) -> bool:
    for statement in siblings_before(place.path, loop):
        match statement:
            case ast.Assign(targets=[ast.Name(id=same)], value=ast.List(elts=[])) if same == name:
                return True
            case ast.AnnAssign(target=ast.Name(id=same), value=ast.List(elts=[])) if same == name:
                return True
        if loads_of(statement, name) or bindings_of(statement, name):
            return False
    return False
