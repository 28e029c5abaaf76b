"""Reads that are the cure: a whole tensor once a request, for the loop that would else read it piece by piece."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op, SiteKind
from hostlint.facts.schema import RegionKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.facts.graph import Site
    from hostlint.values.evaluator import Frame

WHOLE = frozenset({"tolist", "cpu"})
HANDS_ON = frozenset({"zip", "enumerate", "list", "tuple", "reversed", "iter", "tqdm"})


def is_cure(frame: Frame, site: Site) -> bool:
    """Whether `.tolist()` or `.cpu()` stands outside loops and off the steps' path, and a step loop walks over or indexes its result."""
    if site.detail.rpartition(".")[2] not in WHOLE or _in_loop(frame, site.region) or not frame.fid[1]:
        return False
    is_hot = frame.evaluator.surroundings.is_hot
    if is_hot(frame.fid, site.region):
        return False
    steps = _step_loops_after(frame, site)
    if not steps:
        return False
    carriers = set(_carriers(frame, site.node))
    nodes: Any = frame.graph.nodes
    if any(node[0] == Op.ITER and node[1] in steps and node[2] in carriers for node in nodes):
        return True
    loads = (other for other in frame.graph.sites if other.kind == SiteKind.LOAD and is_hot(frame.fid, other.region))
    return any(nodes[other.node][2] in carriers for other in loads)


def _step_loops_after(frame: Frame, site: Site) -> frozenset[int]:
    """The lines of the step loops that begin at the read or after it."""
    regions = enumerate(frame.outline.regions)
    after = (one for one in regions if one[1].kind == RegionKind.LOOP and one[1].line >= site.first_line)
    return frozenset(region.line for number, region in after if frame.evaluator.surroundings.is_hot(frame.fid, number))


def _in_loop(frame: Frame, region: int) -> bool:
    regions = frame.outline.regions
    while region:
        if regions[region].kind == RegionKind.LOOP:
            return True
        region = regions[region].parent
    return False


def _carriers(frame: Frame, source: int) -> Iterator[int]:
    """The result, and what hands it on: `enumerate(rows)`, `zip(rows, others)`."""
    found = {source}
    yield source
    nodes: Any = frame.graph.nodes
    for position in range(source + 1, len(nodes)):
        node = nodes[position]
        if node[0] == Op.CALL and found.intersection(node[3]) and frame.node_name(node[2]).rpartition(".")[2] in HANDS_ON:
            found.add(position)
            yield position
