"""From the sites of a function to its waits."""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.graph import SiteKind
from hostlint.values.at_calls import at_call
from hostlint.values.at_operators import at_augmented, at_format, at_load, at_member, at_percent, at_truth, at_write
from hostlint.values.pauses import pauses_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.values.evaluator import Frame
    from hostlint.values.judging import Meeting


def meetings(frame: Frame) -> Iterator[Meeting]:
    """Every wait, upload and pause of a function that has been evaluated."""
    for site in frame.graph.sites:
        judge = _JUDGES.get(SiteKind(site.kind))
        found = judge(frame, site) if judge is not None else None
        if found is not None:
            yield found
    yield from pauses_of(frame)


_JUDGES = {
    SiteKind.CALL: at_call, SiteKind.TRUTH: at_truth, SiteKind.MEMBER: at_member, SiteKind.FORMAT: at_format, SiteKind.LOAD: at_load,
    SiteKind.WRITE: at_write, SiteKind.AUGMENTED: at_augmented, SiteKind.PERCENT: at_percent,
}  # fmt: skip
