"""Greedy transducer decoding, symbol by symbol."""
import torch


def greedy(joint, encoded, blank: int, limit: int):
    encoded = encoded.to("cuda")  # neutral: fresh input
    batch, frames = encoded.shape[0], encoded.shape[1]  # ok: host metadata
    label = torch.full((batch,), blank, device="cuda")
    done = torch.zeros(batch, dtype=torch.bool, device="cuda")
    emitted = torch.zeros(frames, device="cuda")
    for t in range(frames):
        symbols = 0
        done.zero_()
        while symbols < limit and not done.all():  # expect: truth-test
            fresh = joint(encoded[:, t], label).argmax(-1)  # ok: host integer
            done |= fresh == blank
            label = torch.where(done, label, fresh)  # ok: three arguments
            symbols += 1
        emitted[t] = float(symbols)  # expect: host-upload
        emitted[t : t + 1] += 1.0  # ok: a slice is filled by a kernel
    return label.tolist(), emitted  # ok: once, after the loop
