"""Reads of what a caller hands to every step: the caller reads it once before its loop, and hands the numbers in beside it."""
from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hostlint.facts.chains import chain as called_chain
from hostlint.fix.hoist import expression
from hostlint.fix.loops import (
    Function,
    bindings_of,
    chain,
    is_unconditional,
    may_be_none,
    names_in,
    shared_with_nested,
    touches,
    written_in,
)
from hostlint.fix.outline import COMPREHENSIONS, FUNCTIONS
from hostlint.fix.row_reads import SIMPLE
from hostlint.fix.rows import WORDS
from hostlint.fix.schedule import insertion, source_of
from hostlint.fix.step_calls import StepCall, calls_in_steps
from hostlint.model import Applicability, HeatLevel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hostlint.fix.place import Place
    from hostlint.model import Edit, Fix

PLAIN = frozenset({"torch", "len"})
HARMLESS = frozenset({"no_grad", "inference_mode", "compile", "disable", "override"})  # decorators that leave the arguments alone
STRUCTURE = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda, *COMPREHENSIONS)
TYPES = {"sum": "list[int]", "count_nonzero": "list[int]", "any": "list[bool]", "all": "list[bool]"}


@dataclass(frozen=True, slots=True)
class _Read:
    """An expression of a function that is worked out from parameters alone; `is_named`: all that its statement does is to name it."""

    function: Function
    statement: ast.stmt
    value: ast.expr
    name: str
    parameters: tuple[ast.arg, ...]  # of the function, what is read first
    is_named: bool


@dataclass(slots=True)
class _Tables:
    """The numbers that are read before the callers' loops, by loop and by what they are read of."""

    names: dict[tuple[int, tuple[str, ...]], str] = field(default_factory=dict)
    edits: list[Edit] = field(default_factory=list)


def handed_in(place: Place) -> Fix | None:
    """`lengths = mask.sum(1).tolist()` of a forward to a parameter of it, which the step loop's function works out once and hands in."""
    read = _read(place)
    calls = calls_in_steps(place, [one.arg for one in read.parameters]) if read is not None else ()
    if read is None or not calls or not place.outline.begins_line(read.statement):
        return None
    signature, fallback = _signature(place, read), _fallback(place, read)
    if signature is None or fallback is None:
        return None
    tables = _Tables()
    handed = []
    for call in calls:
        name = _table(place, read, call, tables)
        if name is None:
            return None
        handed.append(_added(place, [*call.node.args, *(one.value for one in call.node.keywords)][-1], f"{read.name}={name}"))
    chains = (one for call in calls for one in call.passed if not isinstance(one, ast.Constant))
    passed = " and ".join(dict.fromkeys(f"`{source_of(place, one)}`" for one in chains))
    assumed = [f"nothing writes into {passed} during the loop", f"what is called there is this `{read.function.name}`"]
    if not is_unconditional(place.path, _own_statement(place, read)):
        assumed.append("it can be read of every request")
    what = "read it once before the loop that makes the calls, and hand the numbers in"
    return place.fix(Applicability.REVIEW, f"{what}, where {' and '.join(assumed)}", signature, fallback, handed, tables.edits)


# The read


def _read(place: Place) -> _Read | None:
    function, statement = place.function, place.statement
    if function is None or statement is None or place.loops or place.fact.heat.level is not HeatLevel.CALL:
        return None
    value = expression(place)
    if value is None:
        return None
    match statement:
        case ast.Assign(targets=[ast.Name(id=target)], value=whole) if whole is value:
            name = target
        case _:
            name = ""
            if not _is_walked(place, statement):
                return None
    arguments = {one.arg: one for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    names = list(dict.fromkeys(one.id for one in _in_order(value) if isinstance(one, ast.Name) and one.id in arguments))
    if not names or names_in(value) - PLAIN != set(names) or any(isinstance(one, STRUCTURE) for one in ast.walk(value)):
        return None
    named = name or place.fresh(f"{names[0]}_{WORDS.get(_method(value), 'values')}")
    found = _Read(function, statement, value, named, tuple(arguments[one] for one in names), bool(name))
    return found if _is_sound(place, found) else None


def _in_order(value: ast.expr) -> Sequence[ast.AST]:
    """The parts of an expression of one line as they stand there."""
    return sorted((one for one in ast.walk(value) if isinstance(one, ast.expr)), key=lambda one: one.col_offset)


def _is_walked(place: Place, statement: ast.stmt) -> bool:
    """Whether a list of numbers is made for a loop or a comprehension to walk over, and is made whenever the statement is reached."""
    if isinstance(statement, ast.For):
        return is_unconditional(place.path, statement)
    inner = next((one for one in place.path if isinstance(one, COMPREHENSIONS)), None)
    if inner is None or not isinstance(statement, SIMPLE) or not any(one is inner.generators[0].iter for one in place.path):
        return False
    return is_unconditional(place.path[: place.path.index(inner) + 1], statement)


def _method(value: ast.expr) -> str:
    """The total that a list is made of: `sum` of `mask.flatten(1).sum(1).tolist()`."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Attribute(attr=method)), attr="tolist")):
            return method
    return ""


def _is_sound(place: Place, read: _Read) -> bool:
    function, names = read.function, {one.arg for one in read.parameters}
    decorators = [called_chain(one).removesuffix("()").rpartition(".")[2] for one in function.decorator_list]
    if function.args.kwarg is not None or not HARMLESS.issuperset(decorators) or names & {"self", "cls"}:
        return False
    taken = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
    if read.is_named and (read.name in taken or len(bindings_of(function, read.name)) != 1 or shared_with_nested(function, read.name)):
        return False
    written = written_in(*function.body)
    if any(bindings_of(function, one) or any(touches(one, other) for other in written) for one in names):
        return False
    return place.outline.meaning("torch", place.path) == "torch" or "torch" not in names_in(read.value)


def _own_statement(place: Place, read: _Read) -> ast.stmt:
    """The statement of the function's own body that holds the read."""
    return next(one for one in read.function.body if one in place.path)


def _fallback(place: Place, read: _Read) -> Sequence[Edit] | None:
    """For calls that do not hand the numbers in: they are read where they were."""
    margin, source = place.outline.margin(read.statement.lineno), source_of(place, read.value)
    if "\n" in source:
        return None
    lines = f"if {read.name} is None:\n    {read.name} = {source}"
    if read.is_named:
        return [place.replace(lines.replace("\n", f"\n{margin}"), read.statement)]
    added = place.before(read.statement, lines)
    return [added, place.replace(read.name, read.value)] if added is not None else None


def _signature(place: Place, read: _Read) -> Edit | None:
    """One more parameter behind the others."""
    given = read.function.args
    last: ast.AST | None = None
    if given.kwonlyargs:
        last = given.kw_defaults[-1] or given.kwonlyargs[-1]
    elif given.vararg is not None:
        last = given.vararg
    elif given.args:
        last = given.defaults[-1] if given.defaults else given.args[-1]
    return _added(place, last, f"{read.name}{_annotation(place, read)}") if last is not None else None


def _added(place: Place, last: ast.AST, text: str) -> Edit:
    """One more argument behind the last one, on a line of its own where that has one."""
    span = place.outline.span(last)
    margin = place.outline.margin(span.line)
    return insertion(place, last, f",\n{margin}{text}" if span.column == len(margin) + 1 else f", {text}")


def _annotation(place: Place, read: _Read) -> str:
    """` = None` behind a type that is plain to see, where parameters have types that nobody evaluates."""
    later = any(
        isinstance(one, ast.ImportFrom) and one.module == "__future__" and any(name.name == "annotations" for name in one.names)
        for one in place.outline.tree.body
    )
    kind = TYPES.get(_method(read.value), "")
    return f": {kind} | None = None" if later and kind and read.parameters[0].annotation is not None else "=None"


# The callers' tables


def _table(place: Place, read: _Read, call: StepCall, tables: _Tables) -> str | None:
    """The name of the numbers before the call's loop, with the edit that makes them if they are not made yet."""
    passed = {one.arg: source_of(place, given) for one, given in zip(read.parameters, call.passed, strict=True)}
    key = (call.loop.lineno, tuple(passed.values()))
    if key not in tables.names:
        name = _name(place, read, call, tables)
        asked = [source for (one, source), given in zip(passed.items(), call.passed, strict=True) if _may_be_none(read, call, one, given)]
        made = _with(place, read, passed)
        added = place.before(call.loop, f"{name} = {made}{f' if {asked[0]} is not None else None' if asked else ''}")
        if added is None or len(asked) > 1:
            return None
        tables.names[key] = name
        tables.edits.append(added)
    return tables.names[key]


def _may_be_none(read: _Read, call: StepCall, parameter: str, given: ast.expr) -> bool:
    return not isinstance(given, ast.Constant) and (
        may_be_none(call.function, given) or may_be_none(read.function, ast.Name(parameter, ast.Load()))
    )


def _with(place: Place, read: _Read, passed: Mapping[str, str]) -> str:
    """The read's source with what a call passes in the place of the parameters."""
    source, first = source_of(place, read.value), place.outline.span(read.value)
    for one in reversed(_in_order(read.value)):
        if isinstance(one, ast.Name) and one.id in passed:
            span = place.outline.span(one)
            source = f"{source[: span.column - first.column]}{passed[one.id]}{source[span.end_column - first.column :]}"
    return source


def _name(place: Place, read: _Read, call: StepCall, tables: _Tables) -> str:
    """As the function calls them, after what is passed; free in the file, or used by the function alone."""
    word, parameter = chain(call.passed[0]).rpartition(".")[2].strip("_"), read.parameters[0].arg
    wanted = read.name.replace(parameter, word) if parameter in read.name else f"{word}_{read.name}"
    if word in ("", parameter):
        wanted = read.name
    own = {one.arg for one in ast.walk(call.function) if isinstance(one, ast.arg)} | names_in(call.function)
    taken = set(tables.names.values())
    if wanted == read.name and wanted not in own | taken and wanted not in _module_names(place):
        return wanted
    number, name = 1, place.fresh(wanted)
    while name in taken:
        number += 1
        name = place.fresh(f"{wanted}_{number}")
    return name


def _module_names(place: Place) -> frozenset[str]:
    return names_in(*(node for node in place.outline.tree.body if not isinstance(node, (*FUNCTIONS, ast.ClassDef))))
