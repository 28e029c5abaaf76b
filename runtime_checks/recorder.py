"""`record_host_events`: everything that holds the host in a region, as one list."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from enum import Enum

import torch

from hostlint.runtime_checks.allocator import flushing
from hostlint.runtime_checks.events import HostEvent
from hostlint.runtime_checks.gc_events import collecting
from hostlint.runtime_checks.sinks import Sink, listening


class Device(str, Enum):
    """Where events come from."""

    AUTO = "auto"  # the GPU where there is one, else the stand-in
    CUDA = "cuda"
    SIMULATED = "simulated"

    __str__ = str.__str__


class EventList(list[HostEvent]):
    """Events in the order in which they ended; also a sink. Threads append to it at the same time."""

    add = list.append


def choose_device(device: str) -> Device:
    """Raises ValueError for an unknown name, RuntimeError where a GPU is asked for and there is none."""
    try:
        chosen = Device(device)
    except ValueError:
        raise ValueError(f"device must be one of {', '.join(Device)}, not {device!r}") from None
    if chosen is Device.AUTO:
        return Device.CUDA if torch.cuda.is_available() else Device.SIMULATED
    if chosen is Device.CUDA and not torch.cuda.is_available():
        raise RuntimeError("device='cuda': torch sees no CUDA device here; device='simulated' runs without one")
    return chosen


@contextmanager
def record_host_events(device: str = "auto", *, every_thread: bool = False) -> Iterator[list[HostEvent]]:
    """Yields a list that receives an event for each time the host waits, uploads, flushes the allocator or collects garbage.

    `device` is "cuda" (a real GPU), "simulated" (the stand-in of `simulate_cuda`, without times) or "auto". Recorded are the events of the
    calling thread or asyncio task and of threads that the body starts, with `every_thread` those of all threads. Times are in seconds;
    `blocked_s` is what passed between the start of the call (or its wait before) and the end of its last wait, so what the call computes
    on the host counts too. An upload that does not make the host wait (from pinned memory, with non_blocking=True) is no event.

    Waits are what torch's debug mode reports, plus explicit synchronisation, plus the forms of calls that the table of torch knows to
    block in silence. It cannot see: waits of libraries and extensions that call CUDA themselves, allocations for which the driver has to
    wait, collectives' internal waits, and `torch.Event.synchronize` (`torch.cuda.Event` is seen). What torch.compile does while it
    compiles is left out; a waiting call of compiled code is seen.

    The debug mode is process-wide: it is set to "warn" and set back. Raises RuntimeError for "cuda" without a GPU, ValueError for an
    unknown device.
    """
    events = EventList()
    with recording(events, device, every_thread=every_thread):
        yield events


@contextmanager
def recording(sink: Sink, device: str = "auto", *, every_thread: bool = False) -> Iterator[Device]:
    """The same for any sink; yields the device that was chosen."""
    chosen = choose_device(device)
    watching = _watching(chosen)
    with ExitStack() as stack:
        stack.enter_context(listening(sink, every_thread=every_thread))
        stack.enter_context(collecting())
        stack.enter_context(flushing())
        stack.enter_context(watching)
        yield chosen


def _watching(device: Device) -> AbstractContextManager[object]:
    if device is Device.CUDA:
        from hostlint.runtime_checks.cuda_waits import watching_cuda

        return watching_cuda()
    from hostlint.runtime_checks.simulated import simulate_cuda

    return simulate_cuda()
