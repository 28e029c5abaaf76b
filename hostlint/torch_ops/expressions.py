"""Reads a measured call with nothing but the table at hand and notes which of its forms wait."""
from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hostlint.facts.kinds import FactKind
from hostlint.torch_ops import function, method
from hostlint.torch_ops.conditions import TARGET, ArgumentFacts, bind, waits_of
from hostlint.torch_ops.spec import Op, Returns, Wait
from hostlint.torch_ops.table import read_lines
from hostlint.torch_ops.typed import TENSORS, Typed, python, result_of
from hostlint.values.value import Place

ATTRIBUTES = frozenset(name for line in read_lines("attributes") for name in line.get("names", "").split())
NOT_A_WAIT = frozenset({FactKind.PIN_PER_CALL})  # costs time, but does not drain the stream
_PLACES = {Returns.DEVICE: Place.DEVICE, Returns.HOST: Place.HOST}


class Reader(ast.NodeVisitor):
    """Types expressions, statement by statement; `waits` fills with the form that each call has.

    `names` are the free names, `modules` those that stand for a module. What it cannot type it takes for unknown, which no condition
    that asks for a place meets.
    """

    def __init__(self, names: Mapping[str, Typed], modules: Mapping[str, str]) -> None:
        self.names = dict(names)
        self.modules = modules
        self.waits: list[Wait] = []
        self.default: Place | None = None  # inside `with torch.device(...)`

    def read(self, node: ast.AST) -> Typed:
        result = self.visit(node)
        return result if isinstance(result, Typed) else Typed()

    def generic_visit(self, node: ast.AST) -> Typed:
        for child in ast.iter_child_nodes(node):
            self.read(child)
        return Typed()

    def visit_Name(self, node: ast.Name) -> Typed:
        return self.names.get(node.id, Typed())

    def visit_Constant(self, node: ast.Constant) -> Typed:
        text = str(node.value) if isinstance(node.value, str) else ""
        target = {"cpu": Place.HOST, "cuda": Place.DEVICE}.get(text)
        if text.endswith("Tensor"):
            target = Place.DEVICE if text.startswith("torch.cuda.") else Place.HOST
        return replace(python(literal=repr(node.value)), device=target)

    def visit_List(self, node: ast.List) -> Typed:
        return self.items(node.elts)

    def visit_Tuple(self, node: ast.Tuple) -> Typed:
        return self.items(node.elts)

    def visit_Dict(self, node: ast.Dict) -> Typed:
        typed = self.items(node.values)
        return replace(typed, facts=replace(typed.facts, sequence=False))

    def items(self, elements: Sequence[ast.expr]) -> Typed:
        typed = [self.read(item) for item in elements]
        held = [one.facts for one in typed if one.facts.place is Place.DEVICE or one.facts.holds_device]
        facts = ArgumentFacts(
            Place.PYTHON,
            sequence=True,
            holds_device=bool(held),
            holds_host=any(one.facts.place is Place.HOST for one in typed),
            boolean=True if held and all(one.boolean for one in held) else None,
            empty=not typed,
        )
        return Typed(facts, item=typed[0] if typed else None)

    def visit_Lambda(self, node: ast.Lambda) -> Typed:
        return Typed()

    def visit_Delete(self, node: ast.Delete) -> Typed:
        return Typed()

    def visit_ListComp(self, node: ast.ListComp) -> Typed:
        self.bind_items(node.generators)
        item = self.read(node.elt)
        return replace(python(sequence=True, holds_device=item.facts.place is Place.DEVICE), item=item)

    def visit_DictComp(self, node: ast.DictComp) -> Typed:
        self.bind_items(node.generators)
        self.read(node.value)
        return python()

    def bind_items(self, generators: Sequence[ast.comprehension]) -> None:
        for one in generators:
            item = item_of(self.read(one.iter))
            names = one.target.elts[-1:] if isinstance(one.target, ast.Tuple) else [one.target]
            self.names.update((name.id, item) for name in names if isinstance(name, ast.Name))
            for test in one.ifs:
                self.operator("truth", test)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Typed:
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                self.operator("format", value.value)
        return python()

    def visit_IfExp(self, node: ast.IfExp) -> Typed:
        if isinstance(node.test, ast.Constant):
            return self.read(node.body if node.test.value else node.orelse)
        if isinstance(node.test, ast.Call) and self.dotted(node.test.func) == "builtins.hasattr":
            return self.read(node.orelse)  # asked only of what the measured torch lacks
        self.operator("truth", node.test)
        self.read(node.body)
        return self.read(node.orelse)

    def visit_BinOp(self, node: ast.BinOp) -> Typed:
        names: dict[type[ast.operator], str] = {ast.MatMult: "matmul", ast.Div: "divide"}
        name = names.get(type(node.op), "binary")
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            name = "percent" if "%s" in node.left.value or "(" in node.left.value else "percent_number"
        return self.operator(name, node.left, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Typed:
        return self.operator("truth" if isinstance(node.op, ast.Not) else "unary", node.operand)

    def visit_BoolOp(self, node: ast.BoolOp) -> Typed:
        for value in node.values[:-1]:
            self.operator("truth", value)
        return self.read(node.values[-1])

    def visit_Compare(self, node: ast.Compare) -> Typed:
        names: dict[type[ast.cmpop], str] = {ast.In: "contains", ast.Is: "is", ast.IsNot: "is"}
        return self.operator(names.get(type(node.ops[0]), "compare"), node.left, node.comparators[0])

    def visit_Assert(self, node: ast.Assert) -> Typed:
        return self.operator("truth", node.test)

    def visit_While(self, node: ast.While) -> Typed:
        return self.operator("truth", node.test)

    def visit_With(self, node: ast.With) -> Typed:
        for item in node.items:
            context = self.read(item.context_expr)
            if isinstance(item.context_expr, ast.Call) and self.dotted(item.context_expr.func) == "torch.device":
                self.default = context.device
        for statement in node.body:
            self.read(statement)
        return Typed()

    def visit_Attribute(self, node: ast.Attribute) -> Typed:
        if (dotted := self.dotted(node)) is not None:
            of_cuda = dotted.startswith("torch.cuda.") and dotted.endswith("Tensor")
            return Typed(device=Place.DEVICE if of_cuda else None)
        base = self.read(node.value)
        if node.attr == "device":
            return replace(python(), device=base.facts.place)
        if node.attr == "weight":
            return Typed(ArgumentFacts(Place.DEVICE, rank0=False), device=Place.DEVICE)
        if node.attr in ("values", "S") and base.facts.place is Place.DEVICE:
            return base
        found = member(base, node.attr)
        return self.apply(method(found), [base], {}) if node.attr in ATTRIBUTES else Typed()

    def visit_Subscript(self, node: ast.Subscript) -> Typed:
        return self.subscript("op.getitem", node, ())

    def visit_Assign(self, node: ast.Assign) -> Typed:
        value = self.read(node.value)
        target = node.targets[0]
        return self.subscript("op.setitem", target, (value,)) if isinstance(target, ast.Subscript) else Typed()

    def visit_AugAssign(self, node: ast.AugAssign) -> Typed:
        value = self.read(node.value)
        return self.subscript("op.augsetitem", node.target, (value,)) if isinstance(node.target, ast.Subscript) else Typed()

    def subscript(self, name: str, node: ast.Subscript, values: tuple[Typed, ...]) -> Typed:
        base = self.read(node.value)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) and node.slice.elts else [node.slice]
        numbers = sum(map(is_number, items))
        element = base.rank == 0 or numbers == len(items) == base.rank
        result = Typed()
        for item in items:
            index = self.index(item, element=element and item is items[-1])
            result = self.apply(function(name), [base, index, *values], {})
        if numbers and base.item is not None:
            return base.item
        slices = [item for item in items if isinstance(item, ast.Slice)]
        facts = replace(
            result.facts,
            pinned=base.facts.pinned and bool(slices or numbers),
            strided=any(item.step is not None for item in slices) or (bool(slices) and len(items) > 1),
            rank0=True if base.rank - numbers == 0 else result.facts.rank0,
        )
        return replace(result, facts=facts, rank=base.rank - numbers)

    def index(self, item: ast.expr, *, element: bool) -> Typed:
        if isinstance(item, ast.Slice):
            bounds = [self.read(bound) if bound is not None else python(literal="None") for bound in (item.lower, item.upper, item.step)]
            return self.apply(function("op.slice"), bounds, {})
        index = self.read(item)
        return replace(index, facts=replace(index.facts, element=element))

    def operator(self, name: str, *operands: ast.expr) -> Typed:
        return self.apply(function(f"op.{name}"), [self.read(operand) for operand in operands], {})

    def visit_Call(self, node: ast.Call) -> Typed:
        positional = [self.read(item) for item in node.args]
        keywords = {keyword.arg: self.read(keyword.value) for keyword in node.keywords if keyword.arg is not None}
        dotted = self.dotted(node.func)
        if dotted in ("builtins.map", "torch.utils._pytree.tree_map"):
            return self.mapped(node.args[0], item_of(positional[1]))
        if dotted == "torch.device" and positional:
            return positional[0]
        if dotted is not None:
            return self.apply(function(dotted), positional, keywords)
        if not isinstance(node.func, ast.Attribute):
            base = self.read(node.func)
            return self.apply(method(member(base, "forward")), [base, *positional], keywords)
        if isinstance(node.func.value, ast.Constant):  # "{}".format(x)
            for given in (*positional, *keywords.values()):
                self.apply(function("op.format"), [given], {})
            return python()
        base, name = self.read(node.func.value), node.func.attr
        if name in ("items", "values", "get") and base.facts.place is Place.PYTHON:
            return replace(base, item=None)
        return self.apply(method(member(base, name)), [base, *positional], keywords)

    def mapped(self, called: ast.expr, item: Typed) -> Typed:
        if isinstance(called, ast.Lambda):
            self.names.update((argument.arg, item) for argument in called.args.args)
            return self.read(called.body)
        dotted = self.dotted(called)
        return self.apply(function(dotted), [item], {}) if dotted is not None else Typed()

    def dotted(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            return self.modules.get(node.id) or (None if node.id in self.names else f"builtins.{node.id}")
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return None if base is None or base.startswith("builtins") else f"{base}.{node.attr}"
        return None

    def apply(self, op: Op | None, positional: list[Typed], keywords: Mapping[str, Typed]) -> Typed:
        if op is None:
            return Typed()
        bound = bind(op, [given.facts for given in positional], {key: given.facts for key, given in keywords.items()})
        target = self.target(op, positional, keywords)
        if target is not None:
            bound[TARGET] = (ArgumentFacts(target),)
        own = positional[0].made_with if positional else {}
        self.waits += [wait for wait in list(waits_of(op, {**own, **bound}))[:1] if wait.kind not in NOT_A_WAIT]
        result = result_of(op, bound, target)
        rank = positional[0].rank if positional and (op.broadcasts or op.returns is Returns.MOVE) else -1
        lives = target or (result.place if result.place in TENSORS else None)
        return Typed(result, op.makes, bound if op.makes else {**own, **bound}, lives, rank)

    def target(self, op: Op, positional: list[Typed], keywords: Mapping[str, Typed]) -> Place | None:
        if op.returns in (Returns.MOVE, Returns.DEVICE, Returns.HOST):
            places = [given.device for given in (*positional[1:], *keywords.values()) if given.device]
            return places[0] if places else _PLACES.get(op.returns)
        places = [given.device for key, given in keywords.items() if key in ("device", "map_location") and given.device]
        return places[0] if places else self.default


def member(base: Typed, name: str) -> str:
    """The name under which the table knows a method of this value."""
    own = next((f"{made}.{name}" for made in base.makes if method(f"{made}.{name}")), None)
    return own or (f"nothing.{name}" if base.makes or base.facts.place is Place.PYTHON else name)


def item_of(typed: Typed) -> Typed:
    """What iterating gives."""
    if typed.item is not None:
        return typed.item
    if typed.facts.place is Place.DEVICE:
        return Typed(replace(typed.facts, rank0=typed.rank == 1 or None), device=Place.DEVICE, rank=typed.rank - 1)
    return Typed(ArgumentFacts(Place.DEVICE), device=Place.DEVICE) if typed.facts.holds_device else Typed()


def is_number(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, int)
