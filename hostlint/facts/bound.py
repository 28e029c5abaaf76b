"""What a bound name may stand for, as chains."""
from __future__ import annotations

import ast

from hostlint.facts.chains import LIST_MAKERS, OPAQUE, WRAPPERS, chain
from hostlint.facts.rare import on_other
from hostlint.facts.senses import sense


def bound_chains(value: ast.expr) -> list[str]:
    """What a name bound to this expression may stand for: the arms of a choice, without what is for other machines, the elements of a
    list of modules."""
    if isinstance(value, ast.IfExp):
        other = sense(value.test, on_other)
        return [text for arm, skipped in ((value.body, 1), (value.orelse, -1)) if other != skipped for text in bound_chains(arm)]
    if isinstance(value, ast.BoolOp):
        return [text for part in value.values for text in bound_chains(part)]
    if isinstance(value, ast.Call) and value.args and chain(value.func) in LIST_MAKERS:
        return [f"[]{text}" for argument in value.args for text in _elements(argument)]
    if isinstance(value, (ast.List, ast.Tuple, ast.ListComp)):
        return [f"[]{text}" for text in _elements(value)]
    if isinstance(value, (ast.Dict, ast.DictComp)):
        values = value.values if isinstance(value, ast.Dict) else [value.value]
        return [f"[]{text}" for part in values for text in bound_chains(part)]
    text = chain(value)
    if isinstance(value, ast.Call) and value.args and text.removesuffix("()").rpartition(".")[2] in WRAPPERS:
        return [text, *bound_chains(value.args[0])]
    return [] if text.startswith(OPAQUE) else [text]


def _elements(node: ast.expr) -> list[str]:
    if isinstance(node, (ast.List, ast.Tuple)):
        return [text for part in node.elts for text in bound_chains(part)]
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return bound_chains(node.elt)
    return bound_chains(node)
