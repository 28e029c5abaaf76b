"""Fixes of writes keep the bits: one element, positions, masks; with values, dtypes and views that would expose a wrong one."""
from __future__ import annotations

import itertools

import pytest
import torch

from hostlint.fix.once import fix_text, fixed_text
from hostlint.model import Applicability
from hostlint.runtime_checks.bits import Raised, difference, trial

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.bool)
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
    ("x[i] = {}", "x[i].fill_({})"),
    ("x[i - 1] = {}", "x[i - 1] = x.new_full((), {})"),
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
    for rows, count in (("[0]", 0), ("[]", 3), ("[9]", 3)):  # outside: the same error; no position: nothing
        assert alike(program, wanted, f"steps(torch.tensor({rows}), {count}, torch.half, len)") == ""


@pytest.mark.parametrize(("before", "after"), ELEMENT_FORMS, ids=[before for before, _ in ELEMENT_FORMS])
def test_a_number_lets_the_same_gradient_through(before: str, after: str) -> None:
    leaf = 'torch.ones(count, dtype=dtype, device="cuda").requires_grad_()'
    programs: list[str] = []
    for text in (before, after):
        kept = ELEMENT.format(text.format("2.0")).replace("    x = torch", f"    leaf = {leaf}\n    x = torch", 1)
        kept = kept.replace('x = torch.zeros(count, dtype=dtype, device="cuda")', "x = leaf * -0.5").replace("made(x)", "made(leaf)")
        programs.append(kept.replace("return x", "x.sum().backward()\n    return leaf"))
    run = "steps(torch.tensor([1, 1, 2]), 4, torch.float32, len)"
    assert not isinstance(trial(programs[0], run), Raised)
    assert alike(programs[0], programs[1], run) == ""
    in_place = [program.replace("x = leaf * -0.5", "x = leaf") for program in programs]  # a leaf may not be written
    assert trial(in_place[0], run) == trial(in_place[1], run) == Raised(RuntimeError)


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


MASKED = """\
import torch


@torch.no_grad()
def steps(model, given, given_other, given_rows, number: float):
    results = []
    rows = torch.zeros(6, dtype=torch.bool, device="cuda")
    rows.copy_(given_rows)
    for i in range(2):
        other = torch.zeros(6, 4, dtype=torch.float32, device="cuda")
        other.copy_(given_other)
        whole = torch.zeros(4, 6, dtype=torch.float32, device="cuda")
        x = whole.t()
        whole.copy_(given)
        part = whole[1:3]
        m = ~(x > 0) | x.isnan()
        level = x.sum() * 0 + number
        {}
        model(x)
        results += [x, x.stride(), part, whole]
    return results
"""
EXACT = [
    ("x[m] *= number", "x.copy_(torch.where(m, x * number, x))"),
    ("x[x > 0] += number", "x.copy_(torch.where(x > 0, x + number, x))"),
    ("x[m] -= 0.1", "x.copy_(torch.where(m, x - 0.1, x))"),
    ("x[m & (x < 2)] /= number", "x.copy_(torch.where(m & (x < 2), x / number, x))"),
    ("x[m] *= -0.0", "x.copy_(torch.where(m, x * (-0.0), x))"),
    ("x[torch.isnan(x)] *= 0", "x.copy_(torch.where(torch.isnan(x), x * 0, x))"),
]
FOR_REVIEW = [
    ("x[m] = level", "x.copy_(torch.where(m, level, x))"),
    ("x[m] *= level", "x.copy_(torch.where(m, x * level, x))"),
    ("x[m] = x[m] * number", "x.copy_(torch.where(m, x * number, x))"),
    ("x[m] = other[m]", "x.copy_(torch.where(m, other, x))"),
    ("x[m] = other[m].to(x.dtype).clamp(0, number) - 1", "x.copy_(torch.where(m, other.to(x.dtype).clamp(0, number) - 1, x))"),
    ("x[m] -= other[m] + 1", "x.copy_(torch.where(m, x - (other + 1), x))"),
    ("x.index_put_((m,), level)", "x.copy_(torch.where(m, level, x))"),
    ("z = x.clone()\n        z[m] = level", "z = x.clone()\n        z.copy_(torch.where(m, level, z))"),
    ("z = x * 2\n        x = given\n        z[m] = level", "z = x * 2\n        x = given\n        z.copy_(where_masked(m, level, z))"),
    ("x[rows] *= number", "x.copy_(where_masked(rows, x * number, x))"),
    ("x[rows] = other[rows]", "x.copy_(where_masked(rows, other, x))"),
    ("x[~rows] = level", "x.copy_(where_masked(~rows, level, x))"),
]
LEFT = [
    "x[m] = other", "x[m] = model(other[m])", "x[m] = other[m].cumsum(0)", "x[m] = other[~m]", "x[m] = torch.randn(x[m].shape)",
    "x[m] **= 2", "x[m, 0] = level", "x[m] = y = level", "x[m][0] = level", "model(x)[m] = level", "x.index_put_((m,), level, True)",
    "x[m] = other[m] @ whole", "x[m] = other[m][1:]", "x[m] = other[m] if number else level", "y = [x.index_put_((m,), other)]",
    "x[m] = level if number else other",
]  # fmt: skip
GIVEN = "(torch.tensor([[0.1, -0.0, float('nan'), 3, -65519.99, 1e-8]] * 4) * torch.tensor([[1.0], [-1], [float('inf')], [0.3]])).to({})"
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def masked(statement: str, dtype: torch.dtype = torch.float32) -> str:
    return MASKED.format(statement).replace("torch.float32", str(dtype))


def with_helper(program: str) -> str:
    """The program as the fix writes it: with the function for masks of fewer dimensions, if it is called."""
    from hostlint.fix.masked import WHERE

    head, _, rest = program.partition("\n\n\n")
    return f"{head}\n\n{WHERE}\n\n{rest}" if "where_masked" in program else program


def run_of(dtype: torch.dtype, number: str) -> str:
    rows = "torch.tensor([True, False, True, True, False, False])"
    return f"steps(len, {GIVEN.format(dtype)}, torch.arange(24).view(6, 4).to({dtype}), {rows}, {number})"


@pytest.mark.parametrize(("before", "after"), EXACT, ids=[before for before, _ in EXACT])
def test_arithmetic_through_a_mask(before: str, after: str) -> None:
    assert fixed_text(masked(before), "step.py") == masked(after)
    for dtype, number in itertools.product(FLOATS, ("0.1", "-0.0", "float('inf')", "65519.99", "0", "True")):
        assert alike(masked(before, dtype), masked(after, dtype), run_of(dtype, number)) == "", (dtype, number)


@pytest.mark.parametrize(("before", "after"), FOR_REVIEW, ids=[before for before, _ in FOR_REVIEW])
def test_writes_through_a_mask_for_review(before: str, after: str) -> None:
    after = with_helper(masked(after))
    assert fixed_text(masked(before), "step.py") == masked(before)
    result = fix_text(masked(before), "step.py", review=True)
    assert result.files
    assert result.files[0].text == after
    for dtype, number in itertools.product(FLOATS, ("-0.0", "float('nan')")):
        changed = after.replace("torch.float32", str(dtype))
        assert alike(masked(before, dtype), changed, run_of(dtype, number)) == "", (dtype, number)


@pytest.mark.parametrize("left", LEFT)
def test_what_may_be_packed_is_left(left: str) -> None:
    result = fix_text(masked(left), "step.py", review=True)
    assert not any(one.code == "HL112" for one in result.mended)


@pytest.mark.parametrize(
    ("changed", "into"),
    [("@torch.no_grad()\n", ""), ("dtype=torch.float32", "dtype=torch.int64"), ("x = whole.t()", "x = model(whole)"),
     ("x = whole.t()", 'x = torch.zeros(1, 6, dtype=torch.float32, device="cuda").expand(4, 6).t()'), ("m = ~(x > 0)", "m = ~(other > 0)"),
     ("number: float", "number")],
)  # fmt: skip
def test_what_is_not_proved_is_for_review(changed: str, into: str) -> None:
    program = masked("x[m] *= number")
    assert fixed_text(program, "step.py") != program
    program = program.replace(changed, into)
    assert fixed_text(program, "step.py") == program
    assert fixed_text(program, "step.py", review=True) != program


def test_a_leaf_that_needs_a_gradient_raises_as_before() -> None:
    programs = [masked(text).replace("@torch.no_grad()\n", "") for text in ("x[m] *= number", "x.copy_(torch.where(m, x * number, x))")]
    one, other = (program.replace("        level", "        x.requires_grad_()\n        level") for program in programs)
    run = run_of(torch.float32, "2.0")
    assert trial(one, run) == trial(other, run) == Raised(RuntimeError)


def test_a_name_beside_packed_values_is_said_to_be_one_number() -> None:
    for statement, said in (("x[m] = x[m] * number + other[m]", "`number` is one number"), ("x[m] = other[m].abs()", "")):
        (one,) = fix_text(masked(statement), "step.py", frozenset({"HL112"}), review=True).mended
        assert one.fix is not None
        assert ("is one number" in one.fix.message) == bool(said)
        assert said in one.fix.message


@pytest.mark.parametrize("number", ["0.5", "0", "127", "3.0"])
def test_a_write_without_a_test_writes_the_same(number: str) -> None:
    before = masked(f"if m.any():\n            x[m] = {number}").replace("    return results", "    return results  # of both steps")
    after = fixed_text(before, "step.py")
    assert f"        x[m] = {number}\n" in after
    assert "m.any()" not in after
    for dtype in (*FLOATS, torch.int8, torch.uint8):
        for given in (GIVEN.format(dtype), f"torch.ones(4, 6).to({dtype})"):
            run = run_of(dtype, "1.0").replace(GIVEN.format(dtype), given)
            one, other = (program.replace("torch.float32", str(dtype)) for program in (before, after))
            assert alike(one, other, run) == "", (dtype, given)
