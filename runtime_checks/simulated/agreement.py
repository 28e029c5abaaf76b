"""Runs measured call forms under the stand-in and says where it and the GPU differ; a command, `python -m` with this module's name."""
from __future__ import annotations

import argparse
import io
import json
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from enum import Enum
from typing import Any

from torch.distributions import Distribution

from hostlint.runtime_checks.events import EventKind, HostEvent
from hostlint.runtime_checks.measure_waits.catalogue import Form, forms
from hostlint.runtime_checks.measure_waits.gpu import REPEATS
from hostlint.runtime_checks.measure_waits.program import Program
from hostlint.runtime_checks.simulated import simulate_cuda
from hostlint.runtime_checks.sinks import listening
from hostlint.torch_ops.table import FOLDER, MEASUREMENT

PAUSES = (EventKind.FLUSH, EventKind.COLLECT)  # work of the host and the allocator, not a wait for what is queued


class Verdict(str, Enum):
    WAITS = "waits"
    FREE = "free"
    RAISES = "raises"
    PAUSES = "pauses"  # no wait, but a flush or collection, whose length no table tells


@dataclass(frozen=True, slots=True)
class Compared:
    """One form that was measured: on the GPU, and under the stand-in."""

    group: str
    call: str
    measured: Verdict
    simulated: Verdict
    detail: str  # the events, or the error

    @property
    def runs(self) -> bool:
        """Whether the form can be run without a GPU."""
        return self.simulated is not Verdict.RAISES or self.measured is Verdict.RAISES

    @property
    def agrees(self) -> bool:
        return self.measured is self.simulated


class _Events(list[HostEvent]):
    def add(self, event: HostEvent) -> None:
        self.append(event)


def measured() -> dict[str, Verdict]:
    """What the table's measurement says of each call; work of the host alone is left out."""
    document: dict[str, Any] = json.loads((FOLDER / f"{MEASUREMENT}.json").read_text(encoding="utf-8"))
    names = {True: Verdict.WAITS, False: Verdict.FREE, None: Verdict.RAISES}
    return {entry["call"]: names[entry["blocks"]] for entry in document["calls"] if entry.get("kind") != "host-work"}


def simulated(form: Form) -> tuple[Verdict, str]:
    """The middle one of as many runs as on the GPU, each with the same objects: a form may change them."""
    runs: list[list[HostEvent]] = []
    Distribution.set_default_validate_args(True)  # as in the process that measured: torch.compile switches it off
    try:
        with simulate_cuda(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            program = Program(form, "cuda")
            for _ in range(REPEATS):
                events = _Events()
                with listening(events):
                    program.run()
                runs.append(events)
    except Exception as error:  # noqa: BLE001  whatever a form raises is its result
        return Verdict.RAISES, f"{type(error).__name__}: {' '.join(str(error).split())}"
    typical = sorted(runs, key=_waits)[REPEATS // 2]
    told = ", ".join(f"{event.kind} {event.call}" for event in typical)
    return (Verdict.WAITS if _waits(typical) else Verdict.PAUSES if typical else Verdict.FREE), told


def _waits(events: list[HostEvent]) -> int:
    return sum(event.kind not in PAUSES for event in events)


def compared(chosen: Iterable[Form]) -> Iterator[Compared]:
    known = measured()
    for form in chosen:
        if form.call in known:
            yield Compared(form.group, form.call, known[form.call], *simulated(form))


def share(found: Iterable[Compared]) -> tuple[int, int]:
    """How many agree, of how many that can be run here and are no pauses."""
    counted = [one for one in found if one.runs and one.simulated is not Verdict.PAUSES]
    return sum(one.agrees for one in counted), len(counted)


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m hostlint.runtime_checks.simulated.agreement", description=__doc__)
    options.add_argument("--group", help="only this group of forms")
    group = options.parse_args().group
    warnings.simplefilter("ignore")
    found = list(compared(form for form in forms() if group in (None, form.group)))
    for one in found:
        if not one.agrees:
            sys.stdout.write(f"{one.group:12} {one.call:60} GPU {one.measured.value}, stand-in {one.simulated.value}: {one.detail[:120]}\n")
    agree, counted = share(found)
    sys.stdout.write(f"{agree} of {counted} agree ({agree / max(1, counted):.1%}); {len(found) - counted} of {len(found)} not comparable\n")


if __name__ == "__main__":
    main()
