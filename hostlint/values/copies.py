"""Copies that are told not to block: host results that are read before they are there, pinned sources that are rewritten in flight."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op, SiteKind
from hostlint.facts.kinds import FactKind
from hostlint.heat.words import names_model
from hostlint.model import Confidence
from hostlint.torch_ops.copies import REWRITERS
from hostlint.values import order
from hostlint.values.judging import Meeting
from hostlint.values.value import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostlint.facts.graph import Site
    from hostlint.values.evaluator import Frame

RACE = "not a wait but a race: `x.to('cpu', non_blocking=True)` returns before the copy has ended"
READS = frozenset({"item", "tolist", "numpy"})
CASTS = frozenset({"float", "int", "bool", "print", "str", "asarray", "array"})


def unfinished_copies(frame: Frame, found: Sequence[Meeting]) -> Iterator[Meeting]:
    """The first read of each device-to-host copy that nothing has waited for."""
    copies = [made for call in frame.outline.calls if (made := copy_to_host(frame, call.node)) is not None]
    for copy, target, confidence in copies:
        wanted = order.shape_of(frame, target)
        for site in frame.graph.sites:
            line: Any = frame.graph.nodes[copy][1]
            read = read_of(frame, site) if site.node > copy or site.line > line else -1
            if read < 0 or not any(order.shape_of(frame, part) == wanted for part in order.made_from(frame, read)):
                continue
            if not order.waits_between(frame, found, copy, site) and not _is_kept_view(frame, found, site):
                why = f"line {line} copies it to the host with `non_blocking=True`"
                yield Meeting(FactKind.UNFINISHED_COPY, site, site.detail, why, confidence, RACE, wrong=True)
            break


def copy_to_host(frame: Frame, node: int) -> tuple[int, int, Confidence] | None:
    """A call that copies a device value to the host without waiting: the call, the node that is filled, how sure that is."""
    if node < 0 or not order.is_non_blocking(frame, node):
        return None
    name, receiver = order.method(frame, node)
    call: Any = frame.graph.nodes[node]
    if name == "to" and frame.value(node).place is Place.HOST:
        source = frame.value(receiver)
        is_module = not source.is_tensor and names_model(frame.node_name(receiver).rpartition(".")[2])
        if source.is_host or is_module:
            return None
        return node, node, source.confidence if source.is_device else Confidence.LIKELY
    if name == "copy_" and call[3] and frame.value(receiver).place is Place.HOST and frame.value(call[3][0]).is_device:
        return node, receiver, min(frame.value(receiver).confidence, frame.value(call[3][0]).confidence)
    return None


def read_of(frame: Frame, site: Site) -> int:
    """The node whose data a site reads on the host; -1 where it reads none."""
    if site.kind in (SiteKind.TRUTH, SiteKind.FORMAT):
        return site.node if frame.value(site.node).is_tensor else -1
    if site.kind != SiteKind.CALL:
        return -1
    name, receiver = order.method(frame, site.node)
    if name in READS:
        return receiver
    last = site.detail.rpartition(".")[2]
    call: Any = frame.graph.nodes[site.node]
    return call[3][0] if last in CASTS and call[3] else -1


def _is_kept_view(frame: Frame, found: Sequence[Meeting], site: Site) -> bool:
    """`view = copy.numpy()` reads nothing yet: it is what happens after the next wait that counts, or what the caller does with it."""
    name, _ = order.method(frame, site.node)
    if name != "numpy":
        return False
    calls: list[Any] = [frame.graph.nodes[call.node] for call in frame.outline.calls if call.node > site.node]
    passed_on = any(site.node in (*call[3], *(value for _, value in call[4])) for call in calls if call[0] == Op.CALL)
    if passed_on:
        return False
    returned = {part for node in frame.graph.returns for part in order.one_of(frame, node)}
    return site.node in returned or order.waits_between(frame, found, site.node, None)


def rewritten_sources(frame: Frame, found: Sequence[Meeting]) -> Iterator[Meeting]:
    """Pinned buffers that a loop fills again while the copy of the round before may still read them."""
    uploads = [upload for call in frame.outline.calls if (upload := _upload(frame, call.node, call.region)) is not None]
    for site in frame.graph.sites if uploads else ():
        buffer = _behind(frame, _rewritten(frame, site))
        if buffer < 0 or not frame.value(buffer).pinned:
            continue
        root = order.shape_of(frame, buffer)
        rounds = [loop for source, region in uploads if source == root for loop in _shared(frame, site.region, region, root)]
        if rounds and not _waits_in(frame, found, rounds[-1]):
            line = frame.outline.regions[rounds[-1]].line
            why = f"the loop at line {line} uploads it with `non_blocking=True` and waits for nothing"
            yield Meeting(FactKind.PINNED_REWRITE, site, site.detail, why, frame.value(buffer).confidence, RACE, wrong=True)


def _upload(frame: Frame, node: int, region: int) -> tuple[object, int] | None:
    """The pinned source of a copy to the device that does not block, and the region of the call."""
    if node < 0 or not order.is_non_blocking(frame, node):
        return None
    name, receiver = order.method(frame, node)
    call: Any = frame.graph.nodes[node]
    source = receiver if name in ("to", "cuda") else call[3][0] if name == "copy_" and call[3] else -1
    onto = frame.value(receiver) if name == "copy_" else frame.value(node)
    if source < 0 or onto.is_host or not frame.value(source).pinned:
        return None
    return order.shape_of(frame, _behind(frame, source)), region


def _rewritten(frame: Frame, site: Site) -> int:
    """The buffer that a site fills anew."""
    if site.kind in (SiteKind.WRITE, SiteKind.AUGMENTED):
        store: Any = frame.graph.nodes[site.node]
        return int(store[2])
    name, receiver = order.method(frame, site.node) if site.kind == SiteKind.CALL else ("", -1)
    return receiver if name in REWRITERS else -1


def _behind(frame: Frame, node: int) -> int:
    """The buffer behind views, writes and the head of a loop; a slot that an index chooses is a buffer of its own."""
    seen: set[int] = set()
    while node >= 0 and node not in seen:
        seen.add(node)
        parts: Any = frame.graph.nodes[node]
        name, receiver = order.method(frame, node)
        if parts[0] in (Op.STORE, Op.REFINE, Op.MOVED):
            node = parts[2]
        elif parts[0] == Op.PHI and parts[2]:
            node = min(parts[2])
        elif name in {"numpy", "view", "flatten", "reshape"}:
            node = receiver
        elif parts[0] == Op.INDEX and _is_slice(frame, parts[3]):
            node = parts[2]
        else:
            break
    return node


def _is_slice(frame: Frame, index: int) -> bool:
    return frame.graph.nodes[index][0] == Op.SLICE


def _shared(frame: Frame, one: int, other: int, root: object) -> Iterator[int]:
    """The loops around both regions that do not make the buffer anew in each round."""
    around = set(order.loops_around(frame, other))
    made: Any = frame.graph.nodes[root][1] if isinstance(root, int) else 0
    if isinstance(root, tuple) and root[0] in (Op.INDEX, Op.UNPACK, Op.ITER):
        return
    for loop in order.loops_around(frame, one):
        if loop in around and made <= frame.outline.regions[loop].line:
            yield loop


def _waits_in(frame: Frame, found: Sequence[Meeting], loop: int) -> bool:
    inside = {region for region in range(len(frame.outline.regions)) if loop in order.loops_around(frame, region)}
    if any(call.region in inside and order.call_waits(frame, call) for call in frame.outline.calls):
        return True
    return any(meeting.site.region in inside and meeting.kind not in order.NO_WAIT for meeting in found)
