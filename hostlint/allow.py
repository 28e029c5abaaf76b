"""`with hostlint.runtime_checks.allow(...)` blocks as suppressions: the one claim that the scan and the run-time guards both obey."""
from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from hostlint.comments import Malformed, Scope, Suppression
from hostlint.model import Span

_FUNCTION = "hostlint.runtime_checks.allow"


def blocks(text: str) -> Iterator[Suppression | Malformed]:
    """The blocks of a file; one whose rules cannot be read from the source is malformed. A file that does not parse has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the source's escapes are worth is for other tools to say
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    nodes = list(ast.walk(tree))
    names = dict(pair for node in nodes for pair in _bound(node))
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for node in nodes:
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                call = item.context_expr
                if isinstance(call, ast.Call) and _dotted(call.func, names) == _FUNCTION:
                    yield _block(call, node.body, _span(call, lines))


def _bound(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that an import binds to hostlint, its runtime_checks or allow."""
    if isinstance(node, ast.ImportFrom) and not node.level:
        yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)
    elif isinstance(node, ast.Import):
        for alias in node.names:
            yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, names)}.{node.attr}"
    return names.get(node.id, "") if isinstance(node, ast.Name) else ""


def _span(node: ast.expr, lines: list[str]) -> Span:
    def column(line: int, offset: int) -> int:
        return len(lines[line - 1].encode()[:offset].decode(errors="replace")) + 1

    last, end = node.end_lineno or node.lineno, node.end_col_offset or 0
    return Span(node.lineno, column(node.lineno, node.col_offset), last, column(last, end))


def _block(call: ast.Call, body: list[ast.stmt], span: Span) -> Suppression | Malformed:
    given = dict(zip(("reason", "rules"), call.args, strict=False))
    given.update({keyword.arg: keyword.value for keyword in call.keywords if keyword.arg})
    reason, rules = given.get("reason"), given.get("rules")
    selectors = _strings(rules) if rules is not None else ()
    if selectors is None:
        return Malformed(span, "the rules of `allow` must be a list of literal names for the scan to read them")
    return Suppression(span, Scope.BLOCK, selectors, _words(reason), None, (body[0].lineno, body[-1].end_lineno or body[-1].lineno))


def _words(reason: ast.expr | None) -> str:
    if isinstance(reason, ast.Constant):
        return reason.value.strip() if isinstance(reason.value, str) else ""
    return ast.unparse(reason) if reason is not None else ""


def _strings(node: ast.expr) -> tuple[str, ...] | None:
    if not isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return None
    values = [item.value for item in node.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return tuple(values) if len(values) == len(node.elts) else None
