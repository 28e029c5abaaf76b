"""Caches whose key is a tensor's identity (its address, its `id`, `is`, a memo's hash), and the fresh tensors that they are fed."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from hostlint.facts.graph import Op, operands
from hostlint.facts.kinds import FactKind
from hostlint.model import Confidence
from hostlint.values.constancy import METADATA, PLACES
from hostlint.values.detail import External, Function, Instance
from hostlint.values.judging import Meeting
from hostlint.values.loops import VIEWS, around
from hostlint.values.rebuilt import reachable, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hostlint.facts.schema import Call
    from hostlint.facts.spans import Places
    from hostlint.index import FunctionId
    from hostlint.values.evaluator import Evaluator

MISSES = "not measured: the look-up, and all that the cache was to save, at every step"
RECYCLED = "not measured: a freed tensor's address is given to the next one, and the look-up then finds another tensor's result"
STAYS = re.compile(r"weight|param|bias|buffer|workspace|pool|(^|_)(k|v|kv)_?cache|_cache$|sink|^(self|module|layer)$", re.IGNORECASE)
LOOK_UPS = frozenset({"get", "pop", "setdefault", "move_to_end"})
KEEPERS = frozenset({"setattr", "setdefault", "put", "insert", "append"})
COMPARED = frozenset({"==", "!=", "in", "not in"})
MAKERS = frozenset({
    "cat", "concat", "stack", "contiguous", "clone", "repeat", "repeat_interleave", "arange", "linspace", "zeros", "ones", "full", "tensor",
    "as_tensor", "new_tensor", "new_zeros", "new_ones", "new_full", "where", "zeros_like", "ones_like", "full_like", "roll", "outer",
})  # fmt: skip
HOPS = frozenset({Op.PHI, Op.REFINE, Op.SEQUENCE})
MEMO = re.compile(r"(^|\.)(lru_cache|cache)(\(\))?$")
DEPTH = 3


class Key(NamedTuple):
    """A tensor's identity that a function looks something kept up by."""

    node: int  # the call of data_ptr() or id(), or of the helper that makes the key; the tensor itself for `is`
    tensor: int
    is_address: bool  # the storage's address, which views share


class Identity:
    """Finds addresses that serve as keys, and fresh tensors that are looked up by identity."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._keys: dict[FunctionId, tuple[Key, ...]] = {}

    def meetings(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        outline = self._evaluator.index.function(fid)
        told: set[int] = set()
        for call in outline.calls:
            if call.node >= 0 and is_hot(call.region):
                for made, why in self._fed(fid, call):
                    spot = places(made, outline.calls) if is_hot(made.region) and made.node not in told else None
                    if spot is not None:
                        told.add(made.node)
                        yield Meeting(FactKind.IDENTITY_KEY, site_of(made, spot), made.chain, why, Confidence.LIKELY, MISSES, "fresh")
        yield from self._addresses(fid, is_hot, places)

    def _addresses(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        """Keys that hold an address although nothing holds the tensor; one for each statement."""
        outline = self._evaluator.index.function(fid)
        keys = {key.node: key for key in self.keys(fid) if key.node != key.tensor and not self._is_held(fid, key)}
        lines: set[int] = set()
        for call in outline.calls if keys else ():
            if call.node in keys and is_hot(call.region) and call.chain.rpartition(".")[2] in ("data_ptr", "id"):
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
        for call in self._evaluator.index.function(fid).calls:
            item: Any = graph.nodes[call.node] if call.node >= 0 else (-1,)
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
                return item[0] in (Op.GLOBAL, Op.FREE) or (item[0] == Op.ATTR and item[3] not in METADATA | PLACES)
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

    def _fed(self, fid: FunctionId, call: Call) -> Iterator[tuple[Call, str]]:
        """The calls that make a fresh tensor for a parameter by whose identity the called function looks something up."""
        frame = self._evaluator.frame(fid)
        item: Any = frame.graph.nodes[call.node]
        target = self._target(fid, item)
        if target is None or item[5]:
            return
        outline = self._evaluator.index.function(target)
        loops = list(around(frame.outline, call.region))
        for position, address in self._keyed(target):
            node = _argument(self._evaluator, target, position, item)
            made = self._fresh(fid, node, address) if node >= 0 else None
            if made is not None and list(around(frame.outline, made.region)) == loops and self._look_ups(fid, node) == 1:
                yield made, f"`{outline.name}` looks its result up by the identity of `{outline.params[position].name}`"

    def _target(self, fid: FunctionId, item: Any) -> FunctionId | None:
        if item[0] != Op.CALL:
            return None
        detail = self._evaluator.frame(fid).value(item[2]).detail
        target = detail.function if isinstance(detail, Function) else None
        if isinstance(detail, Instance):
            target = self._evaluator.index.find_method(detail.klass, "forward")
        if target is not None:
            self._evaluator.files |= 1 << target[0]
        return target

    def _keyed(self, fid: FunctionId) -> Iterator[tuple[int, bool]]:
        """The parameters by whose identity a function looks up, and whether only their address counts."""
        outline, graph = self._evaluator.index.function(fid), self._evaluator.graph_of(fid)
        if any(MEMO.search(decorator) for decorator in outline.decorators):
            yield from ((place, False) for place, param in enumerate(outline.params) if "Tensor" in param.annotation)
            return
        for key in self.keys(fid):
            source: Any = graph.nodes[key.tensor]
            while source[0] in (Op.REFINE, Op.UNPACK, Op.INDEX):
                source = graph.nodes[source[2]]
            if source[0] == Op.PARAM:
                yield int(source[2]), key.is_address

    def _fresh(self, fid: FunctionId, node: int, address: bool) -> Call | None:
        """The first call that makes the tensor anew; with an address for a key a view is not new."""
        graph = self._evaluator.graph_of(fid)
        calls = {call.node: call for call in self._evaluator.index.function(fid).calls}
        queue, found = [node], []
        while queue:
            node = queue.pop()
            item: Any = graph.nodes[node]
            if item[0] in HOPS:
                queue.extend(part for part in operands(item) if part < node)
            elif item[0] == Op.CALL and node in calls:
                frame = self._evaluator.frame(fid)
                callee: Any = graph.nodes[item[2]]
                receiver = callee[2] if callee[0] == Op.ATTR and not isinstance(frame.value(item[2]).detail, External) else -1
                if frame.value(node).is_tensor and self._is_made(calls[node].chain.rpartition(".")[2], graph.nodes, receiver, address):
                    found.append(node)
                queue.extend([receiver] if receiver >= 0 else [])
        return calls[min(found)] if found else None

    def _is_made(self, name: str, nodes: Sequence[Any], receiver: int, address: bool) -> bool:
        """`contiguous()` gives the tensor itself where it is contiguous already: only after a slice it is another one."""
        if name == "contiguous":
            return receiver >= 0 and nodes[receiver][0] == Op.INDEX
        return name in MAKERS or (name in VIEWS and not address)

    def _look_ups(self, fid: FunctionId, node: int) -> int:
        """How many calls look something up by the very object: several share its identity, as the cache wants it."""
        found = 0
        for item in self._evaluator.graph_of(fid).nodes:
            target = self._target(fid, item) if item[0] == Op.CALL and node in operands(item)[1:] else None
            if target is not None:
                found += any(_argument(self._evaluator, target, position, item) == node for position, _ in self._keyed(target))
        return found


def _argument(evaluator: Evaluator, fid: FunctionId, position: int, item: Any) -> int:
    """The node that a call passes for a parameter, -1 where it passes none."""
    outline = evaluator.index.function(fid)
    slot = position - int(outline.owner >= 0)
    named = dict(item[4])
    if outline.params[position].name in named:
        return int(named[outline.params[position].name])
    return int(item[3][slot]) if 0 <= slot < len(item[3]) else -1
