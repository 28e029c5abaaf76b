"""Inputs of a forward that say no type: those that are counted up to or named as sizes are numbers, the others tensors."""
import torch
from torch import nn


class Windows(nn.Module):
    def forward(self, x, groups, input_dimensions, resolution, lengths):
        height, width = input_dimensions
        x = x.view(-1, height, width)  # ok: sizes
        x = x[: resolution[0]]  # ok: a size
        parts = x.split(x.shape[0] // groups)  # ok: counted up to below
        for group in range(groups):
            x = x + parts[group]
        for row in range(lengths[0]):  # expect: HL107
            x = x + row
        return x[: lengths[1]]  # expect: HL107


class Matcher(nn.Module):
    def forward(self, costs, repeats, scores):
        rows = [costs.split(costs.shape[0] // repeats)[r] for r in range(repeats)]  # ok: a number
        return rows[0][: scores[0]]  # expect: HL107


class Upsampler(nn.Module):
    def forward(self, x, target_resolutions):
        return nn.functional.pad(x, (0, target_resolutions[0]))  # ok: sizes


def training_step(model, x: torch.Tensor, optimizer, scheduler):
    last_lr = scheduler.get_last_lr()[0]
    if torch.is_tensor(last_lr):
        last_lr = last_lr.item()  # ok: rates are numbers
    loss = model(x)
    if torch.is_tensor(loss):
        return loss.item(), last_lr  # expect: HL101
    return loss, last_lr


def run_steps(model, batches, optimizer, scheduler):
    for batch in batches:
        training_step(model, batch, optimizer, scheduler)
