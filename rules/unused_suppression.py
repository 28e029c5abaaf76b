"""A suppression that suppresses nothing.

## Why it costs
The code it excused has changed or gone. The comment stays behind, tells readers of a wait that is not there, and hides the next finding
on its line.

## Instead
Delete the comment, or the rule's name in it that no longer applies. A comment that should reach several lines goes on the statement's
first line or alone above it.

## Not flagged
Suppressions of findings that the chosen heat or confidence leaves out: they are judged at any heat and at `possible`. Suppressions of
rules that are not enabled in this run.

## Evidence
The scan itself: no finding of the named rules has its statement on the lines that the comment reaches.

## How to confirm
Delete the comment and scan again with `--min-heat any --min-confidence possible`: nothing appears.
"""
from __future__ import annotations

from hostlint.rule import Example, Rule

RULE = Rule(
    code="HL901",
    name="unused-suppression",
    summary="a suppression comment suppresses nothing",
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
        total = loss.detach()  # hostlint: ignore[device-item] was an item() call once  # expect
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
# hostlint: ignore-file[HL2] uploads are the point of this file  # expect
import torch


def double(x):
    return x + x
""",
            good="""\
# hostlint: ignore-file[HL2] uploads are the point of this file
import torch


def feed(model, batches):
    for batch in batches:
        model(torch.tensor(batch.rows, device="cuda"))
""",
        ),
        Example(
            bad="""\
import torch


def decode(model, token, limit: int):
    token = token.to("cuda")
    for _ in range(limit):
        token = model(token).argmax(-1)
        # hostlint: ignore[HL103] the stop test  # expect
        if limit > 3:
            break
    return token
""",
            good="""\
import torch


def decode(model, token, limit: int):
    token = token.to("cuda")
    for _ in range(limit):
        token = model(token).argmax(-1)
        # hostlint: ignore[HL103] the stop test
        if (token == 0).all():
            break
    return token
""",
        ),
    ),
)
