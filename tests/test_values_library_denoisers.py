"""Denoisers whose base class is a library's, and layers that refine a text in a loop: what they compute from the request alone."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

WRAPPER = """\
import torch
from {library} import {base}


class Wrapper({base}):
    def forward(self, hidden_states, timestep, encoder_hidden_states, encoder_attention_mask=None, image_embeds=None, position_ids=None):
        temb = self.time_embed(timestep)
        first, last = self.text_bounds(position_ids)
        text = encoder_hidden_states
        {line}
        return self.proj_out(hidden_states, temb)
"""
HERE = 1 + WRAPPER.splitlines().index("        {line}")


def told(line: str, library: str = "diffusers", base: str = "Krea2Transformer2DModel", source: str = WRAPPER) -> list[int]:
    findings, errors = scan_text(source.replace("{line}", line).replace("{library}", library).replace("{base}", base), "model.py")
    assert not errors
    return [finding.span.line for finding in findings if finding.code == "HL306"]


@pytest.mark.parametrize(
    ("library", "base"),
    [
        ("diffusers", "Krea2Transformer2DModel"),
        ("diffusers.models.transformers.transformer_wan", "WanTransformer3DModel"),
        ("diffusers", "UNet2DConditionModel"),
        ("other_lab.models", "HunyuanDiT2DModel"),
    ],
)
def test_a_model_of_a_library_is_a_denoiser_by_its_signature(library: str, base: str) -> None:
    assert told("hidden_states = self.mix(hidden_states, self.text_fusion(text))", library, base) == [HERE]


@pytest.mark.parametrize("base", ["FlowMatchScheduler", "KreaPipeline", "Krea2TransformerConfig", "UNetOutput"])
def test_a_class_that_is_no_module_is_silent(base: str) -> None:
    assert told("hidden_states = self.mix(hidden_states, self.text_fusion(text))", base=base) == []


@pytest.mark.parametrize(
    "line",
    [
        "hidden_states = torch.cat([self.txt_in(self.text_fusion(text, encoder_attention_mask)), hidden_states], 1)",
        "hidden_states = torch.cat([self.token_refiner(text), hidden_states], 1)",
        "hidden_states = torch.cat([self.image_embedder(image_embeds), hidden_states], 1)",
        "hidden_states = torch.cat([self.cap_embedder[0](text[:, first:last]), hidden_states], 1)",
        "hidden_states = torch.cat([self.cond_norm(text[:, first : first + last]), hidden_states], 1)",
        "hidden_states = hidden_states + self.type_embed(torch.ones(2, last, dtype=torch.long, device=text.device))",
    ],
)
def test_layers_are_told_by_what_flows_into_them(line: str) -> None:
    assert told(line) == [HERE]


@pytest.mark.parametrize(
    "line",
    [
        "hidden_states = torch.cat([self.context_embedder(text, timestep), hidden_states], 1)",
        "hidden_states = torch.cat([self.token_refiner(text + temb), hidden_states], 1)",
        "hidden_states = torch.cat([self.text_dropout(text), hidden_states], 1)",
        "hidden_states = torch.cat([self._pad(text), hidden_states], 1)",  # a method
        "hidden_states = torch.cat([self.patchify(text), hidden_states], 1)",
        "hidden_states = torch.cat([self.cap_embedder(text[:, : self.count(hidden_states)]), hidden_states], 1)",
        "hidden_states = hidden_states + self.type_embed(torch.ones(2, dtype=torch.long, device=text.device))",  # one row a sample
        "hidden_states = hidden_states + self.type_embed(torch.full((hidden_states.shape[1],), 3, device=text.device))",  # one axis
        "hidden_states = hidden_states + self.type_embed(torch.ones(2, self.count(timestep), device=text.device))",
    ],
)
def test_what_the_step_changes_and_what_is_no_layer_is_silent(line: str) -> None:
    assert told(line) == []


REFINED = """\
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 8)

    def forward(self, x, mask, shift=0):
        return self.mix(x) * mask + shift


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.refiner = nn.ModuleList(Layer() for _ in range(2))
        self.time_embed = nn.Linear(1, 8)

    def forward(self, x, t, cap_feats, cap_mask, drift):
        temb = self.time_embed(t)
        {line}
        return x + temb
"""
LOOP = 1 + REFINED.splitlines().index("        {line}")


@pytest.mark.parametrize(
    "line",
    [
        "for layer in self.refiner:\n            cap_feats = layer(cap_feats, cap_mask)",
        "for i, layer in enumerate(self.refiner):\n            cap_feats = layer(cap_feats, cap_mask, i)",
        "text = cap_feats\n        for layer in self.refiner:\n            text = layer(layer(text, cap_mask), cap_mask)",
        "text = cap_feats\n        for i in range(len(self.refiner)):\n            text = self.refiner[i](text, cap_mask)",
    ],
)
def test_a_loop_of_layers_over_the_text_is_one_finding(line: str) -> None:
    found = told(line, source=REFINED)
    assert found == [LOOP + line.count("\n")]


@pytest.mark.parametrize(
    "line",
    [
        "for layer in self.refiner:\n            cap_feats = layer(cap_feats, cap_mask, temb)",
        "for layer in self.refiner:\n            cap_feats = layer(cap_feats, cap_mask) + x",
        "for layer in self.refiner:\n            cap_feats = layer(cap_feats, cap_mask)\n            cap_feats = drift(cap_feats, x)",
        "for layer in self.refiner:\n            x = layer(x, cap_mask)",
        "for step in drift.steps:\n            cap_feats = self.refiner[0](cap_feats, cap_mask)",
    ],
)
def test_a_loop_into_which_the_step_flows_is_silent(line: str) -> None:
    assert told(line, source=REFINED) == []


def test_where_a_loop_is_told_is_where_the_model_runs() -> None:
    line = "for layer in self.refiner:\n            cap_feats = layer(cap_feats, cap_mask)"
    findings, _ = scan_text(REFINED.replace("{line}", line), "model.py")
    message = next(finding.message for finding in findings if finding.code == "HL306")
    assert "on every call of `forward`" in message
    assert "in each block" not in message
