"""Faulty and corrected models on a GPU: bits, waits a step by the recorder, and the time that a step adds, written to h200.json.

    python benchmarks/fixed_models/on_gpu.py [--out FILE] [--rounds N] [NAME…]

Each model is timed at two sizes: `host`, where the host is what takes the time, and `gpu`, where the GPU has more to do than the host.
The time of a step is what more steps add to a run; faulty and corrected ones take turns; kept are the median and quartiles of the rounds.
"""
from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import time
import warnings
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any, ClassVar

import runs
import torch

from hostlint.runtime_checks import record_host_events
from hostlint.runtime_checks.bits import difference

FILE = Path(__file__).parent / "h200.json"
SIZES = {"host": {"width": 1024, "heads": 16, "blocks": 4, "length": 5}, "gpu": {"width": 1024, "heads": 16, "blocks": 4, "length": 2048}}
OWN = {("gpu", "qwen_image_vae"): {"width": 64, "length": 128}, ("gpu", "sampled_decoding"): {"batch": 64, "length": 256},
       ("gpu", "ring_attention"): {"length": 1025}}  # fmt: skip
FEW, MANY = 8, 40
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # for deterministic products; read at the first one
TRAINED = {"supervised_training"}  # its weights change, so that each run needs new ones


class Kept(runs.Request):
    """A request that draws a model's weights once, for they take longer than the steps."""

    made: ClassVar[dict[Any, Any]] = {}

    def seeded(self, make: Any, config: Any) -> Any:
        key = (make, str(config))
        if key not in self.made:
            self.made[key] = super().seeded(make, config)
        return self.made[key]


class Model:
    """One file of a system, faulty or corrected, at one size."""

    def __init__(self, name: str, module: Any, size: str) -> None:
        self.name, self.system, self.module = name, runs.SYSTEMS[name], module
        wanted = {**SIZES[size], **OWN.get((size, name), {})}
        known = {field.name for field in fields(module.Config)}
        self.request = runs.Request if name in TRAINED else Kept
        self.options = {**{key: value for key, value in wanted.items() if key in known}, **self.system.variants[0]}
        self.length, self.batch = wanted["length"], wanted.get("batch", 2)

    def run(self, steps: int, dtype: torch.dtype = torch.float32) -> object:
        request = self.request(steps, self.batch, self.length, dtype=dtype, device="cuda", options=self.options)
        return self.system.run(self.module, request)

    def waits(self, steps: int) -> int:
        with record_host_events("cuda") as events:
            self.run(steps)
        return sum(event.waits for event in events if event.kind not in ("flush", "collect"))

    def seconds(self, steps: int) -> float:
        torch.cuda.synchronize()
        began = time.perf_counter()
        self.run(steps)
        torch.cuda.synchronize()
        return time.perf_counter() - began

    def step_ms(self) -> float:
        """What more steps add, between two runs of few."""
        before = self.seconds(FEW)
        many = self.seconds(MANY)
        return (many - (before + self.seconds(FEW)) / 2) / (MANY - FEW) * 1e3


def measured(name: str, size: str, rounds: int) -> dict[str, Any]:
    models = [Model(name, runs.faulty(name), size), Model(name, runs.corrected(name), size)]
    compared = [(FEW, torch.float32), (MANY, torch.float32), (FEW, torch.bfloat16)]
    torch.use_deterministic_algorithms(name in TRAINED)  # gradients are summed in any order otherwise
    found = next(filter(None, (difference(*[model.run(*one) for model in models]) for one in compared)), "")
    torch.use_deterministic_algorithms(False)
    waits = [round((model.waits(MANY) - model.waits(FEW)) / (MANY - FEW), 2) for model in models]
    times: list[list[float]] = [[], []]
    gc.collect()
    gc.disable()
    for number in range(rounds):
        for side in (0, 1) if number % 2 else (1, 0):
            times[side].append(models[side].step_ms())
    gc.enable()
    return {"bits": found or "equal", "waits": waits, "step_ms": [[round(one, 3) for one in spread(spent)] for spent in times]}


def spread(spent: list[float]) -> tuple[float, float, float]:
    """The median, and the quartiles around it."""
    low, middle, high = statistics.quantiles(spent, n=4, method="inclusive")
    return middle, low, high


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, default=FILE)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    own = {" ".join(key): value for key, value in OWN.items()}
    where = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "date": str(date.today())}
    record: dict[str, Any] = {**where, "rounds": given.rounds, "sizes": SIZES, "own": own, "systems": {}}
    if given.names and given.out.exists():  # the others stay as they are
        record["systems"] = json.loads(given.out.read_text(encoding="utf-8"))["systems"]
    for name in given.names or sorted(runs.SYSTEMS):
        record["systems"][name] = {}
        for size in SIZES:
            began = time.perf_counter()
            try:
                record["systems"][name][size] = measured(name, size, given.rounds)
            except Exception as error:  # noqa: BLE001  one that does not fit is shown, the others go on
                record["systems"][name][size] = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
            print(name, size, record["systems"][name][size], f"{time.perf_counter() - began:.1f} s", flush=True)
        given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
