"""The value graph of a function: a tuple a node, `(op, line, operands…)`; operands are indices of earlier nodes, in a PHI of any."""
from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

Node = tuple[object, ...]


class Op(IntEnum):
    CONST = 0  # type name, literal or None
    GLOBAL = 1  # name: module scope, import or builtin
    PARAM = 2  # index
    FREE = 3  # name, index of the function that binds it
    ATTR = 4  # base, name
    CALL = 5  # callee, arguments, ((keyword, node), …), whether * or ** is used
    INDEX = 6  # base, index
    SLICE = 7  # low, high, step (-1 where left out)
    BINOP = 8  # operator name, left, right
    UNARY = 9  # operator name, operand
    COMPARE = 10  # operator names, operands
    BOOL = 11  # "and" or "or", operands
    PHI = 12  # operands: the value is one of them
    SEQUENCE = 13  # "tuple", "list" or "set", elements
    DICT = 14  # ((literal key or None, node), …)
    COMPREHENSION = 15  # "list", "set", "generator" or "dict", element
    ITER = 16  # what is iterated: the node is one element
    UNPACK = 17  # sequence, position, count; position -1: the starred rest
    TEXT = 18  # an f-string or a formatted string
    FUNCTION = 19  # function index
    CLASS = 20  # class index
    UNKNOWN = 21
    ENTER = 22  # the value that `with` binds
    APPEND = 23  # list, element: the list after append, extend (an ITER element) or insert
    REFINE = 24  # value, what a test or comment says of it (see Refinement)
    STORE = 25  # container, index, value: the container after `container[index] = value`
    IMPORT = 26  # absolute dotted name, imported inside the function
    STAR = 27  # a starred element or argument
    SUPER = 28  # super()
    MOVED = 29  # object, call, the object's name: the object after a statement that may have moved its parts in place


class Refinement(IntEnum):
    TENSOR = 0
    NOT_TENSOR = 1
    NOT_NONE = 2
    PYTHON = 3
    DEVICE = 4  # tested: `x.is_cuda`
    HOST = 5
    CONSTANT = 6
    NUMPY = 7
    NONE = 8
    SAID_DEVICE = 11  # by a `# hostlint: device(x)` comment
    SAID_HOST = 12
    EMPTY = 10  # `len(x) == 0`, or `if not x` of a list
    GRADIENT = 9  # backward() is called on it


class SiteKind(IntEnum):
    """Where a value may meet something that makes the host wait; `Site.node` is the node to judge."""

    CALL = 0  # the CALL node itself, judged by the table of torch
    TRUTH = 1  # a truth test of the node
    MEMBER = 2  # `in` over the COMPARE node
    FORMAT = 3  # the node is formatted
    LOAD = 4  # the INDEX node is read
    WRITE = 5  # the STORE node
    AUGMENTED = 6  # the STORE node of `x[i] op= v`
    PERCENT = 7  # the BINOP node of `"…" % value`
    DELETE = 8  # `del x`: no value meets anything, but x is gone
    BARE = 9  # the CALL node of a statement `x.to(…)` whose result nobody takes
    SUM = 10  # in a loop: the BINOP node of `total += x`, or the CALL node of `rows.append(x)`
    COUNT = 11  # the BINOP node of `x += n` or `x = x + n`, for an attribute or in a loop


class Site(NamedTuple):
    kind: int
    node: int
    detail: str  # TRUTH: "if", "while", "assert", "not", "and" …
    region: int
    line: int
    column: int
    end_line: int
    end_column: int
    first_line: int  # of the enclosing statement
    last_line: int
    subject: str  # source words of what is read


class FunctionGraph(NamedTuple):
    nodes: tuple[Node, ...]
    returns: tuple[int, ...]
    yields: tuple[int, ...]
    sites: tuple[Site, ...]
    cells: tuple[tuple[str, int], ...]  # every local name -> PHI of all its bindings, for nested functions and the module's globals
    refinements: tuple[tuple[str, int], ...]  # parameter name -> Refinement, from comments on the header
    marks: tuple[tuple[int, int], ...]  # node -> Refinement that holds wherever the node is used


_FIXED: dict[Op, tuple[int, ...]] = {
    Op.ATTR: (2,), Op.INDEX: (2, 3), Op.BINOP: (3, 4), Op.UNARY: (3,), Op.COMPREHENSION: (3,), Op.ITER: (2,), Op.UNPACK: (2,),
    Op.ENTER: (2,), Op.APPEND: (2, 3), Op.REFINE: (2,), Op.STORE: (2, 3, 4), Op.STAR: (2,), Op.MOVED: (2, 3),
}  # fmt: skip
_LISTED = {Op.COMPARE: 3, Op.BOOL: 3, Op.PHI: 2, Op.SEQUENCE: 3}
_FIXED_TABLE = [_FIXED.get(op, ()) for op in Op]
_LISTED_TABLE = [_LISTED.get(op, 0) for op in Op]


def operands(node: Any) -> Sequence[int]:
    """The nodes that a node's value is made of."""
    op = node[0]
    if op == Op.CALL:
        return (node[2], *node[3], *(value for _, value in node[4]))
    if listed := _LISTED_TABLE[op]:
        parts: tuple[int, ...] = node[listed]
        return parts
    if op == Op.DICT:
        return [value for _, value in node[2]]
    if op == Op.SLICE:
        return [part for part in node[2:5] if part >= 0]
    return [node[position] for position in _FIXED_TABLE[op]]
