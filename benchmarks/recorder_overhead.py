"""How much slower 10,000 small calls are while they are recorded: `python benchmarks/recorder_overhead.py [cuda|simulated]`.

All of it is measured in one run, turn by turn, and shown as a ratio to the same loop without a recorder.
"""
from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext

import torch

from hostlint.runtime_checks import record_host_events, simulate_cuda
from hostlint.runtime_checks.call_mode import noting_calls

CALLS = 10_000
TURNS = 7


def loop(x: torch.Tensor) -> float:
    began = time.perf_counter()
    for _ in range(CALLS):
        x.add_(1.0)
    return time.perf_counter() - began


def measured(device: str) -> dict[str, float]:
    """Seconds of each way, the median of the turns."""
    ways: dict[str, Callable[[], AbstractContextManager[object]]] = {
        "plain": nullcontext,
        "calls noted (what a GPU's recorder adds)": lambda: noting_calls(lambda call: None),
    }
    if device == "simulated":
        ways["stand-in, recorded"] = lambda: record_host_events("simulated")
        ways["stand-in alone"] = simulate_cuda
    else:
        ways["recorded"] = lambda: record_host_events("cuda")
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(TURNS):
        for way, enter in ways.items():
            with ExitStack() as stack:
                stack.enter_context(enter())
                x = torch.ones(16, device="cpu" if device == "simulated" and "stand-in" not in way else "cuda")
                loop(x)
                times[way].append(loop(x))
                if device == "cuda":
                    torch.cuda.synchronize()
    return {way: statistics.median(spent) for way, spent in times.items()}


def main() -> None:
    device = sys.argv[1] if len(sys.argv) > 1 else "cuda" if torch.cuda.is_available() else "simulated"
    found = measured(device)
    for way, spent in found.items():
        print(f"{way}: {spent / CALLS * 1e6:.2f} us a call, {spent / found['plain']:.2f} times")


if __name__ == "__main__":
    main()
