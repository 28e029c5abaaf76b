"""Every call that was measured on a GPU follows from the table: a reader that knows nothing but the table predicts which of them wait."""
from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

import hostlint.torch_ops
from hostlint.facts.kinds import FactKind
from hostlint.torch_ops import function, method
from hostlint.torch_ops.conditions import TARGET, ArgumentFacts, bind, waits_of
from hostlint.torch_ops.spec import Op, Returns, Wait
from hostlint.values.value import Place

MEASURED = json.loads((Path(hostlint.torch_ops.__file__).parent / "waits_h200.json").read_text(encoding="utf-8"))
CALLS = {entry["call"]: entry["blocks"] for entry in MEASURED["calls"]}

# The measurement's names that its legend leaves out, in the legend's words or as the class that they belong to.
UNLISTED = {
    "tgt": "int64 [16] on the device", "q": "float32 [2,4,8] on the device", "am": "bool [4,4] on the device",
    "seq": "float32 [2,4,8] on the device", "img": "float32 [1,1,8,8] on the device",
    "params": "Python list of 2 parameters on the device", "lens_list": "Python list of 2 ints",
    "dict_": "Python dict", "v": "float32 [16] on the device",
}
OBJECTS = {
    "log": "Logger", "lin": "Module", "enc": "TransformerEncoder Module", "enc_eval": "TransformerEncoder Module",
    "mha": "MultiheadAttention Module", "lstm": "RNNBase Module", "bn": "BatchNorm Module", "swa": "AveragedModel Module",
    "opt_sgd": "Optimizer", "opt_adamw_foreach": "Optimizer", "opt_lrten": "Optimizer", "opt_adam": "Optimizer", "ev": "Event",
}
MODULES = {"torch": "torch", "F": "torch.nn.functional", "np": "numpy", "gc": "gc", "copy": "copy"}
# Texts that name a measured snippet rather than spell it.
SPELLED = {
    "if s": "bool(s)", "in list": "s in [1.0, 2.0]", "x in list elementwise": "1.0 in x", "ev_sync()": "ev.synchronize()",
    "loss_backward()": "lin(seq).sum().backward()", "with_autocast()": "lin(seq)", "fork_rng()": "torch.random.fork_rng()",
}
PAUSES = ("gc.collect()", "huge_alloc_free()")  # work of the host and the allocator: another family of rules, no kind in the table
NOT_A_WAIT = {FactKind.PIN_PER_CALL}  # costs time, but does not drain the stream


@dataclass(frozen=True)
class Typed:
    facts: ArgumentFacts = field(default_factory=ArgumentFacts)
    makes: tuple[str, ...] = ()
    made_with: dict[str, Sequence[ArgumentFacts]] = field(default_factory=dict)
    device: Place | None = None  # what it means as a target: a device's name, or where a tensor lives


def python(**known: bool | str) -> Typed:
    return Typed(ArgumentFacts(Place.PYTHON, **known))  # type: ignore[arg-type]


def from_legend(words: str) -> Typed:
    """`float32 [16] on the device` as facts."""
    if words.startswith("the device"):
        return replace(python(), device=Place.DEVICE)
    if words.startswith("Python"):
        return python(sequence="list" in words, holds_device="on the device" in words)
    place = Place.NUMPY if words.startswith("NumPy") else Place.DEVICE if "on the device" in words else Place.HOST
    facts = ArgumentFacts(
        place,
        rank0="0-dim" in words,
        boolean="bool" in words,
        integer="int64" in words,
        pinned="pinned" in words,
        large="8M" in words,
    )
    return Typed(facts, device=place if place is not Place.NUMPY else None)


class Reader(ast.NodeVisitor):
    """Types an expression by the table and notes which forms of its calls wait."""

    def __init__(self) -> None:
        legend = {**MEASURED["names"], **UNLISTED}
        legend["y"] = legend["x"]
        self.names = {name: from_legend(words) for name, words in legend.items() if "generator" not in words}
        for name, classes in OBJECTS.items():
            self.names[name] = Typed(ArgumentFacts(evaluating=name == "enc_eval"), tuple(classes.split()))
        self.waits: list[Wait] = []

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
        return replace(python(literal=repr(node.value)), device=Place.HOST if node.value == "cpu" else None)

    def visit_List(self, node: ast.List) -> Typed:
        return self.items(node)

    def visit_Tuple(self, node: ast.Tuple) -> Typed:
        return self.items(node)

    def items(self, node: ast.List | ast.Tuple) -> Typed:
        items = [self.read(item).facts for item in node.elts]
        holds = any(item.place is Place.DEVICE for item in items)
        boolean = True if holds and all(item.boolean for item in items) else None
        return Typed(ArgumentFacts(Place.PYTHON, sequence=True, holds_device=holds, boolean=boolean))

    def visit_IfExp(self, node: ast.IfExp) -> Typed:
        return self.read(node.orelse)  # every measured one is `… if False else …`, or asks for a function that torch lacks

    def visit_Lambda(self, node: ast.Lambda) -> Typed:
        return Typed()

    def visit_ListComp(self, node: ast.ListComp) -> Typed:
        return self.operator("iterate", node.generators[0].iter)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Typed:
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                self.operator("format", value.value)
        return python()

    def visit_BinOp(self, node: ast.BinOp) -> Typed:
        text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        name = "percent" if text else "matmul" if isinstance(node.op, ast.MatMult) else "binary"
        return self.operator(name, node.left, node.right)

    def visit_Compare(self, node: ast.Compare) -> Typed:
        names: dict[type[ast.cmpop], str] = {ast.In: "contains", ast.Is: "is"}
        return self.operator(names.get(type(node.ops[0]), "compare"), node.left, node.comparators[0])

    def visit_Attribute(self, node: ast.Attribute) -> Typed:
        self.read(node.value)
        return Typed()

    def visit_Subscript(self, node: ast.Subscript) -> Typed:
        return self.subscript("getitem", node, ())

    def visit_Assign(self, node: ast.Assign) -> Typed:
        value = self.read(node.value)
        target = node.targets[0]
        assert isinstance(target, ast.Subscript)
        return self.subscript("setitem", target, (value,))

    def visit_AugAssign(self, node: ast.AugAssign) -> Typed:
        assert isinstance(node.target, ast.Subscript)
        return self.subscript("augsetitem", node.target, (self.read(node.value),))

    def subscript(self, name: str, node: ast.Subscript, values: tuple[Typed, ...]) -> Typed:
        base = self.read(node.value)
        result = Typed()
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for item in items:
            index = self.index(item, whole=len(items) == 1, base=node.value)
            result = self.apply(f"op.{name}", [base, index, *values], {})
        return result

    def index(self, item: ast.expr, *, whole: bool, base: ast.expr) -> Typed:
        if isinstance(item, ast.Slice):
            bounds = [self.read(bound) if bound is not None else python(literal="None") for bound in (item.lower, item.upper, item.step)]
            return self.apply("op.slice", bounds, {})
        one = isinstance(item, ast.Constant) and isinstance(item.value, int)
        known_rank1 = isinstance(base, ast.Name) and "[16]" in {**MEASURED["names"], "y": "[16]"}.get(base.id, "")
        index = self.read(item)
        return replace(index, facts=replace(index.facts, element=one and whole and known_rank1))

    def operator(self, name: str, *operands: ast.expr) -> Typed:
        return self.apply(f"op.{name}", [self.read(operand) for operand in operands], {})

    def visit_Call(self, node: ast.Call) -> Typed:
        positional = [self.read(item) for item in node.args]
        keywords = {keyword.arg: self.read(keyword.value) for keyword in node.keywords if keyword.arg is not None}
        dotted = self.dotted(node.func)
        if dotted is not None:
            return self.apply(dotted, positional, keywords)
        if isinstance(node.func, ast.Attribute):
            base, name = self.read(node.func.value), node.func.attr
        else:
            base, name = self.read(node.func), "forward"
        found = next((f"{made}.{name}" for made in base.makes if method(f"{made}.{name}")), name)
        return self.apply(found, [base, *positional], keywords, method(found))

    def dotted(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            return MODULES.get(node.id) or (None if node.id in self.names else f"builtins.{node.id}")
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return None if base is None or base.startswith("builtins") else f"{base}.{node.attr}"
        return None

    def apply(self, name: str, positional: list[Typed], keywords: dict[str, Typed], op: Op | None = None) -> Typed:
        op = op or function(name)
        if op is None:
            return Typed()
        facts = bind(op, [given.facts for given in positional], {key: given.facts for key, given in keywords.items()})
        if op.returns in (Returns.MOVE, Returns.DEVICE, Returns.HOST):
            places = [given.device for given in (*positional[1:], *keywords.values()) if given.device]
            default = {Returns.DEVICE: Place.DEVICE, Returns.HOST: Place.HOST}.get(op.returns)
        else:
            places, default = [given.device for key, given in keywords.items() if key == "device" and given.device], None
        target = places[0] if places else default
        if target is not None:
            facts[TARGET] = (ArgumentFacts(target),)
        given = {**(positional[0].made_with if positional else {}), **facts}
        self.waits += [wait for wait in list(waits_of(op, given))[:1] if wait.kind not in NOT_A_WAIT]
        return Typed(result_of(op, facts, target), op.makes, facts, target)


def result_of(op: Op, facts: dict[str, Sequence[ArgumentFacts]], target: Place | None) -> ArgumentFacts:
    every = [one for given in facts.values() for one in given]
    device = any(one.place is Place.DEVICE or one.holds_device for one in every)
    own = Place.DEVICE if device else Place.HOST
    place = {
        Returns.PYTHON: Place.PYTHON, Returns.NUMPY: Place.NUMPY, Returns.NONE: Place.PYTHON, Returns.SAME: own, Returns.SEQUENCE: own,
        Returns.FACTORY: target or Place.HOST, Returns.LIKE: target or own, Returns.MOVE: target or own, Returns.HOST: Place.HOST,
        Returns.DEVICE: Place.DEVICE, Returns.UNKNOWN: Place.UNKNOWN,
    }[op.returns]
    tensors = [one for one in every if one.place in (Place.DEVICE, Place.HOST)]
    rank0 = op.rank0
    if op.rank0_without and not any(name in facts for name in op.rank0_without):
        rank0 = True
    elif op.broadcasts and tensors:
        rank0 = all(one.rank0 for one in tensors)
    elif "data" in facts:
        rank0 = not facts["data"][0].sequence
    first = tensors[0] if op.keeps_type and tensors else ArgumentFacts(boolean=op.boolean, integer=op.integer)
    return ArgumentFacts(place, rank0=rank0, boolean=first.boolean, integer=first.integer, fresh=op.returns is Returns.FACTORY)


def waits_in(call: str) -> list[Wait]:
    reader = Reader()
    for statement in ast.parse(SPELLED.get(call, call)).body:
        reader.visit(statement)
    return reader.waits


@pytest.mark.parametrize("call", [call for call in CALLS if call not in PAUSES])
def test_the_table_predicts_the_measured_call(call: str) -> None:
    waits = waits_in(call)
    assert bool(waits) is CALLS[call], waits
    if waits:
        assert any(wait.measured for wait in waits), "it waits only by an entry that nobody measured"


def test_every_entry_marked_as_measured_cites_a_call_that_blocked() -> None:
    cited = {wait.evidence for op in every_op() for wait in op.waits if wait.measured}
    assert cited <= {call for call, blocks in CALLS.items() if blocks}
    assert len(cited) > 80


def test_what_no_entry_cites_is_built_from_calls_that_are_cited() -> None:
    cited = {wait.evidence for op in every_op() for wait in op.waits if wait.measured}
    uncited = {call for call, blocks in CALLS.items() if blocks and call not in cited and call not in PAUSES}
    for call in uncited:
        assert {wait.evidence for wait in waits_in(call) if wait.measured} <= cited
    assert "x[m] = s" not in uncited


def every_op() -> list[Op]:
    from hostlint.torch_ops.table import index

    names = index()
    found = [function(name) for name in names.functions if not name.endswith("*")] + [method(name) for name in names.methods]
    return [op for op in found if op is not None]
