"""Branches for callers that did less than most: an argument left out, a number where a tensor is expected, nothing in a tensor."""
from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping

from hostlint.facts.chains import chain
from hostlint.facts.memos import none_test

HOST_COPY = re.compile(r"(^|_)(cpu|host)(_|$)")
NUMBERS = frozenset({"int", "float", "Number", "Real", "Integral"})
NOBODY = ""  # stands for a parameter where no argument decides


def fallback(test: ast.expr, parameters: frozenset[str]) -> tuple[str, int]:
    """The name that a test asks about, and 1 where its true branch is the fallback, -1 where the false one is, 0 for neither."""
    name = none_test(test)
    if name is not None:
        return name, (1 if _is_none(test) else -1) if name in parameters or is_host_copy(name) else 0
    if isinstance(test, ast.Call) and test.args and isinstance(test.args[0], ast.Name) and _asks_for_tensor(test):
        return test.args[0].id, -1
    if isinstance(test, ast.Call) and test.args and isinstance(test.args[0], ast.Name) and _asks_for_number(test):
        return test.args[0].id, int(test.args[0].id in parameters)
    return NOBODY, _emptiness(test)


def option(test: ast.expr, off: Collection[str]) -> tuple[str, int]:
    """What a test asks about of what is None or False by default, and 1 where its true branch needs it, else -1."""
    return _decided(test, lambda leaf: _asks(leaf, off))


def unset(test: ast.expr, off: Mapping[str, bool]) -> tuple[str, int]:
    """The switch of the function's own that a test asks about, and 1 where its true branch needs it off, -1 where the false one does."""
    return _decided(test, lambda leaf: (leaf.id, -int(off.get(leaf.id, False))) if isinstance(leaf, ast.Name) else (NOBODY, 0))


def _decided(test: ast.expr, leaf: Callable[[ast.expr], tuple[str, int]]) -> tuple[str, int]:
    """The name by which a part decides the whole test, and how: what `and` needs, or what makes `or` fail."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        name, sense = _decided(test.operand, leaf)
        return name, -sense
    if isinstance(test, ast.BoolOp):
        wanted = 1 if isinstance(test.op, ast.And) else -1
        parts = (_decided(part, leaf) for part in test.values)
        return next(((name, sense) for name, sense in parts if sense == wanted), (NOBODY, 0))
    return leaf(test)


def _asks(leaf: ast.expr, off: Collection[str]) -> tuple[str, int]:
    if isinstance(leaf, (ast.Name, ast.Attribute)):
        name = chain(leaf)
        return name, int(name in off)
    name = none_test(leaf) or NOBODY
    return name, (-1 if _is_none(leaf) else 1) if name in off else 0


def is_host_copy(name: str) -> bool:
    """A name that says that the caller keeps the value on the host already: `batch.seq_lens_cpu`."""
    return bool(HOST_COPY.search(name.rpartition(".")[2]))


def _is_none(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is)


def _asks_for_tensor(test: ast.Call) -> bool:
    name = chain(test.func).rsplit(".", 1)[-1]
    if name == "is_tensor":
        return True
    return name == "isinstance" and len(test.args) == 2 and chain(test.args[1]).rsplit(".", 1)[-1] == "Tensor"


def _asks_for_number(test: ast.Call) -> bool:
    if chain(test.func) != "isinstance" or len(test.args) != 2:
        return False
    kinds = test.args[1].elts if isinstance(test.args[1], ast.Tuple) else [test.args[1]]
    return all(chain(kind).rsplit(".", 1)[-1] in NUMBERS for kind in kinds)


def _emptiness(test: ast.expr) -> int:
    """`x.numel() == 0`, `x.numel() > 0` and their kin with shape[0], size(0): the branch for an empty tensor is the fallback."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return 0
    left, right = test.left, test.comparators[0]
    if not isinstance(right, ast.Constant) or right.value != 0:
        return 0
    counts = isinstance(left, ast.Call) and chain(left.func).endswith((".numel", ".size", ".nelement"))
    counts = counts or (isinstance(left, ast.Subscript) and chain(left.value).endswith(".shape"))
    if not counts:
        return 0
    return 1 if isinstance(test.ops[0], ast.Eq) else -1 if isinstance(test.ops[0], (ast.Gt, ast.NotEq)) else 0
