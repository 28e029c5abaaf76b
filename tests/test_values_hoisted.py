"""Work in a step loop that could be done before it, and what only looks like it."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

LOOP = """\
import torch
from torch import nn

net = nn.Linear(8, 8).cuda()
noise_net = nn.Linear(8, 8).cuda()


class Sampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.text_proj = nn.Linear(8, 8)
        self.drop = nn.Dropout(0.1)
        self.register_buffer("table", torch.ones(8))
        self.state = torch.zeros(8)

    def remember(self, x):
        self.state = x

    def run(self, x, timesteps, mask, text, optimizer, batch):
        x, mask, text = x.cuda(), mask.cuda(), text.cuda()
        seen = torch.zeros(8, device="cuda")
        for i, t in enumerate(timesteps):
            x = net(x)
            {line}
        return x
"""


def told(text: str) -> list[int]:
    findings, errors = scan_text(text, "sampler.py")
    assert not errors
    return [finding.span.line for finding in findings if finding.code == "HL302"]


@pytest.mark.parametrize(
    "line",
    [
        "x = x * mask.float()",
        "x = x * mask.to(torch.bfloat16)",
        "x = x * mask.to(x.dtype)",
        "x = x + torch.cat([text, text])[:4]",
        "x = x + text.repeat(2, 1)",
        "x = x + self.text_proj(text)",
        "x = x + torch.where(mask > 0, text, 0.0)",
        "x = x + self.table.half()",
        "x = x + text.view(2, -1).cos()",
        "x = x + torch.nn.functional.pad(text, (0, 1))",
        "if t > 3:\n                x = x + mask.float()",
    ],
)
def test_what_every_pass_repeats(line: str) -> None:
    assert len(told(LOOP.replace("{line}", line))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "x = x * mask[None, :].expand(2, -1).unsqueeze(1)",  # views
        "x = x.float()",
        "x = x + text[i].float()",
        "mask = mask * 2\n            x = x * mask.float()",
        "mask = mask.float()",
        "x = x + seen.half()\n            seen[0:1] = 1.0",
        "x = x + seen.half()\n            seen.add_(1)",
        "part = seen[2:]\n            x = x + seen.half()\n            part.copy_(x)",
        "x = x + torch.rand_like(text).float()",
        "x = x + self.drop(text).float()",
        "x = x + self.state.half()",
        "x = x + batch.mask.float()",  # who knows what sets it
        "fresh = text.repeat(2, 1)\n            fresh[0] = x[0]\n            x = net(fresh)",
        "x = x + noise_net(text).half()\n            x.sum().backward()\n            optimizer.step()",
        "if i == 0:\n                x = x * mask.float()",
        "if i > 3:\n                pick = text\n            else:\n                pick = mask\n            x = x * pick.float()",
        "x = x + text.sum(i)",
        "kind = next(batch)\n            x = x + kind.float()",
        "if t == 'text':\n                x = x + text.float()\n            elif t == 'mask':\n                x = x + mask.float()",
        "match t:\n                case 'text':\n                    x = x + text.float()",
    ],
)
def test_what_changes_or_costs_nothing(line: str) -> None:
    assert told(LOOP.replace("{line}", line)) == []


def test_one_statement_is_told_once_at_its_outermost_work() -> None:
    text = LOOP.replace("{line}", "x = x + torch.cos(text.float()).half()")
    findings, _ = scan_text(text, "sampler.py")
    found = [finding for finding in findings if finding.code == "HL302"]
    spans = [finding.span for finding in found]
    assert [text.splitlines()[s.line - 1][s.column - 1 : s.end_column - 1] for s in spans] == ["torch.cos(text.float()).half()"]
    assert found[0].kind_evidence == "every operand is bound before the loop at line 22"


def test_a_loop_that_is_no_step_loop_is_left_alone() -> None:
    body = "    mask = mask.cuda()\n    return [(word, mask.float()) for word in words]\n"
    assert told(f"import torch\n\n\ndef names(mask, words):\n{body}") == []


def test_a_kernel_is_compiled_as_a_whole() -> None:
    loop = "    for t in timesteps:\n        x = net(x) * mask.float()\n    return x\n"
    body = f"def run(x, mask, timesteps):\n    x, mask = x.cuda(), mask.cuda()\n{loop}"
    head = "import helion, torch\n\nnet = torch.nn.Linear(8, 8).cuda()\n\n\n"
    assert told(head + body) == [9]
    assert told(f"{head}@helion.kernel()\n{body}") == []


def test_each_layer_has_parts_of_its_own() -> None:
    text = """\
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory_norm = nn.LayerNorm(8)


class Head(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(depth))
        self.first = Layer()

    def forward(self, x, memory):
        for layer in self.layers:
            x = x + {norm}(memory)
        return x
"""
    assert told(text.replace("{norm}", "layer.memory_norm")) == []
    assert told(text.replace("{norm}", "self.first.memory_norm")) == [19]
