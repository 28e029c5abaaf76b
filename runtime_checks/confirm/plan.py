"""What the parent tells the processes that it records: where to write, which device, and which lines somebody wants to know about."""
from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

FILE = "plan.json"


@dataclass(frozen=True, slots=True)
class Plan:
    """Paths are absolute and real. `lines` are those of findings, `redone` the first and last lines of findings
    about repeated work. `loops` are step loops: the first line of the body, and the first and last line of the head, which runs before each
    pass (0 and 0 where none does: `while True`)."""

    device: str
    warmup: int = 0
    files: tuple[str, ...] = ()  # of the scan: an event belongs to the innermost of its frames that lies in one of them
    lines: dict[str, list[int]] = field(default_factory=dict)
    loops: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)
    redone: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        (folder / FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Plan:
        given = json.loads((folder / FILE).read_text(encoding="utf-8"))
        redone = {path: [(first, last) for first, last in spans] for path, spans in given["redone"].items()}
        loops = {path: [(body, head, end) for body, head, end in lines] for path, lines in given["loops"].items()}
        return cls(given["device"], given["warmup"], tuple(given["files"]), given["lines"], loops, redone)
