"""What a denoiser computes from the request's text again at every step, and what only looks like it."""
from __future__ import annotations

import pytest

from hostlint.model import Finding, Severity
from hostlint.scan import scan_text

MODEL = """\
import torch
from torch import nn


class Refiner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear_in = nn.Linear(8, 8)
        self.linear_out = nn.Linear(8, 8)

    def forward(self, x):
        return self.linear_out(self.linear_in(x).relu())


class Conditions(nn.Module):
    def __init__(self):
        super().__init__()
        self.time_embedder = nn.Linear(1, 8)
        self.text_embedder = nn.Linear(8, 8)

    def forward(self, t, text):
        return self.time_embedder(t), self.text_embedder(text)


class Cross(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_q = nn.Linear(8, 8)
        self.to_k = nn.Linear(8, 8)

    def forward(self, x, context):
        q, k = self.to_q(x), self.to_k(context)
        return (q @ k.mT) @ context


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = Cross()

    def forward(self, x, context, temb):
        return self.attn(x * temb, context)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.refiner_proj = Refiner()
        self.conditions = Conditions()
        self.text_proj = nn.Linear(8, 8)
        self.pooled_proj = nn.Linear(8, 8)
        self.rope = Refiner()
        self.mix = nn.Linear(8, 8)
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.seen = torch.zeros(8)

    def keep(self, text):
        self.seen = text

    def forward(self, x, {time}, {text}, img_ids, pooled_projections):
        temb = self.mix({time})
        {line}
        return x
"""


def told(line: str, time: str = "timestep", text: str = "encoder_hidden_states", model: str = MODEL) -> list[Finding]:
    source = model.replace("{line}", line).replace("{time}", time).replace("{text}", text)
    findings, errors = scan_text(source, "model.py")
    assert not errors
    return [finding for finding in findings if finding.code == "HL306"]


def lines(found: list[Finding]) -> list[int]:
    return [finding.span.line for finding in found]


HERE = 1 + MODEL.splitlines().index("        {line}")
TO_K = 1 + MODEL.splitlines().index("        q, k = self.to_q(x), self.to_k(context)")
EMBED = 1 + MODEL.splitlines().index("        return self.time_embedder(t), self.text_embedder(text)")
BLOCKS = "for block in self.blocks:\n            x = block(x, context, temb)"


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("x = x + self.text_proj(encoder_hidden_states)", HERE),
        ("x = x + self.text_proj(encoder_hidden_states.to(x.dtype) * 2)", HERE),
        (f"text = encoder_hidden_states if x.ndim == 3 else encoder_hidden_states[None]\n{8 * ' '}x = x + self.text_proj(text)", HERE + 1),
        ("x = x + self.refiner_proj(encoder_hidden_states)", HERE),  # told at the call of the whole module only
        ("x = x * self.rope(img_ids)", HERE),
        ("a, b = self.conditions(timestep, encoder_hidden_states)\n        x = x + a + b", EMBED),  # the time is another layer's
        (f"context = encoder_hidden_states\n        {BLOCKS}", TO_K),
        (f"_, context = self.conditions(timestep, encoder_hidden_states)\n        {BLOCKS}", EMBED),
    ],
)
def test_work_on_the_text_alone_is_the_same_at_every_step(line: str, where: int) -> None:
    found = told(line)
    assert where in lines(found)
    assert found[0].severity is Severity.NOTE
    assert "the same at every step of `Denoiser.forward`" in found[0].kind_evidence


def test_keys_are_told_where_the_text_came_through_a_part_of_another_layers_result() -> None:
    found = told(f"_, context = self.conditions(timestep, encoder_hidden_states)\n        {BLOCKS}")
    assert sorted(lines(found)) == sorted([EMBED, TO_K])


@pytest.mark.parametrize(
    "line",
    [
        "x = x + self.text_proj(x)",
        "x = x + self.text_proj(encoder_hidden_states + temb)",
        "x = x + self.pooled_proj(pooled_projections)",  # one vector
        "x = x + self.text_proj(self.seen)",  # another method sets it
        "x = x + self.text_proj(encoder_hidden_states + torch.randn_like(encoder_hidden_states))",
        "for block in self.blocks:\n            x = x + block(x, x, temb)",
        f"context = encoder_hidden_states\n        {BLOCKS}\n            context = context + x",  # joint attention
        "context = encoder_hidden_states\n        context += temb\n        x = x + self.text_proj(context)",
    ],
)
def test_what_changes_with_the_latents_or_the_time_is_silent(line: str) -> None:
    assert told(line) == []


@pytest.mark.parametrize(("time", "text"), [("temb_in", "encoder_hidden_states"), ("timestep", "features")])
def test_a_forward_without_time_and_text_is_no_denoiser(time: str, text: str) -> None:
    assert told(f"x = x + self.text_proj({text})", time, text) == []


def test_a_model_that_only_training_calls_gets_new_text_with_each_batch() -> None:
    line = "x = x + self.text_proj(encoder_hidden_states)"
    run = "\n\ndef {name}(model: Denoiser, batches, optimizer):\n    for x, t, text in batches:\n        y = model(x, t, text, x, x)\n"
    loop = run.replace("{name}", "fit") + "        y.mean().backward()\n        optimizer.step()\n"
    assert told(line, model=MODEL + loop) == []
    assert len(told(line, model=MODEL + run.replace("{name}", "sample"))) == 1
    assert len(told(line, model=MODEL + loop + run.replace("{name}", "sample"))) == 1


def test_the_loop_over_the_steps_may_say_it_without_names() -> None:
    source = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cond_proj = nn.Linear(8, 8)

    def forward(self, x, cond):
        return x + self.cond_proj(cond)


def sample(net: Net, x, cond, timesteps):
    for t in timesteps:
        x = net(x, {given})
    return x
"""
    found = [each for each in scan_text(source.replace("{given}", "cond"), "net.py")[0] if each.code == "HL306"]
    assert lines(found) == [11]
    assert found[0].kind_evidence == "the loop in `sample`, line 15, hands each step the same"
    assert [each for each in scan_text(source.replace("{given}", "cond[t]"), "net.py")[0] if each.code == "HL306"] == []


def test_a_long_chain_is_followed_only_so_far() -> None:
    long = "\n        ".join(["context = encoder_hidden_states", *["context = context * 2"] * 400, "x = x + self.text_proj(context)"])
    short = "\n        ".join(["context = encoder_hidden_states", *["context = context * 2"] * 20, "x = x + self.text_proj(context)"])
    assert lines(told(long)) == []
    assert lines(told(short)) == [HERE + 21]


SHARED = """\
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_v = nn.Linear(8, 8)

    def forward(self, x, context=None):
        {context}
        return x + self.to_v(context_)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.cross = Attention(), Attention()

    def forward(self, x, text):
        return {calls}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(4))

    def forward(self, x, timestep, context):
        x = x * timestep
        for block in self.blocks:
            x = block(x, context)
        return x
"""


@pytest.mark.parametrize(
    ("context", "calls", "wanted"),
    [
        ("context_ = x if context is None else context", "self.cross(self.own(x), text)", [12]),
        ("context_ = context if context is not None else x", "self.cross(self.own(x), text)", [12]),
        ("context_ = x if context is None else context", "self.own(x)", []),  # nobody gives it
        ("context_ = x if context is None else context", "self.cross(self.own(x, x), x)", []),
        ("context_ = context if x.ndim == 3 else x", "self.cross(self.own(x), text)", []),
    ],
)
def test_an_attention_that_serves_both_is_told_for_the_calls_that_give_the_text(context: str, calls: str, wanted: list[int]) -> None:
    findings, errors = scan_text(SHARED.replace("{context}", context).replace("{calls}", calls), "shared.py")
    assert not errors
    assert [finding.span.line for finding in findings if finding.code == "HL306"] == wanted


def test_who_is_handed_a_cache_keeps_the_result_in_it() -> None:
    text = SHARED.replace("{context}", "context_ = context").replace("{calls}", "self.cross(x, text)")
    assert "HL306" in [finding.code for finding in scan_text(text, "shared.py")[0]]
    kept = text.replace("def forward(self, x, context=None):", "def forward(self, x, context=None, text_cache=None):")
    assert "HL306" not in [finding.code for finding in scan_text(kept, "shared.py")[0]]
