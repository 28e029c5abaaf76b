"""Runs one program on the plain CPU and under simulate_cuda(), compares the bits and shows the events by place."""
from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from hostlint.runtime_checks.events import Frame, HostEvent, Origin
from hostlint.runtime_checks.simulated import simulate_cuda
from hostlint.runtime_checks.sinks import listening

Program = Callable[[str], Any]  # given a device's name, a tensor that lives there
SIZES = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Events(list[HostEvent]):
    """With marks between steps."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[int] = []

    def add(self, event: HostEvent) -> None:
        self.append(event)

    def end_of_step(self) -> None:
        self.steps.append(len(self))

    def in_steady_steps(self) -> list[HostEvent]:
        """Those between the end of the first step and that of the last but one: each step alike."""
        return self[self.steps[0] : self.steps[-2]] if len(self.steps) > 2 else []


current = Events()  # of the program that runs


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    first, second = (tensor.contiguous().view(SIZES[tensor.element_size()]) for tensor in (one, other))
    return torch.equal(first, second) or (bool((one.isnan() == other.isnan()).all()) and torch.equal(one.nan_to_num(), other.nan_to_num()))


def compare(name: str, program: Program, *, places: bool = True) -> bool:
    """Prints whether the bits agree, the CPU seconds of both runs and the events by place."""
    global current  # noqa: PLW0603  programs mark their steps in it
    try:
        current = Events()
        expected, plain_s = timed(program, "cpu")
        current = Events()
        with simulate_cuda(), listening(current):
            result, simulated_s = timed(program, "cuda")
            place, told = result.device.type, len(current)
            result = result.cpu()
    except Exception as error:  # noqa: BLE001  the program's or the stand-in's: shown, the others go on
        print(f"{name}: {type(error).__name__}: {str(error)[:200]}")
        traceback.print_exc(limit=-3)
        return False
    equal = place == "cuda" and same_bits(expected, result)
    steady = Counter(spelled(event) for event in current.in_steady_steps())
    count = max(1, len(current.steps) - 2)
    seconds = f"{plain_s:.2f} s, {simulated_s:.2f} s"
    print(f"{name}: {'equal' if equal else 'DIFFERS'}, {seconds}, {told} events, {sum(steady.values()) / count:g} a step")
    if places:
        for text, number in steady.most_common():
            print(f"    {number / count:g} a step: {text}")
    return equal


def timed(program: Program, device: str) -> tuple[Any, float]:
    torch.manual_seed(0)
    start = time.process_time()
    result = program(device)
    return result, time.process_time() - start


def spelled(event: HostEvent) -> str:
    at = next((frame for frame in event.stack if frame.origin in (Origin.USER, Origin.LIBRARY)), Frame("?", 0, "?"))
    return f"{event.kind} {event.call} at {at.path.rpartition('site-packages/')[2]}:{at.line} in {at.function}"
