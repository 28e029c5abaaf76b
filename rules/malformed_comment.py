"""A `# hostlint:` comment that cannot be understood.

## Why it costs
It does nothing. Its author believes that a finding is suppressed or a function is known to be cold.

## Instead
Write one of the known forms: `ignore[RULE, ...] reason`, `ignore-file[RULE, ...] reason` before the first statement, `hot`, `cold reason`,
`device(x, y)`, `host(x)`, `constant(x)`; a date is `until=2027-03-01`.

## Not flagged
The word hostlint in other comments and in strings.

## Evidence
The comment's own text.

## How to confirm
There is nothing to measure.
"""
from __future__ import annotations

from hostlint.model import Severity
from hostlint.rule import Example, Rule

RULE = Rule(
    code="HL904",
    name="malformed-comment",
    summary="a `# hostlint:` comment cannot be understood",
    kinds=(),
    check=None,
    severity=Severity.ERROR,
    examples=(
        Example(
            bad="""\
import torch


def fit(model, batches, opt):
    for batch in batches:
        loss = model(batch.to("cuda")).mean()
        loss.backward()
        opt.step()
        total = loss.detach()  # hostlint: ignore device-item, the controller needs it  # expect
    return total
""",
            good="""\
import torch


def fit(model, batches, opt):
    for batch in batches:
        loss = model(batch.to("cuda")).mean()
        loss.backward()
        opt.step()
        total = loss.item()  # hostlint: ignore[device-item] the controller needs it
    return total
""",
        ),
        Example(
            bad="""\
import torch


def shapes(x):  # hostlint: warm only at start  # expect
    return torch.zeros_like(x)


def rows(x):  # hostlint: device()  # expect
    return x + 1
""",
            good="""\
import torch

TEXT = "a line with # hostlint: nothing in a string"


def shapes(x):  # hostlint: cold only at start
    return torch.zeros_like(x)


def rows(x):  # hostlint: device(x)
    return x + 1  # see hostlint for the reason
""",
        ),
        Example(
            bad="""\
import torch


def fit(model, batches, opt):
    # hostlint: ignore-file[HL1] too far down  # expect
    for batch in batches:
        loss = model(batch.to("cuda")).mean()
        loss.backward()
        opt.step()
        # hostlint: ignore[device-item] shown on the wall until=31.12.2999  # expect
        total = loss.detach()
    return total
""",
            good="""\
import torch


def fit(model, batches, opt):
    for batch in batches:
        loss = model(batch.to("cuda")).mean()
        loss.backward()
        opt.step()
        # hostlint: ignore[device-item] shown on the wall until=2999-12-31
        total = loss.item()
    return total
""",
        ),
    ),
)
