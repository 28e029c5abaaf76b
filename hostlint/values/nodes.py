"""What each kind of node of a value graph evaluates to."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hostlint.facts.graph import Node, Op, Refinement
from hostlint.model import Confidence
from hostlint.scopes import Symbol, SymbolKind
from hostlint.values import fields, movers
from hostlint.values.calls import call
from hostlint.values.containers import one_of, subscript
from hostlint.values.conventions import ON_HOST
from hostlint.values.detail import Class, Detail, Device, External, Function, Instance, Items, ListOf, Literal, Mapping, Module, Super
from hostlint.values.evaluator import Frame
from hostlint.values.lattice import PYTHON, TRUTH, UNKNOWN, WHERE_THERE_IS_ONE, combine, element, is_none, join_all, list_of
from hostlint.values.members import attribute
from hostlint.values.parameters import parameter
from hostlint.values.refined import refined
from hostlint.values.value import Place, Value

# The operands of a node are ints, strings and tuples by the layout in hostlint.facts.graph, which the type of a tuple cannot say.
Evaluation = Callable[[Frame, Any], Value]

LONGEST_ITEMS = 64
# What code asks before it chooses between the accelerator and the host.
ACCELERATOR = re.compile(
    r"is_available|device_count|current_accelerator|_*((is|use|has|no|on|with|enable)_)?(cuda|gpus?)_(is_)?available|"
    r"_*(is|use|has|no|on|with|enable)_(cuda|gpus?)|gpus?|local_rank|device_type"
)
BITWISE = frozenset({"&", "|", "^"})


def evaluate(frame: Frame, node: Node, position: int) -> Value:
    """The value of a node whose operands have been evaluated; `position` is its own."""
    value: Value = _TABLE[node[0]](frame, node)  # type: ignore[call-overload]  # a node's first item is its Op
    for marked, what in frame.graph.marks:
        if marked == position:
            value = refined(value, Refinement(what), "backward() is called on it")
    return value


def _const(frame: Frame, node: Any) -> Value:
    _, _, type_name, literal = node
    number = type_name in {"int", "float", "complex", "bool"}
    integer = True if type_name == "int" else None
    boolean = True if type_name == "bool" else None
    return Value(Place.PYTHON, rank0=True if number else None, boolean=boolean, integer=integer, detail=Literal(type_name, literal))


def _global(frame: Frame, node: Any) -> Value:
    symbol = frame.evaluator.index.resolve(frame.fid[0], node[2], frame.fid[1])
    return of_symbol(frame, symbol)


def of_symbol(frame: Frame, symbol: Symbol | None) -> Value:
    """What a name that was resolved in the project stands for."""
    if symbol is None:
        return UNKNOWN
    if symbol.kind is SymbolKind.EXTERNAL:
        return Value(Place.PYTHON, detail=External(symbol.name))
    if symbol.kind is SymbolKind.FUNCTION:
        return Value(Place.PYTHON, detail=Function(symbol.id))
    if symbol.kind is SymbolKind.CLASS:
        return Value(Place.PYTHON, detail=Class(symbol.id))
    if symbol.kind is SymbolKind.MODULE:
        return Value(Place.PYTHON, detail=Module(symbol.file))
    return _cell(frame, (symbol.file, 0), symbol.item)


def _cell(frame: Frame, fid: tuple[int, int], node: int) -> Value:
    if frame.fid == fid:
        return frame.value(node)
    if frame.fuel <= 0:
        return UNKNOWN
    value = frame.evaluator.frame(fid, frame.fuel - 1).value(node)
    if is_none(value) and not fid[1]:
        return UNKNOWN  # a module's placeholder, set by somebody's `global`
    return replace(value, fresh=False) if value.fresh else value


def _free(frame: Frame, node: Any) -> Value:
    fid = (frame.fid[0], node[3])
    cells = dict(frame.evaluator.graph_of(fid).cells)
    return _cell(frame, fid, cells[node[2]]) if node[2] in cells else UNKNOWN


def _param(frame: Frame, node: Any) -> Value:
    return parameter(frame, node[2])


def _attr(frame: Frame, node: Any) -> Value:
    return fields.unsure_of_host(frame, fields.handed_down(frame, attribute(frame, frame.values[node[2]], node[3]), *node[2:4]), node[2])


def _index(frame: Frame, node: Any) -> Value:
    return fields.member(frame, subscript(frame.values[node[2]], frame.values[node[3]]), node[2], node[3])


def _slice(frame: Frame, node: Any) -> Value:
    return Value(Place.PYTHON, detail=Literal("slice"))


def _binop(frame: Frame, node: Any) -> Value:
    left, right = frame.value(node[3]), frame.value(node[4])
    containers = (Items, ListOf)
    if node[2] == "+" and isinstance(left.detail, containers) and isinstance(right.detail, containers):
        return _concatenated(left.detail, right.detail)
    if node[2] == "*" and isinstance(left.detail, containers) and (right.place is Place.PYTHON or right.is_tensor):
        return Value(Place.PYTHON, detail=ListOf(element(left.detail)))
    if node[2] == "%" and isinstance(left.detail, Literal) and left.detail.type_name == "str":
        return PYTHON
    if node[2].endswith("=") and left.is_tensor:
        return replace(left, fresh=False)  # in place: the tensor stays what and where it is
    result = combine((left, right))
    if result.is_tensor:
        return _typed(result, node[2], left, right)
    if result.place is Place.PYTHON and left.rank0 and right.rank0:
        return _number(node[2], left, right)
    return result


def _number(operator: str, left: Value, right: Value) -> Value:
    """Arithmetic of Python numbers; products and shifts of literals are worked out, for they are sizes of tensors."""
    integer = (left.integer and right.integer and operator != "/") or None
    a, b = (value.detail.value if isinstance(value.detail, Literal) else None for value in (left, right))
    if isinstance(a, int) and isinstance(b, int) and operator in {"*", "<<", "**"} and 0 <= b <= 1 << 20 and 0 <= a <= 1 << 40:
        small = operator == "*" or b <= 64
        result = (a * b if operator == "*" else a << b if operator == "<<" else a**b) if small else None
        return Value(Place.PYTHON, rank0=True, integer=True, detail=Literal("int", result))
    return Value(Place.PYTHON, rank0=True, integer=integer)


def _typed(result: Value, operator: str, left: Value, right: Value) -> Value:
    if operator in BITWISE:  # a mask and anything that is no integer is a mask
        mask = bool(left.boolean or right.boolean) and not (left.integer or right.integer)
        return replace(result, boolean=True if mask else result.boolean)
    if operator == "*" and left.boolean and right.boolean:
        return result
    return replace(result, boolean=None, integer=False if operator == "/" else result.integer)


def _concatenated(left: Detail, right: Detail) -> Value:
    if isinstance(left, Items) and isinstance(right, Items) and len(left.items) + len(right.items) <= LONGEST_ITEMS:
        return Value(Place.PYTHON, detail=Items(left.kind, left.items + right.items))
    kind = left.kind if isinstance(left, (Items, ListOf)) else "list"
    return Value(Place.PYTHON, detail=ListOf(join_all([element(left), element(right)]), kind))


def _unary(frame: Frame, node: Any) -> Value:
    operand = frame.value(node[3])
    if node[2] == "not":
        return TRUTH
    if operand.is_tensor or operand.place is Place.NUMPY:
        return replace(operand, fresh=False, detail=None)
    if operand.place is Place.PYTHON:
        if isinstance(operand.detail, Literal) and node[2] == "-" and isinstance(operand.detail.value, (int, float)):
            return replace(operand, detail=Literal(operand.detail.type_name, -operand.detail.value))
        return replace(operand, detail=None)
    return UNKNOWN


def _compare(frame: Frame, node: Any) -> Value:
    operators, operands = node[2], [frame.values[part] for part in node[3]]
    if len(operators) > 1 or operators[0] in {"is", "is not", "in", "not in"}:
        return TRUTH
    if any(is_none(value) or (isinstance(value.detail, Literal) and value.detail.type_name == "str") for value in operands):
        return TRUTH
    result = combine(operands)
    return replace(result, boolean=True, integer=None) if result.is_tensor else TRUTH if result.place is Place.PYTHON else result


def _bool(frame: Frame, node: Any) -> Value:
    return join_all(frame.values[part] for part in node[3])


def _phi(frame: Frame, node: Any) -> Value:
    value = join_all(value for part in node[2] if (value := frame.values[part]) is not None)
    if isinstance(value.detail, Device) and value.detail.why == WHERE_THERE_IS_ONE and not _asks_for_accelerator(frame):
        return replace(value, confidence=Confidence.POSSIBLE)  # `device = "cpu"`, and another one by some option
    return value


def _asks_for_accelerator(frame: Frame) -> bool:
    if any(ON_HOST.search(param.name) for param in frame.outline.params):  # `force_cpu=True`
        return False
    names = (node[3] if node[0] == Op.ATTR else node[2] for node in frame.graph.nodes if node[0] in (Op.ATTR, Op.GLOBAL, Op.FREE))
    return any(ACCELERATOR.fullmatch(str(name)) for name in names) or any(ACCELERATOR.fullmatch(p.name) for p in frame.outline.params)


def _sequence(frame: Frame, node: Any) -> Value:
    items = [frame.values[part] for part in node[3]]
    starred = [frame.graph.nodes[part][0] == Op.STAR for part in node[3]]
    if any(starred):
        made = list_of(join_all(element(item.detail) if star else item for item, star in zip(items, starred, strict=True)))
        return replace(made, detail=replace(made.detail, kind=node[2])) if isinstance(made.detail, ListOf) else made
    return Value(Place.PYTHON, detail=Items(node[2], tuple(items)))


def _dict(frame: Frame, node: Any) -> Value:
    return Value(Place.PYTHON, detail=Mapping(tuple((key, frame.values[part]) for key, part in node[2])))


def _comprehension(frame: Frame, node: Any) -> Value:
    made = list_of(frame.values[node[3]])
    return replace(made, detail=replace(made.detail, kind="dict")) if node[2] == "dict" and isinstance(made.detail, ListOf) else made


def _iter(frame: Frame, node: Any) -> Value:
    return one_of(frame.values[node[2]])


def _unpack(frame: Frame, node: Any) -> Value:
    _, _, source, position, count = node
    value = frame.value(source)
    detail = value.detail
    if isinstance(detail, Items) and len(detail.items) == count and position >= 0:
        one: Value = detail.items[position]
        return one
    if value.is_tensor or isinstance(value.detail, (Items, ListOf)):
        each = fields.unsure_of_rows(frame, one_of(value), source)
        return each if position >= 0 else list_of(each)
    if value.place is Place.PYTHON and value.detail is None:
        return PYTHON
    return UNKNOWN


def _text(frame: Frame, node: Any) -> Value:
    return PYTHON


def _function(frame: Frame, node: Any) -> Value:
    return Value(Place.PYTHON, detail=Function((frame.fid[0], node[2])))


def _class(frame: Frame, node: Any) -> Value:
    return Value(Place.PYTHON, detail=Class((frame.fid[0], node[2])))


def _unknown(frame: Frame, node: Any) -> Value:
    return UNKNOWN


def _whole(frame: Frame, node: Any) -> Value:
    return frame.value(node[2])


def _append(frame: Frame, node: Any) -> Value:
    base, added = frame.value(node[2]), frame.value(node[3])
    if base.place not in (Place.PYTHON, Place.UNKNOWN) or isinstance(base.detail, Instance):
        return base
    if isinstance(base.detail, Items) and not base.detail.items:
        return list_of(added)
    if isinstance(base.detail, (Items, ListOf)):
        return list_of(join_all([element(base.detail), added]))
    return base


def _refine(frame: Frame, node: Any) -> Value:
    what = Refinement(node[3])
    return refined(frame.values[node[2]], what, f"line {node[1]} says so")


def _store(frame: Frame, node: Any) -> Value:
    base, index, value = (frame.value(part) for part in node[2:5])
    literal = index.detail.value if isinstance(index.detail, Literal) else None
    if isinstance(base.detail, Mapping) and isinstance(literal, (str, int)):
        return replace(base, detail=Mapping((*((k, v) for k, v in base.detail.items if k != literal), (literal, value))))
    if isinstance(base.detail, (Items, ListOf)) and not (isinstance(index.detail, Literal) and index.detail.type_name == "slice"):
        return list_of(join_all([element(base.detail), value]) if not isinstance(base.detail, Items) or base.detail.items else value)
    return base


def _moved(frame: Frame, node: Any) -> Value:
    return movers.in_place(frame, frame.value(node[2]), node[3], node[4])


def _import(frame: Frame, node: Any) -> Value:
    return of_symbol(frame, frame.evaluator.index.absolute(node[2]))


def _super(frame: Frame, node: Any) -> Value:
    owner = frame.evaluator.index.owner(frame.fid)
    return Value(Place.PYTHON, detail=Super(owner)) if owner is not None else UNKNOWN


def _call(frame: Frame, node: Any) -> Value:
    return call(frame, node)


_EVALUATIONS: dict[Op, Evaluation] = {
    Op.CONST: _const, Op.GLOBAL: _global, Op.PARAM: _param, Op.FREE: _free, Op.ATTR: _attr, Op.CALL: _call, Op.INDEX: _index,
    Op.SLICE: _slice, Op.BINOP: _binop, Op.UNARY: _unary, Op.COMPARE: _compare, Op.BOOL: _bool, Op.PHI: _phi,
    Op.SEQUENCE: _sequence, Op.DICT: _dict, Op.COMPREHENSION: _comprehension, Op.ITER: _iter, Op.UNPACK: _unpack, Op.TEXT: _text,
    Op.FUNCTION: _function, Op.CLASS: _class, Op.UNKNOWN: _unknown, Op.ENTER: _whole, Op.APPEND: _append, Op.REFINE: _refine,
    Op.STORE: _store, Op.IMPORT: _import, Op.STAR: _whole, Op.SUPER: _super, Op.MOVED: _moved,
}  # fmt: skip
_TABLE: list[Evaluation] = [_EVALUATIONS[op] for op in Op]  # by number: nodes hold plain ints
