"""Times one call on the host, with a spin kernel queued before it and with an empty queue, and counts the debug mode's warnings."""
from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from statistics import median

import torch

SPIN_S = 0.02
REPEATS = 3
HOST_WORK_S = 0.01  # a call that holds the host so long with an empty queue is work of the host, whatever the device does
MARK = "called a synchronizing CUDA operation"
_CYCLES = 20_000_000


class Kind(str, Enum):
    FREE = "free"
    WAIT = "device-wait"
    HOST_WORK = "host-work"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Reading:
    """What was measured of one form; seconds are medians on the host."""

    blocks: bool  # the call returned only after the stream had drained
    debug_mode_warns: bool
    warnings: int
    kind: Kind
    idle_s: float
    busy_s: float

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "kind": self.kind.value, "idle_s": round(self.idle_s, 7), "busy_s": round(self.busy_s, 7)}


class Spin:
    """Keeps the current stream busy for a given time."""

    def __init__(self) -> None:
        self._per_second = max(self._rate() for _ in range(3))

    def _rate(self) -> float:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        start.record()
        torch.cuda._sleep(_CYCLES)  # type: ignore[no-untyped-call]
        end.record()
        end.synchronize()
        return float(_CYCLES / start.elapsed_time(end) * 1000)

    def start(self, seconds: float) -> torch.cuda.Event:
        """Returns an event behind the kernel: once it has come, the stream had drained."""
        torch.cuda._sleep(int(self._per_second * seconds))  # type: ignore[no-untyped-call]
        done = torch.cuda.Event()  # type: ignore[no-untyped-call]
        done.record()
        return done


def read(call: Callable[[], None], spin: Spin) -> Reading:
    """The call is run twice before anything counts, so that kernels are loaded and handles and blocks of memory exist."""
    for _ in range(2):
        call()
        torch.cuda.synchronize()
    warned = _warnings(call)
    torch.cuda.synchronize()
    idle = median(_timed(call) for _ in range(REPEATS))
    length = SPIN_S if idle < SPIN_S / 3 else min(3 * idle + SPIN_S, 1.0)
    return verdict(warned, idle, [_behind(call, spin, length) for _ in range(REPEATS)], length)


def verdict(warned: int, idle: float, behind: Sequence[tuple[float, bool]], length: float) -> Reading:
    """`behind`: for each repetition behind a kernel of `length` seconds, how long the call took and whether the stream had drained then.

    A wait must have seen the stream drain and have taken about as long: what works long on the host sees it drain as well.
    """
    busy = median(took for took, _ in behind)
    blocks = sum(drained for _, drained in behind) * 2 > len(behind) and busy > 0.6 * length
    kind = Kind.WAIT if blocks else Kind.HOST_WORK if idle > HOST_WORK_S else Kind.FREE
    return Reading(blocks, warned > 0, warned, kind, idle, busy)


def _timed(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    took = time.perf_counter() - began
    torch.cuda.synchronize()
    return took


def _behind(call: Callable[[], None], spin: Spin, length: float) -> tuple[float, bool]:
    done = spin.start(length)
    began = time.perf_counter()
    call()
    took = time.perf_counter() - began
    drained = bool(done.query())  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    return took, drained


def _warnings(call: Callable[[], None]) -> int:
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            call()
        finally:
            torch.cuda.set_sync_debug_mode(before)
    return sum(MARK in str(one.message) for one in caught)
