"""Tests that are joined on the device, and copies that a function returns though nobody looks at them."""
from __future__ import annotations

import pytest

from hostlint.fix.once import fix_text
from hostlint.model import Applicability

LOOP = """\
import torch

net = torch.nn.Linear(4, 4).cuda()


def fit(batches, low: float, log):
    for step, batch in enumerate(batches):
        loss = net(batch.cuda()).mean()
        other = loss * 2
        {body}
        loss.backward()
"""


def fixed(text: str, code: str) -> tuple[str, set[Applicability]]:
    result = fix_text(text, "fit.py", frozenset({code}), review=True)
    return result.files[0].text if result.files else text, {one.fix.applicability for one in result.mended if one.fix is not None}


def loop(body: str) -> str:
    return LOOP.format(body=body.replace("\n", "\n        "))


JOINED = [
    ("if torch.isnan(loss) or torch.isinf(loss):\n    raise ValueError(f\"step {step}\")", "torch.isnan(loss) | torch.isinf(loss)"),
    ("if loss > low and loss < 3.0:\n    log(step)", "(loss > low) & (loss < 3.0)"),
    ("if step > 2 and (loss.isnan().any() or loss.gt(low).all()):\n    log(step)", "loss.isnan().any() | loss.gt(low).all()"),
    ("bad = torch.isnan(loss) or loss == low or step > 9\nif not bad:\n    log(step)", "torch.isnan(loss) | (loss == low)"),
]


@pytest.mark.parametrize(("body", "joined"), JOINED, ids=[one[1] for one in JOINED])
def test_two_tests_of_a_tensor_are_read_together(body: str, joined: str) -> None:
    text, kinds = fixed(loop(body), "HL103")
    plain = joined.replace("(loss > low)", "loss > low").replace("(loss < 3.0)", "loss < 3.0").replace("(loss == low)", "loss == low")
    before = plain.replace(" | ", " or ").replace(" & ", " and ")
    assert before in loop(body)
    assert text == loop(body).replace(before, joined)
    assert kinds == {Applicability.REVIEW}


SEPARATE = [
    "if loss.numel() > 0 and torch.isnan(loss).any():\n    log(step)",
    "if torch.isnan(loss) or batch[0, 0] > low:\n    log(step)",
    "if torch.isnan(loss) or torch.isinf(batch.cuda()).any():\n    log(step)",  # of another tensor
    "found = torch.isnan(loss) or torch.isinf(loss)\nlog(found)",
    "if torch.isnan(loss) or loss:\n    log(step)",
    "if torch.isnan(loss) or float(loss) > 2:\n    log(step)",
]


@pytest.mark.parametrize("body", SEPARATE)
def test_tests_that_guard_each_other_stay_apart(body: str) -> None:
    text = fixed(loop(body), "HL103")[0]
    assert " | " not in text
    assert " & " not in text


ROUTER = """\
import torch
from torch import nn


class Router(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.gate = nn.Linear(width, width)

    def forward(self, x):
        chosen = self.gate(x).argmax(-1)
        counts = chosen.bincount(minlength=4)
        return chosen, counts.detach(){copy}


class Layer(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.router, self.up = Router(width), nn.Linear(width, width)

    def forward(self, x):
        {call}
        return self.up(x) * chosen[:, None]


def run(layers, x, steps: int):
    x = x.cuda()
    for _ in range(steps):
        for layer in layers:
            x = layer.cuda()(x)
    return x
"""


@pytest.mark.parametrize("copy", ['.to("cpu")', ".cpu()"])
@pytest.mark.parametrize("call", ["chosen, _ = self.router(x)", "chosen, counts = self.router(x)", "chosen = self.router(x)[0]"])
def test_a_copy_that_every_caller_drops_is_not_made(copy: str, call: str) -> None:
    before = ROUTER.format(copy=copy, call=call)
    assert fixed(before, "HL104") == (ROUTER.format(copy="", call=call), {Applicability.REVIEW})


@pytest.mark.parametrize(
    "call",
    [
        "chosen, counts = self.router(x)\n        print(counts)",
        "both = self.router(x)\n        chosen = both[0]",
        "chosen = self.router(x)[-2] + self.router(x)[1].sum()",
        "chosen, *rest = self.router(x)",
    ],
)
def test_a_copy_that_somebody_may_look_at_is_made(call: str) -> None:
    before = ROUTER.format(copy=".cpu()", call=call)
    assert fixed(before, "HL104")[0] == before
