"""What an annotation says of a value: `Tensor`, `int`, `Optional[X]`, `list[Tensor]`, `np.ndarray`, a class of the project."""
from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from hostlint.index import ClassId, ProjectIndex, SymbolKind
from hostlint.values.detail import Device, Dtype, ExternalInstance, Instance, Items, ListOf
from hostlint.values.lattice import NUMBER, NUMPY, PYTHON, TENSOR, TRUTH, UNKNOWN, join_all
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from hostlint.scopes import Symbol

TENSORS = frozenset({
    "Tensor", "FloatTensor", "LongTensor", "IntTensor", "BoolTensor", "ByteTensor", "HalfTensor", "DoubleTensor", "BFloat16Tensor",
    "Parameter", "Float", "Int", "Bool", "Shaped",
})
PYTHON_NAMES = frozenset({"str", "bytes", "Path", "dict", "Dict", "Mapping", "set", "Set", "Number", "object", "type"})
CONTAINERS = frozenset({"list", "List", "Sequence", "Iterable", "Iterator", "Collection", "set", "Set", "Generator", "deque"})
WRAPPERS = frozenset({"Optional", "Annotated", "Final", "ClassVar", "Required", "NotRequired", "Union"})


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> ast.expr | None:
    """An annotation's syntax; None where it is none."""
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None


def value_of(text: str, index: ProjectIndex, file: int, function: int = 0) -> Value:
    """The value of something annotated so; UNKNOWN where the annotation says nothing (or allows both tensors and numbers)."""
    node = parse(text)
    return UNKNOWN if node is None else _value(node, index, file, function)


def _value(node: ast.expr, index: ProjectIndex, file: int, function: int) -> Value:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return value_of(node.value, index, file, function)
        return _NONE if node.value is None else UNKNOWN
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([_value(node.left, index, file, function), _value(node.right, index, file, function)])
    if isinstance(node, ast.Subscript):
        return _generic(node, index, file, function)
    return _named(ast.unparse(node), index, file, function)


def _named(dotted: str, index: ProjectIndex, file: int, function: int) -> Value:
    last = dotted.rpartition(".")[2]
    if last in TENSORS and (last not in {"Float", "Int", "Bool"} or dotted == last):
        return TENSOR
    simple = {"int": _INTEGER, "float": NUMBER, "complex": NUMBER, "bool": TRUTH, "ndarray": NUMPY}.get(last)
    if simple is not None:
        return simple
    if last in PYTHON_NAMES:
        return PYTHON
    if dotted in {"list", "List", "tuple", "Tuple"}:
        return Value(Place.PYTHON, detail=ListOf(UNKNOWN, dotted.lower()))
    if last == "device" and dotted != "device":
        return Value(Place.PYTHON, detail=Device("unknown"))
    if last == "dtype":
        return Value(Place.PYTHON, detail=Dtype("?"))
    symbol = index.in_annotation(file, dotted, function)
    if symbol is not None and symbol.kind is SymbolKind.CLASS:
        return instance(symbol.id)
    if symbol is not None and symbol.kind is SymbolKind.EXTERNAL and symbol.name.startswith("torch."):
        return _external(symbol)
    return UNKNOWN


def _external(symbol: Symbol) -> Value:
    return Value(Place.PYTHON, detail=ExternalInstance((symbol.name,)))


def instance(cid: ClassId) -> Value:
    """An object of a class of the project."""
    return Value(Place.PYTHON, detail=Instance(cid))


def _generic(node: ast.Subscript, index: ProjectIndex, file: int, function: int) -> Value:
    name = ast.unparse(node.value).rpartition(".")[2]
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name == "Union":
        return _union([_value(part, index, file, function) for part in parts])
    if name in WRAPPERS:
        return _value(parts[0], index, file, function)
    if name in TENSORS:  # jaxtyping: Float[Tensor, "b n"]
        return TENSOR
    if name in {"tuple", "Tuple"}:
        if len(parts) == 2 and isinstance(parts[1], ast.Constant) and parts[1].value is Ellipsis:
            return Value(Place.PYTHON, detail=ListOf(_value(parts[0], index, file, function)))
        return Value(Place.PYTHON, detail=Items("tuple", tuple(_value(part, index, file, function) for part in parts)))
    if name in CONTAINERS:
        return Value(Place.PYTHON, detail=ListOf(_value(parts[0], index, file, function)))
    if name in {"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict"}:
        return Value(Place.PYTHON, detail=ListOf(_value(parts[-1], index, file, function), "dict"))
    if name == "Literal":
        return PYTHON
    return UNKNOWN


_INTEGER = Value(Place.PYTHON, rank0=True, integer=True)
_NONE = Value(Place.PYTHON)


def _union(values: list[Value]) -> Value:
    """None drops out; tensors beside numbers leave the place open."""
    kept = [value for value in values if value is not _NONE]
    if any(value.place is Place.UNKNOWN for value in kept):
        return UNKNOWN
    return join_all(kept) if kept else PYTHON
