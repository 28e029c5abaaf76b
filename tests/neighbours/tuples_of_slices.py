"""Tuples of slices select without an upload; lists of numbers go up to the device."""
import torch


def fill(model, loader):
    for rows in loader:
        x = torch.zeros(4, 4, device="cuda")
        where = (slice(0, 2), *(slice(0, size) for size in rows.shape[1:]))
        x[where] = rows  # ok: views
        where = (slice(0, 2),) + tuple(slice(0, size) for size in rows.shape[1:])
        x[where] = rows  # ok: views
        there = [0, 1] + [i for i in range(2)]
        x[there] = rows  # expect: HL204
        model(x)
