"""Reads of one entry of a schedule that an object holds, at each call: the whole schedule is read once, by a function that keeps it."""
from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hostlint.fix.loops import bindings_of, bound_in, chain, own, shared_with_nested, touches, written_in
from hostlint.model import Applicability

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.fix.loops import Function
    from hostlint.fix.place import Place
    from hostlint.fix.reads import Read
    from hostlint.model import Fix

READER = '''
@{cache}(maxsize=16)
def read_values(table, version, dtype):
    return table.to(table.dtype if dtype is None else dtype).tolist()


def host_values(table, dtype=None):
    """`table.to(dtype).tolist()`, read once for each tensor and each state of it."""
    return read_values(table, -1 if table.is_inference() else table._version, dtype)
'''
SCHEDULE = re.compile(r"(^|_)(time_?steps?|sigmas?|ticks?|schedule|alphas?|betas?|lambdas?|(alpha|sigma|lambda)_t|alphas_cumprod)$")
CASTS = {"float": "torch.float32", "double": "torch.float64", "half": "torch.float16", "bfloat16": "torch.bfloat16"}
SAME = frozenset({"detach", "cpu", "cuda", "clone", "contiguous"})
SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete, ast.Expr, ast.Return)
QUIET = frozenset({"float", "int", "bool", "round", "abs", "len", "isinstance", "getattr", "ValueError", "TypeError", "RuntimeError"})


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of a table, in source, as it was taken there: with the dtype to which it was cast ("" for the table's own)."""

    table: str
    index: ast.expr
    dtype: str = ""
    named: tuple[ast.stmt, ...] = ()  # the assignments by which it was followed


def kept_read(place: Place, read: Read) -> Fix | None:
    """`sigma = self.sigmas[i].to(d)` and `sigma.item()` to `host_values(self.sigmas)[i]`."""
    function = place.function
    entry = _entry(place, function, read.tensor) if function is not None else None
    if entry is None or function is None or place.outline.meaning("torch", ()) != "torch":
        return None
    cache = place.spelled("functools.lru_cache")
    there = any(isinstance(one, ast.FunctionDef) and one.name == "host_values" for one in place.outline.tree.body)
    if cache is None or ("read_values" in place.outline.names and not there) or not _stays(place, function, entry):
        return None
    helper = place.helper("host_values", READER.format(cache=cache.text))
    index = place.outline.source(place.outline.span(entry.index))
    value = f"{helper.text}({entry.table}{', ' + entry.dtype if entry.dtype else ''})[{index}]"
    edits = [place.replace(value if read.how == "item" else f"{read.how}({value})", read.node), *helper.edits]
    assumed = [f"`{entry.table}` is a 1-D tensor that no step makes anew, or writes into in inference mode"]
    if not isinstance(entry.index, ast.Constant):
        assumed.append(f"`{index}` is a Python int")
    what = "read the whole table once, and keep its numbers as long as it stays as it is"
    return place.fix(Applicability.REVIEW, f"{what}, where {' and '.join(assumed)}", edits, cache.edits if helper.edits else ())


def _entry(place: Place, function: Function, node: ast.expr) -> _Entry | None:
    """The table's entry that an expression is, through casts and through names that are bound once."""
    match node:
        case ast.Name(id=name):
            bound = _bound_to(function, name)
            found = _entry(place, function, bound[1]) if bound is not None else None
            return replace(found, named=(*found.named, bound[0])) if found is not None and bound is not None else None
        case ast.Call(func=ast.Attribute(value=inner, attr=method), args=[], keywords=[]) if method in SAME:
            return _entry(place, function, inner)
        case ast.Call(func=ast.Attribute(value=inner, attr=method), args=[], keywords=[]) if method in CASTS:
            return _cast(_entry(place, function, inner), CASTS[method])
        case ast.Call(func=ast.Attribute(value=inner, attr="to"), args=given, keywords=keywords):
            dtype = _dtype(given, keywords)
            found = _entry(place, function, inner)
            if dtype is None or found is None:
                return None
            return _cast(found, place.outline.source(place.outline.span(dtype))) if isinstance(dtype, ast.expr) else found
        case ast.Subscript(value=table, slice=index) if _is_index(index):
            held = _held(function, table)
            return _Entry(place.outline.source(place.outline.span(table)), index) if held and SCHEDULE.search(held) else None
    return None


def _cast(entry: _Entry | None, dtype: str) -> _Entry | None:
    return replace(entry, dtype=dtype) if entry is not None and entry.dtype in ("", dtype) else None


def _dtype(given: list[ast.expr], keywords: list[ast.keyword]) -> ast.expr | str | None:
    """The dtype that `.to(…)` is given, "" where it is given none, None where that is not plain to see."""
    named = {one.arg: one.value for one in keywords}
    if not named.keys() <= {"device", "dtype", "non_blocking"} or len(given) > 2:
        return None
    found: list[ast.expr] = [*([named["dtype"]] if "dtype" in named else []), *given[1:]]
    for one in given[:1]:
        word = one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "")
        if _is_dtype(one):
            found.append(one)
        elif not (word.lower().endswith("device") or (isinstance(one, ast.Constant) and isinstance(one.value, str))):
            return None
    if any(not _is_dtype(one) for one in found) or len(found) > 1:
        return None
    return found[0] if found else ""


def _is_dtype(node: ast.expr) -> bool:
    """`torch.float32`, `x.dtype`, `dtype`."""
    word = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return bool(chain(node)) and (chain(node).rpartition(".")[0] == "torch" or word.endswith("dtype"))


def _is_index(index: ast.expr) -> bool:
    """Whether an index is one number: a name, an attribute, a literal, or the sum or difference of such."""
    match index:
        case ast.Name() | ast.Constant(value=int()):
            return True
        case ast.Attribute():
            return bool(chain(index))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int())):
            return True
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _is_index(left) and _is_index(right)
    return False


def _held(function: Function, table: ast.expr) -> str:
    """The attribute in which an object holds a table: `sigmas` of `self.sigmas`, or of a name that is bound to it; "" for others."""
    match table:
        case ast.Name(id=name):
            bound = _bound_to(function, name)
            return _held(function, bound[1]) if bound is not None and not isinstance(bound[1], ast.Name) else ""
        case ast.Attribute(attr=name) if chain(table):
            return name
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
            return name
    return ""


def _bound_to(function: Function, name: str) -> tuple[ast.Assign, ast.expr] | None:
    """The one assignment of the function that binds a name, and what it binds it to, also as one of several (`a, b = x, y`)."""
    bound = bindings_of(function, name)
    if name in _parameters(function) or len(bound) != 1 or shared_with_nested(function, name):
        return None
    for one in own(function):
        match one:
            case ast.Assign(targets=[target], value=value) if target is bound[0]:
                return one, value
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if bound[0] in targets:
                return (one, values[targets.index(bound[0])]) if len(targets) == len(values) else None
    return None


def _stays(place: Place, function: Function, entry: _Entry) -> bool:
    """Whether the table is another function's to change, and index and entry are at the read what they were where the entry was taken."""
    held = frozenset(_chains(ast.parse(entry.table, mode="eval").body))
    dtype = frozenset(_chains(ast.parse(entry.dtype, mode="eval").body)) if entry.dtype else frozenset()
    index = frozenset(_chains(entry.index)) | dtype
    between = list(_between(place, function, entry))
    targets = [part for one in entry.named for target in getattr(one, "targets", ()) for part in getattr(target, "elts", [target])]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    written = written_in(*(one for one in between if isinstance(one, SIMPLE)))
    if any(touches(one, other) for one in held for other in written_in(function)):
        return False
    if any(touches(one, other) for one in index | names for other in written):
        return False
    roots = {one.partition(".")[0] for one in held | index} & bound_in(function)
    if any(len(bindings_of(function, one)) > (one not in _parameters(function)) for one in roots):
        return False
    by_attribute = any("." in one for one in held | index)
    return not by_attribute or not any(isinstance(one, ast.Call) and _is_opaque(one) for one in between)


def _chains(node: ast.AST) -> Iterator[str]:
    """The names and attributes that an expression reads, as long as they are: of `self.sigmas` not `self`."""
    if isinstance(node, ast.Name | ast.Attribute) and chain(node):
        yield chain(node)
        return
    for child in ast.iter_child_nodes(node):
        yield from _chains(child)


def _parameters(function: Function) -> frozenset[str]:
    return frozenset(one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg))


def _between(place: Place, function: Function, entry: _Entry) -> Iterator[ast.AST]:
    """What stands between the first assignment that was followed and the read, both with it."""
    first = min((one.lineno for one in entry.named), default=place.fact.span.line)
    yield from (one for one in own(function) if first <= getattr(one, "lineno", 0) <= place.fact.span.line)


def _is_opaque(call: ast.Call) -> bool:
    """Whether a call may do more than read numbers and cast tensors."""
    match call.func:
        case ast.Name(id=name):
            return name not in QUIET
        case ast.Attribute(attr=name):
            return name not in SAME | CASTS.keys() | {"to", "item", "tolist"}
    return True
