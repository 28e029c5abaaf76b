"""Branches for what a step seldom meets: other machines, tensors that lie elsewhere, values that are no numbers, errors."""
from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from hostlint.facts.chains import chain
from hostlint.facts.senses import identifiers
from hostlint.facts.trees import walk

_NONE = r"mps|cpu|mlx"
_OTHERS = r"npu|xpu|hpu|mlu|musa|tpu|xla|neuron|ascend"
_FORMS = r"^_*((is|on|use|uses|has)_)*(torch_)?({})(_(available|platform|device|backend))?$"
_OFF_DEVICE = re.compile(_FORMS.format(_NONE))
_OTHER_DEVICE = re.compile(_FORMS.format(_OTHERS))
_ON_DEVICE = re.compile(r"^_?((is|on|use|has|supports?|inputs_on)_)+(cuda|triton|gpu)$")
_MACHINES = {"cuda": -1, **dict.fromkeys(_NONE.split("|"), 1)}
_ALL_MACHINES = {**_MACHINES, **dict.fromkeys(_OTHERS.split("|"), 1)}
_KINDS = (".device.type", "device_type", ".type")  # what is compared with the name of a machine
_DEVICE = re.compile(r"(^|[._])device(\(\))?(\.type|\.index)?$")
_NO_NUMBER = frozenset({"isnan", "isinf", "isposinf", "isneginf"})
_NUMBER = frozenset({"isfinite", "all_finite", "allfinite"})
_OVERFLOW = re.compile(r"^_*(has|is|found|any|got|seen)_?(nan|inf|overflow|non_?finite)s?$|^_*(has_)?overflow(ed)?$|_(is_nan|overflowed)$")
_SPEAKS = re.compile(r"(^|[._])(log|logger|logging|warnings)\.(error|exception|critical|fatal|warn(ing)?(_once)?)$", re.IGNORECASE)
_SHORT = 4  # statements of a branch that only complains and makes up for something


def off_device(leaf: ast.expr) -> int:
    """1 where a test holds only off the accelerator (`x.is_cpu`, `device.type == "mps"`), -1 where it fails only there."""
    return _machine(leaf, _MACHINES) or (1 if _named(leaf, _OFF_DEVICE) else -int(_named(leaf, _ON_DEVICE)))


def on_other(leaf: ast.expr) -> int:
    """1 where a test holds only on another accelerator than the measured kind, or on none, -1 where it fails only there."""
    return _machine(leaf, _ALL_MACHINES) or int(_named(leaf, _OTHER_DEVICE) or _named(leaf, _OFF_DEVICE))


def _named(leaf: ast.expr, names: re.Pattern[str]) -> bool:
    return bool(names.match(chain(leaf.func if isinstance(leaf, ast.Call) else leaf).rpartition(".")[2]))


def _machine(leaf: ast.expr, machines: Mapping[str, int]) -> int:
    """What asks for a machine by its name: a comparison, `is_available()`, `startswith()`."""
    if isinstance(leaf, ast.Compare):
        return _compared_machine(leaf, machines)
    if not isinstance(leaf, ast.Call):
        return 0
    owner, _, word = chain(leaf.func).rpartition(".")
    if word == "is_available":  # `torch.backends.mps.is_available()`; `torch.cuda.is_available()` chooses nothing by itself
        return max(machines.get(owner.rpartition(".")[2], 0), 0)
    if word == "startswith" and leaf.args and isinstance(leaf.args[0], ast.Constant):
        return machines.get(str(leaf.args[0].value), 0) if any("device" in name for name in identifiers(leaf.func)) else 0
    return 0


def _compared_machine(test: ast.Compare, machines: Mapping[str, int]) -> int:
    """`device.type == "mps"`, `device.type in ("mps", "npu")` and what denies them."""
    op, right = test.ops[0], test.comparators[0]
    if len(test.ops) != 1 or not chain(test.left).endswith(_KINDS):
        return 0
    names = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) and isinstance(op, (ast.In, ast.NotIn)) else [right]
    senses = {machines.get(str(name.value), 0) if isinstance(name, ast.Constant) else 0 for name in names}
    if len(senses) != 1:
        return 0
    found = senses.pop()
    return found if isinstance(op, (ast.Eq, ast.In)) else -found if isinstance(op, (ast.NotEq, ast.NotIn)) else 0


def elsewhere(leaf: ast.expr) -> int:
    """1 where a test holds only while a tensor lies on another device than it is wanted on, -1 where it fails only then.

    What an object keeps stays where it is, so that it is moved each time, unless the branch keeps the copy: that is a memo.
    """
    if not isinstance(leaf, ast.Compare) or len(leaf.ops) != 1:
        return 0
    sides = [chain(_unwrapped(side)) for side in (leaf.left, leaf.comparators[0])]
    if not all(map(_DEVICE.search, sides)) or any(side.startswith("self.") and side.count(".") > 1 for side in sides):
        return 0
    return {ast.NotEq: 1, ast.IsNot: 1, ast.Eq: -1, ast.Is: -1}.get(type(leaf.ops[0]), 0)


def _unwrapped(node: ast.expr) -> ast.expr:
    return node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 and chain(node.func) in {"str", "torch.device"} else node


def no_number(leaf: ast.expr) -> int:
    """1 where a test holds only if a value is NaN or infinite, -1 where it fails only then."""
    if isinstance(leaf, (ast.Name, ast.Attribute)):
        return int(bool(_OVERFLOW.search(chain(leaf).rpartition(".")[2])))
    called = {chain(part.func).rpartition(".")[2] for part in walk(leaf) if isinstance(part, ast.Call)}
    found = 1 if called & _NO_NUMBER else -1 if called & _NUMBER else 0
    turned = any(isinstance(part, ast.Invert) for part in walk(leaf))
    none = isinstance(leaf, ast.Compare) and isinstance(leaf.ops[0], ast.Eq) and _is_nothing(leaf.comparators[0])
    return -found if turned is not none else found


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def complains(body: Sequence[ast.stmt]) -> bool:
    """Whether a branch tells of an error, or warns and makes up for something."""
    spoken = [position for position, statement in enumerate(body) if _speaks(statement)]
    return bool(spoken) and (spoken[0] == 0 or len(body) <= _SHORT)


def _speaks(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and bool(_SPEAKS.search(chain(call.func)))
