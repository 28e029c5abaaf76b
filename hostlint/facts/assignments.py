"""Lowering assignments: names, attributes and elements that are bound, changed in place, annotated or deleted."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.facts.bindings import assign_target, keep_element, read_name, store_attribute, store_item
from hostlint.facts.bound import bound_chains
from hostlint.facts.chains import chain
from hostlint.facts.dispatch import lower
from hostlint.facts.expressions import OPERATORS
from hostlint.facts.graph import Op, SiteKind
from hostlint.facts.guards import is_off_switch
from hostlint.facts.senses import is_test

if TYPE_CHECKING:
    from hostlint.facts.builder import FunctionBuilder


def assign(b: FunctionBuilder, node: ast.Assign) -> None:
    """`x = y = v`, where the module's own switches of checks are noted too."""
    value = lower(b, node.value)
    if isinstance(node.value, ast.BinOp) and len(node.targets) == 1 and chain(node.value.left) == chain(node.targets[0]):
        _count(b, node.targets[0], value, node.value)
    for target in node.targets:
        bind(b, target, value, node.value)
        if b.index == 0 and isinstance(target, ast.Name) and is_off_switch(target.id, node.value):
            b.file.switches.add(target.id)


def bind(b: FunctionBuilder, target: ast.expr, value: int, source: ast.expr | None, annotation: str = "") -> None:
    """Binds a target to a value; `source`, where there is one, says what the name may be called as."""
    if isinstance(target, ast.Attribute):
        store_attribute(b, target, value, source, annotation)
        if target.attr == "forward" and source is not None:
            b.assigns.update(dict.fromkeys((chain(target), text) for text in bound_chains(source)))
    elif isinstance(target, ast.Tuple) and isinstance(source, ast.Tuple) and _pairs_up(target, source):
        elements = b.nodes[value][3]
        assert isinstance(elements, tuple)
        for part, piece, text in zip(target.elts, elements, source.elts, strict=True):
            bind(b, part, piece, text)
    else:
        if isinstance(target, ast.Name) and source is not None:
            b.assigns.update(dict.fromkeys((target.id, text) for text in bound_chains(source)))
            if is_test(source):
                b.tests[value] = source
        assign_target(b, target, value)
        if isinstance(target, ast.Subscript) and source is not None:
            keep_element(b, target.value, [source])


def _pairs_up(target: ast.Tuple, source: ast.Tuple) -> bool:
    return len(target.elts) == len(source.elts) and not any(isinstance(part, ast.Starred) for part in (*target.elts, *source.elts))


def annotated(b: FunctionBuilder, node: ast.AnnAssign) -> None:
    """`x: T = v`, or `x: T` alone, which says what x holds without binding it."""
    annotation = b.file.positions.source(node.annotation, limit=200)
    if node.value is not None:
        bind(b, node.target, lower(b, node.value), node.value, annotation if isinstance(node.target, ast.Attribute) else "")
    elif isinstance(node.target, ast.Attribute):
        store_attribute(b, node.target, b.unknown(node.lineno), None, annotation)
    if isinstance(node.target, ast.Name):
        b.assigns[(node.target.id, f":{annotation}")] = None


def augmented(b: FunctionBuilder, node: ast.AugAssign) -> None:
    """`x op= v`: elements are sites of their own, lists grow, and a tensor stays where it is."""
    operand = lower(b, node.value)
    operator = OPERATORS[type(node.op)]
    if isinstance(node.target, ast.Subscript):
        store_item(b, node.target, operand, augmented=True)
        return
    start = len(b.nodes)
    if isinstance(node.target, ast.Name):
        before = read_name(b, node.target.id, node.lineno)
        if operator == "+" and isinstance(node.value, (ast.List, ast.Tuple, ast.ListComp)):
            assign_target(b, node.target, b.add(Op.APPEND, node.lineno, before, b.add(Op.ITER, node.lineno, operand)))
        else:
            assign_target(b, node.target, b.add(Op.BINOP, node.lineno, f"{operator}=", before, operand))
    elif isinstance(node.target, ast.Attribute):
        before = lower(b, node.target)
        store_attribute(b, node.target, b.add(Op.BINOP, node.lineno, f"{operator}=", before, operand), None)
    if operator in "+-":
        made = _made(b, start)
        _count(b, node.target, made, node.target)
        if operator == "+" and b.loops and made >= 0:
            b.site(SiteKind.SUM, made, node.value, chain(node.target))


def _count(b: FunctionBuilder, target: ast.expr, made: int, told: ast.expr) -> None:
    """What may be a counter: an attribute, or a name that the rounds of a loop share."""
    if made >= 0 and (isinstance(target, ast.Attribute) or (b.loops and isinstance(target, ast.Name))):
        b.site(SiteKind.COUNT, made, told, subject=target)


def _made(b: FunctionBuilder, start: int) -> int:
    """The sum that a statement makes, -1 where it grows a list; `start` is the first node of the statement."""
    return next((index for index in range(len(b.nodes) - 1, start - 1, -1) if b.nodes[index][0] == Op.BINOP), -1)


def delete(b: FunctionBuilder, node: ast.Delete) -> None:
    """`del x`: the name is unbound, and what is known of its attributes forgotten."""
    for target in node.targets:
        if isinstance(target, ast.Name) and b.env is not None:
            b.site(SiteKind.DELETE, -1, target)
            b.env.pop(target.id, None)
            b.forget_attributes(target.id)
        elif isinstance(target, ast.Attribute) and b.env is not None:
            b.site(SiteKind.DELETE, -1, target)
            b.env.pop(chain(target), None)
