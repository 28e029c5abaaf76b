"""Functions that take a tensor, or a number that they make one of: the numbers of a step wait, those that nobody passes do not."""
import torch


def quantize(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    if isinstance(scale, (int, float)):
        scale = torch.tensor([scale], device=x.device)  # ok: every step passes a tensor
    return x * scale


def shift(x: torch.Tensor, by) -> torch.Tensor:
    if isinstance(by, float):
        by = torch.tensor([by], device=x.device)  # expect: HL201
    return x + by


class Metadata:
    def __init__(self, device: str):
        self.kept = {"lens": torch.zeros(8, device="cuda")}
        self.lens = torch.zeros(8, device="cuda")

    def attend_step(self, x: torch.Tensor, i: int):
        plan = self.kept[i]
        x = x[: plan.longest]  # ok: a plan of this size, kept beside the tensors
        x = x[: self.lens.longest]  # ok: a number that hangs on the tensor
        return x[: self.kept["lens"][0]]  # expect: HL107


class Sampler:
    def run(self, model, tokens, scale: torch.Tensor, metadata: Metadata):
        for i, token in enumerate(tokens):
            token = quantize(token, scale)
            token = shift(token, 0.5)
            model(metadata.attend_step(token, i))
