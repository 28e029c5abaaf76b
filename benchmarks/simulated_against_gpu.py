"""Events per step, place by place: a real GPU beside the stand-in, for pipelines of diffusers. Needs a GPU and what those need.

    python benchmarks/simulated_against_gpu.py [NAME…]
"""
from __future__ import annotations

import sys
import warnings
from collections import Counter
from typing import TYPE_CHECKING

import diffusers
import simulated_compare
import torch
from simulated_pipelines import PIPELINES, program

from hostlint.runtime_checks import record_host_events

if TYPE_CHECKING:
    from hostlint.runtime_checks.events import HostEvent

CHOSEN = ("Lumina2", "Wan", "CogVideoX")
PAUSES = ("flush", "collect")


def main() -> None:
    warnings.simplefilter("ignore")
    diffusers.utils.logging.set_verbosity_error()
    for name in sys.argv[1:] or CHOSEN:
        real, simulated = (places(name, device) for device in ("cuda", "simulated"))
        print(f"{name}: {sum(real.values())} events on the GPU, {sum(simulated.values())} under the stand-in, in the steady steps")
        for place in sorted(real.keys() | simulated.keys()):
            mark = " " if real[place] == simulated[place] else "!"
            print(f"  {mark} {real[place]:4} {simulated[place]:4}  {place}")


def places(name: str, device: str) -> Counter[str]:
    """How many events of each kind there were at each place between the first step and the last."""
    run = program(PIPELINES[name])
    marks = simulated_compare.current = simulated_compare.Events()
    with record_host_events(device=device) as events:
        marks.end_of_step = lambda: marks.steps.append(len(events))  # type: ignore[method-assign]  # the recorder's list counts
        torch.manual_seed(0)
        run("cuda")
    kept = events[marks.steps[0] : marks.steps[-2]]
    return Counter(place(event) for event in kept if event.kind not in PAUSES)


def place(event: HostEvent) -> str:
    return simulated_compare.spelled(event).partition(" at ")[2] + f": {event.kind}"


if __name__ == "__main__":
    main()
