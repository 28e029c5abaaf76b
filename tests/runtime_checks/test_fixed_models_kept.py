"""What corrected models keep between steps and requests: one tensor for each size, dtype and device, never written to."""
from __future__ import annotations

import math

import torch

from hostlint.fixed_models import ring_attention, sensenova_u1
from hostlint.runtime_checks.bits import difference


def test_bounds_are_uploaded_once_for_each_length() -> None:
    ring_attention.made_table.cache_clear()
    for ranks, length in ((3, 12), (2, 8), (1, 4), (2, 12), (3, 12)):
        config = ring_attention.Config(ranks=ranks, device="cpu")
        ring_attention.denoise(ring_attention.Transformer(config), config, torch.randn(2, length, config.channels))
    assert ring_attention.made_table.cache_info().misses == 2
    for length in (4, 6):
        kept = ring_attention.kept_table((0, length), torch.device("cpu"), torch.int32)  # type: ignore[no-untyped-call]  # a fix added it
        assert difference(kept, torch.tensor([0, length], dtype=torch.int32)) == ""
    assert ring_attention.made_table.cache_info().misses == 2


def test_frequencies_are_worked_out_once_for_each_width() -> None:
    sensenova_u1.KEPT.clear()
    for width, dtype in ((32, torch.float32), (64, torch.float32), (32, torch.float64)):
        config = sensenova_u1.Config(width=width, steps=3, device="cpu", dtype=dtype)
        texts = torch.randn(2, 1, 3, config.text_width, dtype=dtype)
        noise = torch.randn(1, 5, config.channels, dtype=dtype)
        sensenova_u1.denoise(sensenova_u1.Transformer(config), config, noise, *texts)
    kept = {len(one): one for one in sensenova_u1.KEPT.values()}
    assert sorted(kept) == [16, 32]
    assert len(sensenova_u1.KEPT) == 2
    for half, one in kept.items():
        made = torch.exp(-math.log(10_000.0) * torch.arange(half, dtype=torch.float32) / half)
        assert difference(one, made) == ""


def test_what_is_kept_in_inference_can_be_trained_with() -> None:
    """The first request may run in inference mode, and what it made there would be refused by autograd."""
    sensenova_u1.KEPT.clear()
    embedding = sensenova_u1.TimeEmbedding(8)
    with torch.inference_mode():
        embedding(torch.rand(2), torch.float32)
    embedding(torch.rand(2, requires_grad=True), torch.float32).sum().backward()
    assert all(parameter.grad is not None for parameter in embedding.parameters())
