"""Lowering expressions: each becomes a node of the value graph, and the places where a value may be read become sites."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.facts.bindings import assign_target, names_of, read_name
from hostlint.facts.chains import OPAQUE, chain, element_chains, iterated_chain
from hostlint.facts.dispatch import lower, lowers
from hostlint.facts.graph import Op, SiteKind
from hostlint.facts.guards import guard_of
from hostlint.facts.off import off_by_default
from hostlint.facts.refinements import refine
from hostlint.facts.schema import RegionKind

if TYPE_CHECKING:
    from hostlint.facts.builder import FunctionBuilder

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitOr: "|", ast.BitAnd: "&", ast.BitXor: "^",
    ast.UAdd: "+", ast.USub: "-", ast.Invert: "~", ast.Not: "not",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
LITERAL_LIMIT = 64


@lowers(ast.Constant)
def _constant(b: FunctionBuilder, node: ast.Constant) -> int:
    value = node.value
    kept = value if isinstance(value, (int, float, str, bool)) and (not isinstance(value, str) or len(value) <= LITERAL_LIMIT) else None
    if isinstance(value, int) and not -(2**62) < value < 2**62:
        kept = None
    return b.add(Op.CONST, node.lineno, type(value).__name__, kept)


@lowers(ast.Name)
def _name(b: FunctionBuilder, node: ast.Name) -> int:
    return read_name(b, node.id, node.lineno)


@lowers(ast.Attribute)
def _attribute(b: FunctionBuilder, node: ast.Attribute) -> int:
    base = lower(b, node.value)
    if isinstance(node.value, ast.Name):
        text = f"{node.value.id}.{node.attr}"
        if b.env is not None and text in b.env:
            return b.env[text]
        b.reads[text] = None
    elif isinstance(node.value, (ast.Attribute, ast.Subscript)):
        text = chain(node)
        if not text.startswith(OPAQUE):
            b.reads[text] = None
    return b.add(Op.ATTR, node.lineno, base, node.attr)


@lowers(ast.Subscript)
def _subscript(b: FunctionBuilder, node: ast.Subscript) -> int:
    base = lower(b, node.value)
    index = lower(b, node.slice)
    result = b.add(Op.INDEX, node.lineno, base, index)
    if varies(node.slice):
        b.site(SiteKind.LOAD, result, node, subject=node.value)
    return result


def varies(index: ast.expr) -> bool:
    """Whether an index can be anything but a literal or slices of literals."""
    if isinstance(index, ast.Tuple):
        return any(varies(part) for part in index.elts)
    if isinstance(index, ast.Slice):
        return any(part is not None and varies(part) for part in (index.lower, index.upper, index.step))
    if isinstance(index, ast.UnaryOp):
        return varies(index.operand)
    return not isinstance(index, ast.Constant)


@lowers(ast.Slice)
def _slice(b: FunctionBuilder, node: ast.Slice) -> int:
    parts = [lower(b, part) if part is not None else -1 for part in (node.lower, node.upper, node.step)]
    return b.add(Op.SLICE, node.lineno, *parts)


@lowers(ast.BinOp)
def _binary(b: FunctionBuilder, node: ast.BinOp) -> int:
    left, right = lower(b, node.left), lower(b, node.right)
    result = b.add(Op.BINOP, node.lineno, OPERATORS[type(node.op)], left, right)
    if isinstance(node.op, ast.Mod) and (isinstance(node.left, ast.JoinedStr) or _is_text(node.left)):
        b.site(SiteKind.PERCENT, result, node, subject=node.right)
    return result


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


@lowers(ast.UnaryOp)
def _unary(b: FunctionBuilder, node: ast.UnaryOp) -> int:
    if isinstance(node.op, ast.Not):
        operand = lower_test(b, node.operand, "not")
        return b.add(Op.UNARY, node.lineno, "not", operand)
    return b.add(Op.UNARY, node.lineno, OPERATORS[type(node.op)], lower(b, node.operand))


@lowers(ast.Compare)
def _compare(b: FunctionBuilder, node: ast.Compare) -> int:
    operands = [lower(b, node.left), *(lower(b, part) for part in node.comparators)]
    names = tuple(OPERATORS[type(op)] for op in node.ops)
    result = b.add(Op.COMPARE, node.lineno, names, tuple(operands))
    if "in" in names or "not in" in names:
        b.site(SiteKind.MEMBER, result, node, subject=node.left)
    if len(names) > 1 and not {"is", "is not"} & set(names):
        b.site(SiteKind.TRUTH, result, node, "chained comparison")
    return result


@lowers(ast.BoolOp)
def _bool(b: FunctionBuilder, node: ast.BoolOp) -> int:
    return _operands(b, node, "")


def _operands(b: FunctionBuilder, node: ast.BoolOp, tested: str) -> int:
    """`a and b`: all but the last operand are tested (the last too where the whole is), later ones only where the earlier let them run."""
    word = "and" if isinstance(node.op, ast.And) else "or"
    operands = []
    region = b.region
    start, before = 0, b.env
    for position, part in enumerate(node.values):
        last = position == len(node.values) - 1
        operands.append(lower(b, part) if last and not tested else lower_test(b, part, tested if last else word))
        if position == 0:  # it runs in any case
            start, before = len(b.bound), dict(b.env) if b.env is not None else None
        if not last:
            guard = guard_of(part, b.file.switches, held=b.held, off=off_by_default(b))  # before the test narrows what it asks about
            refine(b, part, word == "and")
            kind = guard.then if word == "and" else guard.other
            if kind is not None:
                b.open_region(kind, part.lineno, guard.text, guard.names)
    b.region = region
    b.settle(node.lineno, before, start)
    return b.add(Op.BOOL, node.lineno, word, tuple(operands))


def lower_test(b: FunctionBuilder, node: ast.expr, word: str) -> int:
    """An expression whose truth is asked for: the leaves of `and`, `or` and `not` are the places that are tested."""
    if isinstance(node, ast.BoolOp):
        return _operands(b, node, word)
    result = lower(b, node)
    if not settled(node):
        _tested(b, node, result, word)
    return result


def _tested(b: FunctionBuilder, node: ast.expr, result: int, word: str) -> None:
    if isinstance(node, ast.NamedExpr):
        b.site(SiteKind.TRUTH, result, node, word, subject=node.target)
    elif not (isinstance(node, ast.Compare) and len(node.ops) > 1):
        b.site(SiteKind.TRUTH, result, node, word)


HOST_TESTS = frozenset({
    "isinstance", "issubclass", "hasattr", "callable", "len", "is_tensor", "startswith", "endswith", "is_available", "get",
})


def settled(node: ast.expr) -> bool:
    """Tests whose spelling alone says that no tensor is read."""
    if isinstance(node, (ast.Constant, ast.BoolOp)):
        return True
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not) or settled(node.operand)
    if isinstance(node, ast.Compare):
        if all(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
            return True
        return any(isinstance(part, ast.Constant) and (part.value is None or isinstance(part.value, str)) for part in node.comparators)
    return isinstance(node, ast.Call) and chain(node.func).rsplit(".", 1)[-1] in HOST_TESTS


@lowers(ast.IfExp)
def _choice(b: FunctionBuilder, node: ast.IfExp) -> int:
    lower_test(b, node.test, "if")
    before = b.env
    results, after = [], []
    guard = guard_of(node.test, b.file.switches, frozenset(param.name for param in b.params), b.held, off_by_default(b))
    for arm, holds, kind in ((node.body, True, guard.then), (node.orelse, False, guard.other)):
        b.env = dict(before) if before is not None else None
        refine(b, node.test, holds)
        region = b.region
        if kind is not None:
            b.open_region(kind, arm.lineno, guard.text, guard.names)
        results.append(lower(b, arm))
        b.region = region
        after.append(b.env)
    b.env = before
    return b.add(Op.PHI, node.lineno, tuple(dict.fromkeys(results)))


@lowers(ast.Tuple, ast.List, ast.Set)
def _sequence(b: FunctionBuilder, node: ast.Tuple | ast.List | ast.Set) -> int:
    return b.add(Op.SEQUENCE, node.lineno, type(node).__name__.lower(), tuple(lower(b, part) for part in node.elts))


@lowers(ast.Dict)
def _dict(b: FunctionBuilder, node: ast.Dict) -> int:
    items = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is not None:
            lower(b, key)
        literal = key.value if isinstance(key, ast.Constant) and isinstance(key.value, (str, int)) else None
        items.append((literal, lower(b, value) if key is not None else b.add(Op.STAR, node.lineno, lower(b, value))))
    return b.add(Op.DICT, node.lineno, tuple(items))


@lowers(ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
def _comprehension(b: FunctionBuilder, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> int:
    before = dict(b.env) if b.env is not None else None
    start, region = len(b.bound), b.region
    for generator in node.generators:
        iterated = lower(b, generator.iter)
        pairs = element_chains(generator.target, generator.iter)
        targets = [name for name, _ in pairs] or names_of(generator.target)
        b.open_region(RegionKind.LOOP, node.lineno, iterated_chain(generator.iter), targets)
        b.assigns.update(dict.fromkeys(pairs))
        assign_target(b, generator.target, b.add(Op.ITER, node.lineno, iterated))
        for test in generator.ifs:
            lower_test(b, test, "comprehension if")
            refine(b, test, True)
    if isinstance(node, ast.DictComp):
        lower(b, node.key)
        kind, element = "dict", lower(b, node.value)
    else:
        kind = {ast.ListComp: "list", ast.SetComp: "set", ast.GeneratorExp: "generator"}[type(node)]
        element = lower(b, node.elt)
    b.region = region
    b.settle(node.lineno, before, start, [name for generator in node.generators for name in names_of(generator.target)])
    return b.add(Op.COMPREHENSION, node.lineno, kind, element)


@lowers(ast.JoinedStr)
def _formatted(b: FunctionBuilder, node: ast.JoinedStr) -> int:
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            value = lower(b, part.value)
            if not isinstance(part.value, (ast.Constant, ast.JoinedStr)):
                b.site(SiteKind.FORMAT, value, part.value, "f-string")
            if isinstance(part.format_spec, ast.JoinedStr):
                _formatted(b, part.format_spec)
    return b.add(Op.TEXT, node.lineno)


@lowers(ast.NamedExpr)
def _walrus(b: FunctionBuilder, node: ast.NamedExpr) -> int:
    value = lower(b, node.value)
    assign_target(b, node.target, value)
    return value


@lowers(ast.Starred)
def _starred(b: FunctionBuilder, node: ast.Starred) -> int:
    return b.add(Op.STAR, node.lineno, lower(b, node.value))


@lowers(ast.Await, ast.FormattedValue)
def _await(b: FunctionBuilder, node: ast.Await | ast.FormattedValue) -> int:
    return lower(b, node.value)


@lowers(ast.Yield)
def _yield(b: FunctionBuilder, node: ast.Yield) -> int:
    if node.value is not None:
        b.yields.append(lower(b, node.value))
    return b.unknown(node.lineno)


@lowers(ast.YieldFrom)
def _yield_from(b: FunctionBuilder, node: ast.YieldFrom) -> int:
    b.yields.append(b.add(Op.ITER, node.lineno, lower(b, node.value)))
    return b.unknown(node.lineno)
