"""What a joined record says of each of its events: which of them has a finding, and why the others need none, or lack one."""
from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.confirm.record import Record


class Standing(Enum):
    """The worst first."""

    UNPREDICTED = "unpredicted"  # in the steps of scanned files, without a finding
    EXPLAINED = "explained"  # by a finding that is shown
    HIDDEN = "hidden"  # its finding is suppressed, or too cool or unsure to be shown
    SETUP = "setup"  # outside the steps
    ALLOWED = "allowed"  # an `allow` stands around it
    LIBRARY = "library"  # inside code that was not scanned
    COLLECTION = "collection"  # a pause of the collector: it comes wherever it comes


@dataclass(frozen=True)
class Standings:
    record: Record

    def of(self, number: int) -> Standing:
        event = self.record.events[number]
        if number in self._unpredicted:
            return Standing.UNPREDICTED
        if event.allowed is not None:
            return Standing.ALLOWED
        if self.findings(number):
            return Standing.EXPLAINED
        if event.kind == "collect":
            return Standing.COLLECTION
        if number in self._setup:
            return Standing.SETUP
        return Standing.LIBRARY if number in self._library else Standing.HIDDEN

    def findings(self, number: int) -> tuple[int, ...]:
        """The findings that an event bears out, by their index."""
        explained = self.record.explained
        return explained[number] if number < len(explained) else ()

    def having(self, standing: Standing) -> tuple[int, ...]:
        """The events of a standing, those that took or came most first."""
        found = [number for number in range(len(self.record.events)) if self.of(number) is standing]
        return tuple(sorted(found, key=self._weight))

    def _weight(self, number: int) -> tuple[float, int, int]:
        event = self.record.events[number]
        return (-(event.blocked_s or 0.0), -event.count, number)

    @cached_property
    def _unpredicted(self) -> frozenset[int]:
        return frozenset(self.record.unpredicted)

    @cached_property
    def _setup(self) -> frozenset[int]:
        return frozenset(self.record.setup)

    @cached_property
    def _library(self) -> frozenset[int]:
        return frozenset(self.record.library)
