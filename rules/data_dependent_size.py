"""An operator whose result size depends on the data: `unique`, `bincount`, `one_hot`, `repeat_interleave`.

## Why it costs
The host has to know the size before it can allocate, so it waits for the values. `bincount` waits even with `minlength`, for the values
could be larger.

## Instead
- `F.one_hot(ids, num_classes=n)`.
- `repeat_interleave(x, counts, output_size=total)` with a total that the host knows.
- `bincount(ids, minlength=n)`: `torch.zeros(n, dtype=ids.dtype, device=ids.device).scatter_add_(0, ids, torch.ones_like(ids))`, the same
  integers; an id beyond `n` is then an error. Sums of float weights are not
  deterministic.
- Class sums over `unique` labels: `index_add_`, or a one-hot product; means over masked rows differ in the last bits.
- `histc(x, bins, low, high)` with the range given; `nms` once, when the result is made, after a `topk` by score.

`hostlint fix --review` counts `bincount(ids, minlength=n)` by scatter, through a small function of the module (the same integers, as long
as no id reaches `n`), and gives `repeat_interleave` the sum of the list that its counts were made of in the same function.

## Not flagged
A result that the host copies in the same expression (`bincount(ids).tolist()`, `unique(x).cpu()`): the copy waits anyway and is found as
such. The forms with a size; `repeat_interleave` by a Python int; `topk`, `sort`, `cumsum`, `multinomial`, `randperm`; host tensors and
NumPy.

## Evidence
NVIDIA H200, torch 2.11:
- `torch.unique(xi)`: 1 wait
- `torch.unique(xi, return_counts=True)`: 1 wait
- `torch.unique_consecutive(xi)`: 1 wait
- `torch.bincount(xi)`: 2 waits
- `torch.repeat_interleave(x, xi[:len(x)])`: 2 waits
- `F.one_hot(xi)`: 1 wait
- `torch.histc(x, 10)`: 2 waits
- `X.to_sparse()`: 1 wait
- `torch.repeat_interleave(x, xi[:len(x)], output_size=tot)`: free
- `torch.repeat_interleave(x, 2)`: free
- `torch.histc(x, 10, 0, 1)`: free
- `torch.topk(x, 3)`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the line; it is silent on `torch.unique` with `dim=`, which waits as well.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.sizes import sized
from hostlint.model import Applicability
from hostlint.rule import Example, Problem, Rule
from hostlint.syntax import around, function
from hostlint.wording import waits, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact

CURES = {
    "one_hot": "give it `num_classes=`",
    "repeat_interleave": "give it `output_size=` with a total that the host knows, or repeat by a Python int",
    "bincount": "count with `scatter_add_` of ones into `torch.zeros(n, ...)`, the same integers",
    "histc": "give it the range (`min=`, `max=`)",
    "unique": "use `index_add_` or a one-hot product over a known number of classes, or find the classes once before the loop",
}
CURES["unique_consecutive"] = CURES["unique"]
CURES["nms"] = CURES["batched_nms"] = "it returns what survives: keep a fixed number by score (`topk`) until the request's result is made"


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    if _copied(fact, node):
        return None  # that copy waits anyway, and is a fact of its own
    cure = CURES.get(function(node), "use a form whose size the host knows, or compute it once before the loop")
    return Problem(f"{waits(fact, whole(node))} to learn the size of the result; {cure}")


def _copied(fact: Fact, node: cst.BaseExpression) -> bool:
    """Whether the host copies the result in the same expression."""
    import libcst as cst

    match around(fact, node):
        case [cst.Attribute(attr=cst.Name("tolist" | "cpu" | "numpy" | "item")), cst.Call(), *_]:
            return True
    return False


RULE = Rule(
    code="HL113",
    name="data-dependent-size",
    summary="the size of the result depends on device data (`unique`, `bincount`, `one_hot`, `repeat_interleave`)",
    kinds=(FactKind.DATA_DEPENDENT_SIZE,),
    check=check,
    fix=sized,
    examples=(
        Example(
            bad="""\
import torch


class Router:
    def __init__(self, gate, experts: int):
        self.gate = gate
        self.experts = experts

    def forward(self, x, device):
        chosen = self.gate(x).cuda().argmax(-1)
        lengths = [len(row) for row in x]
        counts = torch.tensor(lengths)
        load = torch.bincount(chosen.flatten(), minlength=self.experts)  # expect
        return load, torch.repeat_interleave(counts, 2)
""",
            good="""\
import torch


def count_values(ids, size):
    \"""`torch.bincount(ids, minlength=size)` for values below `size`, without reading the largest one.\"""
    ids = ids.long()
    return torch.zeros(size, dtype=torch.long, device=ids.device).scatter_add_(0, ids, torch.ones_like(ids))


class Router:
    def __init__(self, gate, experts: int):
        self.gate = gate
        self.experts = experts

    def forward(self, x, device):
        chosen = self.gate(x).cuda().argmax(-1)
        lengths = [len(row) for row in x]
        counts = torch.tensor(lengths)
        load = count_values(chosen.flatten(), self.experts)
        return load, torch.repeat_interleave(counts, 2)
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch
import torch.nn.functional as F
from torch import nn


class Router(nn.Module):
    def __init__(self, width: int, experts: int):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(width, experts))
        self.experts = experts

    def forward(self, x):
        chosen = (x @ self.gate).argmax(-1)
        hot = F.one_hot(chosen)  # expect
        order = torch.argsort(chosen, stable=True)
        return hot, order
""",
            good="""\
import torch
import torch.nn.functional as F
from torch import nn


class Router(nn.Module):
    def __init__(self, width: int, experts: int):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(width, experts))
        self.experts = experts

    def forward(self, x):
        chosen = (x @ self.gate).argmax(-1)
        hot = F.one_hot(chosen, num_classes=self.experts)
        order = torch.argsort(chosen, stable=True)
        return hot, order
""",
        ),
        Example(
            bad="""\
import torch


def expand_rows(rows, counts):
    twice = rows.repeat_interleave(2, dim=0)
    return twice, torch.repeat_interleave(rows, counts, dim=0)  # expect


def unroll(model, rows, rounds: int):
    rows = rows.cuda()
    counts = torch.full((rows.shape[0],), 3, device="cuda")
    for _ in range(rounds):
        rows = model(*expand_rows(rows, counts))
    return rows
""",
            good="""\
import torch


def expand_rows(rows, counts, total: int):
    twice = rows.repeat_interleave(2, dim=0)
    return twice, torch.repeat_interleave(rows, counts, dim=0, output_size=total)


def unroll(model, rows, rounds: int):
    rows = rows.cuda()
    counts = torch.full((rows.shape[0],), 3, device="cuda")
    for _ in range(rounds):
        rows = model(*expand_rows(rows, counts, 3 * rows.shape[0]))
    return rows
""",
        ),
        Example(
            bad="""\
import torch

body = torch.nn.Linear(16, 16).cuda()


def fit(batches, opt, classes: int):
    for x, y in batches:
        y = y.cuda(non_blocking=True)
        out = body(x.cuda(non_blocking=True))
        groups, owner = y.unique(return_inverse=True)  # expect
        sums = torch.zeros(classes, 16, device="cuda").index_add_(0, owner, out)
        sums.square().mean().backward()
        opt.step()
        opt.zero_grad()
    return groups
""",
            good="""\
import torch

body = torch.nn.Linear(16, 16).cuda()


def fit(batches, opt, classes: int):
    for x, y in batches:
        y = y.cuda(non_blocking=True)
        out = body(x.cuda(non_blocking=True))
        spread = torch.histc(out.detach(), 10, -1.0, 1.0)
        sums = torch.zeros(classes, 16, device="cuda").index_add_(0, y, out)
        sums.square().mean().backward()
        opt.step()
        opt.zero_grad()
    return spread
""",
        ),
    ),
)
