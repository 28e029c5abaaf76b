"""A suppression whose date has passed.

## Why it costs
The author wanted it gone by then. The wait that it hides is still paid.

## Instead
Remove the wait, or set a new date with the reason why it has to stay.

## Not flagged
Suppressions without a date; dates of today and later.

## Evidence
The comment's `until=` and the day of the scan.

## How to confirm
There is nothing to measure.
"""
from __future__ import annotations

from hostlint.rule import Example, Rule

RULE = Rule(
    code="HL903",
    name="expired-suppression",
    summary="a suppression comment is past its date",
    kinds=(),
    check=None,
    examples=(
        Example(
            bad="""\
import torch


def fit(model, batches, opt):
    for batch in batches:
        loss = model(batch.to("cuda")).mean()
        loss.backward()
        opt.step()
        total = loss.item()  # hostlint: ignore[device-item] until the new logger is in until=2020-02-01  # expect
    return total
""",
            good="""\
import torch


def fit(model, batches, opt):
    for batch in batches:
        loss = model(batch.to("cuda")).mean()
        loss.backward()
        opt.step()
        total = loss.item()  # hostlint: ignore[device-item] until the new logger is in until=2999-02-01
    return total
""",
        ),
        Example(
            bad="""\
# hostlint: ignore-file[HL1] being rewritten until=2021-06-30  # expect
import torch


def fit(model, batches, opt):
    for batch in batches:
        model(batch.to("cuda")).mean().backward()
        opt.step()
        print(torch.ones(3, device="cuda").sum().item())
""",
            good="""\
# hostlint: ignore-file[HL1] being rewritten
import torch


def fit(model, batches, opt):
    for batch in batches:
        model(batch.to("cuda")).mean().backward()
        opt.step()
        print(torch.ones(3, device="cuda").sum().item())
""",
        ),
        Example(
            bad="""\
import torch


def decode(model, token, limit: int):
    token = token.to("cuda")
    for _ in range(limit):
        token = model(token).argmax(-1)
        # hostlint: ignore[device-truth-test] the stop test, until=2019-12-31  # expect
        if (token == 0).all():
            break
    return token
""",
            good="""\
import torch


def decode(model, token, limit: int):
    token = token.to("cuda")
    for _ in range(limit):
        token = model(token).argmax(-1)
        # hostlint: ignore[device-truth-test] the stop test, until=2999-12-31
        if (token == 0).all():
            break
    return token
""",
        ),
    ),
)
