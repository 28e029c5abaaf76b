"""How often the host may wait in a test, and what is said if it waits more often."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hostlint.runtime_checks.complaints import sync_complaint
from hostlint.runtime_checks.events import EventKind, HostEvent
from hostlint.runtime_checks.frames import caller_outside_torch
from hostlint.runtime_checks.permissions import CallSites
from hostlint.runtime_checks.recorder import Device, choose_device, record_host_events

PAUSES = (EventKind.FLUSH, EventKind.COLLECT)  # they hold the host, but not for the GPU's queue


class NoDeviceError(RuntimeError):
    """A real GPU is asked for, and there is none."""


@dataclass(frozen=True, slots=True)
class HostSyncLimit:
    sites: CallSites
    device: Device
    max_syncs: int

    @classmethod
    def of(cls, *, allow: Iterable[str] = (), device: str = "auto", max_syncs: int = 0) -> HostSyncLimit:
        """Raises NoDeviceError for "cuda" without a GPU, ValueError or TypeError for options that make no sense."""
        if not isinstance(max_syncs, int) or max_syncs < 0:
            raise ValueError(f"max_syncs is a number from 0 on, not {max_syncs!r}")
        sites = CallSites.parse(allow)
        try:
            return cls(sites, choose_device(device), max_syncs)
        except RuntimeError as error:
            raise NoDeviceError(str(error)) from None

    @contextmanager
    def watching(self) -> Iterator[list[HostEvent]]:
        with record_host_events(self.device) as events:
            yield events

    @contextmanager
    def enforced(self, done: Callable[[list[HostEvent]], None]) -> Iterator[list[HostEvent]]:
        """Raises AssertionError after the body if it waited too often; `done` gets the events in any case."""
        with self.watching() as events:
            try:
                yield events
            finally:
                done(events)
        if complaint := self.complaint(events):
            raise AssertionError(complaint)

    def complaint(self, events: Iterable[HostEvent]) -> str | None:
        counted = [event for event in events if self._counts(event)]
        if sum(event.waits for event in counted) <= self.max_syncs:
            return None
        return sync_complaint(counted, f", {self.max_syncs} allowed" if self.max_syncs else "")

    def _counts(self, event: HostEvent) -> bool:
        return event.kind not in PAUSES and event.allowed is None and not self.sites.cover(caller_outside_torch(event.stack))
