"""A decode loop that reads every token, and looks for repeated ones through a boolean mask: three waits a token."""
from __future__ import annotations

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, tokens: int = 32, width: int = 16, device: str = "cuda") -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width, device=device)
        self.cell = nn.GRUCell(width, width, device=device)
        self.head = nn.Linear(width, tokens, device=device)

    def forward(self, token: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = self.cell(self.embedding(token), state)
        return self.head(state), state


@torch.inference_mode()
def generate(model: Decoder, start: torch.Tensor, state: torch.Tensor, end: int, longest: int = 20, penalty: float = 1.3) -> list[int]:
    """Greedy decoding of one sequence, tokens seen before made less likely."""
    token = start
    seen = torch.zeros(1, model.head.out_features, dtype=torch.bool, device=start.device)
    output: list[int] = []
    for _ in range(longest):
        logits, state = model(token, state)
        logits[seen] /= penalty  # expect: HL112
        token = logits.argmax(dim=-1)
        seen.scatter_(1, token[:, None], True)
        if token == end:  # expect: HL103
            break
        output.append(token.item())  # expect: HL101
    return output
