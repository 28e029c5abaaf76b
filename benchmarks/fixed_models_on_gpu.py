"""Faulty and corrected models on a GPU: bits, waits a step by the recorder, and the time of a step, turn by turn.

    python benchmarks/fixed_models_on_gpu.py [NAME…]

The time of a step is what more steps add to a run; shown are the median and the range of the rounds.
"""
from __future__ import annotations

import statistics
import sys
import time
import warnings
from dataclasses import fields
from datetime import date
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch

from hostlint.runtime_checks import record_host_events
from hostlint.runtime_checks.bits import difference

DRIVERS = Path(__file__).resolve().parent.parent / "tests" / "runtime_checks" / "test_fixed_models.py"
SIZES = {"width": 1024, "heads": 16, "blocks": 4}
FEW, MANY, ROUNDS = 4, 36, 5
TRAINED = {"supervised_training"}  # its weights change, so that each run needs new ones


def drivers() -> Any:
    """The tests' own way to run each model."""
    spec = spec_from_file_location("drivers", DRIVERS)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["drivers"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kept_weights(tests: Any) -> Any:
    """A request that draws a model's weights once, for they take longer than the steps."""
    made: dict[Any, Any] = {}

    class Kept(tests.Request):  # type: ignore[misc]  # a class of a module that is loaded by its path
        def seeded(self, make: Any, config: Any) -> Any:
            key = (make, str(config))
            if key not in made:
                made[key] = super().seeded(make, config)
            return made[key]

    return Kept


class Model:
    """One file of a system, faulty or corrected."""

    def __init__(self, tests: Any, name: str, module: Any) -> None:
        self.tests = tests
        self.system = tests.SYSTEMS[name]
        self.module = module
        known = {field.name for field in fields(module.Config)}
        self.request = tests.Request if name in TRAINED else kept_weights(tests)
        self.options = {**{key: size for key, size in SIZES.items() if key in known}, **self.system.variants[0]}

    def run(self, steps: int) -> object:
        return self.system.run(self.module, self.request(steps=steps, device="cuda", options=self.options))

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

    def step_s(self) -> float:
        few = min(self.seconds(FEW) for _ in range(2))
        return max(self.seconds(MANY) - few, 0.0) / (MANY - FEW)


def row(tests: Any, name: str) -> str:
    models = [Model(tests, name, tests.faulty(name)), Model(tests, name, tests.corrected(name))]
    results = [model.run(FEW) for model in models]
    found = difference(*results) or difference(*[model.run(MANY) for model in models])
    waits = [(model.waits(MANY) - model.waits(FEW)) / (MANY - FEW) for model in models]
    times: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for model, spent in zip(models, times, strict=True):
            spent.append(model.step_s() * 1e3)
    shown = [f"{statistics.median(spent):.2f} ms ({min(spent):.2f}–{max(spent):.2f})" for spent in times]
    return f"| `{name}` | {found or 'equal'} | {waits[0]:g} → {waits[1]:g} | {shown[0]} | {shown[1]} |"


def main() -> None:
    warnings.simplefilter("ignore")
    tests = drivers()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {date.today()}; {SIZES}, float32, {ROUNDS} rounds")
    print("| system | bits | waits a step | step before | step after |\n| --- | --- | --- | --- | --- |")
    for name in sys.argv[1:] or tests.SYSTEMS:
        try:
            print(row(tests, name), flush=True)
        except Exception as error:  # noqa: BLE001, PERF203  one that does not fit is shown, the others go on
            print(f"| `{name}` | {type(error).__name__}: {str(error)[:120]} | | | |", flush=True)


if __name__ == "__main__":
    main()
