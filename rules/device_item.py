"""`.item()` of a device tensor on a step's path.

## Why it costs
`.item()` copies one number to the host. The host waits until every kernel queued before it has run, so its lead over the device is gone
and the device idles until Python has queued work again. At most the smaller of the host's and the device's time per step can be won.

## Instead
- A running sum: add `loss.detach().double()` on the device and call `.item()` once after the loop. Float64 gives the bits of a Python
  float sum, float32 and bf16 do not; without `detach` the graph of every step stays alive.
- A log line: read it behind `step % N == 0`, in the same window as the other values.
- A schedule: `.tolist()` once before the loop, then index the list with the host's step counter.
- A size (`torch.empty(lengths.sum().item())`, `max_len = lengths.max().item()`): the host's copy of the lengths, which it had before
  they were uploaded, or a bound that is always enough; several sizes in one `.tolist()`.
- A stop test: every N tokens, or read the flag of the step before from a pinned slot after its event, and drop the overshoot.

`hostlint fix` does these moves where a read is alone in its way:
- Entries of a table (`sigmas[i].item()`) and elements that a loop walks over (`for t in ticks`): one `tolist()` before the loop. It gives
  the numbers that `item()` gives, of every dtype. Exact where the function made the table itself and nothing else sees it (of elements that
  are walked over: nothing sees them before they are read), the result is proved to be 0-dim and the index to be a counter.
- Entries of a schedule that an object holds (`self.sigmas[i].item()`, also by a name and cast by then): `host_values(self.sigmas)[i]`, a
  function that the fix adds to the module. It reads the whole table once for each tensor, dtype and state of it (torch counts writes in
  place), and gives the numbers that `item()` gives. For review: a table that each step makes anew would be read as often as before, and
  writes to a tensor that was made in inference mode are not counted. Where the object may be changed between, the read stays.
- `total += loss.item() * n`: `total += loss.detach().double() * n`, and `total = float(total)` after the loop, so that the name holds a
  float again. A Python float is a float64, each step adds and multiplies the same two numbers with the same rounding, so that the bits are
  the same. Exact where the value is proved to be one real number on the device and `n` a number; else for review. Other looks at the sum
  in the loop become `float(total)`.
- A debug line that reads goes under `if log.isEnabledFor(logging.DEBUG):`, for review, as device-format says.
- `losses.append(loss.item())`: a copy is collected and `tolist()` called once after the loop, for review (the tensors must be alike).
- A number that only the body of one `if` uses goes there, for review: calls between might write into the tensor.
- A number that each pass reads and only one place after the loop uses (`last = loss.item()`): the tensor is kept
  (`last = loss.detach().clone()`) and the last one read there. Exact where it is proved to be 0-dim; else for review.
- A number that is read again (`if t.item() == a: break`, then `if t.item() == b:`) is read once, under a name. Exact where the tensor is
  proved to be 0-dim, and nothing but tests of names and numbers runs between; else for review.
- What the rows of a batch come to (`int(mask[i].sum())` in a loop or a comprehension over the rows; `any`, `all`, `count_nonzero`, `max`
  and `min` as well; of `mask[i : i + 1]`, of `row != pad`, of a name that the pass gave it): the numbers of all rows are worked out on the
  device and read with one `tolist()` before the loop. For review: the tensor must have two or more dimensions and, where `sum`, `max` or
  `min` runs over its own numbers, hold whole ones (float sums round by their order; a largest -0.0 may be 0.0), and nothing may write into
  it meanwhile. Lists of tensors are left. What is then read once a step is device-tolist's, which hands it in from the caller if it can.

## Not flagged
NumPy scalars and host tensors; reads every N steps, behind a debug switch, in evaluation; one read a request before or after the step loop
of the same function; the lagged read of a pinned slot; values whose place is unknown.

## Evidence
NVIDIA H200, torch 2.11:
- `s.item()`: 1 wait
- `s.detach().item()`: 1 wait
- `sum([x[0], x[1]])`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` before the loop warns at this line on every step.
"""
from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.debug_lines import guarded_debug_line
from hostlint.fix.flags import checked_after
from hostlint.fix.reads import moved_read
from hostlint.fix.row_reads import row_read
from hostlint.model import Applicability
from hostlint.rule import Example, Problem, Rule
from hostlint.syntax import around, function, parsed, walk
from hostlint.wording import receiver, text, waits, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact
    from hostlint.fix.place import Place
    from hostlint.model import Fix

SIZED = frozenset({
    "empty", "zeros", "ones", "arange", "rand", "randn", "eye", "new_empty", "new_zeros", "new_ones", "range", "view", "reshape", "expand",
    "repeat", "split", "narrow", "resize_",
})  # fmt: skip
FILLED = frozenset({"full", "new_full"})  # their first argument is a size, their second is not
LENGTH = re.compile(r"(^|_)(max|longest)_?(seq_?)?(lens?|lengths?|sizes?|seqlens?)(_|$)")
AT_ONCE = (
    "a size is needed at once: take it from the host's copy of the lengths, or a bound that is always enough; "
    "several sizes in one `.tolist()`"
)


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"{waits(fact, whole(node))}; {_instead(fact, node, receiver(node, fact.subject))}")


def _instead(fact: Fact, node: cst.BaseExpression, subject: str) -> str:
    import libcst as cst

    how = "detached, sums in float64" if _is_summed(fact) else "detached"
    later = f"keep `{subject}` on the device ({how}) and read it after the loop, every N steps or one step late"
    match node:
        case cst.Call(func=cst.Attribute(value=value)) if any(function(part) in {"nonzero", "argwhere"} for part in walk(value)):
            return "the step of a schedule: count on the host; else `mask.int().argmax()` keeps the first hit a tensor (0 if there is none)"
        case cst.Call(func=cst.Attribute(value=cst.Subscript(value=cst.Name() | cst.Attribute() as table))) if _indexes(text(table)):
            return "the step of a schedule: count on the host (set the counter with it); else use the tensor itself (`index_select`)"
        case cst.Call(func=cst.Attribute(value=cst.Call(func=cst.Attribute(attr=cst.Name("any" | "all"))))):
            return "combine the flag on the device (`|=`, `&=`) and read it every N steps, or read the flag of the step before"
        case cst.Call(func=cst.Attribute(value=cst.Call(func=cst.Attribute(attr=cst.Name("argmax" | "argmin" | "multinomial"))))):
            return "keep the index a tensor (`gather`, `index_select`), or let the host look one step late"
        case cst.Call(func=cst.Attribute(value=cst.Subscript(value=table))):
            return f"if `{text(table)}` stays the same over the steps, `.tolist()` it once before the loop; else {later}"
    return AT_ONCE if _is_size(fact, node) else later


def _is_size(fact: Fact, node: cst.BaseExpression) -> bool:
    """Whether the number decides how large something is: an argument of what makes or shapes tensors, or named as a longest length."""
    import libcst as cst

    places = (node, *around(fact, node))
    for inner, part in pairwise(places):
        match part:
            case cst.Call(args=given) if inner in given and (function(part) in SIZED or (function(part) in FILLED and inner is given[0])):
                return True
            case cst.Assign(targets=[cst.AssignTarget(target=target)]) if LENGTH.search(text(target)):
                return True
    return False


def _is_summed(fact: Fact) -> bool:
    """Whether the number goes into a running sum; where the statement is not known, it may."""
    import libcst as cst

    statement = parsed(fact.source)
    return statement is None or any(isinstance(part, cst.AugAssign) for part in walk(statement))


def _indexes(name: str) -> bool:
    return any(word in {"index", "indices", "idx", "idxs", "inds", "positions"} for word in name.rpartition(".")[2].lower().split("_"))


def fix(place: Place) -> Fix | None:
    return guarded_debug_line(place) or moved_read(place) or row_read(place) or checked_after(place)


RULE = Rule(
    code="HL101",
    name="device-item",
    summary="`.item()` reads a device tensor on a step's path",
    kinds=(FactKind.ITEM,),
    check=check,
    fix=fix,
    examples=(
        Example(
            bad="""\
import torch
from torch import nn

net = nn.Linear(16, 1).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def epoch(batches):
    total = 0.0
    for x, y in batches:
        loss = (net(x.cuda(non_blocking=True)) - y.cuda(non_blocking=True)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * x.shape[0]  # expect
    return total
""",
            good="""\
import torch
from torch import nn

net = nn.Linear(16, 1).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def epoch(batches):
    total = 0.0
    for x, y in batches:
        loss = (net(x.cuda(non_blocking=True)) - y.cuda(non_blocking=True)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach().double() * x.shape[0]
    total = float(total)
    return total
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch


def decode(model, tokens, eos, limit):
    tokens = tokens.to("cuda")
    for _ in range(limit):
        logits = model(tokens)
        last = logits[:, -1].argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, last], dim=1)
        if (last == eos).all().item():  # expect
            break
    return tokens
""",
            good="""\
import torch


def decode(model, tokens, eos, limit):
    tokens = tokens.to("cuda")
    done = torch.zeros(tokens.shape[0], 1, dtype=torch.bool, device="cuda")
    for position in range(limit):
        logits = model(tokens)
        last = torch.where(done, eos, logits[:, -1].argmax(-1, keepdim=True))
        tokens = torch.cat([tokens, last], dim=1)
        done |= last == eos
        if position % 16 == 15 and done.all().item():
            break
    return tokens
""",
        ),
        Example(
            bad="""\
import torch


def integrate(field, x, steps):
    sigmas = torch.linspace(1.0, 0.0, steps + 1, device="cuda")
    for i in range(steps):
        here, there = sigmas[i].item(), sigmas[i + 1].item()  # expect
        x = x + (there - here) * field(x, here)
    return x
""",
            good="""\
import torch


def integrate(field, x, steps):
    sigmas = torch.linspace(1.0, 0.0, steps + 1, device="cuda")
    sigmas_values = sigmas.tolist()
    for i in range(steps):
        here, there = sigmas_values[i], sigmas_values[i + 1]
        x = x + (there - here) * field(x, here)
    return x
""",
            fix=Applicability.EXACT,
            trials=("integrate(lambda x, t: x * t - 1e-7, torch.arange(4.0), 7)", "integrate(None, torch.zeros(1), 0)"),
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width))
        self.limit = torch.tensor(0.5).item()

    def forward(self, x):
        strength = self.weight.sigmoid().mean().item()  # expect
        return x * min(strength, self.limit)
""",
            good="""\
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width))
        self.limit = torch.tensor(0.5).item()

    def forward(self, x):
        return x * self.weight.sigmoid().mean().clamp(max=self.limit)
""",
        ),
        Example(
            bad="""\
import torch

net = torch.nn.Linear(8, 1).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def fit(batches, log):
    for step, x in enumerate(batches):
        loss = net(x.cuda(non_blocking=True)).square().mean()
        loss.backward()
        # what the log shows
        shown = loss.item()  # expect
        opt.step()
        opt.zero_grad()
        if step % 50 == 0:
            log(step, shown)
""",
            good="""\
import torch

net = torch.nn.Linear(8, 1).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def fit(batches, log):
    for step, x in enumerate(batches):
        loss = net(x.cuda(non_blocking=True)).square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 50 == 0:
            # what the log shows
            shown = loss.item()
            log(step, shown)
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch


def denoise(model, x, tokens, pad: int, steps: int):
    tokens = tokens.to("cuda")
    for _ in range(steps):
        parts = []
        for i in range(tokens.shape[0]):
            row = tokens[i]
            length = (row != pad).sum().item()  # expect
            parts.append(model(x[i], row[:length]))
        x = x - torch.stack(parts) / steps
    return x
""",
            good="""\
import torch


def denoise(model, x, tokens, pad: int, steps: int):
    tokens = tokens.to("cuda")
    tokens_sums = (tokens != pad).flatten(1).sum(1).tolist()
    for _ in range(steps):
        parts = []
        for i in range(tokens.shape[0]):
            row = tokens[i]
            length = tokens_sums[i]
            parts.append(model(x[i], row[:length]))
        x = x - torch.stack(parts) / steps
    return x
""",
            fix=Applicability.REVIEW,
        ),
    ),
)
