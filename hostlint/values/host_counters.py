"""Counters that the host keeps on the device: tensors of one element that only numbers of the host's go into, and that it reads back."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from hostlint.facts.graph import Op, SiteKind
from hostlint.facts.kinds import FactKind
from hostlint.facts.schema import RegionKind
from hostlint.model import Confidence
from hostlint.values.counter_flow import Flow, WriteKind
from hostlint.values.foreign_writes import ForeignWrites
from hostlint.values.host_numbers import is_one_element
from hostlint.values.judging import Meeting
from hostlint.values.rebuilt import site_of
from hostlint.values.turns import is_alike
from hostlint.values.value import Place
from hostlint.values.waits import meetings as waits_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hostlint.facts.graph import Site
    from hostlint.facts.spans import Places
    from hostlint.index import ClassId, FunctionId
    from hostlint.values.evaluator import Evaluator, Frame

COST = "not measured: a launch for each step, and the read waits until the device has come to it"
MADE = re.compile(r"(^|[._\]])(tensor|as_tensor|scalar_tensor|zeros|ones|empty|full|\w*Tensor|Parameter|Buffer)\(\)")
IN_PLACE = frozenset({"add_", "sub_", "fill_", "copy_"})
ARITHMETIC = frozenset({"add", "sub"})
# What brings back a counter that was saved: the host can read it once, there.
RESTORES = re.compile(r"(^|_)(load|restore|resume|set_extra_state|setstate)(_|$)")
SIZED = frozenset({FactKind.INDEX, FactKind.SCALAR_ARGUMENT})
READS = SIZED | {FactKind.ITEM, FactKind.SCALAR_CAST, FactKind.TRUTH_TEST, FactKind.FORMAT, FactKind.TOLIST, FactKind.HOST_COPY}


class Read(NamedTuple):
    """Where the host reads the counter, and how the scan knows that it waits."""

    fid: FunctionId
    wait: Meeting


class Story(NamedTuple):
    """What the project does with one counter."""

    flows: dict[FunctionId, Flow]
    reads: tuple[Read, ...]


class HostCounters:
    """Finds them in the functions that count."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._index = evaluator.index
        self._foreign = ForeignWrites(evaluator)
        self._stories: dict[tuple[ClassId, str], Story | None] = {}
        self._made: dict[ClassId, tuple[str, ...]] = {}
        self._families: dict[ClassId, tuple[FunctionId, ...]] = {}
        self.counted: dict[tuple[FunctionId, int, int], int] = {}  # function, line and column of a read: the line that counts

    def meetings(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        """The first place of a function that counts, for each of its counters."""
        counting = self._counting(fid)
        if not any(is_hot(region) for region in counting.values()):
            return
        told = [*self._of_object(fid, counting, is_hot, places), *self._of_loop(fid, counting, is_hot)]
        lines: set[int] = set()
        for node, story, name in told:
            site = self._site(fid, node, places)
            if site is not None and site.first_line not in lines:
                lines.add(site.first_line)
                meeting = self._told(fid, site, story, name)
                if not self._counts_beside(fid, site, node):  # else the read alone is at fault
                    yield meeting

    def _told(self, fid: FunctionId, site: Site, story: Story, name: str) -> Meeting:
        read = story.reads[0]
        where = "" if read.fid[0] == fid[0] else f"{self._index.files[read.fid[0]].path}, "
        for each in story.reads:
            if each.fid[0] == fid[0]:
                self.counted[each.fid, each.wait.site.line, each.wait.site.column] = site.line
        confidence = min(read.wait.confidence, Confidence.LIKELY)
        spot = f"{where}line {read.wait.site.line}"
        return Meeting(FactKind.HOST_COUNTER, site, name, read.wait.evidence, confidence, COST, spot)

    def _counting(self, fid: FunctionId) -> dict[int, int]:
        """The nodes of a function that may count, with their regions: asked of the outline alone."""
        sites = {site.node: site.region for site in self._evaluator.graph_of(fid).sites if site.kind == SiteKind.COUNT}
        calls = (call for call in self._index.function(fid).calls if call.node >= 0)
        return sites | {call.node: call.region for call in calls if call.chain.rpartition(".")[2] in IN_PLACE | ARITHMETIC}

    def _site(self, fid: FunctionId, node: int, places: Places) -> Site | None:
        for site in self._evaluator.graph_of(fid).sites:
            if site.kind == SiteKind.COUNT and site.node == node:
                return site
        outline = self._index.function(fid)
        call = next((one for one in outline.calls if one.node == node), None)
        spot = places(call, outline.calls) if call is not None else None
        return site_of(call, spot) if call is not None and spot is not None else None

    def _counts_beside(self, fid: FunctionId, site: Site, node: int) -> bool:
        """Whether the host counts the same already: by a number that it adds to in the same block, or by the index of the loop."""
        frame = self._evaluator.frame(fid)
        nodes: Sequence[Any] = frame.graph.nodes
        added = _added(nodes[node])
        for other in frame.graph.sites:
            if other.kind == SiteKind.COUNT and other.region == site.region and other.node != node:
                item = nodes[other.node]
                if frame.value(item[3]).place is Place.PYTHON and added >= 0 and is_alike(nodes, item[4], added):
                    return True
        loop = frame.outline.regions[site.region]
        indexed = loop.text.startswith("range(") or any((name, "range()") in frame.outline.assigns for name in loop.targets)
        return loop.kind == RegionKind.LOOP and indexed and added >= 0 and nodes[added][0] == Op.CONST and nodes[added][3] == 1

    def _of_object(
        self, fid: FunctionId, counting: dict[int, int], is_hot: Callable[[int], bool], places: Places
    ) -> Iterator[tuple[int, Story, str]]:
        owner = self._index.owner(fid)
        for cid in self._index.mro(owner) if owner is not None else ():
            for name in self._names(cid):
                if not self._mentions(fid, name):
                    continue
                story = self._story(cid, name, places)
                if story is not None and (node := self._first(story.flows.get(fid), counting, is_hot)) >= 0:
                    yield node, story, name

    def _first(self, flow: Flow | None, counting: dict[int, int], is_hot: Callable[[int], bool]) -> int:
        """The first hot node of a function that adds to the counter, else one that sets it to another number each time."""
        for kind in (WriteKind.COUNTS, WriteKind.SETS):
            for write in flow.writes if flow is not None else ():
                if write.kind is not kind or write.node not in counting or not is_hot(counting[write.node]):
                    continue
                if flow is not None and (kind is WriteKind.COUNTS or flow.is_given_a_name(write.node)):
                    return write.node
        return -1

    def _names(self, cid: ClassId) -> tuple[str, ...]:
        """The attributes and buffers that a class itself makes as tensors of one element."""
        if cid not in self._made:
            found: dict[str, None] = {}
            klass = self._index.klass(cid)
            for name, function, node, text in klass.attributes:
                if MADE.search(text) and node >= 0 and is_one_element(self._evaluator.frame((cid[0], function)), node):
                    found[name] = None
            for _, method in klass.methods:
                found.update(dict.fromkeys(self._registered((cid[0], method))))
            self._made[cid] = tuple(found)
        return self._made[cid]

    def _registered(self, fid: FunctionId) -> Iterator[str]:
        for call in self._index.function(fid).calls:
            if call.chain == "self.register_buffer" and call.strings and call.node >= 0:
                frame = self._evaluator.frame(fid)
                item: Any = frame.graph.nodes[call.node]
                given = [*item[3][1:2], *(value for key, value in item[4] if key == "tensor")]
                if given and is_one_element(frame, given[0]):
                    yield call.strings[0]

    def _mentions(self, fid: FunctionId, name: str) -> bool:
        nodes: Sequence[Any] = self._evaluator.graph_of(fid).nodes
        return any(node[0] == Op.ATTR and node[3] == name for node in nodes)

    def _story(self, cid: ClassId, name: str, places: Places) -> Story | None:
        key = (cid, name)
        if key not in self._stories:
            self._stories[key] = None
            self._stories[key] = self._told_by(cid, name, places)
        for fid in self._family(cid) if self._stories[key] is not None else ():
            self._evaluator.files |= 1 << fid[0]
        return self._stories[key]

    def _told_by(self, cid: ClassId, name: str, places: Places) -> Story | None:
        flows = {fid: flow for fid in self._family(cid) if (flow := self._flow(fid, name)) is not None}
        kept = {fid: flow for fid, flow in flows.items() if not RESTORES.search(self._index.function(fid).name)}
        writes = [(flow, write) for flow in kept.values() for write in flow.writes]
        moves = any(write.kind is WriteKind.COUNTS or flow.is_given_a_name(write.node) for flow, write in writes)
        if not moves or any(write.kind is WriteKind.UNKNOWN for _, write in writes):
            return None
        reads = tuple(read for fid, flow in flows.items() for read in self._reads(fid, flow))
        return Story(kept, reads) if reads and not self._foreign.writes(name, places) else None

    def _family(self, cid: ClassId) -> tuple[FunctionId, ...]:
        """The functions that see an object of the class as `self`: its own, its bases' and its subclasses'."""
        if cid not in self._families:
            classes = {*self._index.mro(cid), *self._index.subclasses(cid)}
            files = sorted({file for file, _ in classes})
            found = [(file, function.index) for file in files for function in self._index.files[file].functions]
            self._families[cid] = tuple(fid for fid in found if self._index.owner(fid) in classes)
        return self._families[cid]

    def _flow(self, fid: FunctionId, name: str) -> Flow | None:
        """What a method does with the attribute; None where it does nothing."""
        frame = self._evaluator.frame(fid)
        nodes: Sequence[Any] = frame.graph.nodes
        seeds = [place for place, node in enumerate(nodes) if node[0] == Op.ATTR and node[3] == name and self._is_self(frame, node[2])]
        owner = self._index.owner(fid)
        attributes = self._index.klass(owner).attributes if owner is not None else ()
        bound = [(node, text) for attribute, function, node, text in attributes if attribute == name and function == fid[1]]
        stored = [node for node, text in bound if not (text and nodes[node][0] == Op.UNKNOWN)]  # `self.steps: Tensor` binds nothing
        if not seeds and not stored:
            return None
        return Flow(frame, [*seeds, *(node for node in stored if is_one_element(frame, node))], dict.fromkeys(stored))

    def _is_self(self, frame: Frame, node: int) -> bool:
        item: Any = frame.graph.nodes[node]
        if item[0] == Op.PARAM:
            return bool(item[2] == 0)
        return bool(item[0] == Op.FREE and item[2] == "self")

    def _reads(self, fid: FunctionId, flow: Flow) -> Iterator[Read]:
        """The hot places of a function that wait for the counter, and for nothing else."""
        frame = self._evaluator.frame(fid)
        for wait in waits_of(frame):
            hot = wait.kind in READS and self._evaluator.surroundings.is_hot(fid, wait.site.region)
            if hot and _is_read(frame, flow, wait):
                yield Read(fid, wait)

    def _of_loop(self, fid: FunctionId, counting: dict[int, int], is_hot: Callable[[int], bool]) -> Iterator[tuple[int, Story, str]]:
        """Names of a function that a loop counts up."""
        outline = self._index.function(fid)
        if not any(region.kind == RegionKind.LOOP for region in outline.regions):
            return
        frame = self._evaluator.frame(fid)
        for call in outline.calls:
            if call.node < 0 or not MADE.search(f"{call.chain}()") or not frame.value(call.node).is_device:
                continue
            flow = Flow(frame, [call.node]) if is_one_element(frame, call.node) else None
            if flow is None or any(write.kind is WriteKind.UNKNOWN for write in flow.writes) or self._is_shared(fid, flow):
                continue
            node = self._first(flow, counting, is_hot)
            reads = tuple(self._reads(fid, flow)) if node >= 0 else ()
            if reads:
                yield node, Story({fid: flow}, reads), ""

    def _is_shared(self, fid: FunctionId, flow: Flow) -> bool:
        """Whether the object, or a function inside this one, holds the tensor as well."""
        outline, graph = self._index.function(fid), self._evaluator.graph_of(fid)
        owner = self._index.owner(fid)
        attributes = self._index.klass(owner).attributes if owner is not None else ()
        if any(function == outline.index and node in flow.same for _, function, node, _ in attributes):
            return True
        cells = dict(graph.cells)
        inner = [one.index for one in self._index.files[fid[0]].functions if one.parent == outline.index]
        free = {node[2] for index in inner for node in self._evaluator.graph_of((fid[0], index)).nodes if node[0] == Op.FREE}
        return any(cells.get(str(name), -1) in flow.same for name in free)


def _is_read(frame: Frame, flow: Flow, wait: Meeting) -> bool:
    """Whether the counter, or what follows from it, is all that a place waits for."""
    nodes: Sequence[Any] = frame.graph.nodes
    item = nodes[wait.site.node]
    if wait.site.kind in (SiteKind.LOAD, SiteKind.WRITE, SiteKind.AUGMENTED):
        asked = _index_parts(nodes, item[3])
    elif wait.site.kind == SiteKind.CALL:
        callee = nodes[item[2]]
        given = [*item[3], *(value for _, value in item[4])]
        asked = [part for node in given for part in _index_parts(nodes, node)]
        asked += [callee[2]] if callee[0] == Op.ATTR and wait.kind not in SIZED else []
    else:
        asked = [item[4] if wait.site.kind == SiteKind.PERCENT else wait.site.node]
    known = flow.same | flow.follows
    on_device = [node for node in asked if node in known or frame.value(node).is_device]
    return bool(on_device) and known.issuperset(on_device)


def _added(item: Any) -> int:
    """What `x += n` or `x.add_(n)` adds, -1 for other writes."""
    if item[0] == Op.BINOP:
        return int(item[4])
    return int(item[3][0]) if item[0] == Op.CALL and len(item[3]) == 1 else -1


def _index_parts(nodes: Sequence[Any], index: int) -> list[int]:
    """The parts of an index: the bounds of its slices, the elements of its tuple."""
    item = nodes[index]
    if item[0] == Op.SEQUENCE:
        return [part for one in item[3] for part in _index_parts(nodes, one)]
    if item[0] == Op.SLICE:
        return [bound for bound in item[2:5] if bound >= 0]
    return [index]
