"""Rows that a device scalar picks, draws that look at their scale, metrics that check, numbers of which the last one counts."""
from __future__ import annotations

import pytest

from hostlint.fix.once import fix_text
from hostlint.model import Applicability

PROGRAM = """\
import torch
from torch.distributions import Categorical, Normal

net = torch.nn.Linear(4, 4).cuda()


def fit(batches, rows: list, log):
    table = torch.rand(9, 4, device="cuda")
    step = torch.zeros((), dtype=torch.long, device="cuda")
    chosen = torch.zeros((), dtype=torch.bool, device="cuda")
    for batch in batches:
        x = net(batch.cuda())
        {body}
        step += 1
    return x
"""


def program(body: str, after: str = "") -> str:
    text = PROGRAM.format(body=body.replace("\n", "\n        "))
    return text.replace("    return x\n", f"    {after}\n    return x\n") if after else text


def fixed(text: str, *codes: str) -> tuple[str, set[Applicability]]:
    result = fix_text(text, "fit.py", frozenset(codes), review=True)
    return result.files[0].text if result.files else text, {one.fix.applicability for one in result.mended if one.fix is not None}


ROWS = [
    ("x = x * table[step]", "x = x * table.index_select(0, step.view(1))[0]"),
    ("row = table[step]\nx = x + row", "row = table.index_select(0, step.view(1))[0]\nx = x + row"),
    ("x = x + table[step].sum() + table[step][0]",
     "x = x + table.index_select(0, step.view(1))[0].sum() + table.index_select(0, step.view(1))[0][0]"),
    ("x = x + table.t()[step].sum()", "x = x + table.t().index_select(0, step.view(1))[0].sum()"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), ROWS, ids=[one[0] for one in ROWS])
def test_a_row_is_selected_on_the_device(before: str, after: str) -> None:
    assert fixed(program(before), "HL107") == (program(after), {Applicability.REVIEW})


LEFT_ROWS = [
    "table[step].zero_()\nx = x + table",
    "row = table[step]\nrow += 1",
    "table[step][0] = 1.0",
    "x = x + rows[step]",
    "x = x + table[:step].sum()",
    "x = x + table[chosen].sum()",
    "x = x + table[step + 1, 0]",
    "torch.mul(x[0], 2, out=table[step])",
]


@pytest.mark.parametrize("body", LEFT_ROWS)
def test_a_row_that_is_written_to_and_other_indices_are_left(body: str) -> None:
    assert fixed(program(body), "HL107")[0] == program(body)


def test_a_normal_sample_is_drawn_by_its_formula() -> None:
    before = "force = Normal(x, x.exp(), validate_args=False)\nx = force.sample() + force.sample((2,)).sum(0)"
    after = before.replace("sample()", "rsample().detach()").replace("sample((2,))", "rsample((2,)).detach()")
    assert fixed(program(before), "HL116") == (program(after), {Applicability.REVIEW})
    kept = program("x = Categorical(logits=x, validate_args=False).sample().float()")
    assert fixed(kept, "HL116")[0] == kept


METRIC = """\
from torchmetrics.classification import BinaryAccuracy


class Trainer:
    def __init__(self, net, rows):
        self.net = net.cuda()
        self.metric = {made}.cuda()

    def epoch(self, batches):
        for batch in batches:
            x = self.net(batch.cuda())
            self.metric.update(x.sigmoid(), batch.cuda())
"""


def test_metrics_do_not_check_what_they_count() -> None:
    def counted(made: str) -> str:
        return METRIC.format(made=made)

    assert fixed(counted("BinaryAccuracy()"), "HL116") == (counted("BinaryAccuracy(validate_args=False)"), {Applicability.REVIEW})
    assert fixed(counted("BinaryAccuracy(0.3)"), "HL116")[0] == counted("BinaryAccuracy(0.3, validate_args=False)")
    for made in ("BinaryAccuracy(validate_args=True)", "BinaryAccuracy(**rows)"):
        assert fixed(counted(made), "HL116")[0] == counted(made)


LAST = [
    ("last = x.mean().item()", "log(last)", "last = x.mean().detach().clone()", "log(last.item())"),
    ("last = float(x.sum())", "x = x * last", "last = x.sum().detach().clone()", "x = x * float(last)"),
    ("last = x.detach().max().item()", "log('%f', last + 1)", "last = x.detach().max().detach().clone()", "log('%f', last.item() + 1)"),
]


@pytest.mark.parametrize(("before", "use", "after", "used"), LAST, ids=[one[0] for one in LAST])
def test_the_last_number_is_read_where_it_is_used(before: str, use: str, after: str, used: str) -> None:
    text, _ = fixed(program(before, use), "HL101", "HL102")
    assert text == program(after, used)


def test_it_is_exact_for_one_number_that_is_proved() -> None:
    known = program("last = (table * 2).sum().item()", "log(last)").replace("x = net(batch.cuda())", "x = net(batch.cuda())")
    text, kinds = fixed(known, "HL101")
    assert text == known.replace(".item()", ".detach().clone()").replace("log(last)", "log(last.item())")
    assert kinds == {Applicability.EXACT}


LEFT_LAST = [
    ("last = x.mean().item()\nlog(last)", "log(last)"),
    ("last = x.mean().item()", "log(last, last)"),
    ("last = x.mean().item()", "while last > 0:\n        x = x / 2"),
    ("last = x.mean().item()", "log([last * one for one in rows])"),
    ("last = x.mean().item()\nif last is None:\n    break", "log(last)"),
]


@pytest.mark.parametrize(("body", "use"), LEFT_LAST)
def test_a_number_that_is_used_in_the_loop_or_again_and_again_is_read_there(body: str, use: str) -> None:
    assert fixed(program(body, use), "HL101")[0] == program(body, use)


def test_a_number_that_was_there_before_stays_one() -> None:
    before = program("last = x.mean().item()", "log(last)").replace("    step =", "    last = 0.0\n    step =")
    assert "last.item()" not in fixed(before, "HL101")[0]
