"""Python loops that write one row of a tensor in each pass, although no row depends on another: a few launches a row."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op, SiteKind, operands
from hostlint.facts.kinds import FactKind
from hostlint.facts.schema import RegionKind
from hostlint.model import Confidence
from hostlint.values.detail import External, Literal
from hostlint.values.judging import Meeting
from hostlint.values.loops import VIEWS
from hostlint.values.value import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostlint.facts.graph import Site
    from hostlint.values.evaluator import Frame

LAUNCHES = "not measured: one launch or more for each row, where the whole takes a few"
FEW = 4  # rows
ELEMENTWISE = frozenset({
    "where", "clamp", "maximum", "minimum", "abs", "exp", "log", "sqrt", "cos", "sin", "pow", "add", "sub", "mul", "div", "lerp", "sigmoid",
    "tanh", "relu", "float", "half", "bfloat16", "to", "type", "size",
}) | VIEWS  # fmt: skip
PYTHON = frozenset({"int", "float", "min", "max", "round", "abs", "len", "range"})


def launch_loops(frame: Frame, told: Sequence[Meeting]) -> Iterator[Meeting]:
    """Writes by the counter of a `range`, in a loop that does nothing else; a write that waits is told for that."""
    for site in frame.graph.sites:
        if site.kind in (SiteKind.WRITE, SiteKind.AUGMENTED) and _is_row(frame, site) and not any(one.site is site for one in told):
            loop = frame.outline.regions[site.region]
            why = f"no row of the loop at line {loop.line} depends on another"
            yield Meeting(FactKind.LAUNCH_LOOP, site, site.subject, why, Confidence.LIKELY, LAUNCHES, loop.text)


def _is_row(frame: Frame, site: Site) -> bool:
    loop = frame.outline.regions[site.region]
    if loop.kind != RegionKind.LOOP or not loop.text.startswith("range(") or not _is_plain(frame, site.region):
        return False
    store: Any = frame.graph.nodes[site.node]
    counter = _counter(frame, loop.line)
    container = frame.value(store[2])
    on_device = container.is_tensor and container.place is not Place.HOST and container.confidence > Confidence.POSSIBLE
    if counter < 0 or not on_device or _is_short(frame, counter):
        return False
    value = frame.value(store[4])
    listed = value.place is Place.PYTHON and not value.rank0  # `rows[i] += [0]`: lists, whatever their name
    return not listed and counter in _made_of(frame, store[3], counter) and _is_independent(frame, store, counter)


def _counter(frame: Frame, line: int) -> int:
    """The element that the loop at that line takes."""
    return next((place for place, node in enumerate(frame.graph.nodes) if node[0] == Op.ITER and node[1] == line), -1)


def _is_short(frame: Frame, counter: int) -> bool:
    """`range(3)`: a handful of rows by the source."""
    item: Any = frame.graph.nodes[counter]
    source: Any = frame.graph.nodes[item[2]]
    given = source[3] if source[0] == Op.CALL else ()
    ends = [frame.value(part).detail for part in given[:2]]
    numbers = [end.value for end in ends if isinstance(end, Literal) and isinstance(end.value, int)]
    return bool(ends) and len(numbers) == len(ends) and numbers[-1] - (numbers[0] if len(numbers) > 1 else 0) <= FEW


def _is_plain(frame: Frame, region: int) -> bool:
    """Nothing but arithmetic happens in the loop: no branch, no other loop."""
    outline = frame.outline
    inside = {region}
    for place, other in enumerate(outline.regions):
        if place != region and other.parent in inside and place > region:
            inside.add(place)
    if len(inside) > 1 or any(site.kind == SiteKind.TRUTH and site.region == region for site in frame.graph.sites):
        return False
    return all(_is_arithmetic(frame, call.chain, call.node) for call in outline.calls if call.region == region)


def _is_arithmetic(frame: Frame, chain: str, node: int) -> bool:
    name = chain.rpartition(".")[2]
    item: Any = frame.graph.nodes[node] if node >= 0 else (-1,)
    if item[0] != Op.CALL:
        return False
    detail = frame.value(item[2]).detail
    if isinstance(detail, External):
        return name in PYTHON if detail.name.startswith("builtins.") or "." not in detail.name else name in ELEMENTWISE
    return name in ELEMENTWISE


def _is_independent(frame: Frame, store: Any, counter: int) -> bool:
    """The value reads nothing that an earlier pass wrote, save the very row."""
    nodes: Sequence[Any] = frame.graph.nodes
    own = _roots(frame, store[2])
    queue, seen = [store[4], store[3]], set()
    while queue:
        node = queue.pop()
        if node in seen:
            continue
        seen.add(node)
        item = nodes[node]
        if node <= counter:
            if node in own or (item[0] == Op.PHI and any(part > counter for part in item[2])):
                return False  # the whole tensor as it was, or what a pass hands to the next
            continue
        if item[0] == Op.PHI:
            return False
        if item[0] == Op.INDEX and (item[2] in own or _roots(frame, item[2]) & own):
            if not _is_same(nodes, item[3], store[3]):
                return False
            queue.append(item[3])
            continue
        queue.extend(operands(item))
    return True


def _is_same(nodes: Sequence[Any], one: int, other: int) -> bool:
    """Whether two nodes are written alike over the same names: `:, y, :` and `:, y, :`."""
    if one == other:
        return True
    if one < 0 or other < 0:  # left out of a slice
        return False
    first, second = nodes[one], nodes[other]
    alike = first[0] == second[0] and first[0] in (Op.CONST, Op.SLICE, Op.SEQUENCE, Op.BINOP, Op.UNARY, Op.GLOBAL, Op.PARAM)
    if not alike or first[0] in (Op.CONST, Op.GLOBAL, Op.PARAM):
        return bool(alike and first[2:] == second[2:])
    parts, others = [list(each[2:5] if each[0] == Op.SLICE else operands(each)) for each in (first, second)]
    named = first[0] == Op.SLICE or first[2] == second[2]
    return named and len(parts) == len(others) and all(_is_same(nodes, a, b) for a, b in zip(parts, others, strict=True))


def _roots(frame: Frame, node: int) -> set[int]:
    """The tensor behind the writes and the loop's head: all nodes that stand for it."""
    found, queue = set(), [node]
    while queue:
        node = queue.pop()
        if node in found:
            continue
        found.add(node)
        item: Any = frame.graph.nodes[node]
        if item[0] == Op.STORE:
            queue.append(item[2])
        elif item[0] == Op.PHI:
            queue.extend(item[2])
    return found


def _made_of(frame: Frame, node: int, down_to: int) -> set[int]:
    found, queue = {node}, [node]
    while queue:
        for part in operands(frame.graph.nodes[queue.pop()]):
            if part not in found and part >= down_to:
                found.add(part)
                queue.append(part)
    return found
