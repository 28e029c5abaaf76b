"""`step()`: the program says where a step begins."""
from __future__ import annotations

import time

from hostlint.runtime_checks.sinks import listeners


def step() -> None:
    """Marks the start of a step, for recorders that count per step; costs next to nothing when nobody records."""
    for sink in listeners():
        begins = getattr(sink, "begin_step", None)
        if begins is not None:
            begins(time.perf_counter())
