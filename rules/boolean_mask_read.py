"""`x[mask]` or `masked_select` with a boolean mask on the device.

## Why it costs
The result has as many rows as the mask has true elements, so torch runs `nonzero` and the host waits for the count.

## Instead
- A masked sum: `(x * mask).sum()`, or `torch.where(mask, x, 0.0).sum()` where `x` may hold NaN. A mean over the kept rows divides by
  `mask.sum().clamp(min=1)`; its last bits differ from `x[mask].mean()`.
- The same mask over many steps: take the positions once before the loop, then `x.index_select(0, positions)` or `gather`. The ascending
  positions give the same elements in the same order.
- A mean loss over `a[mask]` and `b[mask]`: `reduction="none"`, then the masked mean.
- The true elements followed by the false ones: `x.index_select(0, torch.argsort((~mask).byte(), stable=True))`; the size is known.
- Only the count: `mask.sum()`. Only the host's copy (`x[mask].tolist()`): copy `x` and the mask, and select on the host.
- A known count: `torch.nonzero_static(mask, size=n)`.
- Groups (experts, classes): sort by group once, or `index_add_` and a one-hot product.

`hostlint fix --review` does so where all calls in a step loop of the file pass the same mask: a small function that it adds to the module,
`select_masked(x, mask)`, finds the positions once for each mask and state of it (torch counts writes in place, save in inference mode) and
gathers by them, in the same order; trailing dimensions of the elements stay together, as `masked_select(mask.unsqueeze(-1))` has them.

## Not flagged
Integer indices on the device; slices; a boolean mask on the host used for reading; host tensors and NumPy arrays; `torch.where` with
three arguments; `x[mask] = number`, which torch turns into `masked_fill`.

## Evidence
NVIDIA H200, torch 2.11:
- `x[m]`: 1 wait
- `X[mrow]`: 1 wait
- `X[:, mcol]`: 1 wait
- `x.masked_select(m)`: 1 wait
- `torch.masked_select(x, m)`: 1 wait
- `x[hm]`: free
- `x[idx]`: free
- `x.masked_fill(m, 0.0)`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the line.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.kept_positions import kept_selection
from hostlint.rule import Example, Problem, Rule
from hostlint.syntax import ELEMENTWISE, around, bare, function, masked, operand, reads_through, unmasked, walk
from hostlint.wording import text, waits, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from hostlint.facts.fact import Fact

ELSEWHERE = (
    "the same mask each step: positions once before the loop, then `index_select` or `gather`; else keep the full size and apply the mask"
    " where the result is used"
)
SORTED = "true before false in fixed size: `index_select` by `torch.argsort((~mask).byte(), stable=True)`"
SUM = "`torch.where({w}, {e}, 0).sum({a})`"
REDUCED = {
    "sum": f"{SUM} (last bits may differ; a mask of rows as `mask[:, None]`)",
    "mean": f"{SUM} over the count, the mask's own sum times the width of a row (last bits may differ)",
    "any": "`({v} & {m}).any({a})` for flags",
    "all": "`({v} | ~{m}).all({a})` for flags",
    "max": "`torch.where({w}, {e}, -torch.inf).max({a})` for floats",
    "min": "`torch.where({w}, {e}, torch.inf).min({a})` for floats",
}
REDUCED |= {"amax": REDUCED["max"].replace(".max", ".amax"), "amin": REDUCED["min"].replace(".min", ".amin")}


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"{waits(fact, whole(node))} to count the true elements; {_instead(fact, node)}")


def _instead(fact: Fact, node: cst.BaseExpression) -> str:
    pair = masked(node)
    if pair is None:
        return ELSEWHERE
    base, mask = pair
    outer = around(fact, node)
    return _at_once(base, mask, outer) or _reduced(node, mask, outer) or _together(mask, outer) or _positions(base, mask)


def _at_once(base: cst.BaseExpression, mask: cst.BaseExpression, outer: Sequence[cst.CSTNode]) -> str:
    """The cure where only the count or the host's copy of the elements is wanted."""
    import libcst as cst

    match outer:
        case [cst.Attribute(attr=cst.Name("tolist" | "cpu" | "numpy")), *_]:
            return f"copy `{text(base)}` and the mask to the host once and select there"
        case [cst.Attribute(attr=cst.Name("shape" | "numel" | "size")), *_] | [cst.Arg(), cst.Call(func=cst.Name("len")), *_]:
            return f"work in full size and no count is needed; the count alone is `{operand(mask)}.sum()`, a device tensor"
    return ""


def _reduced(node: cst.BaseExpression, mask: cst.BaseExpression, outer: Sequence[cst.CSTNode]) -> str:
    """The cure where the elements are worked on one by one and then summed up."""
    import libcst as cst

    inner: cst.BaseExpression = node
    while outer:
        match outer:
            case [cst.Attribute(attr=cst.Name(name)), cst.Call(args=rest) as call, *outer]:
                pass
            case [cst.Arg() as given, cst.Call(func=cst.Attribute(cst.Name("torch"), attr=attr), args=[first, *rest]) as call, *outer]:
                if first is not given:
                    return ""
                name = attr.value
            case [cst.BinaryOperation() | cst.Comparison() | cst.UnaryOperation() as operation, *outer] if _in_full(operation, mask):
                inner = operation
                continue
            case _:
                return ""
        if name in REDUCED:
            return _weighted(unmasked(inner, mask), mask, name, ", ".join(bare(argument).rstrip(",") for argument in rest))
        if name not in ELEMENTWISE:
            return ""
        inner = call
    return ""


def _in_full(operation: cst.CSTNode, mask: cst.BaseExpression) -> bool:
    """Whether each operand is a number or read through the mask; another one may be packed to the true elements already."""
    import libcst as cst

    match operation:
        case cst.UnaryOperation():
            return True
        case cst.BinaryOperation(left=left, right=right) | cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(comparator=right)]):
            sides = (left, right)
            return all(isinstance(s, cst.BaseNumber) or any(reads_through(part, mask) for part in walk(s)) for s in sides)
    return False


def _weighted(value: cst.BaseExpression, mask: cst.BaseExpression, name: str, rest: str) -> str:
    if bare(value) == bare(mask):
        return f"`{operand(mask)}.{name}({rest})` says the same" if name in {"sum", "any"} else "the true elements of a mask are all true"
    return f"keep the full size: {REDUCED[name].format(w=text(mask), m=operand(mask), e=text(value), v=operand(value), a=rest)}"


def _together(mask: cst.BaseExpression, outer: Sequence[cst.CSTNode]) -> str:
    """The cure where the true and the false elements are put one after the other: an order, whose size is known."""
    for part in outer:
        if function(part) in {"cat", "concat", "hstack"}:
            masks = [pair[1] for inner in walk(part) if (pair := masked(inner)) is not None]
            if any(_inverts(mask, other) or _inverts(other, mask) for other in masks):
                return SORTED
    return ""


def _inverts(mask: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    import libcst as cst

    return isinstance(mask, cst.UnaryOperation) and isinstance(mask.operator, cst.BitInvert) and bare(mask.expression) == bare(other)


def _positions(base: cst.BaseExpression, mask: cst.BaseExpression) -> str:
    import libcst as cst

    match mask:
        case cst.Comparison(left=groups, comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=cst.Name() | cst.Attribute())]):
            return f"sort by `{text(groups)}` once for all groups (stable `argsort`) and read the group sizes once, or {ELSEWHERE}"
    if bare(base) == bare(mask):
        return f"every element is true, only their number is new; {ELSEWHERE}"
    return ELSEWHERE


RULE = Rule(
    code="HL111",
    name="boolean-mask-read",
    summary="reading through a boolean mask on the device waits for the number of true elements",
    kinds=(FactKind.MASK_READ,),
    check=check,
    fix=kept_selection,
    examples=(
        Example(
            bad="""\
import torch

net = torch.nn.Linear(16, 16).cuda()


def fit(batches, opt):
    for x, valid in batches:
        out = net(x.cuda(non_blocking=True))
        valid = valid.cuda(non_blocking=True).bool()
        out[valid].square().sum().backward()  # expect
        opt.step()
        opt.zero_grad()
""",
            good="""\
import torch

net = torch.nn.Linear(16, 16).cuda()


def fit(batches, opt):
    for x, valid in batches:
        out = net(x.cuda(non_blocking=True))
        valid = valid.cuda(non_blocking=True).bool()
        torch.where(valid[:, None], out.square(), 0.0).sum().backward()
        opt.step()
        opt.zero_grad()
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, width: int, count: int):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(width, count))
        self.bank = nn.Parameter(torch.zeros(count, width, width))

    def forward(self, x):
        chosen = (x @ self.gate).argmax(-1)
        out = []
        for e in range(self.bank.shape[0]):
            out.append(x[chosen == e] @ self.bank[e])  # expect
        return torch.cat(out)
""",
            good="""\
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, width: int, count: int):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(width, count))
        self.bank = nn.Parameter(torch.zeros(count, width, width))

    def forward(self, x):
        chosen = (x @ self.gate).argmax(-1)
        out = torch.zeros_like(x)
        for e in range(self.bank.shape[0]):
            out = torch.where((chosen == e)[:, None], x @ self.bank[e], out)
        return out
""",
        ),
        Example(
            bad="""\
import torch


def decode(model, hidden, steps: int):
    hidden = hidden.to("cuda")
    picture = hidden.abs().sum(-1) > 0
    for _ in range(steps):
        hidden = model(hidden)
        pixels = torch.masked_select(hidden, picture[..., None])  # expect
        model.show(pixels)
        hidden[picture] = 0.0
    return hidden
""",
            good="""\
import torch


def decode(model, hidden, steps: int):
    hidden = hidden.to("cuda")
    picture = hidden.abs().sum(-1) > 0
    rows, columns = picture.nonzero(as_tuple=True)
    for _ in range(steps):
        hidden = model(hidden)
        pixels = hidden[rows, columns]
        model.show(pixels)
        hidden[picture] = 0.0
    return hidden
""",
        ),
    ),
)
