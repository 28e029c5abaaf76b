"""Words that are made when an error is raised cost a step nothing; those that are handed over ready read the device each time."""
import torch
from torch import nn

from checks import verify


class Merge(nn.Module):
    def __init__(self, side: torch.cuda.Stream, corpus, kind: str):
        super().__init__()
        self.side_stream = side
        self.corpus = corpus

    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        count = mask.sum()
        torch._check(x.shape[0] > 0, lambda: f"no rows for {int(count)} places")  # ok: made when asked for
        verify(x.shape[0] > 0, message=lambda: f"{count} places, " f"{int(count)} rows")  # ok: made when asked for
        verify(x.shape[0] > 0, message=f"{count} places")  # expect: HL106
        kinds = [x.__class__.__name__, type(x).__name__]
        if x.__class__.__name__ not in ("Packed", "Nested") or x.__dict__ == {}:  # ok: what every object has
            x = x + 1
        self.corpus.synchronize()  # ok: nobody says that the device is behind it
        self.side_stream.synchronize()  # expect: HL117
        return x, kinds
