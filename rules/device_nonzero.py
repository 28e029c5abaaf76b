"""A search for the true elements: `nonzero`, `argwhere`, `torch.where(mask)`.

## Why it costs
The size of the result depends on the data, so the host waits to learn it before it can allocate. Where the search looks for one step of
a schedule, an `.item()` of the hit follows, which is a second wait.

## Instead
- Work with the mask: `torch.where(mask, a, b)`, `x * mask`, `masked_fill(mask, number)`.
- The step of a schedule: a host counter, set when the schedule is set. Duplicated timesteps need the second match on the first call.
- `torch.nonzero_static(mask, size=n)` where an upper bound is known; it pads.
- Positions that stay the same over the steps: search once before the loop, then `gather` and `scatter` with them.

`hostlint fix` writes a number through the mask itself: `x[torch.where(m)] = 0.0` becomes `x[m] = 0.0`, which torch turns into a masked
fill. The same elements get the same number by the same conversion, errors included. Exact where `x` is seen to be a tensor whose elements
lie apart (a fill of an expanded one is an error) and `m` is proved to be boolean; else for review.

## Not flagged
Three-argument `torch.where`; `count_nonzero`; `nonzero_static`; NumPy arrays and host tensors.

## Evidence
NVIDIA H200, torch 2.11:
- `x.nonzero()`: 1 wait
- `torch.nonzero(m)`: 1 wait
- `torch.where(m)`: 1 wait
- `torch.argwhere(m)`: 1 wait
- `torch.nonzero_static(m, size=4)`: free
- `torch.where(m, x, s)`: free
- `torch.count_nonzero(m)`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the line.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.model import Applicability, Confidence
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import waits, whole

if TYPE_CHECKING:
    import ast

    import libcst as cst

    from hostlint.facts.fact import Fact
    from hostlint.fix.place import Place
    from hostlint.model import Fix
    from hostlint.values.value import Value


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"{waits(fact, whole(node))} to learn how many elements are true; {_instead(node)}")


def _instead(node: cst.BaseExpression) -> str:
    import libcst as cst

    match node:
        case cst.Call(func=function, args=arguments):
            tested = [argument.value for argument in arguments]
            if isinstance(function, cst.Attribute):
                tested.append(function.value)
            if any(_is_lookup(value) for value in tested):
                return "to find the own step in a schedule, count steps on the host (set the counter with the schedule)"
    return "use the mask itself (`torch.where(mask, a, b)`, `x * mask`), `nonzero_static` with a bound, or search once before the loop"


def _is_lookup(node: cst.BaseExpression) -> bool:
    import libcst as cst

    match node:
        case cst.Comparison(left=cst.Attribute(attr=cst.Name(name)) | cst.Name(name), comparisons=[cst.ComparisonTarget(cst.Equal())]):
            return "timesteps" in name or "sigmas" in name
    return False


def fix(place: Place) -> Fix | None:
    """`x[torch.where(m)] = 0.0` to `x[m] = 0.0`."""
    import ast

    from hostlint.fix.build import bare_code
    from hostlint.fix.same_shape import elements_lie_apart

    match place.path[-3:], _mask(place):
        case [ast.Assign(targets=[target], value=value), ast.Subscript() as written, ast.Call() as call], (mask, known) if (
            target is written and written.slice is call and isinstance(written.value, ast.Name) and _is_number(value)
        ):
            pass
        case _:
            return None
    edit = place.replace(bare_code(mask))
    if elements_lie_apart(place, written.value.id) and known.boolean and known.is_device and known.confidence is Confidence.CERTAIN:
        return place.fix(Applicability.EXACT, "write through the mask: a masked fill", edit)
    return place.fix(Applicability.REVIEW, f"write through the mask, where `{bare_code(mask)}` is boolean", edit)


def _mask(place: Place) -> tuple[cst.BaseExpression, Value] | None:
    """What is searched for true elements, where the result is a tuple of positions."""
    import libcst as cst

    match place.node:
        case cst.Call(func=func, args=[cst.Arg(value=mask, keyword=None, star="")]) if place.dotted(func) == "torch.where":
            return mask, place.known.argument(0)
        case cst.Call(func=func, args=[cst.Arg(value=mask, keyword=None), cst.Arg(keyword=cst.Name("as_tuple"), value=cst.Name("True"))]):
            return (mask, place.known.argument(0)) if place.dotted(func) == "torch.nonzero" else None
        case cst.Call(
            func=cst.Attribute(value=mask, attr=cst.Name("nonzero")), args=[cst.Arg(keyword=cst.Name("as_tuple"), value=cst.Name("True"))]
        ):
            return mask, place.known.receiver
    return None


def _is_number(node: ast.expr) -> bool:
    import ast

    value = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float)


RULE = Rule(
    code="HL110",
    name="device-nonzero",
    summary="`nonzero`, `argwhere` or one-argument `where` on the device waits for the size of its result",
    kinds=(FactKind.NONZERO,),
    check=check,
    fix=fix,
    examples=(
        Example(
            bad="""\
import torch


def settle(model, steps: int):
    for step in range(1, steps):
        field = torch.linspace(-2.0, step, 64, device="cuda")
        field[torch.where(field.abs() > 1)] = 0.0  # expect
        model(field)
""",
            good="""\
import torch


def settle(model, steps: int):
    for step in range(1, steps):
        field = torch.linspace(-2.0, step, 64, device="cuda")
        field[field.abs() > 1] = 0.0
        model(field)
""",
            fix=Applicability.EXACT,
            trials=("[seen := [], settle(seen.append, 4)]",),
        ),
        Example(
            bad="""\
import torch


class Ladder:
    def __init__(self, count: int):
        self.timesteps = torch.linspace(999, 0, count, device="cuda")
        self.sigmas = torch.linspace(1, 0, count + 1, device="cuda")

    def step(self, noise, t, x):
        hits = (self.timesteps == t).nonzero()  # expect
        return x - noise * self.sigmas.gather(0, hits[0])


def sample(unet, ladder: Ladder, x):
    for t in ladder.timesteps:
        x = ladder.step(unet(x, t), t, x)
    return x
""",
            good="""\
import torch


class Ladder:
    def __init__(self, count: int):
        self.timesteps = torch.linspace(999, 0, count, device="cuda")
        self.sigmas = torch.linspace(1, 0, count + 1, device="cuda")
        self.at = 0

    def step(self, noise, x):
        self.at += 1
        return x - noise * self.sigmas[self.at - 1]


def sample(unet, ladder: Ladder, x):
    for t in ladder.timesteps:
        x = ladder.step(unet(x, t), x)
    return x
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Prune(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.score = nn.Parameter(torch.zeros(width))
        self.table = nn.Parameter(torch.zeros(width, width))

    def forward(self, x):
        kept = torch.where(self.score > 0)[0]  # expect
        soft = torch.where(self.score > 0, self.score, 0.0)
        return x @ self.table.index_select(0, kept).sum(0) + soft.sum()
""",
            good="""\
import torch
from torch import nn


class Prune(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.score = nn.Parameter(torch.zeros(width))
        self.table = nn.Parameter(torch.zeros(width, width))

    def forward(self, x):
        kept = (self.score > 0).to(self.table.dtype)
        soft = torch.where(self.score > 0, self.score, 0.0)
        return x @ (kept @ self.table) + soft.sum()
""",
        ),
        Example(
            bad="""\
import torch

head = torch.nn.Linear(32, 4).cuda()


def mine(batches, opt):
    for x, target in batches:
        error = (head(x.cuda(non_blocking=True)) - target.cuda(non_blocking=True)).square().sum(-1)
        hard = torch.argwhere(error > error.mean()).flatten()  # expect
        error.index_select(0, hard).sum().backward()
        opt.step()
        opt.zero_grad()
""",
            good="""\
import torch

head = torch.nn.Linear(32, 4).cuda()


def mine(batches, opt):
    for x, target in batches:
        error = (head(x.cuda(non_blocking=True)) - target.cuda(non_blocking=True)).square().sum(-1)
        hard = error > error.mean()
        (error * hard).sum().backward()
        share = torch.count_nonzero(hard)
        first = torch.nonzero_static(hard, size=8)
        opt.step()
        opt.zero_grad()
    return share, first
""",
        ),
    ),
)
