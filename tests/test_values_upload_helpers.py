"""A loader's batch that a helper of the project uploads: told only where the helper could copy without waiting and is not asked to."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

PROGRAM = """\
import torch


def send_to_device(tensors, device, non_blocking=False, skip=None):
    return [tensor.to(device, non_blocking=non_blocking) for tensor in tensors]


def move_to_device(tensors, device, *, non_blocking=True):
    return [tensor.to(device, non_blocking=non_blocking) for tensor in tensors]


def to_cuda(tensors):
    return [tensor.cuda() for tensor in tensors]


def _to_gpu(tensors, non_blocking=False):
    return [tensor.cuda(non_blocking=non_blocking) for tensor in tensors]


def train(model, optimizer, loader, device, state, flag):
    batches = iter(loader)
    while True:
        batch = next(batches)
        {line}
        model(batch).loss.backward()
        optimizer.step()
"""


def told(line: str) -> list[str]:
    findings, errors = scan_text(PROGRAM.format(line=line), "train.py")
    assert not errors
    return [finding.message for finding in findings if finding.code == "HL203"]


@pytest.mark.parametrize("line", [
    "batch = send_to_device(batch, device)",
    "batch = send_to_device(batch, device=device, skip=None)",
    "batch = _to_gpu(batch)",
    "state.batch = send_to_device(state.batch, device)",
])
def test_a_flag_that_is_left_out_makes_the_host_wait(line: str) -> None:
    assert len(told(line)) == 1
    assert "non_blocking=True" in told(line)[0]


@pytest.mark.parametrize("line", [
    "batch = send_to_device(batch, device, non_blocking=True)",
    "batch = send_to_device(batch, device, True)",
    "batch = send_to_device(batch, device, non_blocking=flag)",  # the caller decides
    "batch = move_to_device(batch, device)",  # does not wait by itself
    "batch = to_cuda(batch)",  # cannot be asked: told where the helper copies, if at all
    "state = send_to_device(state, device)",  # most likely moved before
    "model = send_to_device(model, device)",
    "batch = elsewhere.send_to_device(batch, device)",  # nobody knows the helper
    "batch = send_to_device(torch.zeros(4, device=device), device)",
])
def test_what_does_not_wait_or_is_not_known_is_silent(line: str) -> None:
    assert told(line) == []
