"""What a rule is given to word a fix: the fact, its concrete syntax and values, what encloses it, and builders of edits."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from hostlint.fix.imports import helper_edit, import_edit
from hostlint.fix.outline import FUNCTIONS, LOOPS
from hostlint.model import Applicability, Edit, Fix, Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from hostlint.facts.fact import Fact
    from hostlint.fix.outline import Loop, Outline
    from hostlint.values.known import Known


@dataclass(frozen=True, slots=True)
class Spelled:
    """How to write an outside name at a place, and what must be added for that."""

    text: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Place:
    """One fact's place in its file. `node` is the fact's expression as `check` gets it: parsed, in a pair of parentheses of its own.

    A fix may rely on what the syntax here says, on `known` (values that the engine has proved) and on `fact`; a fact whose confidence is
    not `certain` rests on a convention, so that a fix that needs it to be true is for review."""

    fact: Fact
    node: cst.BaseExpression
    outline: Outline
    known: Known

    # Where it is

    @cached_property
    def path(self) -> tuple[ast.AST, ...]:
        """The nodes of Python's own tree around the expression, the module first; the last one is the expression or what holds it."""
        return self.outline.around(self.fact.span)

    @property
    def statement(self) -> ast.stmt | None:
        """The innermost statement around the place."""
        return next((node for node in reversed(self.path) if isinstance(node, ast.stmt)), None)

    @property
    def function(self) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost function around the place; None in a lambda, a class body and at module level."""
        found = next((node for node in reversed(self.path) if isinstance(node, (*FUNCTIONS, ast.ClassDef))), None)
        return found if isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef)) else None

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The `for` and `while` loops of the function whose bodies hold the place, innermost first."""
        return tuple(self._loops())

    def _loops(self) -> Iterator[Loop]:
        for number in range(len(self.path) - 1, 0, -1):
            outer, inner = self.path[number - 1], self.path[number]
            if isinstance(inner, (*FUNCTIONS, ast.ClassDef)):
                return
            if isinstance(outer, LOOPS) and inner in outer.body:
                yield outer

    # What names mean

    def dotted(self, node: cst.BaseExpression) -> str:
        """The outside name that an expression like `torch.zeros` or `F.pad` stands for at this place; "" where that is not certain."""
        name, *rest = _parts(node) or ("",)
        root = self.outline.meaning(name, self.path) if name else ""
        return ".".join((root, *rest)) if root else ""

    def spelled(self, dotted: str) -> Spelled | None:
        """How to write an outside name (`torch.full`) here, by an import that is there or one more; None where it would be shadowed."""
        module, _, last = dotted.rpartition(".")
        for name in self.outline.imported:
            meaning = self.outline.meaning(name, self.path)
            if meaning == dotted:
                return Spelled(name)
            if meaning and dotted.startswith(f"{meaning}.") and meaning == module:
                return Spelled(f"{name}.{last}")
        root = module.partition(".")[0]
        if root not in self.outline.names:
            return Spelled(dotted, (import_edit(self.outline, f"import {module}"),))
        if self.outline.meaning(root, self.path) == root:
            return Spelled(dotted, () if "." not in module else (import_edit(self.outline, f"import {module}"),))
        return None

    def fresh(self, wanted: str) -> str:
        """A name that is free in the whole file, so that it shadows nothing and nothing shadows it."""
        return self.outline.fresh(wanted)

    # Edits

    def span(self, node: cst.CSTNode) -> Span:
        """Where a part of `node` stands in the file, without parentheses of its own."""
        begin, end = self._positions[node]
        first = self.fact.span
        (line, column), (end_line, end_column) = (_in_file(first, *begin), _in_file(first, *end))
        return Span(line, column, end_line, end_column)

    @cached_property
    def _positions(self) -> dict[cst.CSTNode, tuple[tuple[int, int], tuple[int, int]]]:
        import libcst as cst
        from libcst.metadata import MetadataWrapper, PositionProvider

        module = cst.Module([cst.SimpleStatementLine([cst.Expr(self.node)])])
        found = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
        return {node: ((at.start.line, at.start.column), (at.end.line, at.end.column)) for node, at in found.items()}

    def replace(self, new: str, old: cst.CSTNode | ast.AST | Span | None = None) -> Edit:
        """Write `new` in the place of the fact's expression, or of a part of it, of a node of the tree, or of a span."""
        if old is None:
            return Edit(self.fact.span, new)
        if isinstance(old, Span):
            return Edit(old, new)
        return Edit(self.outline.span(old) if isinstance(old, ast.AST) else self.span(old), new)

    def before(self, statement: ast.stmt, lines: str) -> Edit | None:
        """Put lines of code before a statement (a loop, to hoist), at its margin; None where it does not begin its line."""
        if not self.outline.begins_line(statement):
            return None
        line = min([statement.lineno, *(decorator.lineno for decorator in getattr(statement, "decorator_list", ()))])
        margin = self.outline.margin(line)
        while line > 1 and self.outline.lines[line - 2].startswith(f"{margin}#"):
            line -= 1
        return Edit(Span(line, 1, line, 1), _indented(lines, margin))

    def after(self, statement: ast.stmt, lines: str) -> Edit | None:
        """Put lines of code after a statement, at its margin; None where another one shares its first or last line."""
        end = self.outline.span(statement)
        rest = self.outline.lines[end.end_line - 1][end.end_column - 1 :].strip()
        if not self.outline.begins_line(statement) or (rest and not rest.startswith("#")):
            return None
        line = end.end_line + 1
        return Edit(Span(line, 1, line, 1), _indented(lines, self.outline.margin(end.line)))

    def imported(self, line: str) -> Edit:
        """Add an import line at the top of the module, in order. Prefer `spelled`, which knows what is imported already."""
        return import_edit(self.outline, line)

    def helper(self, name: str, source: str) -> Spelled:
        """Call a function of module level that `source` defines as `name`: one that is there with the same text, else a new one."""
        text = source.strip("\n")
        alike = [one for one in self.outline.tree.body if getattr(one, "name", None) == name]
        wanted = ast.dump(ast.parse(text).body[-1]) if alike else ""
        if any(ast.dump(one) == wanted for one in alike) and not self._shadowed(name):
            return Spelled(name)
        fresh = self.fresh(name)
        return Spelled(fresh, (helper_edit(self.outline, text if fresh == name else _renamed(text, name, fresh)),))

    def _shadowed(self, name: str) -> bool:
        return any(isinstance(node, FUNCTIONS) and name in _locals(node) for node in self.path)

    def fix(self, applicability: Applicability, message: str, *edits: Edit | Sequence[Edit]) -> Fix:
        """A fix of these edits, which are applied together or not at all."""
        flat = [edit for one in edits for edit in ((one,) if isinstance(one, Edit) else one)]
        return Fix(applicability, message, tuple(flat))


def _in_file(first: Span, line: int, column: int) -> tuple[int, int]:
    """A position of the expression's own text, which begins with one parenthesis, as a place of the file."""
    return (first.line + line - 1, first.column + column - 1 if line == 1 else column + 1)


def _indented(lines: str, margin: str) -> str:
    return "".join(f"{margin}{line}\n" if line.strip() else "\n" for line in lines.rstrip("\n").split("\n"))


def _parts(node: cst.BaseExpression) -> tuple[str, ...]:
    import libcst as cst

    match node:
        case cst.Name(name):
            return (name,)
        case cst.Attribute(value=value, attr=cst.Name(name)):
            inner = _parts(value)
            return (*inner, name) if inner else ()
    return ()


def _locals(function: ast.AST) -> frozenset[str]:
    return frozenset(
        [node.id for node in ast.walk(function) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
        + [node.arg for node in ast.walk(function) if isinstance(node, ast.arg)]
    )


def _renamed(source: str, name: str, fresh: str) -> str:
    import re

    return re.sub(rf"\b{re.escape(name)}\b", fresh, source)
