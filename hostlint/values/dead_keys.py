"""Hand-written caches that compare a key which nobody ever stores, and so compute their results at every call."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op, SiteKind
from hostlint.facts.kinds import FactKind
from hostlint.facts.schema import FunctionFlag
from hostlint.model import Confidence
from hostlint.values.judging import Meeting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hostlint.index import FunctionId
    from hostlint.scopes import ClassId
    from hostlint.values.evaluator import Evaluator

ALWAYS = "not measured: the whole of what the cache was to save, at every call"
EQUAL = frozenset({"==", "!=", "is", "is not"})


class DeadKeys:
    """Finds comparisons with attributes that are None for good, beside results that are kept for them."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def meetings(self, fid: FunctionId, is_hot: Callable[[int], bool]) -> Iterator[Meeting]:
        outline, graph = self._evaluator.index.function(fid), self._evaluator.graph_of(fid)
        owner = self._evaluator.index.owner(fid)
        if owner is None or outline.flags & (FunctionFlag.STATIC | FunctionFlag.CLASS):
            return
        told: set[str] = set()
        for site in graph.sites:
            name = self._compared(fid, site.node) if site.kind == SiteKind.TRUTH and is_hot(site.region) else ""
            if name and name not in told and self._is_never_set(owner, name) and self._keeps_a_result(fid, owner, name):
                told.add(name)
                why = f"nothing but None is stored in `self.{name}`"
                yield Meeting(FactKind.IDENTITY_KEY, site, f"self.{name}", why, Confidence.LIKELY, ALWAYS, "unkept")

    def _compared(self, fid: FunctionId, node: int) -> str:
        """The private attribute that a test compares with something that is not None; "" for other tests."""
        nodes: Sequence[Any] = self._evaluator.graph_of(fid).nodes
        item = nodes[node]
        if item[0] != Op.COMPARE or len(item[3]) != 2 or not EQUAL.issuperset(item[2]):
            return ""
        parts = [nodes[nodes[part][2]] if nodes[part][0] == Op.REFINE else nodes[part] for part in item[3]]
        if any(part[0] == Op.CONST for part in parts):
            return ""
        kept = [part for part in parts if part[0] == Op.ATTR and nodes[part[2]][0] == Op.PARAM]
        names = [part[3] for part in kept if nodes[part[2]][2] == 0 and part[3].startswith("_")]
        return names[0] if len(names) == 1 else ""

    def _is_never_set(self, owner: ClassId, name: str) -> bool:
        index = self._evaluator.index
        stores = [store for each in (owner, *index.subclasses(owner)) for store in index.attribute_stores(each, name)]
        for where, node, _ in stores:
            self._evaluator.files |= 1 << where[0]
            item: Any = self._evaluator.graph_of(where).nodes[node] if node >= 0 else (-1,)
            if item[0] != Op.CONST or item[2] != "NoneType":
                return False
        return bool(stores) and index.member(owner, name) is None

    def _keeps_a_result(self, fid: FunctionId, owner: ClassId, key: str) -> bool:
        """Whether the function stores another attribute that it also reads, with something else than a constant."""
        nodes: Sequence[Any] = self._evaluator.graph_of(fid).nodes
        read = {item[3] for item in nodes if item[0] == Op.ATTR and nodes[item[2]][0] == Op.PARAM and nodes[item[2]][2] == 0}
        stored = [(name, node) for name, function, node, _ in self._evaluator.index.klass(owner).attributes if function == fid[1]]
        return any(name != key and name in read and node >= 0 and nodes[node][0] != Op.CONST for name, node in stored)
