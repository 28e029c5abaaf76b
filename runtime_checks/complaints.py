"""What a guard says that lets its body run to the end: everything that was not allowed, with its place."""
from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.runtime_checks.events import HostEvent


def complain_of(events: Iterable[HostEvent], what: str) -> None:
    """Raises AssertionError if any of the events was not allowed."""
    forbidden = [event for event in events if event.allowed is None]
    if forbidden:
        lines = "".join(f"\n  {event}" for event in forbidden)
        raise AssertionError(f"{len(forbidden)} {what}, and no allow(reason) around:{lines}")
