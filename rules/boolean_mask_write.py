"""Writing a tensor through a boolean mask: `x[mask] = t`, `x[mask] *= v`, `index_put_((mask,), t)`.

## Why it costs
A tensor value has to be laid out over the true elements, so torch runs `nonzero` and the host waits. Arithmetic through a mask is a read
and a write and waits for both. A Python number is different: torch turns `x[mask] = 0.0` into `masked_fill`, which waits for nothing.

## Instead
- `x = torch.where(mask, t, x)`, `x = torch.where(mask, x * v, x)`: the same bits for `*` and `/`, NaN and signed zeros included.
  `masked_fill(mask, 0)` is not the same as multiplying by zero.
- `where` makes a new tensor: if other names share the memory of `x`, use `x.copy_(torch.where(...))`. In a differentiable place a NaN
  in the branch that is not taken reaches the gradient.
- Values packed to the true elements (`x[mask] = packed`, as many as the mask has true ones) are no case for `where`, which would place
  them wrongly: `x.masked_scatter(mask, packed)`, or positions worked out once before the loop and `index_copy`.
- A mask of fewer dimensions than `x` needs them for both: `mask[:, None]`.

`hostlint fix` writes `x.copy_(torch.where(mask, new, x))`: in place, so that every name that shares the memory sees it, its dtype and
strides stay, and a leaf that needs a gradient raises as before. Where the mask is not seen to come from `x` itself it may have fewer
dimensions, and a small function of the module adds them. Exact for `+ - * /` with a Python number where `x` is proved to hold floats, each
in its own place (to an expanded tensor torch copies nothing), the mask to be worked out from it, and autograd to be off: each element is
computed as before, and the others are copied onto themselves. Else for review: the gradient of what the mask leaves out is zero times a
slope, which is NaN where that is inf. Only values of full size are written so: `y[mask]` through the same mask, arithmetic on it, and
single values.

## Not flagged
A Python number or a 0-dim host tensor as the value; slices and integer positions on the device; `masked_fill`, `masked_scatter`; host
tensors and NumPy arrays.

## Evidence
NVIDIA H200, torch 2.11:
- `x[m] = s`: 1 wait
- `x[m] *= 0.0`: 2 waits
- `x[m] += y[m]`: 3 waits
- `x[m] = y[m]`: 2 waits
- `X[mrow] = Xrow`: 1 wait
- `x[m] = 0.0`: free
- `X[mrow, 0] = 0.0`: free
- `x.masked_scatter(m, y)`: free
- `x[idx] = y[idx]`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the line, twice for arithmetic in place. On the CPU a dispatch mode cannot tell the free
form from the one that waits.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.masked import masked_write_fix
from hostlint.model import Applicability
from hostlint.rule import Example, Problem, Rule
from hostlint.syntax import bare, is_packed, masked, operand, parsed, reads_through, unmasked, walk
from hostlint.wording import text, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    writes = f"the write through the mask in `{whole(node)}` makes the host wait for the device {when(fact)}"
    return Problem(f"{writes}; {_instead(fact, node)} (a mask of rows as `mask[:, None]`; in `copy_` where others share the memory)")


def _instead(fact: Fact, node: cst.BaseExpression) -> str:
    import libcst as cst

    pair = masked(node)
    if pair is None:
        return "one value or values of full shape: `torch.where(mask, new, old)`; packed values: `masked_scatter`"
    base, mask = pair
    match _write(fact, node):
        case cst.AugAssign(operator=operator, value=value):
            return _arithmetic(base, mask, bare(operator).removesuffix("="), value)
        case cst.Assign(value=value) | cst.Call(args=[_, cst.Arg(value=value), *_]):
            return _value(base, mask, value)
    return _either(base, mask, "new")


def _write(fact: Fact, node: cst.BaseExpression) -> cst.CSTNode | None:
    """The assignment that writes to the expression, or the expression itself where it is a call."""
    import libcst as cst

    if isinstance(node, cst.Call):
        return node
    statement = parsed(fact.source)
    for part in walk(statement) if statement is not None else ():
        match part:
            case cst.Assign(targets=targets) if any(bare(target.target) == bare(node) for target in targets):
                return part
            case cst.AugAssign(target=target) if bare(target) == bare(node):
                return part
    return None


def _arithmetic(base: cst.BaseExpression, mask: cst.BaseExpression, operator: str, value: cst.BaseExpression) -> str:
    """The cure of `x[mask] op= value`."""
    full = unmasked(value, mask)
    cure = f"use `torch.where({text(mask)}, {text(base)} {operator} {operand(full)}, {text(base)})`"
    return f"where `{text(full)}` can be had in full size, {cure}" if is_packed(value, mask) else cure


def _value(base: cst.BaseExpression, mask: cst.BaseExpression, value: cst.BaseExpression) -> str:
    """The cure of `x[mask] = value`."""
    if is_packed(value, mask):
        once = "take the positions once before the loop for `index_select` and `index_copy`"
        return f"the value is packed to the true elements: use {_scatter(base, mask, text(value))}, or {once}"
    if any(reads_through(part, mask) for part in walk(value)):
        return f"use `torch.where({text(mask)}, {text(unmasked(value, mask))}, {text(base)})`"
    return _either(base, mask, text(value))


def _either(base: cst.BaseExpression, mask: cst.BaseExpression, value: str) -> str:
    full = f"`torch.where({text(mask)}, {value}, {text(base)})` if `{value}` is one value or of full shape"
    return f"use {full}, {_scatter(base, mask, value)} if it is packed to the true elements"


def _scatter(base: cst.BaseExpression, mask: cst.BaseExpression, value: str) -> str:
    return f"`{text(base)}.masked_scatter({text(mask)}, {value})`"


RULE = Rule(
    code="HL112",
    name="boolean-mask-write",
    summary="writing a tensor, or in place arithmetic, through a boolean mask on the device waits",
    kinds=(FactKind.MASK_WRITE,),
    check=check,
    fix=masked_write_fix,
    examples=(
        Example(
            bad="""\
import torch


def penalise(logits, seen, factor: float):
    logits[seen] /= factor  # expect
    logits[~torch.isfinite(logits)] = -1e4
    return logits


def decode(model, ids, vocabulary: int, steps: int):
    ids = ids.cuda()
    seen = torch.zeros(ids.shape[0], vocabulary, dtype=torch.bool, device="cuda")
    for _ in range(steps):
        logits = penalise(model(ids)[:, -1], seen, 1.3)
        ids = logits.argmax(-1, keepdim=True)
        seen.scatter_(1, ids, True)
    return ids
""",
            good="""\
import torch


def where_masked(mask, new, old):
    \"""`old` with `new` where the mask is true; as in `old[mask] = new[mask]`, the mask may have fewer dimensions.\"""
    return torch.where(mask.reshape(mask.shape + (1,) * (old.dim() - mask.dim())), new, old)


def penalise(logits, seen, factor: float):
    logits.copy_(where_masked(seen, logits / factor, logits))
    logits[~torch.isfinite(logits)] = -1e4
    return logits


def decode(model, ids, vocabulary: int, steps: int):
    ids = ids.cuda()
    seen = torch.zeros(ids.shape[0], vocabulary, dtype=torch.bool, device="cuda")
    for _ in range(steps):
        logits = penalise(model(ids)[:, -1], seen, 1.3)
        ids = logits.argmax(-1, keepdim=True)
        seen.scatter_(1, ids, True)
    return ids
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch
from torch import nn


class DropLabels(nn.Module):
    def __init__(self, classes: int, width: int):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(classes, width))
        self.blank = nn.Parameter(torch.zeros(width))

    def forward(self, labels):
        rows = self.table[labels]
        gone = self.table.sum(-1) < 0
        rows[gone] = self.blank  # expect
        rows.index_put_((gone,), self.blank.neg())  # expect
        rows[:, 0] = 0.0
        return rows
""",
            good="""\
import torch
from torch import nn


class DropLabels(nn.Module):
    def __init__(self, classes: int, width: int):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(classes, width))
        self.blank = nn.Parameter(torch.zeros(width))

    def forward(self, labels):
        rows = self.table[labels]
        gone = self.table.sum(-1) < 0
        rows = torch.where(gone[:, None], self.blank, rows)
        rows = torch.where(gone[:, None], self.blank.neg(), rows)
        rows[:, 0] = 0.0
        return rows
""",
        ),
        Example(
            bad="""\
import torch


@torch.no_grad()
def simulate(physics, states, steps: int):
    states = states.to("cuda")
    start = states.clone()
    for _ in range(steps):
        states = states + physics(states)
        lost = states.isnan()
        states[lost] = start[lost]  # expect
        states[lost, 3] = 0.0
        states[:, 0] = states[:, 1]
    return states
""",
            good="""\
import torch


@torch.no_grad()
def simulate(physics, states, steps: int):
    states = states.to("cuda")
    start = states.clone()
    for _ in range(steps):
        states = states + physics(states)
        lost = states.isnan()
        states.copy_(torch.where(lost, start, states))
        states[lost, 3] = 0.0
        states[:, 0] = states[:, 1]
    return states
""",
            also=("HL111",),
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch


@torch.no_grad()
def cool(model, heat: float, steps: int):
    for step in range(1, steps):
        field = torch.linspace(-2.0, step, 64, device="cuda")
        far = field.abs() > 1
        field[far] *= heat  # expect
        model(field)
""",
            good="""\
import torch


@torch.no_grad()
def cool(model, heat: float, steps: int):
    for step in range(1, steps):
        field = torch.linspace(-2.0, step, 64, device="cuda")
        far = field.abs() > 1
        field.copy_(torch.where(far, field * heat, field))
        model(field)
""",
            fix=Applicability.EXACT,
            trials=("[seen := [], cool(seen.append, 0.3, 4)]", "[seen := [], cool(seen.append, float('inf'), 3)]"),
        ),
    ),
)
