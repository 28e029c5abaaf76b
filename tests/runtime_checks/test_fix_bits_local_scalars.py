"""Fixes of device scalars keep the bits: stacks, fills and factors, over every pair of dtypes and numbers near ties."""
from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hostlint.fix.once import fixed_text
from hostlint.runtime_checks.bits import difference, trial

DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.int64, torch.int8, torch.uint8, torch.bool,
)  # fmt: skip
VALUES = st.one_of(st.floats(width=32), st.floats(), st.integers(-128, 127), st.sampled_from([0.1, -0.0, 65519.99, 2.0**-24]))

STACK = """\
import torch


def steps(made, other, count: int, d: torch.device):
    x = torch.zeros(9, dtype=made.dtype, device="cuda")
    x.copy_(made)
    results = []
    for i in range(count):
        y = {}
        results.append(y)
        x = x.clone()
    return results


def train(made, x, d: torch.device):
    for _ in range(2):
        steps(made, x.cuda(), 3, d)
        x.sum().backward()
"""
STACKS = [
    ('torch.tensor([x[0], x[i]], device="cuda")', 'torch.stack([x[0], x[i]]).detach().to("cuda")'),
    ("torch.tensor([x[0]], device=d)", "torch.stack([x[0]]).detach().to(d)"),
    ("torch.tensor((x[0], x[1] + x[2]), device=d)", "torch.stack((x[0], x[1] + x[2])).detach().to(d)"),
    ("torch.as_tensor(\n    [x[0], x[1]],\n    device=d,\n)", "torch.stack(\n    [x[0], x[1]],\n).detach().to(d)"),
]


def alike(before: str, after: str, run: str) -> str:
    return difference(trial(before, run), trial(after, run))


@pytest.mark.parametrize(("before", "after"), STACKS, ids=[before for before, _ in STACKS])
def test_a_list_of_scalars_is_stacked(before: str, after: str) -> None:
    before, after = before.replace("\n", "\n        "), after.replace("\n", "\n        ")
    assert fixed_text(STACK.format(before), "step.py") == STACK.format(after)
    for dtype in DTYPES:
        made = f"torch.tensor([0.1, -0.0, float('nan'), 1.0, 65519.99, 1e-8, 3.0, 0.0, 1.0]).nan_to_num(7).to({dtype})"
        assert alike(STACK.format(before), STACK.format(after), f"steps({made}, None, 3, 'cpu')") == "", dtype


def test_numbers_that_every_dtype_holds_are_made_beside_the_scalars() -> None:
    before, after = STACK.format("torch.tensor([{}, 1.0, -0.5], device=d)"), STACK.format("torch.stack([{0}, {1}, {2}]).detach().to(d)")
    one = "near"
    before, after = (text.replace("        y = ", "        near = x[0]\n        y = ") for text in (before, after))
    wanted = after.format(one, "torch.full((), 1.0, device=near.device)", "torch.full((), -0.5, device=near.device)")
    assert fixed_text(before.format(one), "step.py") == wanted
    for dtype in DTYPES:
        assert alike(before.format(one), wanted, f"steps(torch.ones(9).to({dtype}), None, 2, 'cpu')") == "", dtype


@pytest.mark.parametrize("number", ["0.1", "1e39", "257", "1e-5", "float('nan')", "None"])
def test_a_number_that_would_be_rounded_before_it_meets_the_others_is_left(number: str) -> None:
    program = STACK.format(f"torch.tensor([near, {number}], device=d)").replace("        y = ", "        near = x[0]\n        y = ")
    assert fixed_text(program, "step.py", review=True) == program


@given(VALUES, VALUES, st.sampled_from(DTYPES), st.sampled_from(DTYPES))
def test_stack_promotes_as_a_list_does(one: float, two: float, first: torch.dtype, second: torch.dtype) -> None:
    a, b = _made(one, first), _made(two, second)
    assert difference(torch.tensor([a, b]), torch.stack([a, b])) == ""


@given(VALUES, st.sampled_from(DTYPES), st.integers(-256, 256), st.integers(0, 12))
def test_a_short_number_is_the_same_in_every_dtype(value: float, dtype: torch.dtype, numerator: int, shift: int) -> None:
    scalar = _made(value, dtype)
    for number in (numerator / 2**shift, numerator):
        assert difference(torch.tensor([scalar, number]), torch.stack([scalar, torch.full((), number)])) == ""


FILL = """\
import torch


def steps(made, count: int, dtype: torch.dtype, d: torch.device):
    n = torch.zeros((), dtype=torch.long, device="cuda")
    yes = torch.zeros((), dtype=torch.bool, device="cuda")
    x = torch.zeros(3, 2, dtype=dtype, device="cuda").t()
    n += made
    yes |= made > 0
    results = []
    for i in range(count):
        y = {}
        results += [y, y.stride()]
        n = n + 1
    return results


def train(x, d: torch.device):
    for _ in range(2):
        steps(x.cuda(), 3, torch.half, d)
        x.sum().backward()
"""
FILLS = [
    ("torch.full((2, i), n, device=d)", "torch.empty((2, i), device=d, dtype=torch.int64).fill_(n)"),
    ("torch.full([2], yes, device=d)", "torch.empty([2], device=d, dtype=torch.bool).fill_(yes)"),
    ("torch.full((), n, device=d)", "torch.empty((), device=d, dtype=torch.int64).fill_(n)"),
    ("torch.full(x.shape, n, dtype=torch.long, device=d)", "torch.empty(x.shape, dtype=torch.long, device=d).fill_(n)"),
    ("torch.full(size=(3,), fill_value=n, device=d)", "torch.empty(size=(3,), device=d, dtype=torch.int64).fill_(n)"),
    ("torch.full((2,), n, dtype=torch.float32, device=d)", "torch.empty((2,), dtype=torch.float32, device=d).fill_(n)"),
    ("torch.full((2,), n, dtype=torch.bfloat16, device=d)", "torch.empty((2,), dtype=torch.bfloat16, device=d).fill_(n)"),
    ("torch.full((2,), n, dtype=torch.double, device=d)", "torch.empty((2,), dtype=torch.double, device=d).fill_(n)"),
]
FILLS_FOR_REVIEW = [
    ("torch.full((2,), n, dtype=dtype, device=d)", "torch.empty((2,), dtype=dtype, device=d).fill_(n)"),
    ("torch.full((2,), n, dtype=torch.half, device=d)", "torch.empty((2,), dtype=torch.half, device=d).fill_(n)"),
    ("torch.full((2,), n.sqrt(), device=d)", "torch.empty((2,), device=d).fill_(n.sqrt())"),
    ("torch.full_like(x, n)", "torch.empty_like(x).fill_(n)"),
    ("x.new_full((2, 1), n)", "x.new_empty((2, 1)).fill_(n)"),
    ("torch.full_like(x, n, dtype=torch.float64)", "torch.empty_like(x, dtype=torch.float64).fill_(n)"),
]


@pytest.mark.parametrize(("before", "after"), FILLS, ids=[before for before, _ in FILLS])
def test_a_fill_takes_the_scalar(before: str, after: str) -> None:
    assert fixed_text(FILL.format(before), "step.py") == FILL.format(after)
    for made in (0, -1, 257, 2**24 + 1, 2**53 + 1, 2**63 - 9, -(2**63)):
        assert alike(FILL.format(before), FILL.format(after), f"steps({made}, 3, torch.half, 'cpu')") == "", made


@pytest.mark.parametrize(("before", "after"), FILLS_FOR_REVIEW, ids=[before for before, _ in FILLS_FOR_REVIEW])
def test_a_fill_that_may_not_hold_the_scalar_is_for_review(before: str, after: str) -> None:
    assert fixed_text(FILL.format(before), "step.py") == FILL.format(before)
    assert fixed_text(FILL.format(before), "step.py", review=True) == FILL.format(after)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.bool):
        assert alike(FILL.format(before), FILL.format(after), f"steps(7, 2, {dtype}, 'cpu')") == "", dtype


FILLS_LEFT = ["torch.full((2,), n)", "torch.full((2,), n, device=d, requires_grad=True)", "torch.full((2,), n, **x, device=d)"]


@pytest.mark.parametrize("left", FILLS_LEFT)
def test_a_fill_that_would_read_or_raise_is_left(left: str) -> None:
    assert fixed_text(FILL.format(left), "step.py", review=True) == FILL.format(left)


SELECT = """\
import torch


def steps(model, given, count: int, dtype: torch.dtype):
    zero = torch.tensor(-0.0)
    results = []
    for i in range(count):
        x = torch.zeros(4, dtype=dtype, device="cuda")
        x.copy_(given)
        m = x > 0
        y = {}
        model(y)
        results += [y, zero]
    return results
"""
SELECTS = [
    ("torch.where(m, x, torch.tensor(0.5))", "torch.where(m, x, 0.5)"),
    ("torch.where(m, torch.tensor(-0.0), x)", "torch.where(m, -0.0, x)"),
    ("torch.where(m, x, torch.tensor(float('inf')))", 'torch.where(m, x, float("inf"))'),
    ("torch.where(m, x, torch.tensor(127))", "torch.where(m, x, 127)"),
    ("torch.where(m, x, torch.tensor(True))", "torch.where(m, x, True)"),
    ("torch.where(m, torch.ones(()), torch.zeros(()))", "torch.where(m, 1.0, 0.0)"),
    ("torch.where(m, zero, x)", "torch.where(m, -0.0, x)"),
]
SELECTS_LEFT = [
    "torch.where(m, x, torch.tensor(0.1))", "torch.where(m, x, torch.tensor(128))",
    "torch.where(m, x, torch.tensor(-1))", "torch.where(m, x, torch.tensor(0.5, dtype=torch.float64))",
    "torch.where(m, x, zero.add_(1))",
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), SELECTS, ids=[before for before, _ in SELECTS])
def test_a_number_is_selected_as_its_tensor_was(before: str, after: str) -> None:
    program, wanted = SELECT.format(before), SELECT.format(after)
    assert fixed_text(program, "step.py") == wanted
    for dtype in DTYPES[:4] + DTYPES[5:]:
        run = f"steps(len, torch.tensor([0.0, 1.0, 3.0, 0.0]), 2, {dtype})"
        assert alike(program, wanted, run) == "", dtype


@pytest.mark.parametrize("left", SELECTS_LEFT)
def test_a_number_that_a_dtype_would_change_is_left(left: str) -> None:
    assert fixed_text(SELECT.format(left), "step.py", review=True) == SELECT.format(left)


def test_a_number_selected_beside_what_may_be_one_number_is_for_review() -> None:
    program = SELECT.format("torch.where(m, x.sum(), torch.tensor(0.5))")
    assert fixed_text(program, "step.py") == program
    assert "torch.where(m, x.sum(), 0.5)" in fixed_text(program, "step.py", review=True)
    one, other = (torch.where(torch.tensor(False), torch.tensor(1.0).half(), number).dtype for number in (torch.tensor(0.5), 0.5))
    assert one != other  # the assumption matters


def _made(value: float, dtype: torch.dtype) -> torch.Tensor:
    whole = torch.tensor(value, dtype=torch.float64)
    return whole.to(dtype) if dtype.is_floating_point or dtype.is_complex else whole.nan_to_num(3.0).clamp(-100, 100).to(dtype)
