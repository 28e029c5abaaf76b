"""From which size a non_blocking copy between the device and host memory makes the host wait, in both directions."""
from __future__ import annotations

import platform
from collections.abc import Callable
from datetime import date
from enum import Enum

import torch

from hostlint.runtime_checks.measure_waits.gpu import Kind, Spin, read

SIZES = tuple(1 << power for power in range(10, 29, 2))
LARGEST = 1 << 28
WHAT = "Does a non_blocking copy of this many bytes make the host wait? Pageable and pinned memory, up to the device and down from it."


class Way(Enum):
    PAGEABLE_UP = "pageable"
    PINNED_UP = "pinned"
    PAGEABLE_DOWN = "pageable_down"
    PINNED_DOWN = "pinned_down"


def copy(way: Way, size: int) -> Callable[[], None]:
    """One copy of `size` bytes into memory that is there already."""
    host = torch.zeros(size, dtype=torch.uint8, pin_memory=way in (Way.PINNED_UP, Way.PINNED_DOWN))
    device = torch.zeros(size, dtype=torch.uint8, device="cuda")
    target, source = (device, host) if way in (Way.PAGEABLE_UP, Way.PINNED_UP) else (host, device)

    def call() -> None:
        target.copy_(source, non_blocking=True)

    return call


def waits(way: Way, size: int, spin: Spin) -> bool:
    return read(copy(way, size), spin).kind is Kind.WAIT


def threshold(way: Way, spin: Spin) -> tuple[int | None, int | None]:
    """The largest size seen not to wait and the smallest seen to wait, between 1 byte and 256 MiB; None where there is none."""
    if waits(way, 1, spin):
        return None, 1
    if not waits(way, LARGEST, spin):
        return LARGEST, None
    low, high = 1, LARGEST
    while high - low > 1:
        middle = (low + high) // 2
        if waits(way, middle, spin):
            high = middle
        else:
            low = middle
    return low, high


def measured() -> dict[str, object]:
    """What the file of copy sizes holds; the two thresholds without a direction are those of a pageable upload."""
    spin = Spin()
    by_way = {way.value: {str(size): waits(way, size, spin) for size in SIZES} for way in Way}
    up, down = threshold(Way.PAGEABLE_UP, spin), threshold(Way.PAGEABLE_DOWN, spin)
    return {
        "what": WHAT,
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": date.today().isoformat(),
        **by_way,
        "largest_without_wait": up[0],
        "smallest_with_wait": up[1],
        "largest_without_wait_down": down[0],
        "smallest_with_wait_down": down[1],
    }
