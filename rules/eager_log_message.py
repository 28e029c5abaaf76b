"""A debug message is put together from a whole collection at every step, although its level is off.

## Why it costs
The arguments of a log call are worked out before the logger looks at its level. A list of all parameters, a joined string, a dump of a
dictionary cost the host as much with the level off as with it on: tens to hundreds of microseconds in a hook that runs for each module, in
which it launches nothing. A message that reads a device value waits as well (device-format has those).

## Instead
- `if log.isEnabledFor(logging.DEBUG):` around the line and what it needs.
- For a plain value, let the logger format it: `log.debug("params %s", params)`.
- Take it out once the fault is found.

## Not flagged
Messages of names, attributes and single calls; lines under `isEnabledFor` or a debug switch; levels above debug; collections that were made
for something else; code that runs once a request.

## Evidence
By the syntax: a comprehension, a join or a dump among the arguments of a debug line, or of a function that hands its message on to one. A
training library's hooks formatted the ids of all parameters of each module in every forward and backward; the line is guarded since.

## How to confirm
`cProfile` of one step with the level off: the comprehension and `format` show up under the hook.
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
        f"`{whole(node)}` goes through a collection for its message {when(fact)}, also where nobody reads it ({fact.evidence}); put it "
        "under `isEnabledFor(logging.DEBUG)`"
    )


RULE = Rule(
    code="HL311",
    name="eager-log-message",
    summary="a debug message is put together from a whole collection at every step, although its level is off",
    kinds=(FactKind.EAGER_LOG,),
    check=check,
    severity=Severity.NOTE,
    examples=(
        Example(
            bad="""\
import logging

import torch
from torch import nn

log = logging.getLogger(__name__)


class Gathered(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        log.debug(f"gather {[name for name, _ in self.named_parameters()]}")  # expect
        log.debug(f"forward {x.shape}")
        return self.mix(x)
""",
            good="""\
import logging

import torch
from torch import nn

log = logging.getLogger(__name__)


class Gathered(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        if log.isEnabledFor(logging.DEBUG):
            log.debug(f"gather {[name for name, _ in self.named_parameters()]}")
        log.debug(f"forward {x.shape}")
        return self.mix(x)
""",
        ),
        Example(
            bad="""\
import logging

import torch

net = torch.nn.Linear(8, 8).cuda()
logger = logging.getLogger(__name__)


def denoise(x, timesteps, settings):
    x = x.cuda()
    for t in timesteps:
        logger.debug("settings %s", ", ".join(sorted(settings)))  # expect
        logger.debug("settings %s", settings)
        x = net(x)
    return x
""",
            good="""\
import logging

import torch

net = torch.nn.Linear(8, 8).cuda()
logger = logging.getLogger(__name__)


def denoise(x, timesteps, settings):
    x = x.cuda()
    logger.debug("settings %s", ", ".join(sorted(settings)))
    for t in timesteps:
        logger.debug("settings %s", settings)
        x = net(x)
    return x
""",
        ),
        Example(
            bad="""\
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


def debug_first(message: str):
    logger.debug(message)


class Layer(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        debug_first(f"parts {[type(part) for part in self.parts]}")  # expect
        shapes = [part.weight.shape for part in self.parts]
        debug_first(f"shapes {shapes}")
        return self.parts[len(shapes) - 1](x)
""",
            good="""\
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Layer(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        logger.debug("parts %s", [type(part) for part in self.parts])

    def forward(self, x):
        shapes = [part.weight.shape for part in self.parts]
        logger.debug("shapes %s", shapes)
        return self.parts[len(shapes) - 1](x)
""",
        ),
    ),
)
