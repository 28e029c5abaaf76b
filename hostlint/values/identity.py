"""Caches whose key is a tensor's identity: its address, its `id`, `is`; and addresses that outlive their tensors."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from hostlint.facts.graph import Op, operands
from hostlint.facts.kinds import FactKind
from hostlint.model import Confidence
from hostlint.values.constancy import METADATA, PLACES
from hostlint.values.detail import External, Function
from hostlint.values.judging import Meeting
from hostlint.values.rebuilt import reachable, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hostlint.facts.graph import FunctionGraph
    from hostlint.facts.spans import Places
    from hostlint.index import FunctionId
    from hostlint.values.evaluator import Evaluator

RECYCLED = "not measured: a freed tensor's address is given to the next one, and the look-up then finds another tensor's result"
STAYS = re.compile(r"weight|param|bias|buffer|workspace|pool|(^|_)(k|v|kv)_?cache|_cache$|sink|^(self|module|layer)$", re.IGNORECASE)
LOOK_UPS = frozenset({"get", "pop", "setdefault", "move_to_end"})
KEEPERS = frozenset({"setattr", "setdefault", "put", "insert", "append"})
COMPARED = frozenset({"==", "!=", "in", "not in"})
HOPS = frozenset({Op.PHI, Op.REFINE, Op.SEQUENCE})
MEMO = re.compile(r"(^|\.)(lru_cache|cache)(\(\))?$")
DEPTH = 3


class Key(NamedTuple):
    """A tensor's identity that a function looks something kept up by."""

    node: int  # the call of data_ptr() or id(), or of the helper that makes the key; the tensor itself for `is`
    tensor: int
    is_address: bool  # the storage's address, which views share


class Feeds(Protocol):
    def passes(self, fid: FunctionId, node: int) -> bool: ...


class Identity:
    """Finds the tensors by whose identity functions look something up."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._keys: dict[FunctionId, tuple[Key, ...]] = {}

    def addresses(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places, feeds: Feeds) -> Iterator[Meeting]:
        """Keys that hold an address although nothing holds the tensor, and it is one that passes; one for each statement."""
        outline = self._evaluator.index.function(fid)
        keys = {key.node: key for key in self.keys(fid) if key.node != key.tensor and not self._is_held(fid, key)}
        lines: set[int] = set()
        for call in outline.calls if keys else ():
            wanted = call.node in keys and is_hot(call.region) and call.chain.rpartition(".")[2] in ("data_ptr", "id")
            if wanted and feeds.passes(fid, keys[call.node].tensor):
                spot = places(call, outline.calls)
                if spot is not None and spot.statement[0] not in lines:
                    lines.add(spot.statement[0])
                    why = "the cache holds no reference to the tensor"
                    yield Meeting(FactKind.IDENTITY_KEY, site_of(call, spot), call.chain, why, Confidence.LIKELY, RECYCLED, "address")

    def keys(self, fid: FunctionId) -> tuple[Key, ...]:
        if fid not in self._keys:
            self._keys[fid] = ()
            found = [*self._pointers(fid), *self._compared(fid)]
            self._keys[fid] = tuple(key for key in found if not self._stays(fid, key.tensor))
        return self._keys[fid]

    def _stays(self, fid: FunctionId, node: int) -> bool:
        """A weight, a buffer, a pool, an attribute of the object: it lives as long as the cache."""
        graph = self._evaluator.graph_of(fid)
        item: Any = graph.nodes[node]
        base: Any = graph.nodes[item[2]] if item[0] == Op.ATTR else item
        own = item[0] == Op.ATTR and base[0] == Op.PARAM and base[2] == 0 and self._evaluator.index.function(fid).owner >= 0
        return own or bool(STAYS.search(self._evaluator.frame(fid).node_name(node)))

    def _pointers(self, fid: FunctionId) -> Iterator[Key]:
        graph = self._evaluator.graph_of(fid)
        keys = _made_keys(graph)
        for call in self._evaluator.index.function(fid).calls if keys else ():
            item: Any = graph.nodes[call.node] if call.node in keys else (-1,)
            tensor = self.pointed(fid, item) if item[0] == Op.CALL else -1
            if tensor >= 0 and self._is_looked_up(fid, call.node):
                yield Key(call.node, tensor, call.chain.rpartition(".")[2] != "id")

    def pointed(self, fid: FunctionId, item: Any, depth: int = DEPTH) -> int:
        """The tensor whose identity a call gives: `x.data_ptr()`, `id(x)`, or a helper that returns such a thing; -1 for other calls."""
        frame = self._evaluator.frame(fid)
        callee: Any = frame.graph.nodes[item[2]]
        detail = frame.value(item[2]).detail
        if callee[0] == Op.ATTR and callee[3] == "data_ptr":
            return int(callee[2])
        if isinstance(detail, External) and detail.name in ("id", "builtins.id") and item[3]:
            return int(item[3][0]) if frame.value(item[3][0]).is_tensor else -1
        if isinstance(detail, Function) and len(item[3]) == 1 and depth:
            inner = self._evaluator.graph_of(detail.function)
            self._evaluator.files |= 1 << detail.function[0]
            for node in reachable(inner, inner.returns):
                part: Any = inner.nodes[node]
                found = self.pointed(detail.function, part, depth - 1) if part[0] == Op.CALL else -1
                if found >= 0 and inner.nodes[found][0] in (Op.PARAM, Op.REFINE):
                    return int(item[3][0])
        return -1

    def _is_looked_up(self, fid: FunctionId, node: int) -> bool:
        """Whether a node, alone or in a tuple, is what something kept is looked up by or compared with."""
        graph = self._evaluator.graph_of(fid)
        same = {node}
        for place in range(node + 1, len(graph.nodes)):
            item: Any = graph.nodes[place]
            if item[0] in HOPS and not same.isdisjoint(operands(item)):
                same.add(place)
            elif item[0] == Op.INDEX and item[3] in same and self.is_kept(fid, item[2]):
                return True
            elif item[0] == Op.COMPARE and not same.isdisjoint(item[3]) and COMPARED.issuperset(item[2]):
                if any(self.is_kept(fid, part) for part in item[3] if part not in same):
                    return True
            elif item[0] == Op.CALL and not same.isdisjoint(item[3][:1]):
                callee: Any = graph.nodes[item[2]]
                if callee[0] == Op.ATTR and callee[3] in LOOK_UPS and self.is_kept(fid, callee[2]):
                    return True
        return False

    def is_kept(self, fid: FunctionId, node: int) -> bool:
        """An attribute, or a container of the module, or what was taken from one: it outlives the call."""
        graph = self._evaluator.graph_of(fid)
        for _ in range(DEPTH * 2):
            item: Any = graph.nodes[node]
            if item[0] in (Op.INDEX, Op.REFINE, Op.UNPACK, Op.STORE):
                node = item[2]
            elif item[0] == Op.PHI:
                node = min(item[2])
            elif item[0] == Op.CALL:
                callee: Any = graph.nodes[item[2]]
                name = callee[2] if callee[0] == Op.GLOBAL else callee[3] if callee[0] == Op.ATTR else ""
                if name == "getattr":
                    return True
                if name != "get":
                    return False
                node = callee[2]
            else:
                outer = item[0] == Op.GLOBAL or (item[0] == Op.FREE and not item[3])
                return outer or (item[0] == Op.ATTR and item[3] not in METADATA | PLACES)
        return False

    def _compared(self, fid: FunctionId) -> Iterator[Key]:
        """`if self._kept is x`, where the same function keeps x."""
        graph = self._evaluator.graph_of(fid)
        kept = set(self._stored(fid))
        kept |= {part for node in kept for part in operands(graph.nodes[node]) if graph.nodes[node][0] == Op.SEQUENCE}
        nodes: Sequence[Any] = graph.nodes
        for item in nodes:
            if item[0] == Op.COMPARE and len(item[3]) == 2 and item[2][0] in ("is", "is not"):
                for one, other in (item[3], item[3][::-1]):
                    param: Any = graph.nodes[one]
                    if param[0] == Op.PARAM and param[2] and one in kept and self.is_kept(fid, other):
                        yield Key(one, one, False)

    def _is_held(self, fid: FunctionId, key: Key) -> bool:
        """Whether the tensor is kept beside its key, so that its address cannot be given away; or only weakly referred to."""
        if any("weakref" in call.chain or call.chain.endswith("finalize") for call in self._evaluator.index.function(fid).calls):
            return True
        nodes: Sequence[Any] = self._evaluator.graph_of(fid).nodes
        stored = list(self._stored(fid))
        entries = [node for node in stored if nodes[node][0] in (Op.SEQUENCE, Op.CALL, Op.DICT)]
        return key.tensor in stored or any(key.tensor in operands(nodes[node]) for node in entries)

    def _stored(self, fid: FunctionId) -> Iterator[int]:
        """What a function puts into containers and attributes."""
        graph = self._evaluator.graph_of(fid)
        owner = self._evaluator.index.owner(fid)
        for item in graph.nodes:
            parts: Any = item
            if item[0] == Op.STORE:
                yield parts[4]
            elif item[0] == Op.CALL and graph.nodes[parts[2]][0] in (Op.GLOBAL, Op.ATTR) and graph.nodes[parts[2]][-1] in KEEPERS:
                yield from parts[3]
        for _, function, node, _ in self._evaluator.index.klass(owner).attributes if owner is not None else ():
            if function == fid[1] and node >= 0:
                yield node


def _made_keys(graph: FunctionGraph) -> set[int]:
    """The calls that give what something is looked up by or compared with, alone or in a tuple: asked of the graph alone, for few are."""
    queue: list[int] = []
    nodes: Sequence[Any] = graph.nodes
    for item in nodes:
        if item[0] == Op.INDEX:
            queue.append(item[3])
        elif item[0] == Op.COMPARE and COMPARED.issuperset(item[2]):
            queue.extend(item[3])
        elif item[0] == Op.CALL and item[3] and nodes[item[2]][-1] in LOOK_UPS:
            queue.append(item[3][0])
    found: set[int] = set()
    seen: set[int] = set()
    while queue:
        node = queue.pop()
        if node not in seen:
            seen.add(node)
            if nodes[node][0] == Op.CALL:
                found.add(node)
            elif nodes[node][0] in HOPS:
                queue.extend(operands(nodes[node]))
    return found
