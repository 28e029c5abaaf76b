"""A function that is handed to a memo runs where the memo has no answer yet, not at every step."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

PROGRAM = """\
import torch

KEPT = {{}}


def kept(make, *key):
    {body}


class Model(torch.nn.Module):
    def forward(self, x, half: int):
        table = kept(lambda half, device: torch.arange(half).exp().to(device), half, x.device)
        return x * table


def sample(model: Model, x, steps: int):
    x = x.cuda()
    for _ in range(steps):
        x = model(x, 4)
    return x
"""
MEMO = "if key not in KEPT:\n        KEPT[key] = make(*key)\n    return KEPT[key]"
FOUND = "found = KEPT.get(key)\n    if found is None:\n        found = KEPT[key] = make(*key)\n    return found"
EITHER = "if torch.compiler.is_compiling():\n        return make(*key)\n    " + FOUND
ALWAYS = "made = make(*key)\n    KEPT[key] = made\n    return made"
OFTEN = "if len(key) > 1:\n        return make(*key)\n    return None"


@pytest.mark.parametrize("body", [MEMO, FOUND, EITHER])
def test_what_a_memo_makes_is_not_made_at_every_step(body: str) -> None:
    findings, errors = scan_text(PROGRAM.format(body=body))
    assert not errors
    assert [one for one in findings if one.code == "HL202" and one.heat.level.label != "request"] == []


@pytest.mark.parametrize("body", [ALWAYS, OFTEN])
def test_what_is_always_called_runs_at_every_step(body: str) -> None:
    findings, _ = scan_text(PROGRAM.format(body=body))
    assert [one.code for one in findings if one.heat.level.label == "call"] == ["HL202"]


def test_named_functions_are_kept_like_lambdas() -> None:
    made = "lambda half, device: torch.arange(half).exp().to(device)"
    table = "def table_of(half, device):\n    return torch.arange(half).exp().to(device)"
    named = PROGRAM.replace(made, "table_of").replace("\n\nclass Model", f"\n\n{table}\n\n\nclass Model")
    at_every_step, _ = scan_text(named.format(body=ALWAYS))
    assert [one.code for one in at_every_step if one.heat.level.label == "call"] == ["HL202"]
    kept, _ = scan_text(named.format(body=MEMO))
    assert [one.code for one in kept if one.heat.level.label == "call"] == []
