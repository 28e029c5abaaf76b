"""Copies to the host that one method starts and keeps in an attribute, and that another reads before anything has waited for them."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op, SiteKind
from hostlint.facts.kinds import FactKind
from hostlint.values import order
from hostlint.values.copies import RACE, READS, copy_to_host, read_of
from hostlint.values.detail import Function
from hostlint.values.judging import Meeting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostlint.facts.graph import Site
    from hostlint.facts.schema import Call
    from hostlint.index import FunctionId
    from hostlint.values.evaluator import Frame


def kept_copies(frame: Frame, found: Sequence[Meeting]) -> Iterator[Meeting]:
    """The copies of a method that nothing in it waits for, where a method that calls it reads them with no wait in between."""
    kept = _kept(frame)
    for site in frame.graph.sites if kept else ():
        made = copy_to_host(frame, site.node) if site.kind == SiteKind.CALL else None
        names = [name for name, node in kept if made is not None and made[0] in order.made_from(frame, node)]
        if made is None or not names or order.waits_between(frame, found, made[0], None):
            continue
        reader = next(filter(None, (_read_in(other, frame.fid, names[0]) for other in _others(frame))), "")
        if reader:
            yield Meeting(FactKind.UNFINISHED_COPY, site, site.detail, reader, made[2], RACE, f"self.{names[0]}", wrong=True)


def _kept(frame: Frame) -> list[tuple[str, int]]:
    """The attributes that a method sets, with what it sets them to."""
    owner = frame.evaluator.index.owner(frame.fid)
    attributes = frame.evaluator.index.klass(owner).attributes if owner is not None else ()
    return [(name, node) for name, function, node, _ in attributes if function == frame.fid[1] and node >= 0]


def _others(frame: Frame) -> Iterator[Frame]:
    owner = frame.evaluator.index.owner(frame.fid)
    for _, function in frame.evaluator.index.klass(owner).methods if owner is not None else ():
        if function != frame.fid[1]:
            yield frame.evaluator.frame((frame.fid[0], function))


def _read_in(frame: Frame, filler: FunctionId, name: str) -> str:
    """In words where a method reads an attribute after its own call of the one that fills it; "" where it does not, or waits first."""
    filled = next((call for call in frame.outline.calls if _target(frame, call) == filler), None)
    if filled is None:
        return ""
    where = f"`{frame.outline.qualname}`, line"
    for site in frame.graph.sites:
        read = read_of(frame, site) if site.node > filled.node else -1
        if read >= 0 and any(_is_attribute(frame, part, name) for part in order.made_from(frame, read)):
            return "" if order.waits_between(frame, (), filled.node, site) else f"{where} {site.line}, reads it"
    for call in frame.outline.calls:
        if call.node > filled.node and (through := _reads_argument(frame, call, name)):
            waits = any(filled.node < one.node < call.node and order.call_waits(frame, one) for one in frame.outline.calls)
            return "" if waits else f"{where} {call.line}, hands it to `{through}`, which reads it"
    return ""


def _target(frame: Frame, call: Call) -> FunctionId | None:
    item: Any = frame.graph.nodes[call.node] if call.node >= 0 else (-1,)
    detail = frame.value(item[2]).detail if item[0] == Op.CALL else None
    return detail.function if isinstance(detail, Function) else None


def _is_attribute(frame: Frame, node: int, name: str) -> bool:
    item: Any = frame.graph.nodes[node]
    return item[0] == Op.ATTR and item[3] == name and frame.graph.nodes[item[2]][:1] == (Op.PARAM,) and frame.graph.nodes[item[2]][2] == 0


def _reads_argument(frame: Frame, call: Call, name: str) -> str:
    """The function of the project that a call hands the attribute to, where that reads it before it does anything that waits."""
    target = _target(frame, call)
    item: Any = frame.graph.nodes[call.node]
    places = [place for place, node in enumerate(item[3]) if any(_is_attribute(frame, part, name) for part in order.made_from(frame, node))]
    if target is None or not places or item[5]:
        return ""
    inner = frame.evaluator.frame(target)
    frame.evaluator.files |= 1 << target[0]
    position = places[0] + int(inner.outline.owner >= 0 and frame.graph.nodes[item[2]][0] == Op.ATTR)
    shift = position - places[0]
    kept = {place + shift for place, node in enumerate(item[3]) if frame.graph.nodes[node][0] == Op.ATTR and frame.value(node).is_host}
    for site in inner.graph.sites:
        read = read_of(inner, site)
        parts = [inner.graph.nodes[part] for part in order.made_from(inner, read)] if read >= 0 else ()
        if any(part[0] == Op.PARAM and part[2] == position for part in parts):
            return "" if _waits_before(inner, site, kept) else inner.outline.name
    return ""


def _waits_before(frame: Frame, site: Site, kept: set[int]) -> bool:
    """Whether a function waits before it reads; reads of other parameters that hold copies of the same kind wait for nothing."""
    earlier = [call for call in frame.outline.calls if 0 <= call.node < site.node]
    hosts = [call for call in earlier if order.method(frame, call.node)[0] in READS and _parameter(frame, call) in kept]
    return any(order.call_waits(frame, call) for call in earlier if call not in hosts)


def _parameter(frame: Frame, call: Call) -> int:
    """The parameter whose method a call runs, -1 for other calls."""
    _, receiver = order.method(frame, call.node)
    item: Any = frame.graph.nodes[receiver] if receiver >= 0 else (-1,)
    return int(item[2]) if item[0] == Op.PARAM else -1
