"""Inputs that are dictionaries, and devices that another branch picks: their keys and flags are the host's, what is read of tensors waits."""
import torch
from torch import nn


class Fuse(nn.Module):
    def forward(self, features, extras, x):
        if features:  # ok: a dictionary
            x = x + 1
        for name, feature in features.items():
            if name == "mask":  # ok: a key
                x = x * feature
            x = x[: x.argmax()]  # expect: HL107
        if "pooled" in extras:  # ok: a key
            x = x + extras["pooled"]
        for key, (low, high) in extras.items():
            if key == "other" and low > 3:  # ok: a pair of settings
                x = x + high
        if not extras.get("skip") or extras["flag"]:  # ok: settings
            x = x + 2
        return x


class Place(nn.Module):
    def __init__(self, use_gpu):
        super().__init__()
        self.use_gpu = use_gpu
        if use_gpu:
            self.device = torch.device("cuda")
        else:
            self.device = torch.device("cpu")
        self.kept = torch.zeros(4, device=self.device)

    def forward(self, x):
        if self.device.type == "cpu":
            return x * self.kept.sum().item()  # ok: off the accelerator
        if not self.use_gpu:
            return x * self.kept.max().item()  # ok: off the accelerator
        return x * self.kept.min().item()  # expect: HL101


class Packed(nn.Module):
    def forward(self, x, layouts, tables):
        for sample, layout in enumerate(layouts):
            x = x[sample : layout["encoder_seq_len"]]  # ok: a number of the layout
            x = x[: layout["shift_size"]] + x[: layout["row_index"]]  # ok: numbers of the layout
            if layout["rows"].any():  # expect: HL103
                x = x + 1
        return x[: tables["counts"].max()]  # expect: HL107
