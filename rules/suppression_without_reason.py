"""A suppression that does not say why.

## Why it costs
The next reader cannot tell a decision from a shortcut, so nobody dares to remove the wait or the comment.

## Instead
Put the reason behind the bracket: `# hostlint: ignore[device-item] the controller needs each step's value`. A date may follow
(`until=2027-03-01`) where the excuse is to end.

## Not flagged
Any suppression with some words after the bracket.

## Evidence
The comment's own text.

## How to confirm
There is nothing to measure.
"""
from __future__ import annotations

from hostlint.rule import Example, Rule

RULE = Rule(
    code="HL902",
    name="suppression-without-reason",
    summary="a suppression comment gives no reason",
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
        total = loss.item()  # hostlint: ignore[device-item]  # expect
    return total
""",
            good="""\
import torch


def fit(model, batches, opt):
    for batch in batches:
        loss = model(batch.to("cuda")).mean()
        loss.backward()
        opt.step()
        total = loss.item()  # hostlint: ignore[device-item] the controller wants the value of every step
    return total
""",
        ),
        Example(
            bad="""\
# hostlint: ignore-file[HL1]  # expect
import torch


def fit(model, batches, opt):
    for batch in batches:
        model(batch.to("cuda")).mean().backward()
        opt.step()
        print(float(model.weight.norm()))
        print(torch.ones(3, device="cuda").sum().item())
""",
            good="""\
# hostlint: ignore-file[HL1] a teaching script: every number is shown
import torch


def fit(model, batches, opt):
    for batch in batches:
        model(batch.to("cuda")).mean().backward()
        opt.step()
        print(float(model.weight.norm()))
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
        # hostlint: ignore[device-truth-test] until=2999-01-01  # expect
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
        # hostlint: ignore[device-truth-test] lagged test comes with the next release until=2999-01-01
        if (token == 0).all():
            break
    return token
""",
        ),
    ),
)
