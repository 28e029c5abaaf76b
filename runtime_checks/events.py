"""The one shape of what was seen at run time: a place at which the host waited, uploaded, flushed or collected."""
from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.facts.kinds import FactKind


class EventKind(str, Enum):
    """What happened; equal to its text, so that `event.kind == "read"` holds."""

    READ = "read"  # a device value, or a whole tensor, came to the host
    UPLOAD = "upload"  # host data went to the device, and the host waited for the copy
    EXPLICIT_SYNC = "explicit-sync"  # synchronize() of a device, stream or event
    DATA_DEPENDENT_SIZE = "data-dependent-size"  # the size of a result had to be known: nonzero, a boolean mask, unique
    HIDDEN_WAIT = "hidden-wait"  # a call that reads inside: checked linear algebra, a validated distribution
    FLUSH = "flush"  # the allocator gave its cache back
    COLLECT = "collect"  # the cyclic garbage collector ran

    __str__ = str.__str__


class Origin(Enum):
    """Whose code a frame is."""

    USER = "user"
    LIBRARY = "library"  # installed with pip
    TORCH = "torch"
    PYTHON = "python"  # the standard library, and code that has no file
    HOSTLINT = "hostlint"  # this package's own wrappers


@dataclass(frozen=True, slots=True)
class Frame:
    path: str  # as the interpreter names the file; absolute for everything but code made from a string
    line: int  # 1-based
    function: str  # qualified name where the interpreter has one (3.11 and newer), else the bare name
    origin: Origin = Origin.USER

    def __str__(self) -> str:
        return f"{self.path}:{self.line} in {self.function}"


@dataclass(frozen=True, slots=True)
class HostEvent:
    """One wait, upload, flush or collection, at one place.

    `path`, `line` and `function` are those of the innermost frame of the user's code; where there is none, of the innermost frame outside
    torch and the standard library. `stack` holds every frame, library frames too, innermost first.
    """

    kind: EventKind
    path: str
    line: int
    function: str
    stack: tuple[Frame, ...]
    call: str  # what was called, as one would write it: `Tensor.item`, `torch.linalg.solve`
    thread: str  # name of the thread
    start_s: float  # on the clock of time.perf_counter()
    blocked_s: float | None = None  # seconds for which the call held the host; None where that cannot be known (the stand-in)
    bytes: int | None = None  # moved between host and device; None where that is not known
    fact: FactKind | None = None  # the scan's word for it, where the table of torch knows the call
    allowed: str | None = None  # the reason of the `allow` around it
    waits: int = 1  # how often the host waited within the call: printing a tensor reads it several times

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    def __str__(self) -> str:
        return f"{self.kind} {self.call} at {self.place} in {self.function}"
