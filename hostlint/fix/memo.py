"""Constants that are made in every step: kept by a function of the module, for each shape, dtype and device."""
from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from hostlint.fix.hoist import STRUCTURE, expression, hoist_edits
from hostlint.fix.kept_text import REDUCED, assumed_defaults, kept_call
from hostlint.fix.loops import chain, changing_names, names_in
from hostlint.fix.sums import is_number
from hostlint.model import Applicability, HeatLevel, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostlint.fix.place import Place
    from hostlint.model import Edit, Fix

KEEPER = '''
KEPT = {}


def kept(make, *key):
    """`make(*key)`, made once for each key and then shared: nothing may write into it. A compiler and a capture make their own."""
    captures = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
    if captures or torch.compiler.is_compiling():
        return make(*key)
    name = (make.__code__, *key, *map(type, key))
    found = KEPT.get(name)
    if found is None:
        if len(KEPT) >= 64:
            KEPT.clear()
        with torch.inference_mode(False):
            found = KEPT[name] = make(*key)
    return found
'''
# the words in the key tell 1 from 1.0 and 0.0 from -0.0
TABLE = '''
@{cache}(maxsize=64)
def made_table(values, words, device, dtype):
    with torch.inference_mode(False):
        return torch.tensor(values, device=device, dtype=dtype)


def kept_table(values, device, dtype=None):
    """`torch.tensor(values, ...)`, made once for each key and then shared: nothing may write into it. A capture makes its own."""
    captures = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
    make = made_table.__wrapped__ if captures or torch.compiler.is_compiling() else made_table
    return make(values, str(values), device, dtype)
'''
COMPUTED = frozenset({"exp", "exp2", "pow", "cos", "sin", "sqrt", "rsqrt", "log", "reciprocal", "tril", "triu", "float_power"})
SHAPING = COMPUTED | {"float", "double", "half", "long", "unsqueeze", "view", "reshape", "neg"}
SIZES = frozenset({"size", "dim", "numel", "get_device"})
PLACES = ("device", "dtype")
FACTORIES = frozenset({"arange", "linspace", "logspace", "zeros", "ones", "full", "eye"})
WORKED_OUT = FACTORIES | frozenset(
    {"cat", "stack", "outer", "exp", "exp2", "log", "pow", "sin", "cos", "sqrt", "rsqrt", "reciprocal", "neg", "flip", "repeat", "expand"}
    | {"view", "reshape", "unsqueeze", "flatten", "t", "float", "double", "to", "cuda", "device"}
)  # what torch and tensors compute here from numbers alone, with the same result each time


def hoisted_or_kept(place: Place) -> Fix | None:
    """A constant that a step makes again: before its loop where it stands in one, else kept."""
    chain_ = place.fact.heat.chain
    if place.fact.heat.level is HeatLevel.LOOP and len(chain_) == 1 and place.loops:
        edits = hoist_edits(place, chain_[-1].line)
        assumed = "no call in the loop writes into the one result that all passes share"
        return place.fix(Applicability.REVIEW, f"make it once before the loop, where {assumed}", edits) if edits is not None else None
    return kept(place)


def kept(place: Place) -> Fix | None:
    """`torch.arange(n, device=x.device)` to `kept(lambda n, device: torch.arange(n, device=device), n, x.device)`."""
    found = expression(place)
    first = _kept(place, _widened(place, found)) or _kept(place, found) if found is not None else None
    if first is None:
        return None
    fixes = (first, *_others(place))
    edits = dict.fromkeys(edit for fix in fixes for edit in fix.edits)
    return replace(first, message=max((fix.message for fix in fixes), key=len), edits=tuple(edits))  # the longest assumes most


def _others(place: Place) -> Iterator[Fix]:
    """The fixes that keep the other constants that are told with this one."""
    for span in place.fact.repeated.others if place.fact.repeated is not None else ():
        other = replace(place, fact=replace(place.fact, span=span))
        node = expression(other)
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name)) if name in FACTORIES:
                fix = _kept(other, _widened(other, node)) or _kept(other, node)
                yield from [fix] if fix is not None else []


def _kept(place: Place, node: ast.expr) -> Fix | None:
    if place.function is None or any(isinstance(one, STRUCTURE) for one in ast.walk(node)):
        return None
    if place.outline.meaning("torch", ()) != "torch" or place.outline.meaning("torch", place.path) != "torch":
        return None
    keys = _keys(place, node)
    if keys is None:
        return None
    helper = _keeper(place)
    text = kept_call(place, node, helper[0], keys)
    if text is None:
        return None
    what = "keep it for each shape, dtype and device" if keys else "keep it"
    assumed = f"nothing writes into the one tensor that all calls share{assumed_defaults(node)}"
    return place.fix(Applicability.REVIEW, f"{what}, where {assumed}", place.replace(text, node), helper[1])


def _widened(place: Place, node: ast.expr) -> ast.expr:
    """The constant with all that is computed from it and numbers alone: of `torch.exp(torch.arange(n) * -0.1)` the whole."""
    numbers = names_in(*[one for call in ast.walk(node) if isinstance(call, ast.Call) for one in call.args if isinstance(one, ast.Name)])
    method: ast.expr | None = None
    for outer in reversed(place.path[:-1]):
        match outer:
            case ast.BinOp(left=left, right=right) if node in (left, right) and _is_number(right if left is node else left, numbers):
                node, method = outer, None
            case ast.Call(func=ast.Attribute() as function, args=arguments, keywords=[]) if node in arguments:
                if not _is_torchs(place, function) or not all(one is node or _is_number(one, numbers) for one in arguments):
                    break
                node, method = outer, None
            case ast.Attribute(value=value, attr=name) if value is node and name in SHAPING:
                method = outer
            case ast.Subscript(value=value, slice=ast.Slice(lower, upper, None)) if value is node:
                if not all(one is None or _is_number(one, numbers) for one in (lower, upper)):
                    break
                node, method = outer, None
            case ast.Call(func=called, args=arguments, keywords=[]) if called is method:
                if not all(_is_number(one, numbers) for one in arguments):
                    break
                node, method = outer, None
            case _:
                break
    return node


def _is_torchs(place: Place, function: ast.Attribute) -> bool:
    root = function.value
    return isinstance(root, ast.Name) and place.outline.meaning(root.id, place.path) == "torch" and function.attr in COMPUTED


def _is_number(node: ast.expr, numbers: frozenset[str]) -> bool:
    """Whether an expression is made of literals, of names that a size is made of, and of what `math` makes of any."""
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name in numbers
        case ast.UnaryOp(operand=inner):
            return _is_number(inner, numbers)
        case ast.BinOp(left=left, right=right):
            return _is_number(left, numbers) and _is_number(right, numbers)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math")), args=arguments):
            return all(isinstance(one, ast.Constant | ast.Name) for one in arguments)
    return False


def _keeper(place: Place) -> tuple[str, tuple[Edit, ...]]:
    """The name of the function that keeps, and what adds it to the module."""
    if not {"KEPT", "kept"} & place.outline.names or _is_there(place):
        spelled = place.helper("kept", KEEPER)
        return spelled.text, spelled.edits
    store, name = place.fresh("KEPT_TENSORS"), place.fresh("kept_tensor")
    spelled = place.helper(name, KEEPER.replace("KEPT", store).replace("def kept(", f"def {name}("))
    return spelled.text, spelled.edits


def _is_there(place: Place) -> bool:
    wanted = ast.dump(ast.parse(KEEPER).body[-1])
    return any(ast.dump(one) == wanted for one in place.outline.tree.body)


def _keys(place: Place, node: ast.expr) -> list[ast.expr] | None:
    """The parts of a constant that may differ from call to call, in order; None where one may be no plain value."""
    found: list[ast.expr] = []
    for part in _parts(node, changing_names(place, node)):
        if part is None or not _is_plain(place, node, part):
            return None
        found.append(part)
    return found


def _parts(node: ast.AST, local: frozenset[str]) -> Iterator[ast.expr | None]:
    """The largest expressions that read a name of the function: names, attributes, elements of shapes, sizes."""
    match node:
        case ast.Name(id=name):
            if name in local:
                yield node
        case ast.Attribute(value=value) if chain(value):
            if names_in(node) & local:
                yield node
        case ast.Subscript(value=value, slice=ast.Constant() | ast.UnaryOp()) if chain(value):
            yield from [node] if names_in(node) & local else []  # the element: a list is no key
        case ast.Call(func=ast.Name(id=name)) if name in REDUCED:
            yield from [node] if names_in(node) & local else []
        case ast.Call(func=ast.Attribute(value=value, attr=method), args=given) if method in SIZES and chain(value):
            yield node if all(isinstance(one, ast.Constant | ast.UnaryOp) for one in given) else None
        case ast.Call():
            yield from _parts_of_call(node, local)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _parts(child, local)


def _parts_of_call(call: ast.Call, local: frozenset[str]) -> Iterator[ast.expr | None]:
    if isinstance(call.func, ast.Attribute) and not chain(call.func):
        yield from _parts(call.func.value, local)  # a method of what is made here
    elif names_in(call.func) & local:
        yield None  # a function that may be another one next time
    for one in (*call.args, *(keyword.value for keyword in call.keywords)):
        yield from _parts(one, local)


def _is_plain(place: Place, node: ast.expr, part: ast.expr) -> bool:
    """Whether a part is a number, a dtype or a device: by what it reads, or by where it stands."""
    match part:
        case ast.Subscript(value=ast.Attribute(attr="shape")) | ast.Call():
            return True
        case ast.Attribute(attr=name) if name in PLACES or name.endswith(PLACES):
            return True
        case ast.Name(id=name) if name.endswith(PLACES):
            return True
    for outer in ast.walk(node):
        match outer:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math")), args=arguments) if part in arguments:
                return True
            case ast.Call(func=ast.Attribute() as function, args=arguments, keywords=keywords):
                if part in [one.value for one in keywords if one.arg in PLACES]:
                    return True
                factory = chain(function).startswith("torch.") and function.attr not in ("tensor", "as_tensor")
                if factory and any(ast.dump(part) == ast.dump(sub) for one in _values(arguments, keywords) for sub in ast.walk(one)):
                    return all(not isinstance(one, ast.Call) or _holds_no_tensor(one) for one in arguments)
    return False


def _values(arguments: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> list[ast.expr]:
    return [*arguments, *(one.value for one in keywords)]


def _holds_no_tensor(call: ast.Call) -> bool:
    return chain(call.func).startswith("torch.") or isinstance(call.func, ast.Name)


def kept_list(place: Place) -> Fix | None:
    """`torch.tensor([0.1, 0.2], device=d)`, of literals and sizes: before its loop, or kept by a function for each device."""
    node, chain_ = expression(place), place.fact.heat.chain
    match node:
        case ast.Call(func=ast.Attribute() as function, args=[ast.List() | ast.Tuple() as data], keywords=keywords):
            pass
        case _:
            return None
    given = {one.arg: one.value for one in keywords}
    literal = data.elts and _is_numbers(data)
    if place.known.callee != "torch.tensor" or not literal or not {"device"} <= given.keys() <= {"device", "dtype"}:
        return None
    if place.fact.heat.level is HeatLevel.LOOP and len(chain_) == 1 and place.loops:
        return hoisted_or_kept(place)
    if place.outline.meaning("torch", ()) != "torch":
        return None
    cache = place.spelled("functools.lru_cache")
    there = any(isinstance(one, ast.FunctionDef) and one.name == "kept_table" for one in place.outline.tree.body)
    if cache is None or ("made_table" in place.outline.names and not there):
        return None
    helper = place.helper("kept_table", TABLE.format(cache=cache.text))
    brackets = [edit for one in ast.walk(data) if isinstance(one, ast.List) for edit in _rounded(place, one)]
    shared = f"nothing writes into the one tensor that all calls share{assumed_defaults(node)}"
    message = f"upload it once for each device and dtype, where {shared}"
    return place.fix(Applicability.REVIEW, message, place.replace(helper.text, function), brackets, helper.edits, cache.edits)


def _is_numbers(node: ast.expr) -> bool:
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return all(_is_numbers(one) for one in parts)
        case ast.UnaryOp(operand=inner):
            return isinstance(inner, ast.Constant)
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.UnaryOp(operand=ast.Constant())):
            return True
    return isinstance(node, ast.Constant) or is_number(node)


def kept_on_device(place: Place) -> Fix | None:
    """`torch.exp(torch.arange(n) * -0.1).to(d)`: the host works it out, for its last bits are the host's, once for each size and device."""
    node, numbers = expression(place), set[str]()
    for one in ast.walk(node) if node is not None else ():
        match one:
            case ast.Call(func=ast.Attribute(attr=name) as function, args=arguments, keywords=keywords):
                module = chain(function).partition(".")[0]
                if (name not in WORKED_OUT and module != "math") or any(one.arg in (None, "out") for one in keywords):
                    return None
                if module == "math" or (module == "torch" and name in FACTORIES):
                    numbers |= names_in(*arguments, *(one.value for one in keywords if one.arg not in PLACES))
            case ast.Call():
                return None
    if node is None or place.function is None:
        return None
    others = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} - numbers - names_in(*_places(node))
    return None if others & changing_names(place, node) else hoisted_or_kept(place)


def _places(node: ast.expr) -> list[ast.expr]:
    """What stands for a device or a dtype."""
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
    moved = [given for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == "to" for given in one.args]
    return moved + [keyword.value for one in calls for keyword in one.keywords if keyword.arg in PLACES]


def _rounded(place: Place, data: ast.List) -> Iterator[Edit]:
    """A list's brackets become a tuple's, which can be a key."""
    span = place.outline.span(data)
    trailing = place.outline.source(span)[:-1].rstrip().endswith(",")
    yield place.replace("(", Span(span.line, span.column, span.line, span.column + 1))
    end = ",)" if len(data.elts) == 1 and not trailing else ")"
    yield place.replace(end, Span(span.end_line, span.end_column - 1, span.end_line, span.end_column))
