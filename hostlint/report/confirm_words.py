"""How reports of a run put numbers, paths and programs into words."""
from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.confirm.record import Event, Record

_INSTALLED = re.compile(r".*[\\/](?:(?:site|dist)-packages|[Ll]ib[\\/]python3\.\d+)[\\/]")
_INTERPRETER = re.compile(r"python[\d.]*(\.exe)?")


def amount(number: float | None) -> str:
    return "-" if number is None else f"{number:.2f}".rstrip("0").rstrip(".")


def milliseconds(number: float | None) -> str:
    if number is None:
        return "-"
    return f"{number:,.0f} ms" if number >= 1000 else f"{number:.1f} ms" if number >= 1 else f"{number:.3f} ms"


def seconds(number: float) -> str:
    """With the unit that keeps it short."""
    scaled, unit = (number, "s") if number >= 1 else (number * 1e3, "ms") if number >= 1e-3 else (number * 1e6, "µs")
    return f"{scaled:.{0 if scaled >= 100 or not scaled else 1 if scaled >= 10 else 2}f} {unit}"


def plural(number: int, word: str, ending: str = "s") -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}{ending}"


def short(path: str) -> str:
    """A library's file by the name that it has where libraries are installed; any other path as it is."""
    return _INSTALLED.sub("", path).replace("\\", "/")


def place(event: Event) -> str:
    """Where an event lies: `file:line in function`."""
    where = event.place
    return f"{short(where.path)}:{where.line} in {where.function}" if where.line else "outside Python code"


def command(arguments: tuple[str, ...]) -> str:
    """A command line without the folders of its interpreter."""
    first, *rest = arguments or ("",)
    name = PurePath(first).name
    return " ".join([name if _INTERPRETER.fullmatch(name) else first, *rest])


def machine(record: Record) -> list[str]:
    """What the program ran on, in words."""
    first = next((process for process in record.processes if process.torch), None)
    facts = [record.gpu or ("simulated device: no times" if record.device == "simulated" else f"{record.device} device")]
    if first is not None:
        facts.append(f"torch {first.torch}")
    if record.steps:
        facts.append(plural(record.steps, "step"))
    if len(record.processes) > 1:
        facts.append(plural(len(record.processes), "process", "es"))
    return facts


def ending(record: Record) -> str:
    """How the program ended, where that was not well; else empty."""
    if record.exit < 0:
        return f"The program was ended by signal {-record.exit}; what it did until then is below."
    return f"The program ended with status {record.exit}; what it did until then is below." if record.exit else ""
