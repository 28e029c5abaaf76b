"""Entries of a schedule, taken out under a name or held by an object: compared or read once for all, and left where that is not sure."""
from __future__ import annotations

import pytest

from hostlint.fix.once import fix_text
from hostlint.model import Applicability

READS = frozenset({"HL101", "HL102", "HL103"})
LOOP = """\
import torch

net = torch.nn.Linear(4, 4).cuda()


def sample(x, window: tuple[float, float], low: float, steps: int, counters, log):
    ticks = torch.linspace(0, 1, steps + 1, device="cuda")
    for i in range(steps):
        t = ticks[i]
        x = net(x)
        {body}
    return x
"""


def fixed(program: str) -> tuple[str, set[Applicability]]:
    result = fix_text(program, "sample.py", READS, review=True)
    text = result.files[0].text if result.files else program
    return text, {one.fix.applicability for one in result.mended if one.fix is not None}


def inside(body: str) -> str:
    return LOOP.format(body=body.replace("\n", "\n        "))


COMPARED = [
    ("if t > low:\n    x = x * 2", "ticks > low", "if {}:\n    x = x * 2"),
    ("if window[0] <= t <= window[1]:\n    x = x * 2", "(window[0] <= ticks) & (ticks <= window[1])", "if {}:\n    x = x * 2"),
    ("x = x * 2 if t < 0.3 else x", "ticks < 0.3", "x = x * 2 if {} else x"),
    ("if steps > 3 and t != window[0]:\n    x = x * 2", "ticks != window[0]", "if steps > 3 and {}:\n    x = x * 2"),
    ("use = not (t >= low)\nif use:\n    x = x * 2", "ticks >= low", "use = not ({})\nif use:\n    x = x * 2"),
    ("use = t < low or steps == 1\nx = x * 2 if use else x", "ticks < low", "use = {} or steps == 1\nx = x * 2 if use else x"),
]


@pytest.mark.parametrize(("before", "compared", "after"), COMPARED, ids=[one[0].partition("\n")[0] for one in COMPARED])
def test_all_entries_are_compared_before_the_loop(before: str, compared: str, after: str) -> None:
    text, kinds = fixed(inside(before))
    wanted = inside(after.format("ticks_inside[i]")).replace("    for i in", f"    ticks_inside = ({compared}).tolist()\n    for i in")
    assert text == wanted
    assert kinds == {Applicability.REVIEW}


LEFT = [
    "t = t * 2\nif t > low:\n    x = x * 2",  # another number by then
    "use = t > low or steps == 1\nlog(use)",  # the tensor itself may be wanted
    "if t > x.sum():\n    x = x * 2",
    "low = low / 2\nif t > low:\n    x = x * 2",
    "ticks = ticks * 0.5\nif t > low:\n    x = x * 2",
    "ticks[i] = 0.5\nif t > low:\n    x = x * 2",
    "t.mul_(2)\nif t > low:\n    x = x * 2",
    "i = i + 1\nif t > low:\n    x = x * 2",
]


@pytest.mark.parametrize("body", LEFT)
def test_a_test_stays_where_entry_or_bound_may_be_others(body: str) -> None:
    assert "_inside" not in fixed(inside(body))[0]


def test_the_entry_must_be_taken_before_it_is_compared() -> None:
    early = inside("if t > low:\n    x = x * 2")
    assert "_inside" in fixed(early)[0]
    late = early.replace("        t = ticks[i]\n", "").replace("    return x", "        t = ticks[i]\n    return x")
    assert "_inside" not in fixed(late.replace("    for i in", "    t = ticks[0]\n    for i in"))[0]


HELD = """\
import torch


class Sampler:
    def set_timesteps(self, n: int, device):
        self.sigmas = torch.linspace(1, 0, n, device=device)
        self.index = 0

    def step(self, x, i: int, options):
        {body}
        self.index += 1
        return x


def sample(model, x, sampler: Sampler, steps: int, options):
    x = x.cuda()
    sampler.set_timesteps(steps, x.device)
    for i in range(steps):
        x = sampler.step(model(x), i, options)
    return x
"""
KEPT = [
    ("x = x * self.sigmas[i].item()", "x = x * host_values(self.sigmas)[i]"),
    ("x = x * float(self.sigmas[i + 1])", "x = x * float(host_values(self.sigmas)[i + 1])"),
    ("x = x * self.sigmas[-1].detach().item()", "x = x * host_values(self.sigmas)[-1]"),
    ("x = x * self.sigmas[self.index].item()", "x = x * host_values(self.sigmas)[self.index]"),
    (
        "sigma = self.sigmas[i].to(device=x.device, dtype=torch.float16)\nx = x + sigma - sigma.item()",
        "sigma = self.sigmas[i].to(device=x.device, dtype=torch.float16)\nx = x + sigma - host_values(self.sigmas, torch.float16)[i]",
    ),
    (
        "sigmas = self.sigmas\nnow = sigmas[i].double()\nx = x * float(now)",
        "sigmas = self.sigmas\nnow = sigmas[i].double()\nx = x * float(host_values(sigmas, torch.float64)[i])",
    ),
    (
        "now, after = self.sigmas[i], self.sigmas[i + 1]\nx = x * (after.item() - now.item())",
        "now, after = self.sigmas[i], self.sigmas[i + 1]\nx = x * (host_values(self.sigmas)[i + 1] - host_values(self.sigmas)[i])",
    ),
    (
        "sigma = self.sigmas[i].to(options.device, options.dtype)\noptions.scale = sigma.item()",
        "sigma = self.sigmas[i].to(options.device, options.dtype)\noptions.scale = host_values(self.sigmas, options.dtype)[i]",
    ),
]


def held(body: str) -> str:
    return HELD.format(body=body.replace("\n", "\n        "))


@pytest.mark.parametrize(("before", "after"), KEPT, ids=[one[0].replace("\n", "; ") for one in KEPT])
def test_a_schedule_that_an_object_holds_is_read_once(before: str, after: str) -> None:
    text, kinds = fixed(held(before))
    assert text.partition("class Sampler")[2] == held(after).partition("class Sampler")[2]
    assert kinds == {Applicability.REVIEW}


STAYS = [
    "x = x * self.sigmas[i].to(x).item()",  # of what dtype x is is not seen
    "x = x * self.sigmas[i].half().float().item()",
    "x = x * self.sigmas[i : i + 1].item()",
    "x = x * self.sigmas[i].exp().item()",
    "self.sigmas = self.sigmas * 0.5\nx = x * self.sigmas[i].item()",
    "self.sigmas[i] = 0.5\nx = x * self.sigmas[i].item()",
    "sigma = self.sigmas[i].to(x.dtype)\nx = x.double()\nx = x * sigma.item()",
    "sigma, i = self.sigmas[i], i + 1\nx = x * sigma.item()",
    "sigma = self.sigmas[i].clone()\nsigma += 1\nx = x * sigma.item()",
    "sigma = self.sigmas[self.index]\noptions.advance(self)\nx = x * sigma.item()",
    "sigma = self.sigmas[self.index]\nself.index += 1\nx = x * sigma.item()",
    "sigma = self.sigmas[i]\ni = i + 1\nx = x * sigma.item()",
    "x = x * self.totals[i].item()",
]


@pytest.mark.parametrize("body", STAYS)
def test_a_read_stays_where_its_number_may_be_another(body: str) -> None:
    program = held(body).replace("self.index = 0", "self.index = 0\n        self.totals = torch.zeros(n, device=device)")
    assert "host_values" not in fixed(program)[0]
