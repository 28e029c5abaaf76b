"""A denoiser projects, normalises or rotates the request's text again at every step, though the text does not change.

## Why it costs
A diffusion model is called once for each step and branch of guidance, every time with the same text. What depends on the text alone (its
projection to the model's width, the keys and values that each block makes of it, the rotary table of its positions) is the same matrix
product on the same numbers each time: its launches, its reads of the weights, and under tensor parallelism its collectives. How much that
is depends on the shapes: two percent of a request where the features are wide, the launches alone where they are not. The finding is a
note: measure first.

## Instead
- A method of the model that makes it (`project_text`, `text_keys_values`), called once for each request and branch, and an argument of
  `forward` that takes the result; the raw text stays possible for other callers.
- The kept result belongs to one request and one branch, never to the model: drop it where the sequence grows, the resolution changes, or a
  callback swaps the text.
- Keys and values of all blocks need memory (blocks x tokens x width x 2): keep them where that fits.

The same operations on the same tensors give the same bits.

## Not flagged
Layers of which anything depends on the latents or the time; methods of a base class that is not seen; text that the blocks change (joint
attention); models that only training calls, where each batch brings its own text; vectors (pooled text, guidance), which cost next to
nothing; branches for callers that left the prepared tensor out; what a loop of the same function repeats (loop-invariant-work has that).
Keys and values of one text are one finding.

## Evidence
By the calls that the project makes, or by convention: a `forward` that takes both the time (`timestep`, `sigma`, `t`) and the text
(`encoder_hidden_states`, `context`, `txt`) is a denoiser, called at each step with the same text; so is one whose base class is a library's
(`Transformer2DModel` and the like). A loop of layers that refines the text alone is one finding. The layers do not wait. A serving engine
took 2.3 % off a request by projecting wide features once.

## How to confirm
`hostlint.runtime_checks.RecordOps` counts the products of one step; or compare the layer's input in two steps with `torch.equal`.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.model import Severity
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import amount, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    same = f"`{whole(node)}` gives the same result{amount(fact)}, {when(fact)}: {fact.evidence}"
    return Problem(f"{same}; compute it once for each request and branch, and hand it in")


RULE = Rule(
    code="HL306",
    name="constant-projection",
    summary="a denoiser projects the request's text again at every step",
    kinds=(FactKind.CONSTANT_PROJECTION,),
    check=check,
    severity=Severity.NOTE,
    examples=(
        Example(
            bad="""\
import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, width: int, features: int):
        super().__init__()
        self.text_norm = nn.LayerNorm(features)
        self.text_proj = nn.Linear(features, width)
        self.time_proj = nn.Linear(1, width)
        self.mix = nn.Linear(width, width)

    def forward(self, x, timestep, encoder_hidden_states):
        text = self.text_proj(self.text_norm(encoder_hidden_states))  # expect
        return self.mix(x + self.time_proj(timestep[:, None])[:, None]) + text.mean(1, keepdim=True)


def denoise(model: Denoiser, x, timesteps, encoder_hidden_states):
    for t in timesteps:
        x = model(x, t, encoder_hidden_states)
    return x
""",
            good="""\
import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, width: int, features: int):
        super().__init__()
        self.text_norm = nn.LayerNorm(features)
        self.text_proj = nn.Linear(features, width)
        self.time_proj = nn.Linear(1, width)
        self.mix = nn.Linear(width, width)

    def project_text(self, encoder_hidden_states):
        return self.text_proj(self.text_norm(encoder_hidden_states))

    def forward(self, x, timestep, text):
        return self.mix(x + self.time_proj(timestep[:, None])[:, None]) + text.mean(1, keepdim=True)


def denoise(model: Denoiser, x, timesteps, encoder_hidden_states):
    text = model.project_text(encoder_hidden_states)
    for t in timesteps:
        x = model(x, t, text)
    return x
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.to_q = nn.Linear(width, width)
        self.to_k = nn.Linear(width, width)
        self.to_v = nn.Linear(width, width)

    def forward(self, x, context):
        q = self.to_q(x)
        k = self.to_k(context)  # expect
        v = self.to_v(context)
        return (q @ k.mT).softmax(-1) @ v


class Model(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList(CrossAttention(width) for _ in range(depth))

    def forward(self, x, t, context):
        x = x + t[:, None, None]
        for block in self.blocks:
            x = block(x, context)
        return x
""",
            good="""\
import torch
from torch import nn


class JointAttention(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.to_q = nn.Linear(width, width)
        self.to_k = nn.Linear(width, width)
        self.to_v = nn.Linear(width, width)

    def forward(self, x, context):
        q = self.to_q(x)
        k = self.to_k(context)
        v = self.to_v(context)
        mixed = (q @ k.mT).softmax(-1) @ v
        return mixed, context + mixed.mean(1, keepdim=True)


class Model(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList(JointAttention(width) for _ in range(depth))

    def forward(self, x, t, context):
        x = x + t[:, None, None]
        for block in self.blocks:
            x, context = block(x, context)
        return x
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.cond_proj = nn.Linear(width, width)
        self.mix = nn.Linear(width, width)

    def forward(self, x, cond, step):
        return self.mix(x) + self.cond_proj(cond) + self.mix(step)  # expect


def sample(net: Net, x, cond, timesteps):
    for t in timesteps:
        x = net(x, cond, t)
    return x
""",
            good="""\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.cond_proj = nn.Linear(width, width)
        self.mix = nn.Linear(width, width)

    def forward(self, x, cond, step):
        return self.mix(x) + self.cond_proj(cond) + self.mix(step)


def sample(net: Net, x, conditions, timesteps):
    for t, cond in zip(timesteps, conditions):
        x = net(x, cond, t)
    return x
""",
        ),
    ),
)
