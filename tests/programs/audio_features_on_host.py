"""Feature extraction in a dataset: everything is a CPU tensor, whatever it is called."""
import numpy as np
import torch
from torch.utils.data import Dataset


class Clips(Dataset):
    def __init__(self, waves, rate: int):
        self.waves = [torch.as_tensor(w, dtype=torch.float32) for w in waves]
        self.rate = rate
        self.window = torch.hann_window(400)

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, i):
        wave = self.waves[i]
        loud = wave.abs() > 0.01
        if not loud.any():  # ok: host tensor
            return wave.numpy(), 0.0  # ok: host tensor
        spans = loud.nonzero().squeeze(1)  # ok: host tensor
        first, last = spans[0].item(), spans[-1].item()  # ok: host tensors
        wave = wave[first : last + 1]  # ok: Python integers
        wave[wave.abs() < 1e-4] *= 0.0  # ok: host tensor
        spectrum = torch.stft(wave, 400, window=self.window, return_complex=True).abs()
        peak = float(spectrum.max())  # ok: host tensor
        return np.asarray(spectrum) / max(peak, 1e-5), len(wave) / self.rate  # ok: host tensor


def collate(items):
    longest = max(len(x) for x, _ in items)  # ok: lengths
    rows = torch.zeros(len(items), longest)
    for i, (x, _) in enumerate(items):
        rows[i, : len(x)] = torch.as_tensor(x)  # ok: host tensors
    return rows, torch.tensor([s for _, s in items])  # ok: host tensor
