"""From which size does a pageable non_blocking upload make the host wait? Needs a CUDA GPU and torch; prints one JSON object."""
from __future__ import annotations

import json
import platform
import time
from datetime import date

import torch

SPIN_SECONDS = 0.03
REPEATS = 5


def spin_cycles() -> int:
    """Clock cycles that keep the device busy for about SPIN_SECONDS."""
    cycles = 10_000_000
    torch.cuda._sleep(cycles)
    torch.cuda.synchronize()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    torch.cuda._sleep(cycles)
    end.record()
    end.synchronize()
    return int(cycles * SPIN_SECONDS * 1000 / start.elapsed_time(end))


def waits(size: int, cycles: int, pinned: bool) -> bool:
    """Whether the copy, issued while a spin kernel keeps the stream busy, returns only after the kernel."""
    source = torch.zeros(size, dtype=torch.uint8, pin_memory=pinned)
    source.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    took = []
    for _ in range(REPEATS):
        torch.cuda._sleep(cycles)
        began = time.perf_counter()
        source.to("cuda", non_blocking=True)
        took.append(time.perf_counter() - began)
        torch.cuda.synchronize()
    return sorted(took)[REPEATS // 2] > SPIN_SECONDS / 2


def threshold(cycles: int) -> tuple[int, int]:
    """The largest size seen not to wait and the smallest seen to wait, by bisection between 1 byte and 256 MiB."""
    low, high = 1, 1 << 28
    while high - low > 1:
        middle = (low + high) // 2
        if waits(middle, cycles, pinned=False):
            high = middle
        else:
            low = middle
    return low, high


def main() -> None:
    cycles = spin_cycles()
    sizes = [1 << power for power in range(10, 29, 2)]
    low, high = threshold(cycles)
    print(
        json.dumps(
            {
                "gpu": torch.cuda.get_device_name(),
                "torch": torch.__version__,
                "python": platform.python_version(),
                "date": date.today().isoformat(),
                "pageable": {str(size): waits(size, cycles, pinned=False) for size in sizes},
                "pinned": {str(size): waits(size, cycles, pinned=True) for size in sizes},
                "largest_without_wait": low,
                "smallest_with_wait": high,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
