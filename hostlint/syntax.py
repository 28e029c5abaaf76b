"""The concrete syntax around a fact's expression: its statement, what is done with its value, what a mask selects from."""
from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import libcst as cst

    from hostlint.facts.fact import Fact

ELEMENTWISE = frozenset(
    {"abs", "bool", "clamp", "clip", "detach", "double", "exp", "expm1", "float", "half", "int", "log", "log1p", "logical_not", "long"}
    | {"neg", "nan_to_num", "pow", "relu", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sqrt", "square", "tanh", "to", "type_as"}
)  # functions whose result at an element depends on that element alone


@lru_cache(maxsize=64)
def parsed(source: str) -> cst.CSTNode | None:
    """A statement, or a compound one's header, as it stands in its file; None where it cannot be parsed alone."""
    import libcst as cst

    margin = source[: len(source) - len(source.lstrip(" \t"))]
    source = margin + source[len(margin) :].removeprefix("el") if source[len(margin) :].startswith("elif") else source
    opened = "if 1:\n" + source if margin else source  # in a block, so that it keeps its margin
    for text in (opened, f"{opened}\n{margin} pass"):
        try:
            module = cst.parse_module(text + "\n")
        except cst.ParserSyntaxError:
            continue
        block = module.body[0] if module.body else None
        return block.body if margin and isinstance(block, cst.If) else module
    return None


def around(fact: Fact, node: cst.BaseExpression) -> tuple[cst.CSTNode, ...]:
    """What the expression lies in, innermost first, where it is read; empty where its statement is not known."""
    import libcst as cst

    statement = parsed(fact.source)
    places = _places(statement, type(node), bare(node), ()) if statement is not None else iter(())
    return next((place for place in places if not any(isinstance(part, cst.AssignTarget) for part in place)), ())


def _places(node: cst.CSTNode, kind: type[cst.CSTNode], wanted: str, outer: tuple[cst.CSTNode, ...]) -> Iterator[tuple[cst.CSTNode, ...]]:
    if isinstance(node, kind) and bare(node) == wanted:
        yield outer
    for child in node.children:
        yield from _places(child, kind, wanted, (node, *outer))


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in node.children:
        yield from walk(child)


def bare(node: cst.CSTNode) -> str:
    """The node's source without spaces and parentheses around it, to compare by."""
    import libcst as cst

    if isinstance(node, cst.BaseExpression):
        node = node.with_changes(lpar=(), rpar=())
    return "".join(cst.Module([]).code_for_node(node).split())


def masked(node: cst.CSTNode) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """What `x[mask]`, `x.masked_select(mask)` or `x.index_put_((mask,), v)` takes the elements of, and the mask."""
    import libcst as cst

    match node:
        case cst.Subscript(value=base, slice=[cst.SubscriptElement(slice=cst.Index(value=mask))]):
            return base, mask
        case cst.Call(func=cst.Attribute(value=cst.Name("torch"), attr=cst.Name("masked_select")), args=[base, mask, *_]):
            return base.value, mask.value
        case cst.Call(func=cst.Attribute(value=base, attr=cst.Name("masked_select")), args=[mask, *_]):
            return base, mask.value
        case cst.Call(
            func=cst.Attribute(value=base, attr=cst.Name("index_put_" | "index_put")),
            args=[cst.Arg(value=cst.Tuple(elements=[cst.Element(value=mask)])), *_],
        ):
            return base, mask
    return None


def unmasked(expression: cst.BaseExpression, mask: cst.BaseExpression) -> cst.BaseExpression:
    """The expression with `y` for every `y[mask]`: what it computes in full size."""
    import libcst as cst

    while True:
        found = next((part for part in walk(expression) if reads_through(part, mask)), None)
        pair = masked(found) if found is not None else None
        changed = expression.deep_replace(found, pair[0]) if found is not None and pair is not None else None
        if not isinstance(changed, cst.BaseExpression):
            return expression
        expression = changed


def reads_through(node: cst.CSTNode, mask: cst.BaseExpression) -> bool:
    """Whether the node is `y[mask]` for this mask."""
    pair = masked(node)
    return pair is not None and bare(pair[1]) == bare(mask)


def operand(node: cst.BaseExpression) -> str:
    """The node's source, in parentheses where an operator or a method would otherwise take hold of a part of it."""
    import libcst as cst

    from hostlint.wording import text

    loose = isinstance(node, cst.BinaryOperation | cst.UnaryOperation | cst.Comparison | cst.BooleanOperation | cst.IfExp)
    return f"({text(node)})" if loose and not node.lpar else text(node)


def is_packed(value: cst.BaseExpression, mask: cst.BaseExpression) -> bool:
    """Whether a call is given the true elements, or their shape, and may treat them together: then their number matters."""
    import libcst as cst

    calls = (part for part in walk(value) if isinstance(part, cst.Call) and masked(part) is None)
    return any(function(call) not in ELEMENTWISE and any(reads_through(part, mask) for part in walk(call)) for call in calls)


def function(node: cst.CSTNode) -> str:
    """The last name of what is called; "" for other expressions."""
    import libcst as cst

    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(name)) | cst.Name(name)):
            return name
    return ""


def is_constant(node: cst.BaseExpression) -> bool:
    """Whether the node is made of literals and attributes (`[0, 4]`, `self.sizes[i]`), which seldom change over the steps."""
    import libcst as cst

    match node:
        case cst.BaseNumber() | cst.Attribute() | cst.Name("True" | "False"):
            return True
        case cst.UnaryOperation(expression=inner) | cst.Subscript(value=inner):
            return is_constant(inner)
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return all(is_constant(element.value) for element in elements)
    return False
