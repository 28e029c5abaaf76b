"""Casts of what the loop over the blocks hands each block, and of what it does not."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

MODEL = """\
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def forward(self, x, mask, temb):
        {cast}
        return x


class Model(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(depth))

    def forward(self, x, mask, temb):
        for block in self.blocks:
            {call}
        return x
"""
GATHERED = "x = x + temb[x.long()].float()"  # other rows in each block
CALL = "x = block(x, mask, temb=temb)"


def told(cast: str, call: str = CALL) -> list[str]:
    findings, errors = scan_text(MODEL.replace("{cast}", cast).replace("{call}", call), "model.py")
    assert not errors
    return [finding.kind_evidence for finding in findings if finding.code == "HL303"]


@pytest.mark.parametrize(
    "cast",
    [
        "x = x * mask.bool()",
        "x = x * mask[:, None].unsqueeze(-1).float()",
        "x = x + temb.to(torch.float32)",
        "x = x + mask.to(dtype=x.dtype)",
        "x = x + temb.type(torch.float16)",
    ],
)
def test_a_shared_tensor_is_cast_in_each_block(cast: str) -> None:
    assert told(cast) == ["the loop over the blocks in `Model.forward`, line 18, hands each the same object"]


@pytest.mark.parametrize(
    "cast", ["x = x.float()", "x = x + temb.to(x.dtype)", "x = x + temb.to(x.device)", "x = x + (temb + x).float()", GATHERED]
)
def test_other_casts_are_left_alone(cast: str) -> None:
    assert told(cast) == []


@pytest.mark.parametrize(
    ("call", "shared"),
    [
        ("x = block(x, mask, temb)", True),
        ("x = block(x, mask, temb)\n            x = checkpoint(block, x, mask, temb)", True),
        ("x = block(x, mask[0], temb)", True),
        ("x = block(x, x, temb)", False),
        ("mask = mask + 1\n            x = block(x, mask, temb)", False),
        ("mask.mul_(2)\n            x = block(x, mask, temb)", False),
        ("x = block(x, mask, temb)\n            x = block(x, x > 0, temb)", False),
        ("x = block(x, *temb)", False),
    ],
)
def test_every_call_must_hand_over_what_the_loop_got(call: str, shared: bool) -> None:
    assert bool(told("x = x * mask.float()", call)) is shared


def test_blocks_that_a_method_makes_are_found_whatever_its_annotation_says() -> None:
    text = """\
import torch
from torch import nn


class Wide(nn.Module):
    def forward(self, x, temb):
        return x + temb.float()


class Narrow(nn.Module):
    def forward(self, x, temb):
        return x * temb.half()


class Stack(nn.Module):
    def __init__(self, depth: int, wide: bool):
        super().__init__()
        self.blocks = nn.ModuleList([self.make(wide) for _ in range(depth)])

    def make(self, wide: bool) -> {annotation}:
        block = Wide if wide else Narrow
        return block()

    def forward(self, x, temb):
        for block in self.blocks:
            x = block(x, temb)
        return x
"""
    for annotation, wanted in (("nn.Module", [7, 12]), ("torch.nn.Module", [7, 12]), ("Wide", [7])):
        findings, _ = scan_text(text.replace("{annotation}", annotation), "stack.py")
        assert [finding.span.line for finding in findings if finding.code == "HL303"] == wanted


def test_what_modulates_by_the_time_is_one_for_all_blocks_of_a_library() -> None:
    source = """\
import torch
from diffusers.models.transformers.transformer_wan import {base}


class Wrapped{base}({base}):
    def forward(self, x, {temb}):
        shift, scale = (self.scale_shift_table + {temb}{cast}).chunk(2, dim=1)
        return x * scale + shift


class Model(torch.nn.Module):
    def patch(self, n: int):
        for i in range(n):
            self.layers[i] = Wrapped{base}(n)

    def forward(self, x, time):
        for layer in self.layers:
            x = layer(x, time)
        return x
"""

    def told(base: str = "WanTransformerBlock", temb: str = "temb", cast: str = ".float()") -> bool:
        text = source.replace("{base}", base).replace("{temb}", temb).replace("{cast}", cast)
        return "HL303" in [finding.code for finding in scan_text(text, "model.py")[0]]

    assert told()
    assert told(temb="timestep_proj", cast=".to(torch.float32)")
    assert not told(temb="hidden")
    assert not told(cast=".to(x.dtype)")
    assert not told(base="WanTransformer3DModel")  # the forward itself


def test_an_attention_mask_is_one_for_all_blocks_by_convention() -> None:
    text = """\
import torch
from torch import nn


class {name}(nn.Module):
    def forward(self, q, {mask}):
        bias = {mask}.to(dtype=q.dtype)
        return (q @ q.mT + bias).softmax(-1)
"""
    def told(name: str, mask: str, more: str = "") -> bool:
        findings, _ = scan_text(text.replace("{name}", name).replace("{mask}", mask) + more, "attention.py")
        return [finding.span.line for finding in findings if finding.code == "HL303"] == [7]

    assert told("LocalAttention", "attn_mask")
    assert not told("LocalAttention", "values")
    assert not told("Sampler", "attn_mask")
    run = "def run(q, masks, timesteps):\n    net = LocalAttention()\n    for t in timesteps:\n        q = net(q, masks[t])\n    return q\n"
    assert not told("LocalAttention", "attn_mask", f"\n\n{run}")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("keep = attn_mask.bool()", False),  # nothing is launched where it is boolean already
        ("keep = attn_mask.to(torch.bool)", False),
        ("keep = attn_mask.to(device=q.device, dtype=torch.bool)", False),
        ("keep = ~attn_mask.bool()", True),
        ("keep = torch.cat([attn_mask.to(torch.bool), self.rest])", True),
        ("keep = attn_mask.float()", True),
    ],
)
def test_a_mask_of_unknown_type_may_be_boolean_already(line: str, told: bool) -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\nclass LocalAttention(nn.Module):\n    def __init__(self, rest):\n"
        "        super().__init__()\n        self.register_buffer('rest', rest)\n\n    def forward(self, q, attn_mask):\n"
        f"        {line}\n        return q.masked_fill(keep, 0)\n"
    )
    findings, errors = scan_text(text, "attention.py")
    assert not errors
    assert [finding.span.line for finding in findings if finding.code == "HL303"] == [11] * told


CAST_ONCE = """\
import torch
from torch import nn


class Block(nn.Module):
    def forward(self, x, mask, temb):
        {line}
        return x


class Stack(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(depth))

    def forward(self, x, mask, temb, other):
        {before}
        for block in self.blocks:
            x = block(x, mask, temb)
        return x
"""


def cast_once(line: str, before: str) -> bool:
    text = CAST_ONCE.replace("{line}", line).replace("{before}", before)
    return "HL303" in [finding.code for finding in scan_text(text, "stack.py")[0]]


@pytest.mark.parametrize(
    ("line", "before"),
    [
        ("x = x * mask.bool()", "mask = mask.bool()"),
        ("x = x * mask.bool()", "if mask is not None:\n            mask = mask.bool()"),
        ("x = x * mask.bool()", "mask = mask > 0"),
        ("x = x * temb.float()", "temb = temb.unflatten(1, (6, -1)).float().view(1, 6, 1, -1)"),
        ("x = x * temb.float()", "temb = temb.float()\n        temb = torch.cat([temb, other], dim=1).permute(0, 2, 1)"),
        ("x = x * temb.to(torch.float32)", "temb = temb.float()"),
        ("x = x * temb.float()", "temb = temb.to(dtype=torch.float32)"),
    ],
)
def test_a_cast_that_was_done_before_the_loop_is_free_in_the_block(line: str, before: str) -> None:
    assert not cast_once(line, before)
    assert cast_once(line, "pass")


@pytest.mark.parametrize(
    ("line", "before"),
    [
        ("x = x * temb.float()", "temb = temb.half()"),
        ("x = x * temb.float()", "other = temb.float()"),
        ("x = x * mask.bool()", "mask = mask + 1"),
    ],
)
def test_another_cast_before_the_loop_does_not_help(line: str, before: str) -> None:
    assert cast_once(line, before)
