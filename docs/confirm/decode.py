"""A decode loop as most people write it, for `hostlint confirm`: a penalty by mask, an end test and a length read at each token."""
from __future__ import annotations

import sys

import torch
from torch import nn

EOS = 0


class Decoder(nn.Module):
    def __init__(self, words: int = 512, width: int = 128) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.mix = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor, state: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        hidden, state = self.mix(self.embed(tokens), state)
        return self.head(hidden[:, -1]), state


@torch.inference_mode()
def generate(model: Decoder, prompt: torch.Tensor, limit: int) -> torch.Tensor:
    seen = torch.zeros(prompt.shape[0], model.head.out_features, dtype=torch.bool, device=prompt.device)
    lengths = torch.zeros(prompt.shape[0], dtype=torch.long, device=prompt.device)
    done = torch.zeros(prompt.shape[0], dtype=torch.bool, device=prompt.device)
    tokens, state, out = prompt, None, []
    for _ in range(limit):
        logits, state = model(tokens, state)
        logits[seen] *= 0.8
        tokens = torch.multinomial(logits.softmax(-1), 1)
        seen.scatter_(1, tokens, True)
        done = done | (tokens[:, 0] == EOS)
        lengths = lengths + (~done)
        out.append(tokens)
        if done.all() or int(lengths.max()) >= limit:
            break
    return torch.cat(out, dim=1)


if __name__ == "__main__":
    torch.manual_seed(0)
    decoder = Decoder().to("cuda").eval()
    start = torch.randint(1, 512, (4, 8), device="cuda")
    print(tuple(generate(decoder, start, int(sys.argv[1]) if len(sys.argv) > 1 else 32).shape))
