"""Fixes that move work keep the bits: sums, lists, schedules, windows, checks and hoisted casts, over dtypes and values that tell."""
from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hostlint.fix.once import fixed_text
from hostlint.runtime_checks.bits import Raised, difference, trial

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
WHOLE = (torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool)
VALUES = "[0.1, -0.0, 1e-8, 65504.0, -3.3, 1e-45, 7.0]"
SPECIAL = "[0.1, float('inf'), -0.0, float('-inf'), float('nan'), 2.0]"
EMPTY = "[]"

SUM = """\
import torch

net = torch.nn.Identity().cuda()
opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)])


def fit(rows, weight):
    total = {start}
    shown = []
    for step, row in enumerate(rows):
        loss = net(row.cuda())
        if loss.requires_grad:
            loss.backward()
            opt.step()
        total {operator}
        if step % 50 == 0:
            shown.append(total)
            shown.append(f"{{total / 2:.7g}}")
    return total, shown, [row.grad for row in rows]

"""
SUMS = [
    ("0.0", "+= loss.item()", "+= loss.detach().double()"),
    ("0.0", "+= loss.item() * 3", "+= loss.detach().double() * 3"),
    ("0.0", "+= 0.1 * loss.item()", "+= 0.1 * loss.detach().double()"),
    ("-0.0", "+= loss.item() * row.numel()", "+= loss.detach().double() * row.numel()"),
    ("0.0", "+= float(loss.detach()) * weight", "+= loss.detach().double() * weight"),
    ("0.0", "= total + loss.item()", "= total + loss.detach().double()"),
]


def mended(before: str, after: str) -> None:
    assert fixed_text(before, "loop.py", frozenset({"HL101", "HL102", "HL103", "HL302"}), review=True) == after


@pytest.mark.parametrize(("start", "before", "after"), SUMS, ids=[one[1] for one in SUMS])
def test_a_float64_sum_on_the_device_is_pythons_sum(start: str, before: str, after: str) -> None:
    program = SUM.format(start=start, operator=before)
    wanted = SUM.format(start=start, operator=after).replace("    return total", "    total = float(total)\n    return total")
    wanted = wanted.replace("shown.append(total)", "shown.append(float(total))")
    if start != "-0.0":  # a sum that starts at -0.0 is no constant, and is left
        mended(program, wanted)
    for dtype in (*FLOATS, *WHOLE):
        for values in (VALUES, SPECIAL, EMPTY):
            rows = f"[torch.tensor(v, dtype=torch.float64).nan_to_num(3).clamp(-9, 9).to({dtype}) for v in {values}]"
            if dtype.is_floating_point:
                rows = f"[torch.tensor(v, dtype={dtype}, requires_grad=True) for v in {values}]"
            for weight in ("3", "0.1", "2**40") if "weight" in before else ("1",):
                run = f"fit({rows}, {weight})"
                result = trial(program, run)
                assert not isinstance(result, Raised)
                assert difference(result, trial(wanted, run)) == "", (dtype, values)


@given(st.lists(st.floats(width=32), max_size=9), st.integers(0, 2**40))
def test_sums_of_any_floats(values: list[float], weight: int) -> None:
    host = 0.0
    device: float | torch.Tensor = 0.0
    for value in values:
        loss = torch.tensor(value)
        host += loss.item() * weight
        device += loss.detach().double() * weight
    assert difference(host, float(device)) == ""


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5))
def test_sums_of_any_ints_as_floats(values: list[int]) -> None:
    host = 0.0
    device: float | torch.Tensor = 0.0
    for value in values:
        host += torch.tensor(value).item()
        device += torch.tensor(value).double()
    assert difference(host, float(device)) == ""


COUNT = """\
import torch

net = torch.nn.Identity().cuda()
opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)])


def count(rows):
    right = 0
    for row in rows:
        row = net(row)
        right += {}
{}    return right

"""


def test_a_count_stays_an_int() -> None:
    before = COUNT.format("(row.cuda() > 0).sum().item()", "")
    after = COUNT.format("(row.cuda() > 0).sum()", "    right = int(right)\n")
    mended(before, after)
    for rows in ("[]", "[torch.randn(4), torch.randn(0)]", "[torch.ones(300, dtype=torch.uint8)] * 3"):
        assert difference(trial(before, f"count({rows})"), trial(after, f"count({rows})")) == "", rows


LIST = """\
import torch

net = torch.nn.Identity().cuda()
opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)])


def collect(rows):
    losses = []
    for row in rows:
        loss = net(row.cuda())
        losses.append({})
        loss = loss.detach().neg_()
{}    return losses

"""


@pytest.mark.parametrize(
    ("before", "after"),
    [("loss.item()", "loss.detach().clone()"), ("float(loss)", "loss.detach().to(torch.float64, copy=True)")],
)
def test_a_list_of_numbers(before: str, after: str) -> None:
    program = LIST.format(before, "")
    wanted = LIST.format(after, "    losses[:] = torch.stack(losses).tolist() if losses else []\n")
    mended(program, wanted)
    for dtype in (*FLOATS, torch.int64, torch.int8):
        for values in (VALUES, SPECIAL, EMPTY):
            rows = f"[torch.tensor(v, dtype=torch.float64).to({dtype}) for v in {values}]"
            if not dtype.is_floating_point:
                rows = f"[torch.tensor(v, dtype=torch.float64).nan_to_num(3).clamp(-9, 9).to({dtype}) for v in {values}]"
            assert difference(trial(program, f"collect({rows})"), trial(wanted, f"collect({rows})")) == "", (dtype, values)


WALK = """\
import torch

net = torch.nn.Identity().cuda()
opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)])


def steps(made):
    ticks = torch.zeros(len(made), dtype=made.dtype, device="cuda") + made
    results = []
    {}:
        results.append({})
        results.append(net(t if "t" in dir() else made))
    return results

"""
WALKS = [
    ("for t in ticks", "t.item()", "for t, t_value in zip(ticks, ticks.tolist())", "t_value"),
    ("for t in ticks", "float(t)", "for t, t_value in zip(ticks, ticks.tolist())", "float(t_value)"),
    ("for t in ticks", "int(t)", "for t, t_value in zip(ticks, ticks.tolist())", "int(t_value)"),
    ("for i, t in enumerate(ticks)", "t.item()", "ticks_values = ticks.tolist()\n    for i, t in enumerate(ticks)", "ticks_values[i]"),
    ("for i in range(len(ticks))", "ticks[i].item()", "ticks_values = ticks.tolist()\n    for i in range(len(ticks))", "ticks_values[i]"),
    ("for i in range(len(ticks))", "ticks[i + 1].item()", "ticks_values = ticks.tolist()\n    for i in range(len(ticks))",
     "ticks_values[i + 1]"),
    ("for t in ticks", "not (1 and t >= 0.1)", "for t, t_inside in zip(ticks, (ticks >= 0.1).tolist())", "not (1 and t_inside)"),
    ("for t in ticks", "3 if 0 < t <= 0.3 else 4", "for t, t_inside in zip(ticks, ((0 < ticks) & (ticks <= 0.3)).tolist())",
     "3 if t_inside else 4"),
    ("for t in ticks", "3 if t == 16777217 else 4", "for t, t_inside in zip(ticks, (ticks == 16777217).tolist())", "3 if t_inside else 4"),
]  # fmt: skip
MADE = ("torch.linspace(0, 1, 11)", "torch.tensor([16777217.0, -0.0, 0.3, 1e39, 0.1])", "torch.zeros(0)", "torch.tensor([float('nan')])")


@pytest.mark.parametrize(("head", "inside", "new_head", "new"), WALKS, ids=[f"{one[0]}: {one[1]}" for one in WALKS])
def test_steps_read_before_the_loop(head: str, inside: str, new_head: str, new: str) -> None:
    before, after = WALK.format(head, inside), WALK.format(new_head, new)
    mended(before, after)
    for dtype in (*FLOATS, *WHOLE):
        for made in MADE:
            whole = f"{made}.double().nan_to_num(3).clamp(0, 100)" if not dtype.is_floating_point else made
            run = f"steps({whole}.to({dtype}))"
            assert difference(trial(before, run), trial(after, run)) == "", run


@given(st.lists(st.floats(width=32), min_size=1, max_size=5), st.floats(), st.sampled_from(FLOATS))
def test_a_whole_schedule_compares_as_its_elements_do(values: list[float], bound: float, dtype: torch.dtype) -> None:
    ticks = torch.tensor(values, dtype=dtype)
    assert (ticks > bound).tolist() == [bool(t > bound) for t in ticks]
    assert ((bound <= ticks) & (ticks <= 2)).tolist() == [bool(bound <= t <= 2) for t in ticks]


CHECK = """\
import torch

net = torch.nn.Identity().cuda()
opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)])


def run(rows):
    x = torch.zeros(2, device="cuda")
{}    for row in rows:
        x = net(x + row)
        {}
{}    return x

"""


def test_a_check_after_the_loop_finds_the_same() -> None:
    before = CHECK.format("", "assert not torch.isnan(x).any()", "")
    after = CHECK.format("    has_nan = False\n", "has_nan |= torch.isnan(x).any()", "    assert not has_nan\n")
    mended(before, after)
    for values in ("[]", "[1.0, 2.0]", "[1.0, float('nan')]", "[float('nan'), 1.0]", "[float('inf'), -float('inf'), 3.0]"):
        run = f"run([torch.full((2,), v, requires_grad=True) for v in {values}])"
        result = trial(before, run)
        assert difference(result, trial(after, run)) == "", values
        assert isinstance(result, Raised) == ("nan" in values or "-float" in values)


HOIST = """\
import torch

net = torch.nn.Identity().cuda()
opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)])


def steps(made, count: int):
    mask = torch.zeros(3, dtype=made.dtype, device="cuda") + made
    x = torch.ones(3, device="cuda")
    {}for step in range(count):
        {}x = net(x * keep{})
    return x

"""


@pytest.mark.parametrize("cast", ["mask.float()", "mask.bool()", "mask.to(torch.float16)", "torch.cat([mask, mask])[:3]"])
def test_hoisted_work(cast: str) -> None:
    before = HOIST.format("", f"keep = {cast}\n        ", "")
    after = HOIST.format(f"keep = {cast}\n    ", "", "")
    if "[:3]" not in cast:
        mended(before, after)
    for dtype in (*FLOATS, torch.int64, torch.bool):
        for count in (0, 1, 3):
            run = f"steps(torch.tensor([1.5, 0.0, 2.0]).to({dtype}), {count})"
            assert difference(trial(before, run), trial(after, run)) == "", run
