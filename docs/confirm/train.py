"""A training loop as most people write it, for `hostlint confirm`: the loss is read at each step, the gradients are tested for NaN."""
from __future__ import annotations

import sys

import torch
from torch import nn
from torch.nn import functional


class Classifier(nn.Module):
    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = torch.tensor(0.125, device=x.device)
        return self.layers(x * scale)


def accuracy(logits: torch.Tensor, labels: torch.Tensor) -> float:
    return (logits.argmax(-1) == labels).float().mean().item()


def train(steps: int) -> None:
    device = torch.device("cuda")
    model = Classifier().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    total, right = 0.0, 0.0
    for _ in range(steps):
        images = torch.randn(128, 64, device=device)
        labels = torch.randint(0, 10, (128,), device=device)
        logits = model(images)
        loss = functional.cross_entropy(logits, labels)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if torch.isnan(norm):
            continue
        optimizer.step()
        optimizer.zero_grad()
        total += loss.item()
        right += accuracy(logits, labels)
    print(f"loss {total / steps:.3f}, accuracy {right / steps:.3f}")


if __name__ == "__main__":
    train(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
