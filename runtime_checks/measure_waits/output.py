"""The file of a measurement: a header, the legend of the names, and one call a line."""
from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path

from hostlint.runtime_checks.measure_waits.catalogue import MODULES

WHAT = (
    "Does the call make the host wait until the stream has drained? Measured with a 20 ms spin kernel queued before the call; median of 3. "
    "kind: free, device-wait, host-work (it holds the host for more than 10 ms with an empty queue), error. idle_s and busy_s: seconds on "
    "the host with an empty queue and behind the kernel."
)


def document(machine: Mapping[str, object], answers: Iterable[Mapping[str, object]]) -> str:
    """The text of the file. `answers` hold an entry and the legend of its names."""
    legend: dict[str, object] = {}
    calls = []
    for answer in answers:
        calls.append(answer["entry"])
        seen = answer["names"]
        assert isinstance(seen, dict)
        legend.update(seen)
    head = {
        "what": WHAT, **machine, "python": platform.python_version(), "date": date.today().isoformat(), "modules": MODULES,
    }
    parts = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    parts.append(f' "names": {_object({name: pair[0] for name, pair in sorted(legend.items())})}')  # type: ignore[index]  # pairs
    parts.append(f' "facts": {_object({name: pair[1] for name, pair in sorted(legend.items())})}')  # type: ignore[index]  # pairs
    parts.append(' "calls": [\n  ' + ",\n  ".join(map(json.dumps, calls)) + "\n ]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _object(items: Mapping[str, object]) -> str:
    return "{\n  " + ",\n  ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in items.items()) + "\n }"


def write_whole(path: Path, text: str) -> None:
    """Puts the file in place at once: a reader sees the old one or the new one."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
