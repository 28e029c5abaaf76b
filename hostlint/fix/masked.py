"""Fixes of writes through a boolean mask: what is written is worked out in full size and selected by the mask."""
from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlint.fix.gradients import gradients_are_off
from hostlint.fix.same_shape import Shape, elements_lie_apart, shape_of
from hostlint.model import Applicability, Confidence
from hostlint.values.value import Place as Lives

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.fix.place import Place, Spelled
    from hostlint.model import Fix
    from hostlint.values.value import Value

WHERE = '''
def where_masked(mask, new, old):
    """`old` with `new` where the mask is true; as in `old[mask] = new[mask]`, the mask may have fewer dimensions."""
    return torch.where(mask.reshape(mask.shape + (1,) * (old.dim() - mask.dim())), new, old)
'''
EXACT_OPERATORS = frozenset({"+", "-", "*", "/"})
OPERATORS = EXACT_OPERATORS | {"&", "|", "^"}


@dataclass(frozen=True, slots=True)
class _New:
    """What is written, in full size, and what must be assumed of it ("" where it is proved)."""

    source: str
    assumed: str = ""
    number: bool = False  # arithmetic with a Python number


def masked_write_fix(place: Place) -> Fix | None:
    """`x[m] *= v` to `x.copy_(torch.where(m, x * v, x))`: written in place, for another name may see the tensor."""
    import libcst as cst

    from hostlint.fix.build import bare_code, is_repeatable
    from hostlint.syntax import masked

    pair = masked(place.node)
    if pair is None or not is_repeatable(pair[0]) or place.statement is None:
        return None
    base, mask = bare_code(pair[0]), bare_code(pair[1])
    new = _written(place, pair[0], pair[1])
    if new is None or "\n" in mask + new.source:
        return None
    shape = shape_of(place, mask, base)
    where = _where(place, shape)
    if where is None:
        return None
    text = f"{base}.copy_({where.text}({mask}, {new.source}, {base}))"
    edits = (place.replace(text, None if isinstance(place.node, cst.Call) else place.statement), *where.edits)
    if new.number and _is_exact(place, shape) and elements_lie_apart(place, base):
        return place.fix(Applicability.EXACT, "work it out for all elements and select by the mask", edits)
    assumed = [new.assumed] if new.assumed else []
    if not gradients_are_off(place):
        assumed.append("no gradient meets inf or NaN in what the mask leaves out")
    assumptions = " and ".join(assumed or [f"`{base}` is a tensor of the result's dtype"])
    return place.fix(Applicability.REVIEW, f"work it out for all elements and select by the mask, where {assumptions}", edits)


def _where(place: Place, shape: Shape) -> Spelled | None:
    """How to select: `torch.where` where the mask has the shape of the tensor, else a function that adds the dimensions it lacks."""
    if shape.covers:
        return place.spelled("torch.where")
    if place.outline.meaning("torch", ()) != "torch":
        return None
    return place.helper("where_masked", WHERE)


def _written(place: Place, base: cst.BaseExpression, mask: cst.BaseExpression) -> _New | None:
    """What the statement writes; None where it may be packed to the true elements, or is no plain write of this one place."""
    import libcst as cst

    from hostlint.fix.build import operand

    statement, span = place.statement, place.fact.span
    match place.node, statement:
        case cst.Call(args=[_, cst.Arg(value=value, keyword=None)]), ast.Expr(value=call) if place.outline.span(call) == span:
            return _value(value, mask, place.known.argument(1))
        case cst.Subscript(), ast.AugAssign(target=target) if place.outline.span(target) == span:
            operator = place.outline.source(place.outline.span(statement)).removeprefix(place.outline.source(span)).split("=")[0].strip()
            new = _operand(_parsed(place, statement.value), mask, place.known.stored)
            if new is None or operator not in OPERATORS:
                return None
            return _New(f"{operand(base)} {operator} {new.source}", new.assumed, new.number and operator in EXACT_OPERATORS)
        case cst.Subscript(), ast.Assign(targets=[target]) if place.outline.span(target) == span:
            return _value(_parsed(place, statement.value), mask, place.known.stored)
    return None


def _parsed(place: Place, node: ast.expr) -> cst.BaseExpression:
    import libcst as cst

    return cst.parse_expression(f"({place.outline.source(place.outline.span(node))}\n)")


def _operand(node: cst.BaseExpression, mask: cst.BaseExpression, value: Value) -> _New | None:
    """The right side of `x[m] op= …` in full size."""
    import libcst as cst

    from hostlint.fix.build import bare_code, is_repeatable, operand

    if value.place is Lives.PYTHON and value.rank0 and value.confidence is Confidence.CERTAIN and is_repeatable(node):
        return _New(operand(node) if not isinstance(node, cst.BaseNumber) else bare_code(node), number=True)
    full = _through(node, mask)
    if full is not None:
        return _New(operand(full), _single(node, mask))
    if (value.is_tensor and value.rank0) or (value.place is Lives.UNKNOWN and is_repeatable(node)):
        return _New(operand(node), f"`{bare_code(node)}` is one number")
    return None


def _value(node: cst.BaseExpression, mask: cst.BaseExpression, value: Value) -> _New | None:
    """The right side of `x[m] = …` in full size."""
    import libcst as cst

    from hostlint.fix.build import bare_code

    full = _through(node, mask)
    if full is not None:
        return _New(bare_code(full), _single(node, mask))
    one = value.is_tensor and value.rank0 and not isinstance(node, cst.IfExp)
    return _New(bare_code(node), f"`{bare_code(node)}` is 0-dim") if one else None


def _through(node: cst.BaseExpression, mask: cst.BaseExpression) -> cst.BaseExpression | None:
    """What an elementwise expression over `y[mask]` computes in full size; None for others."""
    from hostlint.syntax import is_packed, reads_through, unmasked, walk

    if is_packed(node, mask) or not any(reads_through(part, mask) for part in walk(node)) or not _is_elementwise(node, mask):
        return None
    return unmasked(node, mask)


def _single(node: cst.BaseExpression, mask: cst.BaseExpression) -> str:
    """The names beside `y[mask]` that arithmetic meets: they may be packed like it, and must not be."""
    import libcst as cst

    from hostlint.fix.build import bare_code
    from hostlint.syntax import reads_through

    def names(part: cst.BaseExpression) -> list[str]:
        if reads_through(part, mask) or isinstance(part, cst.Call):
            return []
        if isinstance(part, cst.BinaryOperation):
            return [*names(part.left), *names(part.right)]
        if isinstance(part, cst.UnaryOperation):
            return names(part.expression)
        return [f"`{bare_code(part)}`"] if isinstance(part, cst.Name | cst.Attribute) else []

    found = list(dict.fromkeys(names(node)))
    return f"{' and '.join(found)} {'are one number each' if found[1:] else 'is one number'}" if found else ""


def _is_elementwise(node: cst.BaseExpression, mask: cst.BaseExpression) -> bool:
    """Whether an expression is arithmetic on `y[mask]`, names and numbers, so that it may as well be done on all of `y`."""
    import libcst as cst

    from hostlint.fix.build import is_repeatable
    from hostlint.syntax import ELEMENTWISE, function, reads_through

    match node:
        case _ if reads_through(node, mask) or is_repeatable(node):
            return True
        case cst.BinaryOperation(left=left, operator=operator, right=right) if not isinstance(operator, cst.MatrixMultiply):
            return _is_elementwise(left, mask) and _is_elementwise(right, mask)
        case cst.UnaryOperation(expression=inner):
            return _is_elementwise(inner, mask)
        case cst.Call(func=cst.Attribute(value=receiver), args=arguments) if function(node) in ELEMENTWISE:
            return _is_elementwise(receiver, mask) and all(_is_elementwise(one.value, mask) and not one.star for one in arguments)
    return False


def _is_exact(place: Place, shape: Shape) -> bool:
    """Whether the tensor is proved to be of floats, and no gradient passes: then arithmetic with a number keeps its dtype and its bits."""
    base = place.known.container
    floats = base.integer is False and base.boolean is not True
    return base.is_tensor and base.confidence is Confidence.CERTAIN and floats and shape.covers and shape.alone and gradients_are_off(place)
