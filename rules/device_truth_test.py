"""Python asks whether a device tensor is true: `if`, `while`, `assert`, `not`, `and`, `in`, `max(t, u)`.

## Why it costs
Every place where Python needs a yes or no calls `__bool__` of the tensor, which reads it like `.item()`. A chained comparison or
`t in list` reads once per comparison. Builtin `max`, `min` and `sorted` compare pairwise and read each time.

## Instead
- Select with `torch.where(flag, a, b)`, `clamp`, `torch.maximum`; builtin `max` and `torch.maximum` differ for NaN.
- Decide on the host from what the host knows: prompt lengths, request parameters, the step counter. A mask that is full is passed as
  None, once per request. Batches that are merged or filtered must update such a flag.
- A check for bad values: `bad |= ~torch.isfinite(loss.detach())`, read every N steps and before each checkpoint. Some optimizer steps
  have then run on bad values already.
- A stop test: look every N tokens, or at the flag of the step before (pinned slot and event), and drop the overshoot.
- A window test on a schedule: compare the whole schedule on the device, `.tolist()` once, index by step. Comparing Python doubles on the
  host instead changes the side of steps that lie near a bound.

`hostlint fix` does two of these, and one more. A comparison of a walked schedule's element with numbers becomes one comparison of the
whole schedule, on the device and in its own dtype, so that the bound is rounded as it was; exact where the schedule is a tensor that this
function made and nothing else sees, and the bounds are literals. So does that of an entry (`t = ticks[i]`, then `low < t`), for review:
the table must be 1-D, and the bounds Python numbers. Where more than the truth of the result may be used, it stays. A check that raises
(`assert not torch.isnan(x).any()`) becomes a flag that is combined on the device and looked at once after the loop; for review, because
the rest of the loop has run on the bad values by then. Where the message says which pass it was, the check stays. `if m.any():` before
nothing but `x[m] = 0.0` goes: where nothing is true, nothing is written; exact without autograd, where `m` came from `x`, whose elements
lie apart, and every dtype holds the number.

Where both sides of an `or` or `and` test one tensor (`isnan(t) or isinf(t)`), they are joined on the device (`|`, `&`) and read together,
for review: the second is worked out in any case then. Tests of sizes, and of elements by their index, are left as they guard each other.

## Not flagged
`is None`, `isinstance`, shapes, lists, Python and NumPy values, host tensors; comparisons whose result stays a tensor; `torch.where` and
builtin `sum`; tests behind a debug switch or every N steps.

## Evidence
NVIDIA H200, torch 2.11:
- `bool(s > 0)`: 1 wait
- `if s`: 1 wait
- `max(x[0], x[1])`: 1 wait
- `sorted([x[0], x[1]])`: 1 wait
- `s.is_nonzero()`: 1 wait
- `bool(torch.isnan(x).any())`: 1 wait
- `s == 1.0`: free
- `s is None`: free
- `x.clamp(min=s)`: free
- `torch.any(m)`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the line of the test.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.flags import checked_after
from hostlint.fix.joined_tests import joined_test
from hostlint.fix.needless_tests import without_test
from hostlint.fix.row_reads import row_read
from hostlint.fix.windows import compared_before
from hostlint.model import Applicability
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact
    from hostlint.fix.place import Place
    from hostlint.model import Fix


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"the truth of `{whole(node)}` is read from the device {when(fact)}, and the host waits; {_instead(node, fact.call)}")


def _instead(node: cst.BaseExpression, where: str) -> str:
    import libcst as cst

    match node:
        case cst.Call(func=cst.Name("max" | "min" as which)):
            return f"use `torch.{which}imum`, or a host number where the host knows it"
        case cst.Call(func=cst.Name("any" | "all" as which)):
            return f"stack the values and keep `.{which}()` on the device"
        case cst.Call(func=cst.Name("sorted")):
            return "stack the values and sort them with `torch.sort`"
        case cst.Call(func=cst.Attribute(value=inner)) if _checks_numbers(inner) or _checks_numbers(node):
            return "combine the flags on the device (`bad |= ...`) and read them every N steps, before a checkpoint at the latest"
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.In() | cst.NotIn()), *_]):
            return "use `torch.isin` with a tensor that is built once, and keep the result on the device"
        case cst.Comparison(comparisons=[_, _, *_]):
            return "compare with `&` on the device (a whole schedule at once) and `.tolist()` the flags once before the loop"
    if where == "while":
        return "let the host count, and look at the flag every N steps or one step late"
    return "select with `torch.where`, decide from host facts once per request, or read the flag every N steps or one step late"


def _checks_numbers(node: cst.BaseExpression) -> bool:
    import libcst as cst

    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name("isnan" | "isinf" | "isfinite"))):
            return True
    return False


def fix(place: Place) -> Fix | None:
    return without_test(place) or compared_before(place) or row_read(place) or checked_after(place) or joined_test(place)


RULE = Rule(
    code="HL103",
    name="device-truth-test",
    summary="the truth value of a device tensor is read on a step's path",
    kinds=(FactKind.TRUTH_TEST,),
    check=check,
    fix=fix,
    examples=(
        Example(
            bad="""\
import torch


def generate(model, ids, eos, limit):
    ids = ids.to("cuda")
    done = torch.zeros(ids.shape[0], dtype=torch.bool, device="cuda")
    for _ in range(limit):
        last = model(ids)[:, -1].argmax(-1)
        done |= last == eos
        if done.all():  # expect
            break
        ids = torch.cat([ids, last[:, None]], 1)
    return ids
""",
            good="""\
import torch


def generate(model, ids, eos, limit):
    ids = ids.to("cuda")
    done = torch.zeros(ids.shape[0], dtype=torch.bool, device="cuda")
    for position in range(limit):
        last = torch.where(done, eos, model(ids)[:, -1].argmax(-1))
        done |= last == eos
        if position % 32 == 31 and done.all():
            break
        ids = torch.cat([ids, last[:, None]], 1)
    return ids
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Clamp(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.low = nn.Parameter(torch.zeros(()))
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x, mask=None):
        assert not torch.isnan(self.gain).any()  # expect
        if mask is not None:
            x = x * mask
        floor = max(self.low, self.gain.min())  # expect
        return torch.maximum(x, floor) * self.gain
""",
            good="""\
import torch
from torch import nn


class Clamp(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.low = nn.Parameter(torch.zeros(()))
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x, mask=None):
        if mask is not None:
            x = x * mask
        floor = torch.maximum(self.low, self.gain.min())
        return torch.maximum(x, floor) * self.gain
""",
        ),
        Example(
            bad="""\
import torch


def denoise(unet, x, steps, start: float, stop: float, guided: bool):
    times = torch.linspace(1.0, 0.0, steps, device="cuda")
    for t in times:
        if guided and start <= t <= stop:  # expect
            x = x + unet(x, t, 2.0)
        else:
            x = x + unet(x, t, 1.0)
    return x
""",
            good="""\
import torch


def denoise(unet, x, steps, start: float, stop: float, guided: bool):
    times = torch.linspace(1.0, 0.0, steps, device="cuda")
    for t, t_inside in zip(times, ((start <= times) & (times <= stop)).tolist()):
        if guided and t_inside:
            x = x + unet(x, t, 2.0)
        else:
            x = x + unet(x, t, 1.0)
    return x
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch


def settle(update, state, tolerance: float):
    state = state.cuda()
    gap = torch.ones((), device="cuda")
    while gap > tolerance:  # expect
        fresh = update(state)
        gap = (fresh - state).abs().max()
        state = fresh
    ready = bool(gap.shape) or state.is_cuda
    return state, ready
""",
            good="""\
import torch


def settle(update, state, rounds: int):
    state = state.cuda()
    gap = torch.ones((), device="cuda")
    for _ in range(rounds):
        fresh = update(state)
        gap = (fresh - state).abs().max()
        state = torch.where(gap > 0, fresh, state)
    ready = bool(gap.shape) or state.is_cuda
    return state, ready
""",
        ),
        Example(
            bad="""\
import torch


def run(model, x, steps: int):
    x = x.to("cuda")
    for step in range(steps):
        x = model(x, step)
        assert not torch.isnan(x).any(), "the model gave no numbers"  # expect
    return x
""",
            good="""\
import torch


def run(model, x, steps: int):
    x = x.to("cuda")
    has_nan = False
    for step in range(steps):
        x = model(x, step)
        has_nan |= torch.isnan(x).any()
    assert not has_nan, "the model gave no numbers"
    return x
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch


def denoise(unet, x, steps: int):
    times = torch.linspace(0.0, 1.0, steps, device="cuda")
    for i, t in enumerate(times):
        if t > 0.1 and i:  # expect
            x = x * 2
        x = unet(x, t)
    return x
""",
            good="""\
import torch


def denoise(unet, x, steps: int):
    times = torch.linspace(0.0, 1.0, steps, device="cuda")
    times_inside = (times > 0.1).tolist()
    for i, t in enumerate(times):
        if times_inside[i] and i:
            x = x * 2
        x = unet(x, t)
    return x
""",
            fix=Applicability.EXACT,
            trials=("[denoise(lambda x, t: x + t, torch.ones(3), n) for n in (0, 1, 2, 11, 21)]",),
        ),
    ),
)
