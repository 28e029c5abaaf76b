"""Entries of a schedule that are compared or read once: the bits of one at a time, over dtypes, bounds beside entries, and NaN."""
from __future__ import annotations

import pytest
import torch

from hostlint.fix.once import fixed_text
from hostlint.fix.table_reads import READER
from hostlint.runtime_checks.bits import difference, trial

CODES = frozenset({"HL101", "HL102", "HL103"})
WINDOW = """\
import torch

net = torch.nn.Identity().cuda()


def sample(x, ticks, low: float, high: float):
    ticks = ticks.cuda()
    seen = []
    for i in range(len(ticks)):
        t = ticks[i]
        x = net(x)
        use = (t > low and t < high) or low == 0
        if use:
            x = x * t
        if low <= t <= high:
            x = x + 1
        seen.append(x)
    return seen

"""
SCHEDULES = (
    "torch.linspace(0, 1, 11)", "torch.linspace(0, 1, 21, dtype=torch.float64)", "torch.linspace(1, 0, 9).bfloat16()",
    "torch.linspace(0, 1, 11).half()", "torch.tensor([0.1, float('nan'), -0.0, float('inf')])", "torch.zeros(0)",
)  # fmt: skip


@pytest.mark.parametrize("ticks", SCHEDULES)
def test_windows_keep_their_sides(ticks: str) -> None:
    after = fixed_text(WINDOW, "loop.py", CODES, review=True)
    assert after.count(".tolist()") == 3
    for low, high in ((0.1, 0.3), (0.3, 0.9), (0.0, 1.0), (-0.0, 0.1), (0.7, 0.2)):
        call = f"sample(torch.ones(3), {ticks}, {low}, {high})"
        assert difference(trial(WINDOW, call), trial(after, call)) == "", call


HELD = """\
import torch


class Sampler:
    def set_timesteps(self, sigmas):
        self.sigmas = sigmas.cuda()

    def step(self, x, i: int):
        sigma = self.sigmas[i].to(device=x.device, dtype={dtype})
        return x * sigma.item() + float(self.sigmas[i - 1])


def sample(x, sigmas, sampler=None):
    x = x.cuda()
    sampler = Sampler()
    for table in (sigmas, sigmas.flip(0), sigmas):
        sampler.set_timesteps(table)
        for i in range(len(table)):
            x = sampler.step(x, i)
        table += 1
    return x

"""


@pytest.mark.parametrize("dtype", ["torch.float32", "torch.float64", "torch.float16", "torch.bfloat16", "torch.int64"])
def test_numbers_of_a_schedule_are_those_of_its_entries(dtype: str) -> None:
    program = HELD.format(dtype=dtype)
    after = fixed_text(program, "held.py", CODES, review=True)
    assert after.count(f"host_values(self.sigmas, {dtype})[i]") == after.count("host_values(self.sigmas)[i - 1]") == 1
    for sigmas in ("torch.tensor([0.1, 14.6, 65504.0, -0.0])", "torch.rand(5, dtype=torch.float64)", "torch.arange(3)"):
        call = f"sample(torch.ones(2, dtype=torch.float64), {sigmas}.clone())"
        assert difference(trial(program, call), trial(after, call)) == "", call


def test_a_table_is_read_once_for_each_state() -> None:
    names: dict[str, object] = {"torch": torch}
    exec("import functools\n" + READER.format(cache="functools.lru_cache"), names)  # noqa: S102 - the text that a fix adds
    values = names["host_values"]
    assert callable(values)
    table = torch.tensor([0.1, 0.2])
    first = values(table)
    assert first == table.tolist()
    assert values(table) is first
    assert values(table, torch.float16) == table.half().tolist() != first
    table.mul_(2)
    assert values(table) == table.tolist() != first
    assert values(table.clone()) == values(table)
    with torch.inference_mode():
        assert values(torch.tensor([3])) == [3]
