"""Flags, keys and numbers that are named after tensors, beside the tensors."""
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, width: int, drop: float):
        super().__init__()
        self.table = nn.Buffer(torch.arange(width))
        self.plain = torch.arange(width)
        self.layerdrop = drop
        self.weight = nn.Parameter(torch.ones(width))
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(4))

    def forward(self, hidden_states, output_hidden_states=None, ref_latents=None, extra=None, cache=None, num_embeds=None):
        if output_hidden_states:  # ok: a flag
            hidden_states = hidden_states + 1
        if ref_latents:  # ok: a list, or None: a tensor of several elements has no truth
            hidden_states = hidden_states + 2
        if "mask" in extra:  # ok: a key
            hidden_states = hidden_states + 3
        if any(mode in extra for mode in ("text", "image")):  # ok: keys
            hidden_states = hidden_states + 9
        if 3 in hidden_states:  # expect: HL103
            hidden_states = hidden_states + 4
        if self.weight.generation > 1:  # ok: a number that hangs on the parameter
            hidden_states = hidden_states + 7
        if self.weight[0] > 1:  # expect: HL103
            hidden_states = hidden_states + 8
        start = cache.get_seq_length()
        if start > 0:  # ok: what an object is asked for is a number
            hidden_states = hidden_states + 5
        if hidden_states.sum() > 0:  # expect: HL103
            hidden_states = hidden_states + 6
        hidden_states = hidden_states[:, :num_embeds]  # ok: a number
        hidden_states = hidden_states[self.table.to(hidden_states.device)]  # ok: it moved with its module
        hidden_states = hidden_states[self.plain.to(hidden_states.device)]  # expect: HL203
        for block in self.blocks:
            chance = torch.rand([])
            if chance < self.layerdrop:  # ok: both on the host
                continue
            hidden_states = block(hidden_states)
        return hidden_states


def names(model: nn.Module, hidden: torch.Tensor, module: nn.Module) -> str:
    known = {each: name for name, each in model.named_modules()}
    return f"{known[module]}: {hidden.mean():.2f}"  # expect: HL106


class Cached(nn.Module):
    def forward(self, x, caches, finished, norms):
        cache = caches[0]
        if cache:  # ok: a dictionary, or None
            x = x + cache["key"]
        if finished[0]:  # expect: HL103
            x = x + 1
        if norms[0]:  # expect: HL103
            x = x + 2
        return x


class Tower(nn.Module):
    def __init__(self, build, device: torch.device):
        super().__init__()
        self.tower = build().to(device)

    def forward(self, pixels: torch.Tensor, grid_thw: torch.Tensor, counts: torch.Tensor):
        if self.tower.patch_size > 14:  # ok: a setting of the tower that was moved
            pixels = pixels[..., ::2]
        if self.tower(pixels).last_hidden_state.mean() > 0:  # expect: HL103
            pixels = pixels + 1
        sizes = grid_thw.tolist()  # ok: may be the host's
        return pixels, sizes, counts.tolist()  # expect: HL105


class Named(nn.Module):
    def forward(self, hidden_states, module):
        return names(self, hidden_states, module), f"{dict(self.named_modules())}"  # ok: modules
