"""Small builders of source text from concrete syntax, for rules that word fixes."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import libcst as cst


def code(node: cst.CSTNode) -> str:
    """A node's source as it stands, comments and line breaks included, its own outer parentheses too."""
    import libcst as cst

    return cst.Module([]).code_for_node(node)


def bare_code(node: cst.BaseExpression) -> str:
    """An expression's source without parentheses around it; a fact's node comes in a pair that is not in the file."""
    return code(node.with_changes(lpar=(), rpar=())).strip()


def operand(node: cst.BaseExpression) -> str:
    """An expression's source so that a method or an operator can be put to it: in parentheses where its parts would be torn apart."""
    import libcst as cst

    plain = isinstance(node, cst.Name | cst.Attribute | cst.Call | cst.Subscript | cst.List | cst.Dict | cst.SimpleString)
    return bare_code(node) if plain else f"({bare_code(node)})"


def is_repeatable(node: cst.BaseExpression) -> bool:
    """Whether an expression may be written twice, or moved: names, attributes, numbers and strings; no calls, no subscripts."""
    import libcst as cst

    match node:
        case cst.Name() | cst.BaseNumber() | cst.SimpleString():
            return True
        case cst.Attribute(value=value) | cst.UnaryOperation(expression=value):
            return is_repeatable(value)
    return False
