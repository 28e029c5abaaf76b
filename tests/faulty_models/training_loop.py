"""A training loop that asks the device for numbers after every step: three questions, each of which empties its queue."""
from __future__ import annotations

import logging

import torch
from torch import nn

log = logging.getLogger(__name__)


def make_model(device: str = "cuda") -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)


def train_epoch(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: list[tuple[torch.Tensor, torch.Tensor]], device: str = "cuda"
) -> float:
    total = 0.0
    for inputs, targets in batches:
        inputs = inputs.to(device, non_blocking=True)
        targets = targets.to(device, non_blocking=True)
        loss = nn.functional.mse_loss(model(inputs), targets)
        if not torch.isfinite(loss):  # expect: HL103
            raise FloatingPointError("the loss is not finite")
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        log.info(f"loss {loss}")  # expect: HL106
        total += loss.item()  # expect: HL101
    return total / len(batches)
