"""Binding and reading names, attributes and items: what an assignment target does to the environment."""
from __future__ import annotations

import ast

from hostlint.facts.builder import FunctionBuilder
from hostlint.facts.chains import bound_chains
from hostlint.facts.dispatch import lower
from hostlint.facts.graph import Op, SiteKind


def read_name(b: FunctionBuilder, name: str, line: int) -> int:
    if b.env is not None and name in b.env:
        return b.env[name]
    if name in b.bindings and b.index and name not in b.outer_names:
        return b.unknown(line)
    functions = b.file.functions
    index = b.parent
    while index > 0:
        if name in functions[index].bindings:
            return b.add(Op.FREE, line, name, index)
        index = functions[index].parent
    return b.add(Op.GLOBAL, line, name)


def names_of(target: ast.expr) -> list[str]:
    return [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]


def assign_target(b: FunctionBuilder, target: ast.expr, value: int) -> None:
    """Bind a simple, starred or nested target; attributes and subscripts are written by the statements module."""
    if isinstance(target, ast.Name):
        b.bind(target.id, value)
        b.forget_attributes(target.id)
    elif isinstance(target, (ast.Tuple, ast.List)):
        count = len(target.elts)
        for position, part in enumerate(target.elts):
            starred = isinstance(part, ast.Starred)
            piece = b.add(Op.UNPACK, target.lineno, value, -1 if starred else position, count)
            assign_target(b, part.value if isinstance(part, ast.Starred) else part, piece)
    elif isinstance(target, ast.Attribute):
        store_attribute(b, target, value, None)
    elif isinstance(target, ast.Subscript):
        store_item(b, target, value)


def store_attribute(b: FunctionBuilder, target: ast.Attribute, value: int, source: ast.expr | None, annotation: str = "") -> None:
    """`self.name = value`: kept for the class (any method may read it) and for the rest of this function."""
    if isinstance(target.value, ast.Name):
        if b.env is not None:
            b.env[f"{target.value.id}.{target.attr}"] = value
        if target.value.id == b.self_name and b.owner >= 0:
            texts = [annotation] if annotation else bound_chains(source) if source is not None else []
            owner = b.file.classes[b.owner]
            owner.attributes.extend((target.attr, b.index, value, text) for text in texts or [""])
            return
    else:
        lower(b, target.value)


def store_item(b: FunctionBuilder, target: ast.Subscript, value: int, augmented: bool = False) -> int:
    base, index = lower(b, target.value), lower(b, target.slice)
    result = b.add(Op.STORE, target.lineno, base, index, value)
    b.site(SiteKind.AUGMENTED if augmented else SiteKind.WRITE, result, target, subject=target.value)
    if isinstance(target.value, ast.Name) and b.env is not None and target.value.id in b.env:
        b.bind(target.value.id, result)
    return result
