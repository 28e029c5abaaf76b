"""Lowering statements: branches that are joined, loops to a fixed point, `with`, `try` and `match`."""
from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hostlint.facts.assignments import annotated, assign, augmented, bind, delete
from hostlint.facts.bindings import assign_target, close_loop, names_of
from hostlint.facts.bound import bound_chains
from hostlint.facts.builder import Environment, FunctionBuilder, Loop
from hostlint.facts.calls import MUTATORS, moved_in_place
from hostlint.facts.chains import chain, element_chains, iterated_chain, while_words
from hostlint.facts.dispatch import lower
from hostlint.facts.expressions import lower_test
from hostlint.facts.functions import declare_class, declare_function
from hostlint.facts.graph import Op, SiteKind
from hostlint.facts.guards import NOTHING, Guard, classify
from hostlint.facts.imports import import_names
from hostlint.facts.off import off_by_default
from hostlint.facts.refinements import refine
from hostlint.facts.schema import RegionKind
from hostlint.facts.trees import walk

Lowering = Callable[[FunctionBuilder, Any], None]
MOVERS = frozenset({"to", "cpu", "cuda"})


def lower_block(b: FunctionBuilder, body: Sequence[ast.stmt]) -> None:
    """Lowers statements in order; a guard that an `if` leaves open ends with the block."""
    region = b.region
    for position, statement in enumerate(body):
        outer = b.statement
        b.statement = (statement.lineno, _last_line(statement))
        if isinstance(statement, ast.If):
            _if(b, statement, body[position + 1 :])
        else:
            lowering = _LOWERINGS.get(type(statement))
            if lowering is not None:
                lowering(b, statement)
        b.statement = outer
    b.region = region


def _last_line(statement: ast.stmt) -> int:
    """The end of a simple statement, or of a compound one's header."""
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    if body:
        first = body[0]
        line = first.lineno if isinstance(first, ast.stmt) else first.pattern.lineno
        return max(statement.lineno, line - 1)
    return statement.end_lineno or statement.lineno


def _expression(b: FunctionBuilder, node: ast.Expr) -> None:
    if not isinstance(node.value, ast.Constant):
        value = lower(b, node.value)
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute) and node.value.func.attr in MOVERS:
            b.site(SiteKind.BARE, value, node.value, node.value.func.attr, subject=node.value.func.value)
        moved = moved_in_place(node.value)
        if b.env is not None and moved in b.env:
            b.bind(moved, b.add(Op.MOVED, node.lineno, b.env[moved], value, moved))


def _return(b: FunctionBuilder, node: ast.Return) -> None:
    if node.value is not None:
        value = lower(b, node.value)
        b.assigns.update(dict.fromkeys(("return", text) for text in bound_chains(node.value)))
        if b.env is not None:
            b.returns.append(value)
    b.env = None


def _raise(b: FunctionBuilder, node: ast.Raise) -> None:
    before = b.open_region(RegionKind.RAISE, node.lineno, "in a raise")
    for part in (node.exc, node.cause):
        if part is not None:
            lower(b, part)
    b.region, b.env = before, None


def _assert(b: FunctionBuilder, node: ast.Assert) -> None:
    lower_test(b, node.test, "assert")
    if node.msg is not None:
        before = b.open_region(RegionKind.RAISE, node.lineno, "in an assert's message")
        lower(b, node.msg)
        b.region = before
    refine(b, node.test, True)


def _if(b: FunctionBuilder, node: ast.If, rest: Sequence[ast.stmt]) -> None:
    lower_test(b, node.test, "if")
    parameters = frozenset(param.name for param in b.params)
    bound = b.loops[-1].binds if b.loops else frozenset()
    guard = NOTHING
    if b.env is not None:
        guard = classify(node, rest, parameters, b.file.switches, b.qualname, bound, off_by_default(b), b.held)
        if guard.names and guard.names[0] not in parameters and b.holds_element(guard.names[0]):
            guard = NOTHING
    before = dict(b.env) if b.env is not None else None
    refine(b, node.test, True)
    _arm(b, node.body, guard.then, guard)
    after_body = b.env
    b.env = before
    refine(b, node.test, False)
    _arm(b, node.orelse, guard.other, guard)
    after_other = b.env
    b.env = b.join(node.lineno, [after_body, after_other])
    _guard_rest(b, node, guard, after_body, after_other)


def _arm(b: FunctionBuilder, body: Sequence[ast.stmt], kind: RegionKind | None, guard: Guard) -> None:
    before = b.region
    if kind is not None and body:
        b.open_region(kind, body[0].lineno, guard.text, guard.names)
    lower_block(b, body)
    b.region = before


def _guard_rest(b: FunctionBuilder, node: ast.If, guard: Guard, body: Environment | None, other: Environment | None) -> None:
    """Where one branch left the block, what follows runs only under the other's guard."""
    kind = guard.other if body is None else guard.then if other is None and node.orelse else None
    if kind is not None and kind is not RegionKind.RAISE and b.env is not None:
        b.open_region(kind, node.lineno, guard.text, guard.names)


def bound_names(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Every name (and `self.attribute`) that a loop's body may bind, for the PHI nodes at its head."""
    for statement in body:
        for part in walk(statement):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id
            elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                yield chain(part)
            elif isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store) and isinstance(part.value, ast.Name):
                yield part.value.id
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in MUTATORS:
                yield chain(part.func.value)
            elif isinstance(part, ast.Expr) and (moved := moved_in_place(part.value)):
                yield moved


def _loop(b: FunctionBuilder, node: ast.For | ast.AsyncFor | ast.While, head: Callable[[], None]) -> None:
    """A loop: names that the body binds are PHI nodes at the head, closed over what the body and its `continue`s leave."""
    names = list(bound_names([node])) if b.env is not None else []
    loop = Loop(node.lineno, frozenset(names))
    for name in names:
        if b.env is not None and name in b.env and name not in loop.phis:
            loop.phis[name] = b.env[name] = b.add(Op.PHI, node.lineno, (b.env[name],))
    at_head = dict(b.env) if b.env is not None else None
    b.loops.append(loop)
    head()
    lower_block(b, node.body)
    b.loops.pop()
    ends = [b.env, *loop.repeats]
    close_loop(b, loop, ends)
    b.env = b.join(node.lineno, [at_head, *ends])
    lower_block(b, node.orelse)
    b.env = b.join(node.lineno, [b.env, *loop.exits])


def _for(b: FunctionBuilder, node: ast.For | ast.AsyncFor) -> None:
    iterated = lower(b, node.iter)
    pairs = element_chains(node.target, node.iter)
    b.assigns.update(dict.fromkeys(pairs))
    region = b.open_region(RegionKind.LOOP, node.lineno, iterated_chain(node.iter), names_of(node.target))

    def head() -> None:
        assign_target(b, node.target, b.add(Op.ITER, node.lineno, iterated))

    _loop(b, node, head)
    b.region = region


def _while(b: FunctionBuilder, node: ast.While) -> None:
    region = b.open_region(RegionKind.LOOP, node.lineno, while_words(node.test), ())

    def head() -> None:
        lower_test(b, node.test, "while")
        refine(b, node.test, True)

    _loop(b, node, head)
    b.region = region


def _break(b: FunctionBuilder, _: ast.Break) -> None:
    if b.env is not None and b.loops:
        b.loops[-1].exits.append(b.env)
    b.env = None


def _continue(b: FunctionBuilder, _: ast.Continue) -> None:
    if b.env is not None and b.loops:
        b.loops[-1].repeats.append(b.env)
    b.env = None


def _with(b: FunctionBuilder, node: ast.With | ast.AsyncWith) -> None:
    opened = 0
    for item in node.items:
        value = lower(b, item.context_expr)
        if isinstance(item.context_expr, ast.Call) and chain(item.context_expr.func) == "torch.device":
            b.default_devices.append(value)
            opened += 1
        if item.optional_vars is not None:
            bind(b, item.optional_vars, b.add(Op.ENTER, node.lineno, value), item.context_expr)
    lower_block(b, node.body)
    del b.default_devices[len(b.default_devices) - opened :]


def _try(b: FunctionBuilder, node: ast.Try) -> None:
    before = dict(b.env) if b.env is not None else None
    start = len(b.bound)
    lower_block(b, node.body)
    on_the_way = _interrupted(b, node, before, b.bound[start:])
    lower_block(b, node.orelse)
    outcomes = [b.env]
    for handler in node.handlers:
        b.env = dict(on_the_way) if on_the_way is not None else None
        region = b.open_region(RegionKind.EXCEPT, handler.lineno, "in an except branch")
        if handler.name and b.env is not None:
            b.bind(handler.name, b.add(Op.CONST, handler.lineno, "exception", None))
        lower_block(b, handler.body)
        b.region = region
        outcomes.append(b.env)
    b.env = b.join(node.lineno, outcomes)
    ends_here = b.env is None
    if ends_here:  # the `finally` of a `return` or `raise` runs all the same
        b.env = on_the_way
    lower_block(b, node.finalbody)
    if ends_here:
        b.env = None


def _interrupted(b: FunctionBuilder, node: ast.Try, before: Environment | None, bound: Sequence[tuple[str, int]]) -> Environment | None:
    """The environment where an exception leaves the body of a `try`: each name may hold any value that it was given there."""
    if before is None:
        return None
    env = dict(b.join(node.lineno, [before, b.env]) or before)
    given: dict[str, list[int]] = {}
    for name, value in bound:
        given.setdefault(name, []).append(value)
    env.update((name, b.phi(node.lineno, [before.get(name, -1), *values])) for name, values in given.items())
    return env


def _match(b: FunctionBuilder, node: ast.Match) -> None:
    subject = lower(b, node.subject)
    before = dict(b.env) if b.env is not None else None
    outcomes = [before]
    for case in node.cases:
        b.env = dict(before) if before is not None else None
        for part in walk(case.pattern):
            name = getattr(part, "name", None) or getattr(part, "rest", None)
            if isinstance(name, str):
                b.bind(name, subject if part is case.pattern else b.unknown(case.pattern.lineno))
        if case.guard is not None:
            lower_test(b, case.guard, "if")
        lower_block(b, case.body)
        outcomes.append(b.env)
    last = node.cases[-1]
    if last.guard is None and isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None:  # `case _`
        outcomes = outcomes[1:]
    b.env = b.join(node.lineno, outcomes)


def _function(b: FunctionBuilder, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    index = declare_function(b, node)
    b.bind(node.name, b.add(Op.FUNCTION, node.lineno, index))


def _class(b: FunctionBuilder, node: ast.ClassDef) -> None:
    index = declare_class(b, node)
    b.bind(node.name, b.add(Op.CLASS, node.lineno, index))


def _import(b: FunctionBuilder, node: ast.Import | ast.ImportFrom) -> None:
    for name, target in import_names(b.file, node):
        b.imports.append((name, target))
        b.bind(name, b.add(Op.IMPORT, node.lineno, target))


def _scope(b: FunctionBuilder, node: ast.Global | ast.Nonlocal) -> None:
    b.outer_names.update(dict.fromkeys(node.names, isinstance(node, ast.Global)))


_LOWERINGS: dict[type[ast.stmt], Lowering] = {
    ast.Assign: assign, ast.AnnAssign: annotated, ast.AugAssign: augmented, ast.Expr: _expression, ast.Return: _return,
    ast.Raise: _raise, ast.Assert: _assert, ast.Delete: delete, ast.For: _for, ast.AsyncFor: _for, ast.While: _while,
    ast.Break: _break, ast.Continue: _continue, ast.With: _with, ast.AsyncWith: _with, ast.Try: _try, ast.Match: _match,
    ast.FunctionDef: _function, ast.AsyncFunctionDef: _function, ast.ClassDef: _class, ast.Import: _import,
    ast.ImportFrom: _import, ast.Global: _scope, ast.Nonlocal: _scope,
}  # fmt: skip
if hasattr(ast, "TryStar"):  # except*: Python 3.11
    _LOWERINGS[ast.TryStar] = _try
