"""Fixes of writes keep the bits: one element, positions, masks; with values, dtypes and views that would expose a wrong one."""
from __future__ import annotations

import itertools

import pytest
import torch

from hostlint.fix.once import fix_text, fixed_text
from hostlint.model import Applicability
from hostlint.runtime_checks.bits import difference, trial

DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.int64, torch.int8, torch.uint8, torch.bool,
)  # fmt: skip
NUMBERS = ("1.0", "-0.0", "0.1", "-2.5", "300", "70000", "1e39", "65519.99", "9007199254740993", "True", "float('nan')", "-float('inf')")

ELEMENT = """\
import torch


def steps(given, count, dtype, made):
    x = torch.zeros(count, dtype=dtype, device="cuda")
    rows = torch.zeros(len(given), dtype=torch.long, device="cuda")
    rows.copy_(given)
    for i in range(2):
        {}
        x = x + 0
        made(x)
    return x
"""
ELEMENT_FORMS = [
    ("x[0] = {}", "x[0].fill_({})"),
    ("x[-1] = {}", "x[-1].fill_({})"),
    ("x[i] = {}", "x[i] = x.new_full((), {})"),
    ("x[rows] = {}", "x[rows] = x.new_full((), {})"),
    ("x[rows + 1] = {}", "x[rows + 1] = x.new_full((), {})"),
]


def alike(before: str, after: str, run: str) -> str:
    return difference(trial(before, run), trial(after, run))


@pytest.mark.parametrize(("before", "after"), ELEMENT_FORMS, ids=[before for before, _ in ELEMENT_FORMS])
def test_a_number_is_written_as_before(before: str, after: str) -> None:
    assert fixed_text(ELEMENT.format(before.format("-0.5")), "step.py") == ELEMENT.format(after.format("-0.5"))
    for dtype, number in itertools.product(DTYPES, NUMBERS):
        program, wanted = ELEMENT.format(before.format(number)), ELEMENT.format(after.format(number))
        assert alike(program, wanted, f"steps(torch.tensor([1, 1, -1]), 4, {dtype}, len)") == "", (dtype, number)
    program, wanted = ELEMENT.format(before.format(1)), ELEMENT.format(after.format(1))
    for run in ("steps(torch.tensor([0]), 0, torch.half, len)", "steps(torch.tensor([]), 3, torch.half, len)", "steps(torch.tensor([9]), 3, torch.int8, len)"):
        assert alike(program, wanted, run) == ""  # outside: the same error; no position: nothing


@pytest.mark.parametrize("write", ["x[0:1] = 1.0", "x[rows] = x[0] = 1.0", "x[0], y = 1.0, 2.0", "made(x)[0] = 1.0", "x[0] += 1.0"])
def test_other_writes_of_a_number_are_left(write: str) -> None:
    program = ELEMENT.format(write)
    assert fixed_text(program, "step.py", review=True) == program


def test_a_write_to_what_may_be_no_tensor_is_for_review() -> None:
    program = ELEMENT.format("x[0] = 1.0").replace('torch.zeros(count, dtype=dtype, device="cuda")', "count.cuda().flatten()")
    assert fixed_text(program, "step.py") == program
    (one,) = fix_text(program, "step.py", review=True).mended
    assert one.fix is not None
    assert one.fix.applicability is Applicability.REVIEW
    assert "where `x` is a tensor" in one.fix.message
