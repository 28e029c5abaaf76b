"""Streams and events of a device on which everything is done at once."""
from __future__ import annotations

import itertools
import threading
import time
from typing import Any

from hostlint.runtime_checks.calls import judge_named
from hostlint.runtime_checks.simulated.places import CUDA, place_of
from hostlint.runtime_checks.simulated.reports import report

_numbers = itertools.count(1)


def waited(name: str, spelled: str) -> None:
    """Reports an explicit wait: `name` is the table's, `spelled` what a reader knows it by."""
    verdict = judge_named(name, (), {}, place_of)
    if verdict is not None:
        report(type(verdict)(verdict.kind, verdict.fact, spelled, verdict.evidence, verdict.measured, verdict.silent))


class Stream:
    """Work given to a stream is done before the call returns, so that a stream is only a number and a place in the order."""

    def __init__(self, device: object = None, priority: int = 0, *, stream_id: int | None = None, **_: object) -> None:
        self.stream_id = next(_numbers) if stream_id is None else stream_id
        self.priority = priority
        self.device, self.device_index, self.device_type = CUDA, 0, 1
        self._before: list[Stream] = []

    @property
    def cuda_stream(self) -> int:
        return self.stream_id

    def synchronize(self) -> None:
        waited("Stream.synchronize", "torch.cuda.Stream.synchronize")

    def query(self) -> bool:
        return True

    def wait_event(self, event: object) -> None:
        """Everything before the event is done."""

    def wait_stream(self, stream: object) -> None:
        """Everything given to the other stream is done."""

    def record_event(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event

    def is_capturing(self) -> bool:
        return False

    @staticmethod
    def priority_range() -> tuple[int, int]:
        return 0, -5

    def __enter__(self) -> Stream:  # noqa: PYI034  Self is of Python 3.11
        self._before.append(current_stream())
        set_stream(self)
        return self

    def __exit__(self, *_: object) -> None:
        set_stream(self._before.pop())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        return hash((Stream, self.stream_id))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.stream_id:#x}>"


class GenericEvent:
    """A point in time on the host's clock: `torch.Event`, which names its device first."""

    def __init__(
        self, device: object = None, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, **_: object
    ) -> None:
        self.timed, self.blocking, self.device = enable_timing, blocking, CUDA
        self._at: float | None = None

    @property
    def cuda_event(self) -> int:
        return id(self)

    def record(self, stream: object = None) -> None:
        self._at = time.perf_counter()

    def wait(self, stream: object = None) -> None:
        """The stream that waits has nothing to wait for."""

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        waited("Event.synchronize", "torch.cuda.Event.synchronize")

    def elapsed_time(self, end_event: GenericEvent) -> float:
        """Milliseconds from this event to the other. Raises ValueError where one has not been recorded or was made without timing."""
        if not (self.timed and end_event.timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._at is None or end_event._at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._at - self._at) * 1000.0


class Event(GenericEvent):
    """`torch.cuda.Event`."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, **_: object) -> None:
        super().__init__(None, enable_timing, blocking, interprocess)


_DEFAULT = Stream(stream_id=0)


class _Thread(threading.local):
    stream: Stream = _DEFAULT


_thread = _Thread()


def current_stream(device: object = None) -> Stream:
    return _thread.stream


def default_stream(device: object = None) -> Stream:
    return _DEFAULT


def set_stream(stream: Stream) -> None:
    if stream is not None:
        _thread.stream = stream


class StreamContext:
    """`with torch.cuda.stream(s):`."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        self._before = current_stream()
        if self.stream is not None:
            set_stream(self.stream)

    def __exit__(self, *_: object) -> None:
        set_stream(self._before)


class NoGraph:
    """CUDA graphs replay what a device has done; here nothing is recorded that could be."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError("simulate_cuda() has no CUDA graphs: run the program without capturing one")


def _is_capturing() -> bool:
    return False


def replacements() -> dict[str, object]:
    """The names in torch.cuda that stand for these."""
    return {
        "Stream": Stream, "ExternalStream": Stream, "Event": Event, "current_stream": current_stream, "default_stream": default_stream,
        "set_stream": set_stream, "stream": StreamContext, "StreamContext": StreamContext, "CUDAGraph": NoGraph, "graph": NoGraph,
        "make_graphed_callables": NoGraph, "is_current_stream_capturing": _is_capturing,
    }  # fmt: skip
