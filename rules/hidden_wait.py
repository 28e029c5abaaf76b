"""A library call that reads a device value inside.

## Why it costs
Nothing in the source looks like a read, but the library takes one: to raise an error, to choose a path, to advance a counter. It costs
the host a full wait all the same.

## Instead
- `clip_grad_norm_(..., error_if_nonfinite=True)`: the default form does not wait; look at the returned norm every N steps.
- `BatchNorm(momentum=None)`: it reads its batch counter on every training forward. A fixed momentum does not, and gives other results.
- `GradScaler.step`: one read per optimizer step is its design. bf16 needs no scaler.
- `pack_padded_sequence(..., enforce_sorted=False)`: uploads the order. Sort in the collate function, keep the lengths on the host, and
  pass `enforce_sorted=True`.
- `torch.normal(mean, std)` with a tensor of deviations, and `Normal.sample`: `mean + std * torch.randn_like(mean)`; `rsample` draws the
  same numbers as `sample` (compared on the CPU).
- Writers (`add_scalar`, `wandb.log`), `torch.save`, `all_gather_object`: every N steps, on all ranks with the same keys.
- `ctc_loss`: lengths as Python numbers, and the targets as int32 on the host, in one row: one wait is left of eight.
- `cov`, `corrcoef`: once every N steps, or written out with products and sums.

`hostlint fix --review` writes `normal.sample()` as `normal.rsample().detach()`: both fill a tensor with standard normal numbers, multiply
by the scale and add the mean, in that order, so that the same seed gives the same bits where mean and scale are of one dtype (compared on
the CPU). A negative scale or NaN raises in the first form only. A metric gets `validate_args=False`: wrong input then gives wrong numbers.

## Not flagged
The default `clip_grad_norm_`; BatchNorm with a momentum; `optimizer.step` of SGD, Adam and AdamW; losses; attention; `multinomial`.

## Evidence
NVIDIA H200, torch 2.11:
- `torch.nn.utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)`: 1 wait
- `torch.nn.utils.rnn.pack_padded_sequence(seq, lens_cpu, batch_first=True, enforce_sorted=False)`: 1 wait
- `torch.normal(x, x.abs())`: 2 waits
- `torch.cov(X)`: 1 wait
- `swa.update_parameters(lin)`: 2 waits
- `F.ctc_loss(log_probs, ctc_targets, in_lens, out_lens)`: 8 waits
- `F.ctc_loss(log_probs, ctc_flat32, (6, 6), (3, 2))`: 1 wait
- `torch.nn.utils.clip_grad_norm_(params, 1.0)`: free
- `opt_adamw_foreach.step()`: free
- `torch.normal(x, 1.0)`: free
- `torch.multinomial(x.abs()+0.1, 1)`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports a line inside torch; the stack shows the caller.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.library_waits import without_wait
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import text, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact

EVERY_N = "call it every N steps"
NEEDS_NORM = "leave out `error_if_nonfinite=True` and look at the returned norm every N steps"
HOST_TARGETS = "pass the lengths as Python numbers and the targets as int32 on the host, in one row: one wait is left of eight"
CURES = {
    "clip_grad_norm_": NEEDS_NORM,
    "get_total_norm": NEEDS_NORM,
    "pack_padded_sequence": "sort in the collate function, keep the lengths on the host and pass `enforce_sorted=True`",
    "ctc_loss": HOST_TARGETS,
    "normal": "write `mean + std * torch.randn_like(mean)`",
    "sample": "`rsample()` under `torch.no_grad()` draws the same numbers without reading",
    "get_scale": "log the scale every N steps",
    "update_parameters": "update the average every N steps",
    "all_gather_object": "gather tensors, or gather objects where the log is written (every rank with the same keys)",
    "detect_anomaly": "turn it on only while debugging, or pass `check_nan=False`",
    "save": "save every N steps",
}
BATCH_NORM = "a fixed momentum needs no read (and gives other results), or keep the counter on the host"
SCALER = "one read per optimizer step is its design: train in bf16, which needs no scaler, or accept it"
OPTIMIZER = "this optimizer reads scalars in each step by design; SGD, Adam and AdamW do not"
OTHERWISE = f"{EVERY_N}, or compute the value with ops that stay on the device"


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"`{whole(node)}` waits for the device inside, {when(fact)}; {_instead(node)}")


def _instead(node: cst.BaseExpression) -> str:
    import libcst as cst

    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(name)) | cst.Name(name)) if "BatchNorm" in name:
            return BATCH_NORM
        case cst.Call(func=cst.Attribute(value=stepped, attr=cst.Name("step"))):
            return SCALER if "scaler" in text(stepped).lower() else OPTIMIZER
        case cst.Call(func=cst.Attribute(attr=cst.Name(name)) | cst.Name(name)):
            return EVERY_N if name.startswith("add_") else CURES.get(name, OTHERWISE)
    return OTHERWISE


RULE = Rule(
    code="HL116",
    name="hidden-wait",
    summary="a library call reads a device value inside",
    kinds=(FactKind.HIDDEN_WAIT,),
    check=check,
    fix=without_wait,
    examples=(
        Example(
            bad="""\
import torch

net = torch.nn.Linear(16, 16).cuda()


def fit(batches, opt):
    for x in batches:
        net(x.cuda(non_blocking=True)).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)  # expect
        opt.step()
        opt.zero_grad()
""",
            good="""\
import torch

net = torch.nn.Linear(16, 16).cuda()


def fit(batches, opt):
    for x in batches:
        net(x.cuda(non_blocking=True)).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Jitter(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.centre = nn.Parameter(torch.zeros(width))
        self.spread = nn.Parameter(torch.ones(width))

    def forward(self, x):
        noise = torch.normal(self.centre, self.spread.exp())  # expect
        return x + noise + torch.normal(self.centre, 1.0)
""",
            good="""\
import torch
from torch import nn


class Jitter(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.centre = nn.Parameter(torch.zeros(width))
        self.spread = nn.Parameter(torch.ones(width))

    def forward(self, x):
        noise = self.centre + self.spread.exp() * torch.randn_like(self.centre)
        return x + noise + torch.normal(self.centre, 1.0)
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence


class Tagger(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(100, width))
        self.cell = nn.LSTM(width, width, batch_first=True)

    def forward(self, ids, lengths: list[int]):
        rows = self.table[ids]
        packed = pack_padded_sequence(rows, lengths, batch_first=True, enforce_sorted=False)  # expect
        return self.cell(packed)[0]
""",
            good="""\
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence


class Tagger(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(100, width))
        self.cell = nn.LSTM(width, width, batch_first=True)

    def forward(self, ids, lengths: list[int]):
        rows = self.table[ids]
        packed = pack_padded_sequence(rows, lengths, batch_first=True, enforce_sorted=True)
        return self.cell(packed)[0]
""",
        ),
    ),
)
