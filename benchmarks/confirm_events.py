"""Ten million events of a recorded process: exact counts in bounded memory. `python benchmarks/confirm_events.py [EVENTS]`."""
from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

from hostlint.runtime_checks.confirm.counters import Counters, read_processes
from hostlint.runtime_checks.confirm.counting import CountingSink, Paths
from hostlint.runtime_checks.confirm.plan import Plan
from hostlint.runtime_checks.events import EventKind, HostEvent
from hostlint.runtime_checks.frames import current_stack

PLACES = 500


def memory() -> int:
    """The most that this process has held, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    stack = current_stack()
    with tempfile.TemporaryDirectory() as name:
        counters = Counters(Path(name))
        counters.open({})
        sink = CountingSink(counters, Plan("cuda"), Paths(()))
        events = [HostEvent(EventKind.READ, f"{n}.py", n, "f", stack, "Tensor.item", "MainThread", 0.0, 1e-6, 4) for n in range(PLACES)]
        before, began = memory(), time.perf_counter()
        for number in range(count):
            sink.add(events[number % PLACES])
        spent = time.perf_counter() - began
        (process,) = read_processes(Path(name))
        size = sum(file.stat().st_blocks * 512 for file in Path(name).iterdir())
    counted = sum(slot.count for slot in process.slots)
    print(f"{counted} of {count} events counted at {len(process.slots)} places; {spent / count * 1e6:.2f} us an event")
    print(f"memory {before} MiB before, {memory()} MiB after; {size / 2**20:.1f} MiB on disk")


if __name__ == "__main__":
    main()
