"""A device tensor put into text on a step's path: f-string, `format`, `print`, `str`, an emitted log line.

## Why it costs
Text needs the numbers, so the host waits for them. `str` and `print` of a tensor read several statistics to choose a layout, each with
its own wait. An f-string is built before the logger looks at its level, so a debug line that nobody sees waits all the same. The
postfix of a progress bar is built on every step, whatever interval the bar is drawn at.

## Instead
- Build the text behind the logging guard: `if step % N == 0:` or `if log.isEnabledFor(logging.DEBUG):`.
- Pass the tensor lazily: `log.debug("loss %s", loss.detach())` reads nothing while debug is off (and reads when it is on).
- Show the value of the step before, copied to a pinned slot.
- The message of a check (`check(ok, f"{count} tokens")`): put it together where the check fails, in an `if` or, where the check takes a
  function, by a `lambda`.

`hostlint fix` puts a debug line whose text holds a device value under `if log.isEnabledFor(logging.DEBUG):`, which the logger would ask
itself: the text stays as it is, where lazy arguments would print a tensor in another form and keep it alive in the record. Exact where
the logger is the module's own, the value is proved to be one number and the rest of the text is constants and loop counters: then building
the text has no effect but the wait. Else for review.

## Not flagged
Text of shapes, devices, dtypes, Python numbers and host tensors; lazy debug lines; text behind an every-N guard or a debug switch; the
message of a raise.

## Evidence
NVIDIA H200, torch 2.11:
- `f'{s}'`: 1 wait
- `s.__format__('')`: 1 wait
- `str(s)`: 8 waits
- `'%s' % s`: 8 waits
- `log.warning('v %s', s)`: 8 waits
- `log.debug('v %s', s)`: free
- `s.shape`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the line, several times for `str` and `print`.
"""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.debug_lines import guarded_debug_line
from hostlint.model import Applicability
from hostlint.rule import Example, Problem, Rule
from hostlint.syntax import around, function
from hostlint.wording import when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact

OFTEN = "build the text every N steps or behind the log level, or show the value of the step before"
FAILED = "put it together only where the check fails: a `lambda: f'...'` where the check takes a function, else an `if` around the two"
CHECK = re.compile(r"(^|_)(checks?|asserts?|require|ensure|expect|verify)(_|$)")


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    words = "is put into text" if fact.call == "f-string" else "puts a device value into text"
    waiting = f"`{whole(node)}` {words} {when(fact)}, and the host waits for it"
    return Problem(f"{waiting}; {FAILED if _is_of_check(fact, node) else OFTEN}")


def _is_of_check(fact: Fact, node: cst.BaseExpression) -> bool:
    """Whether the text is handed to a check beside what it checks, and made whether or not that fails."""
    import libcst as cst

    calls = [part for part in around(fact, node) if isinstance(part, cst.Call)]
    return any(len(call.args) > 1 and CHECK.search(function(call)) for call in calls)


RULE = Rule(
    code="HL106",
    name="device-format",
    summary="a device tensor is formatted into text on a step's path",
    kinds=(FactKind.FORMAT,),
    check=check,
    fix=guarded_debug_line,
    examples=(
        Example(
            bad="""\
import logging

import torch

log = logging.getLogger(__name__)


def fit(net, batches, opt):
    for k, batch in enumerate(batches):
        loss = net(batch.to("cuda")).square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        log.debug(f"step {k} loss {loss}")  # expect
        log.debug("shape %s", tuple(batch.shape))
        log.debug("step %d loss %s on %s", k, loss.detach(), f"{loss.device}")
""",
            good="""\
import logging

import torch

log = logging.getLogger(__name__)


def fit(net, batches, opt):
    for k, batch in enumerate(batches):
        loss = net(batch.to("cuda")).square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        if log.isEnabledFor(logging.DEBUG):
            log.debug(f"step {k} loss {loss}")
        log.debug("shape %s", tuple(batch.shape))
        log.debug("step %d loss %s on %s", k, loss.detach(), f"{loss.device}")
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import logging

import torch

log = logging.getLogger(__name__)


def anneal(model, steps: int):
    for k in range(1, steps):
        energy = torch.linspace(0.0, k, 8, device="cuda").sum()
        log.debug(f"step {k:3d} energy {energy:.3f}")  # expect
        log.debug("energy %s", energy)
        model(energy)
""",
            good="""\
import logging

import torch

log = logging.getLogger(__name__)


def anneal(model, steps: int):
    for k in range(1, steps):
        energy = torch.linspace(0.0, k, 8, device="cuda").sum()
        if log.isEnabledFor(logging.DEBUG):
            log.debug(f"step {k:3d} energy {energy:.3f}")
        log.debug("energy %s", energy)
        model(energy)
""",
            fix=Applicability.EXACT,
            trials=("[log.setLevel(logging.DEBUG), anneal(float, 4), log.setLevel(logging.INFO), anneal(float, 3)]",),
        ),
        Example(
            bad="""\
import torch


def anneal(model, steps: int):
    energy = torch.zeros((), device="cuda")
    for k in range(steps):
        energy = energy * 0.9 + model(k).sum()
        print(k, energy)  # expect
        model.note("energy {:.3f}".format(energy))  # expect
""",
            good="""\
import torch


def anneal(model, steps: int):
    energy = torch.zeros((), device="cuda")
    for k in range(steps):
        energy = energy * 0.9 + model(k).sum()
        if k % 50 == 0:
            print(k, energy)
            model.note("energy {:.3f}".format(energy))
        model.note("step {:d} of {:d}".format(k, steps))
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.last = ""

    def forward(self, x):
        self.last = str(self.gain.mean())  # expect
        return x * self.gain
""",
            good="""\
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.last = ""

    def forward(self, x):
        self.last = str(self.gain.dtype)
        return x * self.gain

    def extra_repr(self):
        return f"gain of {self.gain.shape[0]}"
""",
        ),
    ),
)
