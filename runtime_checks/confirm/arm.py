"""Arms the recorder in one process of the user's program: when torch has been imported, and again in each forked child."""
from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from hostlint.runtime_checks.confirm.counters import Counters
from hostlint.runtime_checks.confirm.counting import CountingSink, Paths
from hostlint.runtime_checks.confirm.on_import import after_import
from hostlint.runtime_checks.confirm.plan import Plan
from hostlint.runtime_checks.confirm.reached import Lines, watch_lines

RANKS = ("RANK", "LOCAL_RANK", "WORLD_SIZE")


def arm(folder: str) -> None:
    """Records this process into `folder`, which holds a plan."""
    process = _Process(Path(folder))
    process.counters.open(_about("started"))
    os.register_at_fork(after_in_child=process.forked)
    after_import("torch", process.record)


class _Process:
    def __init__(self, folder: Path) -> None:
        self.plan = Plan.read(folder)
        self.paths = Paths(self.plan.files)
        self.counters = Counters(folder, self.plan.warmup)
        self.state: dict[str, object] = {}  # what else is said of the process, and of its children
        self.armed = ExitStack()  # never closed: what is recorded lasts as long as the process

    def forked(self) -> None:
        self.counters.open(_about("forked"))
        self.counters.say(self.state)

    def record(self) -> None:
        from hostlint.runtime_checks.confirm.repeats import Repeats
        from hostlint.runtime_checks.recorder import recording

        sink = CountingSink(self.counters, self.plan, self.paths)
        try:
            device = self.armed.enter_context(recording(sink, self.plan.device, every_thread=True))
        except (RuntimeError, ValueError) as error:
            self.counters.say({"failed": str(error)})
            return
        if self.plan.redone:
            self.armed.enter_context(Repeats(self.plan, self.paths, self.counters))
        watching = watch_lines(Lines(self.plan, self.paths, self.counters))
        self.state = {"watching": watching, "torch": _torch(device)}
        self.counters.say(self.state)


def _about(how: str) -> dict[str, object]:
    return {
        "pid": os.getpid(), "parent": os.getppid(), "how": how, "arguments": list(getattr(sys, "orig_argv", sys.argv)),
        "ranks": {name: os.environ[name] for name in RANKS if name in os.environ},
        "python": ".".join(map(str, sys.version_info[:3])), "began_s": time.perf_counter(), "began_at": time.time(),
    }  # fmt: skip


def _torch(device: str) -> dict[str, object]:
    import torch

    gpu = torch.cuda.get_device_name() if device == "cuda" else None
    return {"version": torch.__version__, "device": device, "gpu": gpu}
