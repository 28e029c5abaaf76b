"""What a test says of the names it looks at: `isinstance(x, Tensor)`, `x is None`, `x.is_cuda`, `x.device.type == "cpu"`."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.facts.bindings import read_name
from hostlint.facts.chains import chain
from hostlint.facts.graph import Op, Refinement

if TYPE_CHECKING:
    from hostlint.facts.builder import FunctionBuilder

PYTHON_TYPES = frozenset({
    "int", "float", "bool", "complex", "str", "list", "tuple", "dict", "Number", "Integral", "Real", "Sequence", "Mapping",
})
NUMPY_TYPES = frozenset({"ndarray", "generic", "number", "floating", "integer"})


def refine(b: FunctionBuilder, test: ast.expr, holds: bool) -> None:
    """Narrow the environment for the branch in which the test is true (`holds`) or false."""
    if b.env is None:
        return
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        refine(b, test.operand, not holds)
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) is holds:  # each part is true in a true `and`, false in a false `or`
            for part in test.values:
                refine(b, part, holds)
    else:
        found = _said(test, holds)
        if found is not None:
            _narrow(b, found[0], found[1])


def _narrow(b: FunctionBuilder, target: ast.expr, what: Refinement) -> None:
    target = target.target if isinstance(target, ast.NamedExpr) else target
    text = chain(target)
    if b.env is None or not isinstance(target, (ast.Name, ast.Attribute)) or text.count(".") > 1 or text.startswith("?"):
        return
    if text in b.env:
        before = b.env[text]
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        before = b.add(Op.ATTR, target.lineno, read_name(b, target.value.id, target.lineno), target.attr)
    else:
        return
    b.env[text] = b.add(Op.REFINE, target.lineno, before, int(what))


def _said(test: ast.expr, holds: bool) -> tuple[ast.expr, Refinement] | None:
    if isinstance(test, ast.Call) and test.args:
        return _said_by_call(test, holds)
    if isinstance(test, ast.Attribute) and test.attr in {"is_cuda", "is_cpu"}:
        return test.value, Refinement.DEVICE if (test.attr == "is_cuda") is holds else Refinement.HOST
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _said_by_comparison(test, holds)
    return None


def _said_by_call(test: ast.Call, holds: bool) -> tuple[ast.expr, Refinement] | None:
    name = chain(test.func).rsplit(".", 1)[-1]
    if name == "is_tensor":
        return test.args[0], Refinement.TENSOR if holds else Refinement.NOT_TENSOR
    if name != "isinstance" or len(test.args) != 2:
        return None
    kinds = test.args[1].elts if isinstance(test.args[1], ast.Tuple) else [test.args[1]]
    names = {chain(kind).rsplit(".", 1)[-1] for kind in kinds}
    if names <= {"Tensor", "Parameter", "LongTensor", "FloatTensor"}:
        return test.args[0], Refinement.TENSOR if holds else Refinement.NOT_TENSOR
    if holds and names <= NUMPY_TYPES:
        return test.args[0], Refinement.NUMPY
    return (test.args[0], Refinement.PYTHON) if holds and names <= PYTHON_TYPES else None


def _said_by_comparison(test: ast.Compare, holds: bool) -> tuple[ast.expr, Refinement] | None:
    op, left, right = test.ops[0], test.left, test.comparators[0]
    if isinstance(left, ast.Call) and chain(left.func) == "len" and left.args and isinstance(right, ast.Constant) and right.value == 0:
        empty = isinstance(op, ast.Eq) if holds else isinstance(op, (ast.Gt, ast.NotEq))
        return (left.args[0], Refinement.EMPTY) if empty else None
    if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(right, ast.Constant) and right.value is None:
        return left, Refinement.NONE if isinstance(op, ast.Is) is holds else Refinement.NOT_NONE
    if not isinstance(op, (ast.Eq, ast.NotEq)) or not isinstance(right, ast.Constant) or right.value not in {"cpu", "cuda"}:
        return None
    equal = isinstance(op, ast.Eq) is holds
    if isinstance(left, ast.Attribute) and left.attr == "type" and isinstance(left.value, ast.Attribute) and left.value.attr == "device":
        on_host = (right.value == "cpu") is equal
        return left.value.value, Refinement.HOST if on_host else Refinement.DEVICE
    return None
