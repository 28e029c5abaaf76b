"""Device work in a step loop that gives the same result in every pass: its operands are all bound before the loop."""
from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from hostlint.facts.fact import Repeated
from hostlint.facts.graph import Op, operands
from hostlint.facts.kinds import FactKind
from hostlint.heat.words import Walk, loop_walks
from hostlint.model import Confidence
from hostlint.values.causes import Work, gathered, others, spokesman
from hostlint.values.constancy import METADATA, PLACES, SETUPS, Constancy, Steady
from hostlint.values.constancy import PURE as BUILTINS
from hostlint.values.conventions import MASK_NAMES
from hostlint.values.detail import Dtype, External, ExternalInstance, Instance, Method
from hostlint.values.judging import Meeting
from hostlint.values.loops import VIEWS
from hostlint.values.rebuilt import UNMEASURED, site_of
from hostlint.values.value import Place
from hostlint.values.worth import LEAST, tensor_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hostlint.facts.schema import Call
    from hostlint.facts.spans import Places
    from hostlint.index import FunctionId
    from hostlint.values.evaluator import Evaluator, Frame
    from hostlint.values.worth import Worth

CASTS = frozenset({"float", "half", "bfloat16", "double", "bool", "long", "int", "type"})
WORK = frozenset({
    "where", "cat", "concat", "stack", "repeat", "repeat_interleave", "tile", "matmul", "mm", "bmm", "einsum", "cos", "sin", "exp", "log",
    "sqrt", "rsqrt", "cumsum", "cumprod", "softmax", "log_softmax", "logsumexp", "norm", "normalize", "masked_fill", "tril", "triu",
    "interpolate", "one_hot", "linear", "layer_norm", "group_norm", "rms_norm", "embedding", "roll", "flip", "outer",
    "logical_and", "logical_or", "logical_not", "pad", "conv2d", "mean", "sum", "pow", "to", "sigmoid", "gelu", "silu", "meshgrid",
    "gather", "index_select", "pixel_unshuffle", "pixel_shuffle", "polar", "view_as_complex", "eq", "ne", "ge", "gt", "le", "lt",
}) | CASTS  # fmt: skip
PURE = WORK | VIEWS | {"abs", "neg", "clamp", "clip", "T", "item", "add", "sub", "mul", "div", "isnan", "cpu", "cuda", "type_as", "argmax"}
RANDOM = re.compile(r"rand|dropout|multinomial|bernoulli|normal$|poisson|exponential|empty|channel_shuffle|sample", re.IGNORECASE)
LAYERS = re.compile(r"^torch\.nn\.(\w*Linear|LayerNorm|RMSNorm|GroupNorm|Embedding|Conv\d?d|GELU|SiLU|ReLU|Identity|Tanh|Sigmoid)$")
PROJECTIONS = re.compile(r"(^|_)(proj|projection|norm|embed|embedder|linear|fc)(_|\d*$)|_proj|proj_|_embed|embedding", re.IGNORECASE)
NAMES = frozenset({Op.PARAM, Op.FREE, Op.GLOBAL})
TENSOR_PARTS = frozenset({"T", "mT", "H", "real", "imag"})


class Hoisted:
    """Finds work in the loops of one function that could be done once before them."""

    def __init__(self, evaluator: Evaluator, constancy: Constancy, worth: Worth) -> None:
        self._evaluator = evaluator
        self._constancy = constancy
        self._worth = worth

    def meetings(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        outline = self._evaluator.index.function(fid)
        found: list[Work] = []
        for call in outline.calls:
            if call.region and call.node >= 0 and self._is_work(call) and is_hot(call.region):
                loop = self._constancy.step_loop(fid, call.region)
                loop = 0 if self._dispatches(fid, loop) else loop
                spot = places(call, outline.calls) if loop and self._same(fid, call, loop) else None
                if spot is not None and spot.chosen_by.isdisjoint(outline.regions[loop].targets):  # else in one pass only
                    found.append(Work(call, spot, loop))
        for works in gathered(self._evaluator.graph_of(fid), found, alike=partial(self._are_alike, fid)):
            yield self._told(fid, works)

    def _told(self, fid: FunctionId, works: Sequence[Work]) -> Meeting:
        """The first of the works that go into one thing speaks for all, in its statement the largest."""
        call, spot, loop = spokesman(self._evaluator.graph_of(fid), works)
        line = self._evaluator.index.function(fid).regions[loop].line
        launches = len({work.call.node for work in works})
        tensors = list(self._tensors(fid, call))
        free = launches < LEAST and self._may_be_free(fid, call)
        tiny = launches < LEAST and bool(tensors) and all(self._worth.is_tiny(fid, node) for node in tensors)
        why = f"every operand is bound before the loop at line {line}"
        return Meeting(
            FactKind.INVARIANT_WORK, site_of(call, spot), call.chain, why, Confidence.POSSIBLE if tiny or free else Confidence.LIKELY,
            UNMEASURED, str(line), repeated=Repeated(others=others(spot, works)),
        )  # fmt: skip

    def _tensors(self, fid: FunctionId, call: Call) -> Iterator[int]:
        """The tensors that a call works on, also those in a list."""
        frame = self._evaluator.frame(fid)
        item: Any = frame.graph.nodes[call.node]
        callee: Any = frame.graph.nodes[item[2]]
        given = [*item[3], *([callee[2]] if callee[0] == Op.ATTR and not isinstance(frame.value(item[2]).detail, External) else ())]
        while given:
            node = given.pop()
            part: Any = frame.graph.nodes[node]
            if part[0] in (Op.SEQUENCE, Op.BINOP):  # `[x, x]`, `[x] * 2`
                given.extend(operands(part))
            elif frame.value(node).is_tensor:
                yield node

    def _dispatches(self, fid: FunctionId, loop: int) -> bool:
        """Whether the passes of a loop are kinds of work that its body tells apart by name: most often there is one."""
        head = self._evaluator.index.function(fid).regions[loop]
        if not loop or loop_walks(head.text, head.targets) is not Walk.UNKNOWN:
            return False
        nodes: Sequence[Any] = self._evaluator.graph_of(fid).nodes
        taken = {node for node, item in enumerate(nodes) if item[0] == Op.ITER and item[1] == head.line}
        taken |= {node for node, item in enumerate(nodes) if item[0] == Op.UNPACK and item[2] in taken}
        compared = [item[3] for item in nodes if item[0] == Op.COMPARE and not taken.isdisjoint(item[3])]
        return any(nodes[part][0] == Op.CONST and nodes[part][2] == "str" for parts in compared for part in parts)

    def _may_be_free(self, fid: FunctionId, call: Call) -> bool:
        """A cast to another tensor's type, which may be the type that the tensor has: `x.to(y.dtype)`."""
        frame = self._evaluator.frame(fid)
        item: Any = frame.graph.nodes[call.node]
        name = call.chain.rpartition(".")[2]
        given = [*item[3], *(value for _, value in item[4])]
        named = any(isinstance(detail := frame.value(part).detail, Dtype) and detail.name != "?" for part in given)
        callee: Any = frame.graph.nodes[item[2]]
        mask = callee[0] == Op.ATTR and MASK_NAMES.search(tensor_name(frame, callee[2]))
        return not mask and name in ("to", "type") and not named

    def _are_alike(self, fid: FunctionId, one: Call, other: Call) -> bool:
        """The same method of the same tensor, the same function of the same tensors."""
        nodes: Sequence[Any] = self._evaluator.graph_of(fid).nodes
        first, second = nodes[one.node], nodes[other.node]
        callees = nodes[first[2]], nodes[second[2]]
        if one.chain != other.chain or any(callee[0] != Op.ATTR for callee in callees) or len(first[3]) != len(second[3]):
            return False
        pairs = [(callees[0][2], callees[1][2]), *zip(first[3], second[3], strict=True)]
        return all(_is_written_alike(nodes, a, b) for a, b in pairs)

    def _is_work(self, call: Call) -> bool:
        name = call.chain.rpartition(".")[2]
        return name in WORK or bool(PROJECTIONS.search(name))

    def _same(self, fid: FunctionId, call: Call, loop: int) -> bool:
        """Whether the call works on the device, and on the same values in every pass."""
        start = self._constancy.body(fid, loop).start
        return 0 <= start <= call.node and self.is_device_work(fid, call) and self.is_same(fid, call.node, loop)

    def is_same(self, fid: FunctionId, wanted: int, loop: int) -> bool:
        """Whether a node holds the same value in every pass of a loop."""
        body = self._constancy.body(fid, loop)
        frame = self._evaluator.frame(fid)
        head = self._evaluator.index.function(fid).regions[loop]
        keeps_shapes = loop_walks(head.text, head.targets) is Walk.STEPS
        written = {name for node in body.written if (name := frame.node_name(node))}

        def leaf(node: int) -> bool | None:
            item: Any = frame.graph.nodes[node]
            if item[0] == Op.CALL:
                return self.is_pure(frame, item, trains=body.trains)
            if item[0] == Op.ATTR and item[3] in PLACES:
                return True
            if item[0] == Op.ATTR and item[3] in METADATA:
                return None if not keeps_shapes else self._constancy.shapes.is_steady(fid, item[2])
            if item[0] == Op.ATTR and frame.node_name(node) in written:
                return False
            return self.is_kept(fid, node, item, trains=body.trains)

        return body.is_invariant(wanted, leaf)

    def is_device_work(self, fid: FunctionId, call: Call) -> bool:
        """Whether the call makes a tensor that is not on the host; `to` only where it casts."""
        frame = self._evaluator.frame(fid)
        node: Any = frame.graph.nodes[call.node]
        name = call.chain.rpartition(".")[2]
        if name == "to":  # a cast, not a move
            given = [*node[3], *(value for _, value in node[4])]
            if not any(isinstance(frame.value(part).detail, Dtype) or "dtype" in frame.node_name(part) for part in given):
                return False
        value = frame.value(call.node)
        return value.is_tensor and value.place is not Place.HOST and value.confidence > Confidence.POSSIBLE

    def is_pure(self, frame: Frame, item: Any, *, trains: bool = False) -> bool | None:
        """Whether the result of a call depends on its operands alone: None where these decide, False where it does not."""
        callee: Any = frame.graph.nodes[item[2]]
        detail = frame.value(item[2]).detail
        if any(key in ("out", "generator") for key, _ in item[4]):
            return False
        if isinstance(detail, External):
            module, _, name = detail.name.rpartition(".")
            torch_like = detail.name.startswith(("torch.", "math.", "einops.")) or (module in ("", "builtins") and name in BUILTINS)
            return None if torch_like and not RANDOM.search(detail.name) and not detail.name.startswith("torch.cuda") else False
        if isinstance(detail, Method):
            return None if callee[0] == Op.ATTR and callee[3] in PURE | METADATA | {"size", "dim", "numel"} else False
        if isinstance(detail, ExternalInstance):
            return None if LAYERS.match(detail.classes[0]) and not trains else False
        if isinstance(detail, Instance) and callee[0] == Op.ATTR and PROJECTIONS.search(callee[3]):
            return None if self._evaluator.index.is_nn_module(detail.klass) and not trains else False
        return False

    def is_kept(self, fid: FunctionId, node: int, item: Any, *, trains: bool = False) -> bool | None:
        """An attribute or name that nothing in the loop can bind anew."""
        frame = self._evaluator.frame(fid)
        value = frame.value(node)
        if isinstance(value.detail, Method):
            return None if value.detail.receiver.is_tensor else False
        if item[0] == Op.ATTR and item[3] in TENSOR_PARTS and frame.value(item[2]).is_tensor:
            return None
        if self._constancy.of(fid, node).steady > Steady.LOOP or isinstance(value.detail, External):
            return True
        if item[0] != Op.ATTR:
            return False
        owner = frame.value(item[2]).detail
        if not isinstance(owner, Instance):
            return False
        index = self._evaluator.index
        if trains and value.is_tensor:
            return False
        stores = index.attribute_stores(owner.klass, item[3])
        registered = item[3] in self._evaluator.registered_names(owner.klass)
        if not (stores or registered) or any(index.function(where).name not in SETUPS for where, _, _ in stores):
            return False
        return True if frame.graph.nodes[item[2]][0] in NAMES else None  # of an object that the loop takes: the object decides


def _is_written_alike(nodes: Sequence[Any], one: int, other: int) -> bool:
    """The same value, or a literal or name that is written the same."""
    while nodes[one][0] == Op.REFINE:
        one = nodes[one][2]
    while nodes[other][0] == Op.REFINE:
        other = nodes[other][2]
    first, second = nodes[one], nodes[other]
    return one == other or bool(first[0] == second[0] and first[0] in (Op.CONST, Op.GLOBAL) and first[2:] == second[2:])
