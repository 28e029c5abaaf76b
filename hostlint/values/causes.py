"""One cause, one finding: works of a function that go into one another, or bind one name in several branches, are told together."""
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from hostlint.facts.fact import Repeated
from hostlint.facts.graph import Op
from hostlint.facts.kinds import FactKind
from hostlint.model import Span
from hostlint.values.rebuilt import reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hostlint.facts.graph import FunctionGraph
    from hostlint.facts.schema import Call
    from hostlint.facts.spans import Spot
    from hostlint.values.judging import Meeting

PARTS = frozenset({FactKind.REBUILT_CONSTANT, FactKind.CAST_PER_BLOCK})  # of what a block computes from them


class Work(NamedTuple):
    """A call whose result could be kept; `key`: what it rests on (a loop, a parameter), which those of one cause share."""

    call: Call
    spot: Spot
    key: int


def gathered(graph: FunctionGraph, works: Sequence[Work], alike: Callable[[Call, Call], bool] | None = None) -> list[list[Work]]:
    """The works by cause, first things first; `alike` says which of those that rest on the same thing are one, joined or not."""
    def told_alike(one: Work, other: Work) -> bool:
        return alike is not None and alike(one.call, other.call)

    below = [reachable(graph, [work.call.node]) for work in works]
    bound = [set(pair) for pair in _bound_together(graph)]
    groups: list[list[int]] = []
    for number, work in enumerate(works):
        mine = [
            group for group in groups
            if any(
                works[one].key == work.key and (told_alike(works[one], work) or _is_one(works[one], work, below[one], below[number], bound))
                for one in group
            )
        ]
        groups = [group for group in groups if group not in mine] + [[*(one for group in mine for one in group), number]]
    return [[works[number] for number in sorted(group)] for group in sorted(groups, key=min)]


def whatever(_one: Call, _other: Call) -> bool:
    """For works of which all that rest on the same thing are one."""
    return True


def _is_one(one: Work, other: Work, below: set[int], under: set[int], bound: Sequence[set[int]]) -> bool:
    if one.call.node in under or other.call.node in below:
        return True
    return any({one.call.node, other.call.node} <= nodes for nodes in bound)


def _bound_together(graph: FunctionGraph) -> Iterator[Sequence[int]]:
    nodes: Sequence[Any] = graph.nodes
    return (node[2] for node in nodes if node[0] == Op.PHI)


def spokesman(graph: FunctionGraph, works: Sequence[Work]) -> Work:
    """The one that is told: of the first statement's works the one that the others there go into."""
    first = min(works, key=lambda work: work.spot.statement)
    here = [work for work in works if work.spot.statement == first.spot.statement]
    return max(here, key=lambda work: (len(reachable(graph, [work.call.node]) & {one.call.node for one in here}), -work.call.node))


def others(told: Spot, works: Sequence[Work]) -> tuple[Span, ...]:
    """The places in other statements."""
    return tuple(dict.fromkeys(Span(*work.spot.span) for work in works if work.spot.statement != told.statement))


def joined(graph: FunctionGraph, found: Sequence[Meeting]) -> list[Meeting]:
    """The findings, without those that go into what every block computes again: the first of them is told with the lines of the rest."""
    left = list(found)
    for whole in [one for one in found if one.kind is FactKind.SAME_PER_BLOCK]:
        below = reachable(graph, [whole.site.node])
        parts = [one for one in left if one.kind in PARTS and one.site.node in below and one.confidence == whole.confidence]
        if parts:
            first, *rest = [*parts, whole]
            places = [place for one in rest for place in (_span(one), *(one.repeated.others if one.repeated is not None else ()))]
            kept = first.repeated or Repeated()
            told = replace(first, repeated=replace(kept, others=tuple(dict.fromkeys([*kept.others, *places]))))
            left = [told if one is first else one for one in left if one is first or one not in rest]
    return left


def _span(meeting: Meeting) -> Span:
    site = meeting.site
    return Span(site.line, site.column, site.end_line, site.end_column)
