"""What an optional argument decides is no step's work where the calls decide otherwise, nor is what only such a branch calls."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

PROGRAM = """\
import torch
from torch import nn


class Rope(nn.Module):
    def coords(self, n: int, device):
        return self.scaled(torch.arange(n, device=device))

    def scaled(self, grid):
        return grid * torch.tensor([1.0, 2.0], device=grid.device)  # line 10

    def forward(self, coords):
        return coords


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rope = Rope()

    def forward(self, x, {params}):
        if coords is None:
            coords = self.rope.coords(x.shape[1], x.device)
        {more}
        return x + self.rope(coords)
"""


def lines(params: str, more: str = "pass", calls: str = "") -> list[int]:
    findings, errors = scan_text(PROGRAM.format(params=params, more=more) + calls, "net.py")
    assert not errors
    return [finding.span.line for finding in findings if finding.code == "HL201"]


CALL = """

def denoise(x, timesteps, rows):
    net = Net()
    for t in timesteps:
        x = net(x, t, {given})
"""


@pytest.mark.parametrize(("given", "expected"), [("rows", []), ("coords=rows", []), ("coords=None", [10])])
def test_what_only_a_spared_branch_calls_is_spared(given: str, expected: list[int]) -> None:
    assert lines("timestep, coords=None", calls=CALL.format(given=given)) == expected


def test_a_denoiser_that_nobody_is_seen_to_call_is_given_its_arguments() -> None:
    assert lines("timestep, coords=None") == []


@pytest.mark.parametrize("more", ["coords = self.rope.scaled(coords)", "coords = self.rope.coords(8, x.device)"])
def test_what_a_step_calls_as_well_is_not(more: str) -> None:
    assert lines("timestep, coords=None", more, CALL.format(given="rows")) == [10]


HANDED_ON = """\
import torch
from torch import nn


def spans(shape, attention_mask=None):
    {body}
    return lengths


class Masked(nn.Module):
    def _mask(self, x, indices=None, attention_mask=None):
        return spans(x.shape, attention_mask=attention_mask), spans(x.shape)

    def forward(self, x, {params}):
        return self._mask(x, {given})
"""

BODIES = [
    "lengths = attention_mask.sum(-1).tolist() if attention_mask is not None else [shape[1]] * shape[0]",
    "lengths = [shape[1]] * shape[0] if attention_mask is None else attention_mask.sum(-1).tolist()",
    "if attention_mask is not None:\n        lengths = attention_mask.sum(-1).tolist()\n    else:\n        lengths = [shape[1]] * shape[0]",
]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(
    ("params", "given", "told"),
    [
        ("indices=None", "indices=indices", False),
        ("indices=None", "indices=indices, attention_mask=None", False),
        ("attention_mask=None", "attention_mask=attention_mask", True),  # whoever runs the module may give it
        ("attention_mask: torch.Tensor", "attention_mask=attention_mask", True),
    ],
)
def test_what_nobody_hands_in_is_handed_on_by_nobody(body: str, params: str, given: str, told: bool) -> None:
    findings, errors = scan_text(HANDED_ON.format(body=body, params=params, given=given), "masked.py")
    assert not errors
    assert bool([finding for finding in findings if finding.code.startswith("HL1")]) is told


TOKENS = """\
import torch
from torch import nn


class Reader(nn.Module):
    def forward(self, ids, pixels=None, mask=None):
        if pixels is not None:
            ids = ids + pixels[pixels > 0]  # line 8
        return self.inner(ids, mask=mask)

    def inner(self, ids, mask=None):
        if mask is not None:
            ids = ids * mask.max().item()  # line 13
        return ids

    def generate(self, ids, pixels, mask, count):
        for _ in range(count):
            ids = self(ids, pixels=pixels, mask=mask)
            {last}
        return ids
"""


@pytest.mark.parametrize(("last", "told"), [("pixels = None", [13]), ("mask = None", [8]), ("pixels = mask = None", []), ("pass", [8, 13])])
def test_what_a_loop_gives_in_its_first_pass_alone_is_no_steps_work(last: str, told: list[int]) -> None:
    findings, errors = scan_text(TOKENS.replace("{last}", last), "reader.py")
    assert not errors
    assert [finding.span.line for finding in findings if finding.code.startswith("HL1")] == told


ASKED = """\
import torch
from torch import nn


class Net(nn.Module):
    def _ask(self, x, {param}):
        {line}
        return same

    def forward(self, x):
        return self._ask(x, {given})
"""


@pytest.mark.parametrize(
    ("param", "line"),
    [
        ("exact=False", "same = exact and bool(x.any())"),
        ("exact=False", "same = not exact or bool(x.any())"),
        ("exact=False", "same = bool(x.any()) if exact else True"),
        ("mask=None", "same = mask is not None and bool(x.any())"),
        ("mask=None", "same = mask is None or bool(x.any())"),
        ("mask=None", "same = mask is not None and x.ndim > 1 and bool(x.any())"),
        ("mask=None", "same = bool(x.any()) if mask is not None else True"),
    ],
)
def test_an_operand_that_needs_what_no_call_gives_is_spared(param: str, line: str) -> None:
    def told(given: str) -> bool:
        findings, errors = scan_text(ASKED.format(param=param, line=line, given=given), "net.py")
        assert not errors
        return bool(findings)

    assert not told("")
    assert not told(param)
    assert told(f"{param.partition('=')[0]}={'True' if param == 'exact=False' else 'x > 0'}")


NUMBERED = """\
import torch
from torch import nn


class Sampler:
    def sample(self, net, x, timesteps, rows):
        for i, t in enumerate(timesteps):
            x = self.predict(net, x, t, {given})
        return x

    def predict(self, net, x: torch.Tensor, t, number=None, size: int | None = None):
        return self.forward_net(net, x, t, number=number)

    def forward_net(self, net, x: torch.Tensor, t, number: int | None = None):
        if {test}:
            number = int(x.flatten()[0].item())  # line 16
        return net(x, number)
"""


@pytest.mark.parametrize(
    ("given", "test", "told"),
    [
        ("number=i", "number is None", False),
        ("i", "number is None", False),
        ("number=len(rows)", "number is None", False),
        ("number=i", "not torch.is_tensor(number)", True),  # a number is no tensor
        ("number=None", "number is None", True),
        ("size=i", "number is None", True),
    ],
)
def test_a_number_is_not_left_out_where_none_is_asked_for(given: str, test: str, told: bool) -> None:
    findings, errors = scan_text(NUMBERED.format(given=given, test=test), "stage.py")
    assert not errors
    assert [finding.span.line for finding in findings if finding.code == "HL101"] == [16] * told


SWITCHED = """\
import torch
from torch import nn


def scores(rows: torch.Tensor, keep=False, flat=True):
    {line}
    return out


class Net(nn.Module):
    def pick(self, x, keep=False):
        return scores(x.cuda(), keep=keep)

    def forward(self, x):
        return {call}, x
"""

UNSET = [
    "out = rows if keep else rows.tolist()",
    "out = rows.tolist() if not keep else rows",
    "out = rows\n    if not keep:\n        out = rows.tolist()",
    "if keep:\n        out = rows\n    else:\n        out = rows.tolist()",
    "if keep:\n        return rows\n    out = rows.tolist()",
    "if not keep and len(rows) > 1:\n        out = rows.tolist()",
    "out = not keep and rows.tolist()",
]


@pytest.mark.parametrize("line", UNSET)
@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("scores(x.cuda(), True)", False),
        ("scores(x.cuda(), keep=True), scores(x.cuda(), keep=True)", False),
        ("self.pick(x, True)", False),
        ("scores(x.cuda(), keep=True), scores(x.cuda())", True),
        ("scores(x.cuda(), keep=False)", True),
        ("scores(x.cuda(), keep=len(x) > 1)", True),
        ("self.pick(x)", True),
    ],
)
def test_what_runs_without_a_switch_that_every_call_sets_is_spared(line: str, call: str, told: bool) -> None:
    text = SWITCHED.format(line=line, call=call)
    text = text if "pick" in call else text.replace("return scores(x.cuda(), keep=keep)", "return x")
    findings, errors = scan_text(text, "net.py")
    assert not errors
    assert bool([finding for finding in findings if finding.code == "HL105"]) is told


@pytest.mark.parametrize("line", ["out = rows if keep or flat else rows.tolist()", "out = rows.tolist() if flat else rows"])
def test_a_switch_among_others_or_on_by_default_decides_nothing(line: str) -> None:
    findings, errors = scan_text(SWITCHED.format(line=line, call="scores(x.cuda(), keep=flag)"), "net.py")
    assert not errors
    assert [finding.code for finding in findings] == ["HL105"]
