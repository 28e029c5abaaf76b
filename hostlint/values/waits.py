"""From the sites of a function to its waits."""
from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hostlint.facts.graph import Op, SiteKind
from hostlint.torch_ops.pauses import OFF_SWITCHES
from hostlint.values.at_calls import at_call
from hostlint.values.at_operators import at_augmented, at_format, at_load, at_member, at_percent, at_truth, at_write
from hostlint.values.copies import rewritten_sources, unfinished_copies
from hostlint.values.kept_copies import kept_copies
from hostlint.values.launch_loops import launch_loops
from hostlint.values.pauses import collector_off, pauses_of
from hostlint.values.sums import dropped_moves, kept_graphs, low_sums

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.facts.graph import FunctionGraph
    from hostlint.values.evaluator import Frame
    from hostlint.values.judging import Meeting

    Keywords = tuple[tuple[str, int], ...]


def meetings(frame: Frame) -> Iterator[Meeting]:
    """Every wait, upload and pause of a function that has been evaluated."""
    found: list[Meeting] = []
    for site in frame.graph.sites:
        judge = _JUDGES.get(SiteKind(site.kind))
        meeting = judge(frame, site) if judge is not None else None
        if meeting is not None:
            found.append(meeting)
    yield from found
    yield from pauses_of(frame)
    yield from collector_off(frame)
    yield from launch_loops(frame, found)
    if may_be_wrong(frame.graph):
        yield from unfinished_copies(frame, found)
        yield from kept_copies(frame, found)
        yield from rewritten_sources(frame, found)
        yield from kept_graphs(frame)
        yield from low_sums(frame)
        yield from dropped_moves(frame)


def may_be_wrong(graph: FunctionGraph) -> bool:
    """Whether a function holds what can spoil results or memory at any heat: copies that do not block, sums over steps, dropped moves."""
    if any(site.kind == SiteKind.CALL and site.detail.rpartition(".")[2] in OFF_SWITCHES for site in graph.sites):
        return True
    if any(site.kind in (SiteKind.SUM, SiteKind.BARE, SiteKind.AUGMENTED) for site in graph.sites):
        return True
    return any(node[0] == Op.CALL and any(name == "non_blocking" for name, _ in cast("Keywords", node[4])) for node in graph.nodes)


_JUDGES = {
    SiteKind.CALL: at_call, SiteKind.TRUTH: at_truth, SiteKind.MEMBER: at_member, SiteKind.FORMAT: at_format, SiteKind.LOAD: at_load,
    SiteKind.WRITE: at_write, SiteKind.AUGMENTED: at_augmented, SiteKind.PERCENT: at_percent,
}  # fmt: skip
