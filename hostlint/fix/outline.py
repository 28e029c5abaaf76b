"""The syntax tree of the file that a fix changes: what encloses a place, and which names mean what there."""
from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

from hostlint.facts.trees import walk
from hostlint.model import Span

Block = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
Loop = ast.For | ast.AsyncFor | ast.While
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
TYPE_PARAMETERS = frozenset({"TypeVar", "ParamSpec", "TypeVarTuple"})  # Python's tree has them from 3.12 on
SCOPES = (*FUNCTIONS, ast.ClassDef, *COMPREHENSIONS)


class Outline:
    """One file's text with its tree. Spans are those of findings: 1-based lines and character columns, ends exclusive."""

    def __init__(self, text: str) -> None:
        self.lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._text = text
        self._scopes: dict[ast.AST, dict[str, list[ast.AST]]] = {}

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self._text)

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name that the file uses for anything, attributes aside."""
        return frozenset(name for node in walk(self.tree) for name in _names(node))

    @cached_property
    def imported(self) -> tuple[str, ...]:
        """The names that an import anywhere in the file binds, in order."""
        imports = (node for node in walk(self.tree) if isinstance(node, ast.Import | ast.ImportFrom))
        return tuple(sorted({name for node in imports for name in _bound(node)}))

    @cached_property
    def _rebound(self) -> frozenset[str]:
        """The names of the module that functions may bind anew."""
        return frozenset(name for node in walk(self.tree) if isinstance(node, ast.Global) for name in node.names)

    def span(self, node: ast.AST) -> Span:
        """Where a node stands; a decorated definition begins at its `def` or `class`."""
        line, end_line = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
        start, end = self._column(line, getattr(node, "col_offset", 0)), self._column(end_line, getattr(node, "end_col_offset", 0))
        return Span(line, start, end_line, end)

    def source(self, span: Span) -> str:
        lines = self.lines[span.line - 1 : span.end_line]
        if not lines:
            return ""
        lines[-1] = lines[-1][: span.end_column - 1]
        lines[0] = lines[0][span.column - 1 :]
        return "\n".join(lines)

    def around(self, span: Span) -> tuple[ast.AST, ...]:
        """The nodes that hold the span, outermost (the module) first."""
        path: list[ast.AST] = [self.tree]
        while True:
            inner = next((child for child in ast.iter_child_nodes(path[-1]) if self._holds(child, span)), None)
            if inner is None:
                return tuple(path)
            path.append(inner)

    def fresh(self, wanted: str) -> str:
        """A name that nothing in the file, and no builtin, has: the wanted one, else with a number."""
        taken = self.names | frozenset(dir(builtins)) | frozenset(keyword.kwlist)
        number = 1
        name = wanted
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def margin(self, line: int) -> str:
        """The white space before a line's code."""
        text = self.lines[line - 1]
        return text[: len(text) - len(text.lstrip(" \t\f"))]

    def begins_line(self, statement: ast.stmt) -> bool:
        """Whether nothing stands before a statement on its line (no `if x:`, no `;`, no `elif`)."""
        span = self.span(statement)
        line = self.lines[span.line - 1]
        return not line[: span.column - 1].strip(" \t\f") and not line[span.column - 1 :].startswith("elif")

    def meaning(self, name: str, path: Sequence[ast.AST]) -> str:
        """What an imported name stands for at a place: a dotted name; "" where it is bound otherwise, or not at all.

        An import of the module counts where it is the module's only binding of the name and no function around the place binds it; one
        inside a function counts where it is the function's only one, stands at the top of its body, and comes before the place.
        """
        for scope in (node for node in reversed(path) if isinstance(node, SCOPES)):
            bindings = self._bindings(scope).get(name, [])
            if bindings and (not isinstance(scope, ast.ClassDef) or scope is _innermost(path)):
                return self._imported(name, bindings, getattr(scope, "body", ()), path)
        if name in self._rebound:
            return ""
        return self._imported(name, self._bindings(self.tree).get(name, []), self.tree.body, ())

    def _bindings(self, scope: ast.AST) -> dict[str, list[ast.AST]]:
        if scope not in self._scopes:
            self._scopes[scope] = _bindings(scope)
        return self._scopes[scope]

    def _imported(self, name: str, bindings: Sequence[ast.AST], body: object, path: Sequence[ast.AST]) -> str:
        if len(bindings) != 1 or not isinstance(body, list) or bindings[0] not in body:
            return ""
        found = bindings[0]
        line = next((node.lineno for node in path[1:] if isinstance(node, ast.stmt) and node in body), 0) if path else 0
        if path and found.lineno >= line:  # type: ignore[attr-defined]  # imports have lines
            return ""
        return _target(found, name)

    def _holds(self, node: ast.AST, span: Span) -> bool:
        if not hasattr(node, "lineno"):
            return any(self._holds(child, span) for child in ast.iter_child_nodes(node))
        own = self.span(node)
        decorators = getattr(node, "decorator_list", ())
        first = min([own.line, *(decorator.lineno for decorator in decorators)])
        start = (own.line, own.column) if first == own.line else (first, 1)
        return start <= (span.line, span.column) and (span.end_line, span.end_column) <= (own.end_line, own.end_column)

    def _column(self, line: int, offset: int) -> int:
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return (offset if text.isascii() else len(text.encode()[:offset].decode(errors="replace"))) + 1


def loops_around(text: str, span: Span) -> int:
    """How many loops and comprehensions of its own function a place of a program stands in."""
    path = Outline(text).around(span)
    number = max((number for number, node in enumerate(path) if isinstance(node, FUNCTIONS)), default=0)
    return sum(_repeats(outer, inner, path) for outer, inner in pairwise(path[number:]))


def _repeats(outer: ast.AST, inner: ast.AST, path: Sequence[ast.AST]) -> bool:
    if isinstance(outer, COMPREHENSIONS):
        return not any(node is outer.generators[0].iter for node in path)
    return isinstance(outer, LOOPS) and inner in outer.body


def _innermost(path: Sequence[ast.AST]) -> ast.AST:
    return next((node for node in reversed(path) if isinstance(node, SCOPES)), path[0])


def _target(node: ast.AST, name: str) -> str:
    for alias in getattr(node, "names", ()):
        if isinstance(node, ast.Import) and (alias.asname or alias.name.partition(".")[0]) == name:
            return alias.name if alias.asname else name
        if isinstance(node, ast.ImportFrom) and (alias.asname or alias.name) == name and not node.level:
            return f"{node.module}.{alias.name}"
    return ""


def _names(node: ast.AST) -> Iterator[str]:
    """The names that one node holds, whether it binds or reads them."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
    elif type(node).__name__ in TYPE_PARAMETERS:
        yield getattr(node, "name", "")
    else:
        yield from _bound(node)


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that one node binds in its scope."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest


def _bindings(scope: ast.AST) -> dict[str, list[ast.AST]]:
    """Who binds each name of a scope, nested scopes left out; `import a.b` and `import a.c` bind `a` once."""
    found: dict[str, list[ast.AST]] = {}
    arguments = getattr(scope, "args", None)
    for argument in walk(arguments) if isinstance(arguments, ast.arguments) else ():
        if isinstance(argument, ast.arg):
            found.setdefault(argument.arg, []).append(argument)
    waiting = list(_inside(scope))
    while waiting:
        node = waiting.pop()
        for name in _bound(node):
            if not any(_same_import(node, other, name) for other in found.get(name, ())):
                found.setdefault(name, []).append(node)
        if isinstance(node, ast.Global | ast.Nonlocal):
            for name in node.names:
                found.setdefault(name, []).extend([node, node])  # bound elsewhere too
        if not isinstance(node, SCOPES):
            waiting += ast.iter_child_nodes(node)
    return found


def _inside(scope: ast.AST) -> Iterator[ast.AST]:
    if isinstance(scope, COMPREHENSIONS):
        yield from (generator.target for generator in scope.generators)
        return
    body: list[ast.AST] | ast.AST = getattr(scope, "body", [])
    yield from body if isinstance(body, list) else [body]


def _same_import(node: ast.AST, other: ast.AST, name: str) -> bool:
    if not (isinstance(node, ast.Import) and isinstance(other, ast.Import)):
        return False
    return _target(node, name) == _target(other, name) == name
