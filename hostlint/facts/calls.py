"""Lowering calls: the CALL node, its entry in the outline, and what the call does to the names it is made on."""
from __future__ import annotations

import ast
import re
import sys
from typing import TYPE_CHECKING

from hostlint.facts.bindings import keep_element
from hostlint.facts.chains import chain
from hostlint.facts.dispatch import lower, lowers
from hostlint.facts.graph import Op, Refinement, SiteKind
from hostlint.facts.schema import Call

if TYPE_CHECKING:
    from hostlint.facts.builder import FunctionBuilder

FACTORIES = frozenset({
    "zeros", "ones", "empty", "full", "arange", "linspace", "logspace", "eye", "rand", "randn", "randint", "randperm", "tensor",
    "as_tensor", "scalar_tensor", "tril_indices", "triu_indices",
})  # fmt: skip
APPENDERS = frozenset({"append", "add", "appendleft"})
EXTENDERS = frozenset({"extend", "update"})
MUTATORS = APPENDERS | EXTENDERS | {"insert"}
LAZY_LOGGERS = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log", "warn"})

# `send_to_device(batch)`, `to_cuda(x)`: what it is given is on the device afterwards.
UPLOAD_HELPER = re.compile(
    r"^_?(move|send|put|copy|batch|recursive|tensors?|data|dict|map|transfer)?_?to_(device|cuda|gpu)$", re.IGNORECASE
)
BY_HELPER = "by a helper"  # the detail of an upload that such a helper makes
# Statements that may move what they are given, or are called on, in place.
IN_PLACE = re.compile(r"(^|_)(to|move|send|transfer|place|upload|prepare)(_|$)|(^|_)(device|cuda|gpu)$", re.IGNORECASE)
MODEL_NAMES = re.compile(
    r"(model|net|module|encoder|decoder|transformer|unet|vae|criterion|loss_fn|loss|optimizer|metric)s?$", re.IGNORECASE
)


@lowers(ast.Call)
def _call(b: FunctionBuilder, node: ast.Call) -> int:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
    if name == "super" and isinstance(node.func, ast.Name):
        return b.add(Op.SUPER, node.lineno)
    text = chain(node.func)
    callee = lower(b, node.func)
    starred, arguments, keywords = _arguments(b, node)
    if b.default_devices and name in FACTORIES and text.startswith("torch.") and all(key != "device" for key, _ in keywords):
        keywords.append(("device", b.default_devices[-1]))
    result = b.add(Op.CALL, node.lineno, callee, tuple(arguments), tuple(keywords), starred)
    if b.env is not None:
        names = tuple(sys.intern(keyword.arg) for keyword in node.keywords if keyword.arg is not None)
        shape = (-1, ()) if starred else (len(node.args), names)
        b.calls.append(Call(text, node.lineno, b.region, result, *_passed(b, node, arguments), *shape))
        known = name in b.file.interesting or b.file.aliases.get(name, "") in b.file.interesting
        if known or name in LAZY_LOGGERS or UPLOAD_HELPER.match(name):
            b.site(SiteKind.CALL, result, node, text, _subject(b, node))
    if name == "append" and b.loops and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        b.site(SiteKind.SUM, result, node.args[0], chain(node.func.value))
    _mutate(b, node, name, arguments)
    if name in ("setdefault", "update"):
        _file(b, node, name)
    return result


def moved_in_place(node: ast.expr) -> str:
    """What a statement may have moved in place: `batch` in `batch.to(device)` and in `batch_to_device(batch, device)`."""
    if not isinstance(node, ast.Call):
        return ""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
    if isinstance(node.func, ast.Attribute) and name in {"to", "cuda"}:
        receiver = chain(node.func.value)
    else:
        receiver = chain(node.args[0]) if node.args and IN_PLACE.search(name) else ""
    return "" if MODEL_NAMES.search(receiver) else receiver


def _arguments(b: FunctionBuilder, node: ast.Call) -> tuple[bool, list[int], list[tuple[str, int]]]:
    starred, arguments, keywords = False, [], []
    for argument in node.args:
        starred = starred or isinstance(argument, ast.Starred)
        arguments.append(lower(b, argument))
    for keyword in node.keywords:
        value = lower(b, keyword.value)
        if keyword.arg is None:
            starred = True
        else:
            keywords.append((keyword.arg, value))
    return starred, arguments, keywords


def _subject(b: FunctionBuilder, node: ast.Call) -> ast.expr:
    """What is read: the receiver of a method, else the first argument."""
    text = chain(node.func)
    is_function = text.partition(".")[0] in b.file.imported and "(" not in text and "[" not in text
    if isinstance(node.func, ast.Attribute) and not is_function:
        return node.func.value
    if node.args:
        return node.args[0]
    return node.keywords[0].value if node.keywords else node.func


def _passed(b: FunctionBuilder, node: ast.Call, arguments: list[int]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The functions and string literals among the arguments, and where the functions stand."""
    functions: list[tuple[str, str]] = []
    strings: list[str] = []
    placed = [(str(position), argument) for position, argument in enumerate(node.args)]
    for slot, expression in [*placed, *((keyword.arg or "**", keyword.value) for keyword in node.keywords)]:
        if isinstance(expression, (ast.Name, ast.Attribute)):
            functions.append((chain(expression), slot))
        elif isinstance(expression, ast.Constant) and isinstance(expression.value, str) and len(expression.value) < 64:
            strings.append(expression.value)
        elif isinstance(expression, ast.Call) and chain(expression.func).endswith("partial") and expression.args:
            functions.append((chain(expression.args[0]), slot))
    for (slot, expression), value in zip(placed, arguments, strict=True):
        if isinstance(expression, ast.Lambda):
            functions.append((f"<lambda:{b.nodes[value][2]}>", slot))
    return tuple(text for text, _ in functions), tuple(strings), tuple(slot for _, slot in functions)


def _file(b: FunctionBuilder, node: ast.Call, name: str) -> None:
    """`table.setdefault(key, f)` and `table.update({key: f})` store elements."""
    if not isinstance(node.func, ast.Attribute):
        return
    given: list[ast.expr] = []
    if name == "setdefault" and len(node.args) == 2:
        given = [node.args[1]]
    elif name == "update":
        given = [keyword.value for keyword in node.keywords if keyword.arg is not None]
        given += [value for table in node.args if isinstance(table, ast.Dict) for value in table.values]
    keep_element(b, node.func.value, given)


def _mutate(b: FunctionBuilder, node: ast.Call, name: str, arguments: list[int]) -> None:
    """`rows.append(x)` makes `rows` a list that may hold x; `loss.backward()` says that loss is a tensor with a graph."""
    if not isinstance(node.func, ast.Attribute) or b.env is None:
        return
    receiver = chain(node.func.value)
    if receiver not in b.env:
        return
    before = b.env[receiver]
    if name == "backward":
        b.marks.append((before, int(Refinement.GRADIENT)))
    elif arguments and name in APPENDERS:
        b.bind(receiver, b.add(Op.APPEND, node.lineno, before, arguments[0]))
    elif len(arguments) > 1 and name == "insert":
        b.bind(receiver, b.add(Op.APPEND, node.lineno, before, arguments[1]))
    elif arguments and name in EXTENDERS:
        b.bind(receiver, b.add(Op.APPEND, node.lineno, before, b.add(Op.ITER, node.lineno, arguments[0])))
