"""What the stand-in costs: a small diffusion transformer, some steps on the plain CPU and some under simulate_cuda(), bits compared.

    python benchmarks/simulated_dit.py [--width 256] [--tokens 256] [--steps 30] [--train]
"""
from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  the name that everybody gives it

from hostlint.runtime_checks.events import HostEvent
from hostlint.runtime_checks.simulated import simulate_cuda
from hostlint.runtime_checks.sinks import listening


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width, elementwise_affine=False), nn.LayerNorm(width, elementwise_affine=False)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))
        self.modulation = nn.Linear(width, 6 * width)

    def forward(self, x: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        shift, scale, gate, shift2, scale2, gate2 = self.modulation(F.silu(condition))[:, None].chunk(6, dim=-1)
        h = self.first(x) * (1 + scale) + shift
        batch, length, width = h.shape
        q, k, v = self.qkv(h).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + gate * self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width))
        result: torch.Tensor = x + gate2 * self.mlp(self.second(x) * (1 + scale2) + shift2)
        return result


class DiT(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.width = width
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(depth))
        self.final = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> Any:
        half = torch.arange(self.width // 2, device=x.device, dtype=torch.float32)
        angles = t[:, None] * torch.exp(-half * 0.1)
        condition = torch.cat([angles.cos(), angles.sin()], dim=-1)
        for block in self.blocks:
            x = block(x, condition)
        return self.final(x)


class Events(list[HostEvent]):
    def add(self, event: HostEvent) -> None:
        self.append(event)


def steps(device: str, width: int, tokens: int, count: int) -> tuple[list[float], torch.Tensor]:
    """CPU seconds of each denoising step, and the result on the host."""
    torch.manual_seed(0)
    model = DiT(width, 6).to(device).eval()
    latents = torch.randn(1, tokens, width, device=device)
    taken = []
    with torch.no_grad():
        for index in range(count):
            start = time.process_time()
            t = torch.full((1,), 1000.0 * (count - index) / count, device=device)
            latents = latents - 0.1 * model(latents, t)
            taken.append(time.process_time() - start)
    return taken, latents.cpu()


def training_steps(device: str, width: int, tokens: int, count: int) -> tuple[list[float], torch.Tensor]:
    """CPU seconds of each training step, and the last loss on the host."""
    torch.manual_seed(0)
    model = DiT(width, 6).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    latents, t = torch.randn(1, tokens, width, device=device), torch.ones(1, device=device)
    taken, loss = [], torch.zeros((), device=device)
    for _ in range(count):
        start = time.process_time()
        loss = model(latents, t).pow(2).mean()
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        taken.append(time.process_time() - start)
    return taken, loss.detach().cpu()


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--width", type=int, default=256)
    options.add_argument("--tokens", type=int, default=256)
    options.add_argument("--steps", type=int, default=30)
    options.add_argument("--train", action="store_true")
    chosen = options.parse_args()
    program = training_steps if chosen.train else steps
    torch.set_num_threads(1)
    plain, expected = program("cpu", chosen.width, chosen.tokens, chosen.steps)
    events = Events()
    with simulate_cuda(), listening(events):
        simulated, got = program("cuda", chosen.width, chosen.tokens, chosen.steps)
    assert torch.equal(expected.view(torch.int32), got.view(torch.int32))
    one, other = statistics.median(plain), statistics.median(simulated)
    size = f"width {chosen.width}, {chosen.tokens} tokens"
    print(f"{size}: CPU {one * 1e3:.2f} ms a step, stand-in {other * 1e3:.2f} ms: {other / one:.2f} times")
    print(Counter(f"{event.kind} {event.call} line {event.line}" for event in events))


if __name__ == "__main__":
    main()
