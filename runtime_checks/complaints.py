"""What a guard says that lets its body run to the end: everything that was not allowed, with its place."""
from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.runtime_checks.events import HostEvent


FRAMES = 6  # shown of each stack


def sync_complaint(events: Iterable[HostEvent], limit: str = "") -> str:
    """How often the host waited, then what happened at each place and the innermost frames of its stack; `limit` says what was allowed."""
    found = list(events)
    count = sum(event.waits for event in found)
    return "\n".join([f"{count} host-device sync(s){limit}", *(line for event in found for line in _described(event))])


def _described(event: HostEvent) -> list[str]:
    times = f", {event.waits} times" if event.waits > 1 else ""
    spent = f", {event.blocked_s * 1e3:.2f} ms" if event.blocked_s is not None else ""
    return [f"  {event.kind}: {event.call}{times}{spent}", *(f"    {frame}" for frame in event.stack[:FRAMES])]


def complain_of(events: Iterable[HostEvent], what: str) -> None:
    """Raises AssertionError if any of the events was not allowed."""
    forbidden = [event for event in events if event.allowed is None]
    if forbidden:
        lines = "".join(f"\n  {event}" for event in forbidden)
        raise AssertionError(f"{len(forbidden)} {what}, and no allow(reason) around:{lines}")
