"""Holds the stand-in's events against a real GPU's, place by place, for pipelines of diffusers: needs a GPU and diffusers.

    python benchmarks/simulated_against_gpu.py [NAME…]
"""
from __future__ import annotations

import sys
import warnings
from collections import Counter

import diffusers
import simulated_compare
import torch
from simulated_pipelines import PIPELINES, program

from hostlint.runtime_checks.events import EventKind
from hostlint.runtime_checks.recorder import recording

PAUSES = (EventKind.FLUSH, EventKind.COLLECT)


def events_per_place(name: str, device: str) -> tuple[Counter[str], Counter[str]]:
    """Those of the steady steps, and those of the whole run, each as the text that says what and where."""
    torch.manual_seed(0)
    sink = simulated_compare.current = simulated_compare.Events()
    with recording(sink, device):
        program(PIPELINES[name])("cuda")
    in_steps = Counter(simulated_compare.spelled(event) for event in sink.in_steady_steps() if event.kind not in PAUSES)
    return in_steps, Counter(simulated_compare.spelled(event) for event in sink if event.kind not in PAUSES)


def main() -> None:
    warnings.simplefilter("ignore")
    diffusers.utils.logging.set_verbosity_error()
    names = sys.argv[1:] or list(PIPELINES)
    same = 0
    for name in names:
        events_per_place(name, "cuda")  # kernels are loaded and handles made
        (real, all_real), (told, all_told) = events_per_place(name, "cuda"), events_per_place(name, "simulated")
        same += real == told
        print(f"{name}: {'equal' if real == told else 'DIFFERS'} in the steps ({real.total()} events, {len(real)} places)")
        print(f"    in the whole run {all_real.total()} on the GPU, {all_told.total()} on the stand-in")
        for text in sorted({*all_real, *all_told}):
            if all_real[text] != all_told[text]:
                where = " (in the steps)" if text in real or text in told else ""
                print(f"    {all_real[text]} on the GPU, {all_told[text]} on the stand-in{where}: {text}")
    print(f"{same} of {len(names)} equal in their steps")


if __name__ == "__main__":
    main()
