"""Fixes keep the bits: every exact example, and each form of a fix over values and dtypes that would expose a wrong one."""
from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hostlint import registry
from hostlint.fix.once import fix_text, fixed_text
from hostlint.model import Applicability
from hostlint.runtime_checks.bits import Raised, difference, trial
from hostlint.testing import fixed, unmarked

if TYPE_CHECKING:
    from hostlint.rule import Example, Rule

EXACT = [(rule, example) for rule in registry.rules() for example in rule.examples if example.fix is Applicability.EXACT]
NAMES = [f"{rule.name}-{rule.examples.index(example) + 1}" for rule, example in EXACT]
DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.int64, torch.int32, torch.int8, torch.uint8,
    torch.bool,
)  # fmt: skip


@pytest.mark.parametrize(("rule", "example"), EXACT, ids=NAMES)
def test_examples_give_the_same_bits(rule: Rule, example: Example) -> None:
    before = unmarked(example.bad)
    after = fixed(rule, example.bad)
    assert after != before
    for expression in example.trials:
        result = trial(before, expression)
        assert not isinstance(result, Raised), expression
        assert difference(result, trial(after, expression)) == ""


# Each form of a fix, as a statement of a step: before, after. `n` is a proved int, `d` a device, `x` a tensor on it, `dtype` anything.
STEP = """\
import torch


def steps(x, d: torch.device, dtype: torch.dtype, count: int):
    results = []
    for n in range(count):
        y = {}
        results.append(y)
    return results


def train(x, d: torch.device, dtype: torch.dtype, count: int):
    for _ in range(2):
        steps(x.cuda(), d, dtype, count)
        x.sum().backward()
"""
FORMS = [
    ("torch.tensor(n, device=d)", "torch.full((), n, device=d)"),
    ("torch.tensor([n], dtype=dtype, device=d)", "torch.full((1,), n, dtype=dtype, device=d)"),
    ("torch.tensor([[n]], device=d)", "torch.full((1, 1), n, device=d)"),
    ("torch.tensor(-0.0, device=d)", "torch.full((), -0.0, device=d)"),
    ("torch.tensor([0.1, 0.1], dtype=dtype, device=d)", "torch.full((2,), 0.1, dtype=dtype, device=d)"),
    ("torch.tensor([[True], [True]], device=d)", "torch.full((2, 1), True, device=d)"),
    ("torch.tensor(3.4028234e38, device=d, dtype=dtype)", "torch.full((), 3.4028234e38, device=d, dtype=dtype)"),
    ("torch.tensor(1e-45, device=d)", "torch.full((), 1e-45, device=d)"),
    ("torch.tensor(9007199254740992, dtype=dtype, device=d)", "torch.full((), 9007199254740992, dtype=dtype, device=d)"),
    ("torch.tensor(2049, dtype=dtype, device=d)", "torch.full((), 2049, dtype=dtype, device=d)"),
    ('torch.tensor(float("nan"), dtype=dtype, device=d)', 'torch.full((), float("nan"), dtype=dtype, device=d)'),
    ("torch.tensor([-float('inf')], dtype=dtype, device=d)", "torch.full((1,), -float('inf'), dtype=dtype, device=d)"),
    ("torch.tensor(-1, dtype=dtype, device=d)", "torch.full((), -1, dtype=dtype, device=d)"),
    ("torch.tensor(2.5, device=d, requires_grad=True)", "torch.full((), 2.5, device=d, requires_grad=True)"),
    ("torch.as_tensor(n, device=d)", "torch.full((), n, device=d)"),
    ("torch.zeros(n, 2).to(d)", "torch.zeros(n, 2, device=d)"),
    ("torch.zeros(n).to(d, dtype)", "torch.zeros(n, device=d, dtype=dtype)"),
    ("torch.ones([2, n]).to(device=d, dtype=dtype)", "torch.ones([2, n], device=d, dtype=dtype)"),
    ("torch.full((n,), 0.1).to(d, dtype)", "torch.full((n,), 0.1, device=d).to(dtype)"),
    ("torch.full((2,), 7e4, dtype=torch.double).to(d, torch.half)", "torch.full((2,), 7e4, dtype=torch.double, device=d).to(torch.half)"),
    ("torch.eye(n).t().to(d)", "torch.eye(n, device=d).t()"),
    ("torch.arange(n).to(d)", "torch.arange(n, device=d)"),
    ("torch.arange(2, n + 9, 3).to(d, dtype)", "torch.arange(2, n + 9, 3, device=d).to(dtype)"),
    ("torch.arange(n).float().unsqueeze(0).to(d)", "torch.arange(n, device=d).float().unsqueeze(0)"),
    ("torch.arange(2 * n).view(2, n).t().half().to(d)", "torch.arange(2 * n, device=d).view(2, n).t().half()"),
    ("torch.tensor([n]).to(d)", "torch.full((1,), n, device=d)"),
    ("torch.tensor(1.5).cuda()", 'torch.full((), 1.5, device="cuda")'),
]
LEFT = [  # where the bits, the dtype or the strides would differ
    "torch.tensor(1e39, device=d)",
    "torch.tensor(1j, device=d)",
    "torch.tensor(9007199254740993, device=d, dtype=dtype)",
    "torch.tensor([1.0, 2.0], device=d)",
    "torch.tensor([0.0, -0.0], device=d)",
    "torch.tensor([1, 1.0], device=d)",
    "torch.tensor([True, 1], device=d)",
    "torch.tensor([0] * n, device=d)",
    "torch.zeros(n, requires_grad=True).to(d)",
    "torch.zeros(n, pin_memory=True).to(d)",
    "torch.ones(3).expand(2, 3).to(d)",
    "torch.tensor([[0.0], [0.0, 0.0]], device=d)",
    "torch.tensor([n, 0], device=d)",
    "torch.tensor([x.item(), x.item()], device=d)",
    "torch.arange(0.0, n, 0.1).to(d)",
    "torch.arange(n, dtype=torch.float16).to(d)",
    "torch.linspace(0, 1, 5).to(d)",
    "torch.randn(3).to(d)",
    "torch.zeros(3).exp().to(d)",
    "torch.zeros(n).to(x)",
    "torch.zeros(n).to(d, copy=True)",
]


@pytest.mark.parametrize(("before", "after"), FORMS, ids=[before for before, _ in FORMS])
def test_forms(before: str, after: str) -> None:
    program = STEP.format(before)
    assert fixed_text(program, "step.py") == STEP.format(after)
    dtypes = DTYPES if "dtype=dtype" in before or ", dtype)" in before else (torch.float32,)
    for dtype in dtypes:
        run = f"steps(torch.ones(3), torch.device('cpu'), {dtype}, 3)"
        assert difference(trial(program, run), trial(STEP.format(after), run)) == "", dtype


@pytest.mark.parametrize(("before", "after"), [form for form in FORMS if ".to(d" in form[0]], ids=lambda text: text)
def test_a_real_move_gives_the_same_strides(before: str, after: str) -> None:
    """On the CPU `.to(d)` moves nothing; to the meta device it does, without elements."""
    for dtype in DTYPES:
        names = {"torch": torch, "d": torch.device("meta"), "n": 3, "dtype": dtype}
        one, other = eval(before, names), eval(after, names)  # noqa: S307 - the forms above
        assert (one.shape, one.stride(), one.dtype, one.device) == (other.shape, other.stride(), other.dtype, other.device)


@pytest.mark.parametrize("left", LEFT)
def test_what_would_differ_is_left(left: str) -> None:
    program = STEP.format(left)
    assert fixed_text(program, "step.py") == program
    uploads = [one.finding for one in fix_text(program, "step.py").left if one.finding.code in {"HL201", "HL202"}]
    assert uploads
    assert [finding.fix for finding in uploads if finding.fix and finding.fix.applicability is Applicability.EXACT] == []


@given(st.floats(-3.4028234e38, 3.4028234e38, allow_nan=False), st.sampled_from((None, *DTYPES)))
def test_a_literal_in_range_is_the_same_as_a_fill(value: float, dtype: torch.dtype | None) -> None:
    assert difference(_made(torch.tensor, value, dtype), _made(lambda v, dtype: torch.full((), v, dtype=dtype), value, dtype)) == ""


@given(st.integers(-(2**53), 2**53), st.sampled_from((None, *DTYPES)))
def test_an_int_in_range_is_the_same_as_a_fill(value: int, dtype: torch.dtype | None) -> None:
    assert difference(_made(torch.tensor, value, dtype), _made(lambda v, dtype: torch.full((), v, dtype=dtype), value, dtype)) == ""


@given(st.one_of(st.floats(-3.4e38, 3.4e38), st.integers(-(2**53), 2**53), st.booleans()), st.sampled_from(DTYPES))
def test_new_tensor_is_new_full(value: float, dtype: torch.dtype) -> None:
    like = torch.zeros(1, dtype=dtype)
    one = _made(lambda v, dtype: like.new_tensor([v]), value, None)
    assert difference(one, _made(lambda v, dtype: like.new_full((1,), v), value, None)) == ""


def _made(make: object, value: float, dtype: torch.dtype | None) -> object:
    assert callable(make)
    try:
        return make(value, dtype=dtype)
    except Exception as error:  # noqa: BLE001 - the type is what is compared
        return Raised(type(error))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64])
def test_difference_sees_what_torch_equal_does_not(dtype: torch.dtype) -> None:
    zero, nan = torch.zeros(2, dtype=dtype), torch.full((2,), float("nan"), dtype=dtype)
    assert torch.equal(zero, -zero)
    assert "other bits" in difference(zero, -zero)
    assert difference(nan, nan.clone()) == ""
    assert "other bits" in difference(nan, zero)
    square = torch.ones(2, 2, dtype=dtype)
    assert "strides" in difference(square, torch.ones(2, 1, dtype=dtype).expand(2, 2))
    assert difference(square, square.t().contiguous().t().contiguous()) == ""
    assert "shape" in difference(square, square[0])


def test_difference_looks_inside() -> None:
    assert difference([1, {"a": torch.ones(1)}], [1, {"a": torch.ones(1)}]) == ""
    assert difference([1, {"a": torch.ones(1)}], [1, {"a": torch.zeros(1)}]).startswith("result[1]['a'] has other bits")
    assert difference({"a": 1, "b": 2}, {"b": 2, "a": 1}) == "result has the keys ['a', 'b'] and ['b', 'a']"
    assert difference((1,), [1]) == "result is a tuple and a list"
    assert difference(1, True) == "result is a int and a bool"
    assert difference(0.0, -0.0) == "result is 0.0 and -0.0"
    assert difference(float("nan"), float("nan")) == ""
    assert "requires_grad" in difference(torch.ones(1), torch.ones(1, requires_grad=True))
    one, other = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    one.grad, other.grad = torch.ones(1), torch.full((1,), 3.0)
    assert difference(one, other).startswith("result.grad has other bits")
    for first, second in itertools.combinations((torch.ones(1), torch.ones(1, dtype=torch.int32), torch.ones(1).bool()), 2):
        assert "dtype" in difference(first, second)


def test_a_trial_counts_random_numbers_and_exceptions() -> None:
    drawn, kept = "x = torch.rand(1)", "x = torch.zeros(1)"
    assert difference(trial(drawn, "1"), trial(drawn, "1")) == ""
    assert difference(trial(drawn, "1"), trial(kept, "1")) != ""
    assert trial("", "1 / 0") == Raised(ZeroDivisionError)
