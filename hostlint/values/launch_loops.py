"""Python loops that write one row of a tensor in each pass, although no row depends on another: a few launches a row."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

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
    "tanh", "relu", "float", "half", "bfloat16", "to", "type", "size", "full_like", "zeros_like", "ones_like",
}) | VIEWS  # fmt: skip
PYTHON = frozenset({"int", "float", "min", "max", "round", "abs", "len", "range"})
WALKED = frozenset({"range", "enumerate", "zip", "set", "sorted", "reversed"})
NUMBERS = re.compile(r"(^|_)(tok|tokens?|ids?|idx|index|indices|lens?|lengths?|seqlens?|starts?|ends?|sizes?|counts?|offsets?)$")


class _Passes(NamedTuple):
    """What the passes of a loop are told apart by."""

    start: int  # the first node of a pass
    counters: frozenset[int]  # numbers of the host
    rows: frozenset[int]  # rows of a tensor that is walked over
    walked: frozenset[int]  # that tensor
    others: frozenset[int]  # tensors of their own, in a list: nothing takes them all at once


def launch_loops(frame: Frame, told: Sequence[Meeting]) -> Iterator[Meeting]:
    """Writes by the counter of a loop that does nothing else, the first of each loop; a write that waits is told for that."""
    loops: set[int] = set()
    for site in frame.graph.sites:
        if site.kind in (SiteKind.WRITE, SiteKind.AUGMENTED) and site.region not in loops and _is_row(frame, site):
            loops.add(site.region)
            loop = frame.outline.regions[site.region]
            why = f"no row of the loop at line {loop.line} depends on another"
            if not any(one.site is site for one in told):
                yield Meeting(FactKind.LAUNCH_LOOP, site, site.subject, why, Confidence.LIKELY, LAUNCHES, loop.text)


def _is_row(frame: Frame, site: Site) -> bool:
    loop = frame.outline.regions[site.region]
    passes = _passes(frame, loop.line) if loop.kind == RegionKind.LOOP else None
    if passes is None or not _is_plain(frame, site.region, passes):
        return False
    store: Any = frame.graph.nodes[site.node]
    container = frame.value(store[2])
    on_device = container.is_tensor and container.place is not Place.HOST and container.confidence > Confidence.POSSIBLE
    if not on_device:
        return False
    value = frame.value(store[4])
    listed = value.place is Place.PYTHON and not value.rank0  # `rows[i] += [0]`: lists, whatever their name
    by_counter = not passes.counters.isdisjoint(_made_of(frame, store[3], passes.start))
    by_row = not passes.rows.isdisjoint(_roots(frame, store[2]))
    alone = site.kind != SiteKind.AUGMENTED or by_row or _is_one_row(frame, store[3], passes)
    return not listed and (by_counter or by_row) and alone and _is_independent(frame, store, passes)


def _is_one_row(frame: Frame, index: int, passes: _Passes) -> bool:
    """Whether an index picks one row, as `b[:, y]`: slices from `y` to `y + n` may overlap, and what is added there adds up."""
    nodes: Sequence[Any] = frame.graph.nodes
    parts = nodes[index][3] if nodes[index][0] == Op.SEQUENCE else [index]
    return any(nodes[part][0] != Op.SLICE and not passes.counters.isdisjoint(_made_of(frame, part, passes.start)) for part in parts)


def _passes(frame: Frame, line: int) -> _Passes | None:
    """What the loop at that line takes; None for `while`, for a handful of passes, and where it is not known what it walks over."""
    nodes: Sequence[Any] = frame.graph.nodes
    start = max((place for place, node in enumerate(nodes) if node[0] == Op.ITER and node[1] == line), default=-1)  # others: in its head
    if start < 0 or _is_short(frame, start):
        return None
    taken = {start}
    for place in range(start + 1, len(nodes)):
        if nodes[place][0] == Op.UNPACK and nodes[place][2] in taken:
            taken.add(place)
    parts = taken - {nodes[place][2] for place in taken}
    walked = _walked(frame, nodes[start][2])
    tensors = {part for part in parts if frame.value(part).is_tensor}
    rows = {part for part in tensors if frame.value(_list_of(frame, nodes[start][2], part)).is_tensor}
    counters = {part for part in parts - tensors if _is_number(frame, part, nodes[start][2])}
    passes = _Passes(start, frozenset(counters), frozenset(rows), walked, frozenset(tensors - rows))
    return passes if counters or rows else None


def _walked(frame: Frame, node: int) -> frozenset[int]:
    """The tensors that a loop walks over, also through `zip` and `enumerate`."""
    item: Any = frame.graph.nodes[node]
    if item[0] == Op.CALL and _name(frame, item) in WALKED:
        return frozenset(part for each in item[3] for part in _walked(frame, each))
    return frozenset(_roots(frame, node)) if frame.value(node).is_tensor else frozenset()


def _is_number(frame: Frame, part: int, source: int) -> bool:
    """A number of the host: a counter, an element of a list of numbers; by its name where nothing else says so."""
    nodes: Sequence[Any] = frame.graph.nodes
    counted = nodes[source][0] == Op.CALL and _name(frame, nodes[source]) in ("range", "enumerate")
    if counted and (nodes[part][0] == Op.ITER or (nodes[nodes[part][2]][0] == Op.ITER and not nodes[part][3])):
        return True
    value = frame.value(part)
    callee: Any = nodes[nodes[source][2]] if nodes[source][0] == Op.CALL else (-1,)
    if callee[0] == Op.ATTR and callee[3] == "tolist":
        return True
    if value.place is not Place.UNKNOWN:
        return value.place is Place.PYTHON
    return bool(NUMBERS.search(frame.node_name(_list_of(frame, source, part)).rpartition(".")[2]))


def _list_of(frame: Frame, node: int, part: int) -> int:
    """The list that an element is of: `tokens` of `set(tokens[-8:])`, and of `zip(rows, tokens)` for the second element."""
    item: Any = frame.graph.nodes[part]
    position = item[3] if item[0] == Op.UNPACK else 0
    item = frame.graph.nodes[node]
    while item[0] in (Op.INDEX, Op.REFINE) or (item[0] == Op.CALL and item[3] and _name(frame, item) in WALKED | {"list", "tuple"}):
        name = _name(frame, item) if item[0] == Op.CALL else ""
        node = item[3][min(position, len(item[3]) - 1) if name == "zip" else 0] if name else item[2]
        item = frame.graph.nodes[node]
    return node


def _name(frame: Frame, item: Any) -> str:
    callee: Any = frame.graph.nodes[item[2]]
    return str(callee[2]) if callee[0] == Op.GLOBAL else ""


def _is_short(frame: Frame, start: int) -> bool:
    """`range(3)`, `(0, 1)`: a handful of rows by the source."""
    item: Any = frame.graph.nodes[start]
    source: Any = frame.graph.nodes[item[2]]
    if source[0] == Op.SEQUENCE:
        return len(source[3]) <= FEW
    given = source[3] if source[0] == Op.CALL and _name(frame, source) == "range" else ()
    ends = [frame.value(part).detail for part in given[:2]]
    numbers = [end.value for end in ends if isinstance(end, Literal) and isinstance(end.value, int)]
    return bool(ends) and len(numbers) == len(ends) and numbers[-1] - (numbers[0] if len(numbers) > 1 else 0) <= FEW


def _is_plain(frame: Frame, region: int, passes: _Passes) -> bool:
    """Nothing but arithmetic happens in the loop, and tests of what tells its passes apart: no other loop."""
    outline = frame.outline
    inside = {region}
    for place, other in enumerate(outline.regions):
        if place != region and other.parent in inside and place > region:
            inside.add(place)
    tests = [site.node for site in frame.graph.sites if site.kind == SiteKind.TRUTH and site.region == region]
    if len(inside) > 1 or not all(_is_of_numbers(frame, node, passes) for node in tests):
        return False
    return all(_is_arithmetic(frame, call.chain, call.node) for call in outline.calls if call.region == region)


def _is_of_numbers(frame: Frame, node: int, passes: _Passes) -> bool:
    """`token < 0 or token >= n`: a test that an index tensor can make of all rows at once."""
    item: Any = frame.graph.nodes[node]
    if item[0] in (Op.BOOL, Op.UNARY):
        return all(_is_of_numbers(frame, part, passes) for part in operands(item))
    if item[0] != Op.COMPARE or frame.value(node).is_tensor:
        return False
    return any(not passes.counters.isdisjoint(_made_of(frame, part, passes.start)) for part in item[3])


def _is_arithmetic(frame: Frame, chain: str, node: int) -> bool:
    name = chain.rpartition(".")[2]
    item: Any = frame.graph.nodes[node] if node >= 0 else (-1,)
    if item[0] != Op.CALL:
        return False
    detail = frame.value(item[2]).detail
    if isinstance(detail, External):
        return name in PYTHON if detail.name.startswith("builtins.") or "." not in detail.name else name in ELEMENTWISE
    return name in ELEMENTWISE


def _is_independent(frame: Frame, store: Any, passes: _Passes) -> bool:
    """The value reads nothing that an earlier pass wrote, save the very row."""
    nodes: Sequence[Any] = frame.graph.nodes
    own = _roots(frame, store[2]) | passes.walked if passes.rows else _roots(frame, store[2])
    queue, seen = [store[4], store[3]], set()
    while queue:
        node = queue.pop()
        if node in seen:
            continue
        seen.add(node)
        item = nodes[node]
        if node in passes.others:
            return False
        if node <= passes.start:
            if node in own or (item[0] == Op.PHI and any(part > passes.start for part in item[2])):
                return False  # the whole tensor as it was, or what a pass hands to the next
            continue
        if item[0] == Op.PHI and any(part >= node for part in item[2]):
            return False
        if item[0] == Op.INDEX and (item[2] in own or _roots(frame, item[2]) & own):
            if not _is_same(nodes, item[3], store[3]) or not (passes.rows or _is_one_row(frame, item[3], passes)):
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
