"""How often the stand-in says of a call what was measured of it on a GPU; prints the calls on which they differ.

    python benchmarks/simulated_agreement.py [--group GROUP]
"""
from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import warnings
from pathlib import Path
from typing import Any

import torch

from hostlint.runtime_checks.events import EventKind, HostEvent
from hostlint.runtime_checks.measure_waits.catalogue import Form, forms
from hostlint.runtime_checks.measure_waits.gpu import REPEATS
from hostlint.runtime_checks.measure_waits.program import Program
from hostlint.runtime_checks.simulated import simulate_cuda
from hostlint.runtime_checks.sinks import listening
from hostlint.torch_ops.table import FOLDER, MEASUREMENT

PAUSES = (EventKind.FLUSH, EventKind.COLLECT)  # work of the host, not a wait for the device


class Events(list[HostEvent]):
    def add(self, event: HostEvent) -> None:
        self.append(event)


def entries() -> list[dict[str, Any]]:
    document: dict[str, Any] = json.loads((Path(FOLDER) / f"{MEASUREMENT}.json").read_text(encoding="utf-8"))
    calls: list[dict[str, Any]] = document["calls"]
    return calls


def measured() -> dict[str, bool]:
    return {entry["call"]: entry["blocks"] for entry in entries() if entry["blocks"] is not None and entry.get("kind") != "host-work"}


def errors() -> set[str]:
    """The calls that raise on the GPU as well."""
    return {entry["call"] for entry in entries() if entry["blocks"] is None}


def simulated(form: Form) -> list[HostEvent] | str:
    """The events of one form, or why it did not run."""
    try:
        with simulate_cuda():
            program = Program(form, "cuda")
            runs = []
            for _ in range(REPEATS):
                events = Events()
                with listening(events), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    program.run()
                runs.append([event for event in events if event.kind not in PAUSES])
    except Exception as error:  # noqa: BLE001  whatever a form raises is its result
        return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    return sorted(runs, key=len)[REPEATS // 2]


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--group")
    chosen = options.parse_args()
    logging.disable(logging.NOTSET)
    warnings.simplefilter("ignore")
    known, refused = measured(), errors()
    agree = differ = failed = 0
    for form in forms():
        if chosen.group not in (None, form.group):
            continue
        found = simulated(form)
        blocks = known.get(form.call)
        if isinstance(found, str) and form.call in refused:
            agree += 1
        elif isinstance(found, str):
            failed += 1
            print(f"not run  {form.group:12} {form.call:60} {found}")
        elif form.call in refused:
            differ += 1
            print(f"accepted {form.group:12} {form.call}")
        elif blocks is None:
            continue
        elif bool(found) is blocks:
            agree += 1
        else:
            differ += 1
            print(f"differs  {form.group:12} {form.call:60} measured {blocks}, {[f'{one.kind} {one.call}' for one in found]}")
    torch.manual_seed(0)
    print(f"{agree} agree, {differ} differ, {failed} not run, of {len(known)} measured: {agree / max(1, agree + differ):.1%}")


if __name__ == "__main__":
    main()
