"""A tensor on the device counts what the host does: only numbers of the host's are added to it, and the host reads it back.

## Why it costs
The host has added every number itself, so it could know the count without asking. Kept on the device, the count costs a launch for each
step, and each read of it (`if self.steps < self.warmup`, `int(self.steps)`, `1 - decay ** self.steps.item()`) waits until the device
has done all that was queued before.

## Instead
Keep a Python number beside the tensor, or in its place, advance both, and read the number:
- a buffer that has to be in the state dict: keep it, and take the number from it once, after `load_state_dict`
  (`register_load_state_dict_post_hook`), or hold the number alone and hand it over in `get_extra_state` and `set_extra_state`;
- a counter that a captured graph replays, or that a kernel reads: keep it where it is, and count once more on the host;
- a time that a loop walks over (`while time > 0: time += dt`): `for step in range(steps)`, with the device's values from one tensor
  that is made before the loop;
- a flag that is set once (`initialized`): a Python bool beside it.

Bits: whole numbers are the same up to 2 to the 24th in float32 (the tensor stops counting there, a Python int goes on). A sum of
fractions is rounded at each step in float32 on the device and in float64 on the host: a bound may be met one step earlier or later.

## Not flagged
Counters that nothing on a step's path reads on the host: graphs and kernels need them. Host tensors, as the `step` of torch's own
optimizers. Tensors of more than one element, and tensors that get a value of the device somewhere (a number of tokens, a flag of another
tensor), one that the scan cannot follow, or one through another object (`model.ema.steps.fill_(n)` in any file of the project). Steps
that are counted every n-th time, while evaluating, or while something is set up. Counters beside which the host counts already (a number
that is added to in the same block, the index of a `for` loop): there the read alone is at fault, and the finding at the read (HL1) says
that only the host counts it up, here as well.

The rule is off unless it is selected (`--select HL312`): what waits is told where the counter is read (HL1), with this cure; left here is
the launch that counts.

## Evidence
By the graphs of values: all that the class, its bases and its subclasses write to the tensor. What `load_state_dict` and functions that
load, restore or resume put in does not count, for the host can read it once, there. A generator of audio whose band statistics are
gathered over the first 10,000 samples asks a buffer for their number in each step, long after it has stopped counting.

## How to confirm
`hostlint confirm` counts the waits at the line that reads it.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.model import Severity
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(
        f"`{whole(node)}` counts on the device what the host adds {when(fact)}, and {fact.detail} waits to read it back: keep a Python "
        "number beside it (or in its place), advance both and read the number; the tensor stays where a captured graph or a state dict "
        "needs it"
    )


RULE = Rule(
    code="HL312",
    name="device-step-counter",
    summary="a tensor on the device counts what the host adds, and the host reads it back (off unless selected)",
    kinds=(FactKind.HOST_COUNTER,),
    check=check,
    severity=Severity.NOTE,
    on=False,
    examples=(
        Example(
            bad="""\
import torch
from torch import nn


class Average(nn.Module):
    def __init__(self, decay: float, warmup: int):
        super().__init__()
        self.decay, self.warmup = decay, warmup
        self.register_buffer("num_updates", torch.tensor(0))
        self.register_buffer("tokens", torch.zeros(1))
        self.register_buffer("replayed", torch.zeros(1))

    def forward(self, x, mean, mask):
        self.num_updates += 1  # expect
        self.replayed += 1
        self.tokens += mask.sum()
        if self.num_updates < self.warmup:
            return x
        return mean.lerp_(x, 1 - self.decay) / self.tokens
""",
            good="""\
import torch
from torch import nn


class Average(nn.Module):
    def __init__(self, decay: float, warmup: int):
        super().__init__()
        self.decay, self.warmup = decay, warmup
        self.updates = 0
        self.register_buffer("num_updates", torch.tensor(0))
        self.register_buffer("tokens", torch.zeros(1))

    def forward(self, x, mean, mask):
        self.updates += 1
        self.num_updates += 1
        self.tokens += mask.sum()
        if self.updates < self.warmup:
            return x
        return mean.lerp_(x, 1 - self.decay) / self.tokens
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, net: nn.Module, length: int):
        super().__init__()
        self.net = net
        self.position = torch.zeros(1, dtype=torch.long, device="cuda")
        self.mask = torch.zeros(length, device="cuda")

    def restart(self):
        self.position.zero_()

    def forward(self, x):
        x = self.net(x) * self.mask[: int(self.position)]
        self.position.add_(x.shape[1])  # expect
        return x
""",
            good="""\
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, net: nn.Module, length: int):
        super().__init__()
        self.net = net
        self.position = 0
        self.mask = torch.zeros(length, device="cuda")

    def restart(self):
        self.position = 0

    def forward(self, x):
        x = self.net(x) * self.mask[: self.position]
        self.position += x.shape[1]
        return x
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Flow(nn.Module):
    def sample(self, x, steps: int):
        dt = -1.0 / steps
        time = torch.ones((), device=x.device)
        while time > 0:
            x = x + dt * self.forward(x, time.expand(x.shape[0]))
            time += dt  # expect
        return x

    def forward(self, x, time):
        return x * time[:, None]
""",
            good="""\
import torch
from torch import nn


class Flow(nn.Module):
    def sample(self, x, steps: int):
        dt = -1.0 / steps
        time = torch.ones((), device=x.device)
        for _ in range(steps):
            x = x + dt * self.forward(x, time.expand(x.shape[0]))
            time += dt
        return x

    def forward(self, x, time):
        return x * time[:, None]
""",
        ),
    ),
)
