"""A `torch.distributions` object that checks its arguments on the device.

## Why it costs
By default the constructor tests that every parameter is valid and `log_prob` tests the value; each test is a truth value of a device
tensor, read by the host. In a rollout that is several waits per simulated step.

## Instead
- `validate_args=False` in the constructor: the tests are gone, for `log_prob` too. The same seed gives the same samples.
- `torch.distributions.Distribution.set_default_validate_args(False)` once, for a whole program.
- `Normal.sample` still reads the smallest standard deviation. `rsample` under `torch.no_grad()` draws the same numbers
  without (compared on the CPU).

`hostlint fix --review` passes `validate_args=False` where the call does not say. Valid arguments give the same bits and the same random
numbers; wrong ones (a negative scale, NaN) no longer raise. In a `try` that handles the error the call is left as it is.

## Not flagged
`validate_args=False`; programs that switch the default off; distributions over host tensors or Python numbers.

## Evidence
NVIDIA H200, torch 2.11:
- `torch.distributions.Normal(x, x.abs() + 0.1)`: 2 waits
- `torch.distributions.Categorical(logits=X)`: 1 wait
- `torch.distributions.Normal(x, x.abs() + 0.1, validate_args=False)`: free
- `torch.distributions.Normal(x, x.abs() + 0.1, validate_args=False).log_prob(x)`: free
- `torch.normal(x, x.abs())`: 2 waits

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports lines inside `torch/distributions`; the stack shows the caller.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.model import Applicability
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact
    from hostlint.fix.place import Place
    from hostlint.model import Fix


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    import libcst as cst

    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name("log_prob" | "cdf" | "icdf" as method))):
            return Problem(
                f"`{whole(node)}` checks its value on the device {when(fact)}, and the host waits;"
                f" construct the distribution with `validate_args=False` (`{method}` then does not look)"
            )
    return Problem(
        f"`{whole(node)}` checks its parameters on the device {when(fact)}, and the host waits;"
        " pass `validate_args=False` (the same seed gives the same samples)"
    )


MOST_PARAMETERS = 2  # a third positional argument may be `validate_args` itself


def fix(place: Place) -> Fix | None:
    """`Normal(mean, std)` to `Normal(mean, std, validate_args=False)`."""
    import libcst as cst

    from hostlint.fix.calls import is_handled, with_argument

    call = place.node
    if not isinstance(call, cst.Call) or not place.known.callee.startswith("torch.distributions.") or is_handled(place):
        return None
    positional = [one for one in call.args if one.keyword is None]
    if any(one.star or (one.keyword is not None and one.keyword.value == "validate_args") for one in call.args):
        return None
    if len(positional) > MOST_PARAMETERS:
        return None
    message = "do not check the arguments: wrong ones (a negative scale, NaN) then do not raise"
    return place.fix(Applicability.REVIEW, message, with_argument(place, call, "validate_args=False"))


RULE = Rule(
    code="HL115",
    name="validated-distribution",
    summary="a distribution checks its arguments on the device",
    kinds=(FactKind.VALIDATED_DISTRIBUTION,),
    check=check,
    fix=fix,
    examples=(
        Example(
            bad="""\
import torch
from torch.distributions import Categorical


def collect(policy, world, horizon: int):
    state = torch.zeros(64, 8, device="cuda")
    trace = []
    for _ in range(horizon):
        logits = policy(state).log_softmax(-1)
        choice = Categorical(logits=logits)  # expect
        action = choice.sample()
        trace.append(action)
        state = world(state, action)
    return trace
""",
            good="""\
import torch
from torch.distributions import Categorical


def collect(policy, world, horizon: int):
    state = torch.zeros(64, 8, device="cuda")
    trace = []
    for _ in range(horizon):
        logits = policy(state).log_softmax(-1)
        choice = Categorical(logits=logits, validate_args=False)
        action = choice.sample()
        trace.append(action)
        state = world(state, action)
    return trace
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch
import torch.distributions as D
from torch import nn


class Head(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(width))
        self.log_std = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        force = D.Normal(x + self.mean, self.log_std.exp())  # expect
        noise = D.Normal(0.0, 1.0)
        return force.rsample() + noise.mean
""",
            good="""\
import torch
import torch.distributions as D
from torch import nn


class Head(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(width))
        self.log_std = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        force = D.Normal(x + self.mean, self.log_std.exp(), validate_args=False)
        noise = D.Normal(0.0, 1.0)
        return force.rsample() + noise.mean
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch


actor = torch.nn.Linear(8, 4).cuda()


def improve(batches, opt):
    for states, actions, weight in batches:
        probs = actor(states.cuda(non_blocking=True)).sigmoid()
        chosen = torch.distributions.Bernoulli(probs=probs)  # expect
        score = chosen.log_prob(actions.cuda(non_blocking=True))  # expect
        (score * weight.cuda(non_blocking=True)).mean().neg().backward()
        opt.step()
        opt.zero_grad()
""",
            good="""\
import torch


actor = torch.nn.Linear(8, 4).cuda()


def improve(batches, opt):
    for states, actions, weight in batches:
        probs = actor(states.cuda(non_blocking=True)).sigmoid()
        chosen = torch.distributions.Bernoulli(probs=probs, validate_args=False)
        score = chosen.log_prob(actions.cuda(non_blocking=True))
        (score * weight.cuda(non_blocking=True)).mean().neg().backward()
        opt.step()
        opt.zero_grad()
""",
            fix=Applicability.REVIEW,
        ),
    ),
)
