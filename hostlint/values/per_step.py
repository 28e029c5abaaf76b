"""What a denoiser computes from its request at every step: which tensors of a forward are the same over the steps, and why."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op, Refinement, operands
from hostlint.facts.schema import FunctionFlag, RegionKind
from hostlint.heat.words import Walk, loop_walks
from hostlint.values.constancy import METADATA, PLACES, Steady, argument_of
from hostlint.values.detail import External, Function, Instance
from hostlint.values.hoisted import PROJECTIONS
from hostlint.values.layers import ACTIVATIONS, KEY_VALUE, is_layer
from hostlint.values.loops import is_training
from hostlint.values.parameters import TIME, is_module_call

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hostlint.index import FunctionId
    from hostlint.values.constancy import Constancy
    from hostlint.values.evaluator import Caller, Evaluator, Frame
    from hostlint.values.hoisted import Hoisted

TEXT = re.compile(
    r"^((audio_|video_|text_|image_)?encoder_hidden_states(_(?!mask|lens?|attention)\w+)?|context|(prompt|text|caption|txt|cap)_(embeds?|features?|feats?|states|tokens|emb)|"
    r"captions?|txt|llm_features)$"
)
IMAGES = re.compile(r"^(image|img|clip|siglip|vision)_(embeds?|embeddings?|fea(t(ure)?s?)?)(_\w+)?$|^\w*encoder_hidden_states_image$")
PREPARED = re.compile(
    r"^(\w+_)?(mask|img_ids|txt_ids|position_ids|segment_ids|indicator|rotary_emb|freqs_cis|rope)$|^(encoder_hidden_states|txt)_mask$"
)
SMALL = re.compile(r"^(\w*pooled\w*|guidance|fps|\w+_size|\w+_shapes?|img_shapes|\w+_lens?|\w+_grid)$")  # same at every step, and cheap
PARTS = re.compile(r"(Block|Layer|Attention|Attn|Processor|Norm|Embed|Projection|Proj|Head|MLP|FeedForward)\w*$")
MODULE_PARTS = re.compile(f"{PROJECTIONS.pattern}|{KEY_VALUE.pattern}|{ACTIVATIONS.pattern}|^(weight|bias)$", re.IGNORECASE)
OPERATIONS = frozenset({
    Op.INDEX, Op.SLICE, Op.BINOP, Op.UNARY, Op.COMPARE, Op.BOOL, Op.SEQUENCE, Op.UNPACK, Op.REFINE, Op.STAR,
})  # fmt: skip
IN_PLACE = frozenset({"+=", "-=", "*=", "/=", "//=", "%=", "**=", "&=", "|=", "^=", "<<=", ">>=", "@="})
SIZES = frozenset({"size", "dim", "numel"})
FILLED = frozenset({"zeros", "ones", "full", "arange"})
NEW = frozenset({"new_zeros", "new_ones", "new_full"})
DEPTH = 7
LEVELS = 70  # nodes that rest on each other, over all functions: further back nobody looks
MANY = 12

Given = tuple["str | None", ...] | None


class StepConstancy:
    """Answers for the nodes of any function, kept."""

    def __init__(self, evaluator: Evaluator, constancy: Constancy, hoisted: Hoisted) -> None:
        self._evaluator = evaluator
        self._constancy = constancy
        self._hoisted = hoisted
        self._known: dict[tuple[FunctionId, int, int, Given], str | None] = {}
        self._roots: dict[FunctionId, str] = {}
        self._level = 0
        self._is_cut = False

    def of(self, fid: FunctionId, node: int, depth: int = DEPTH, given: Given = None) -> str | None:
        """Why a node holds the same at every step: "" where nothing of the request is in it, None where it may change. `given` says so of
        the arguments of one call; without it the parameters stand for all calls."""
        key = (fid, node, depth, given)
        if key in self._known:
            return self._known[key]
        if self._level >= LEVELS:
            self._is_cut = True
            return None
        self._known[key] = None  # what depends on itself changes
        self._evaluator.files |= 1 << fid[0]
        self._level += 1
        why = self._known[key] = self._judge(fid, node, depth, given)
        self._level -= 1
        if self._is_cut:  # an answer for want of depth holds for this question only
            del self._known[key]
            self._is_cut = self._level > 0
        return why

    def all_of(self, fid: FunctionId, nodes: Iterable[int], depth: int = DEPTH, given: Given = None) -> str | None:
        return _joined(self.of(fid, node, depth, given) for node in nodes)

    def _judge(self, fid: FunctionId, node: int, depth: int, given: Given) -> str | None:
        item: Any = self._evaluator.graph_of(fid).nodes[node]
        op = item[0]
        if op in (Op.CONST, Op.IMPORT, Op.FUNCTION, Op.CLASS):
            return ""
        if op == Op.PARAM:
            return given[item[2]] if given is not None else self._parameter(fid, item[2], node, depth)
        if op in (Op.ATTR, Op.GLOBAL):
            return self._read(fid, node, item, depth, given)
        if op == Op.CALL:
            return self._call(fid, item, depth, given)
        if op == Op.UNPACK and (made := self._evaluator.graph_of(fid).nodes[item[2]])[0] == Op.CALL:
            whole = self.of(fid, item[2], depth, given)
            return whole if whole is not None else self._inlined(fid, made, depth, given, item[3])
        if op == Op.PHI:
            looped = any(part >= node for part in item[2])
            return self._carried(fid, node, item[2], depth, given) if looped else self._one_of(fid, item[2], depth, given)
        if op == Op.ITER or (op == Op.UNPACK and self._evaluator.graph_of(fid).nodes[item[2]][0] == Op.ITER):
            return self._element(fid, node, depth, given)
        if op == Op.INDEX and self._is_cut_out(fid, item[3], depth, given):
            return self.of(fid, item[2], depth, given)
        if op in OPERATIONS and not (op == Op.BINOP and item[2] in IN_PLACE):
            return self.all_of(fid, operands(item), depth, given)
        return None

    def _one_of(self, fid: FunctionId, parts: Sequence[int], depth: int, given: Given) -> str | None:
        """A name that branches bind; in `x if text is None else text` the calls count that give the text."""
        nodes: Sequence[Any] = self._evaluator.graph_of(fid).nodes
        whole = self.all_of(fid, parts, depth, given)
        offered = [part for part in parts if nodes[part][0] == Op.REFINE and nodes[part][3] == Refinement.NOT_NONE]
        if whole is not None or given is not None or not offered:
            return whole
        return self.all_of(fid, offered, depth, given) or None

    def _is_cut_out(self, fid: FunctionId, index: int, depth: int, given: Given) -> bool:
        """`text[:, first:last]`, with bounds that somebody counts in what is the same at every step."""
        nodes: Sequence[Any] = self._evaluator.graph_of(fid).nodes
        parts = nodes[index][3] if nodes[index][0] == Op.SEQUENCE else [index]
        slices = [nodes[part] for part in parts if nodes[part][0] == Op.SLICE]
        plain = all(nodes[part][0] in (Op.SLICE, Op.CONST) for part in parts)
        return plain and bool(slices) and all(self._is_count(fid, end, depth, given) for one in slices for end in operands(one))

    def _is_count(self, fid: FunctionId, node: int, depth: int, given: Given) -> bool:
        item: Any = self._evaluator.graph_of(fid).nodes[node]
        if item[0] in (Op.BINOP, Op.UNARY, Op.REFINE, Op.SEQUENCE):
            return item[2] not in IN_PLACE and all(self._is_count(fid, part, depth, given) for part in operands(item))
        made: Any = self._evaluator.graph_of(fid).nodes[item[2]] if item[0] == Op.UNPACK else item
        if made[0] == Op.CALL and not made[5] and self._evaluator.graph_of(fid).nodes[made[2]][0] == Op.ATTR:
            return self.all_of(fid, [*made[3], *(value for _, value in made[4])], depth, given) is not None
        return self.of(fid, node, depth, given) is not None

    def _element(self, fid: FunctionId, node: int, depth: int, given: Given) -> str | None:
        """What a loop over layers hands its passes, in the same order at every step."""
        nodes: Sequence[Any] = self._evaluator.graph_of(fid).nodes
        counter = nodes[node][0] == Op.UNPACK
        taken = nodes[node][2] if counter else node
        source = nodes[nodes[taken][2]]
        callee = nodes[source[2]] if source[0] == Op.CALL else source
        name = callee[2] if source[0] == Op.CALL and callee[0] == Op.GLOBAL else ""
        if not self._is_in_a_step(fid, taken):
            return None
        if counter:
            return "" if name == "enumerate" and not nodes[node][3] else None
        return self.all_of(fid, source[3], depth, given) if name == "range" else self.of(fid, nodes[taken][2], depth, given)

    def _is_in_a_step(self, fid: FunctionId, node: int) -> bool:
        """Whether the loop that hands a node on lies within one step: it walks over layers, or nobody knows."""
        line: Any = self._evaluator.graph_of(fid).nodes[node][1]
        heads = [region for region in self._evaluator.index.function(fid).regions if region.kind == RegionKind.LOOP and region.line == line]
        walks = {loop_walks(head.text, head.targets) for head in heads}
        return bool(walks) and walks <= {Walk.LAYERS, Walk.UNKNOWN}

    def _carried(self, fid: FunctionId, node: int, parts: Sequence[int], depth: int, given: Given) -> str | None:
        """What a loop hands from pass to pass: the same at every step where its start is, and each pass makes the same of the same."""
        if not self._is_in_a_step(fid, node):
            return None
        start = self.all_of(fid, [part for part in parts if part < node], depth, given)
        if start is None:
            return None
        known = len(self._known)
        self._known[fid, node, depth, given] = start
        passed = self.all_of(fid, [part for part in parts if part >= node], depth, given)
        while passed is None and len(self._known) > known:  # what was found while it was taken for granted
            self._known.popitem()
        return None if passed is None else start or passed

    def _read(self, fid: FunctionId, node: int, item: Any, depth: int, given: Given) -> str | None:
        if item[0] == Op.ATTR and item[3] in METADATA | PLACES:
            return ""
        kept = self._hoisted.is_kept(fid, node, item)
        if kept is None or (item[0] == Op.ATTR and MODULE_PARTS.search(item[3])):
            return self.of(fid, item[2], depth, given)
        return "" if kept else None

    def _call(self, fid: FunctionId, item: Any, depth: int, given: Given) -> str | None:
        frame = self._evaluator.frame(fid)
        callee: Any = frame.graph.nodes[item[2]]
        passed = [*item[3], *(value for _, value in item[4])]
        if callee[0] == Op.ATTR and callee[3] in SIZES:
            return ""
        if callee[0] == Op.ATTR and callee[3] in NEW:  # of the tensor's type and device alone
            return self.all_of(fid, passed, depth, given)
        if is_layer(frame, item):
            why = self.all_of(fid, passed, depth, given)
            return why if why is not None else self._inlined(fid, item, depth, given)
        if self._hoisted.is_pure(frame, item) is False:
            return self._inlined(fid, item, depth, given)
        method = callee[0] == Op.ATTR and not isinstance(frame.value(item[2]).detail, External)
        if not method and callee[0] == Op.ATTR and callee[3] in FILLED and all(self._is_count(fid, node, depth, given) for node in passed):
            return ""
        return self.all_of(fid, [*([callee[2]] if method else []), *passed], depth, given)

    def _inlined(self, fid: FunctionId, item: Any, depth: int, given: Given, position: int = -1) -> str | None:
        """What a function of the project returns for the arguments of this call, or one part of the tuple that it returns."""
        target = self._target(fid, item)
        if target is None or depth <= 0 or item[5]:
            return None
        outline, graph = self._evaluator.index.function(target), self._evaluator.graph_of(target)
        if outline.flags & (FunctionFlag.GENERATOR | FunctionFlag.ASYNC) or not graph.returns:
            return None
        parts = list(graph.returns)
        if position >= 0:
            whole: list[Any] = [graph.nodes[node] for node in parts]
            if any(node[0] != Op.SEQUENCE or len(node[3]) <= position for node in whole):
                return None
            parts = [node[3][position] for node in whole]
        return self.all_of(target, parts, depth - 1, self._arguments(fid, item, target, depth, given))

    def _target(self, fid: FunctionId, item: Any) -> FunctionId | None:
        detail = self._evaluator.frame(fid).value(item[2]).detail
        if isinstance(detail, Function):
            return detail.function
        if isinstance(detail, Instance) and self._evaluator.index.is_nn_module(detail.klass):
            return self._evaluator.index.find_method(detail.klass, "forward")
        return None

    def _arguments(self, fid: FunctionId, item: Any, target: FunctionId, depth: int, given: Given) -> Given:
        outline = self._evaluator.index.function(target)
        first = int(outline.owner >= 0 and not outline.flags & FunctionFlag.STATIC)
        named = dict(item[4])
        passed: list[str | None] = [""] * first
        for position, param in enumerate(outline.params[first:]):
            node = named.get(param.name, item[3][position] if position < len(item[3]) and param.kind == "positional" else -1)
            passed.append(self.of(fid, node, depth, given) if node >= 0 else "" if param.default >= 0 else None)
        return tuple(passed)

    def _parameter(self, fid: FunctionId, position: int, node: int, depth: int) -> str | None:
        outline = self._evaluator.index.function(fid)
        name = outline.params[position].name
        if position == 0 and outline.owner >= 0:
            return ""
        if root := self.root(fid):
            if TEXT.match(name) or PREPARED.match(name) or IMAGES.match(name):
                return f"`{name}` is the request's, the same at every step of {root}"
            return "" if SMALL.match(name) else None
        if self._constancy.of(fid, node).steady > Steady.LOOP:
            return ""
        callers = self.callers(fid) if depth else []
        if not callers or len(callers) > MANY:
            return None
        callers = [edge for edge in callers if not self._leaves_out(fid, position, edge)]
        whys = [why for edge in callers if (why := self.passed(fid, position, edge, depth - 1)) is not None]
        if callers and 2 * len(whys) < len(callers):  # a part that several models share is told for half of them
            return None
        return next(filter(None, whys), "")

    def callers(self, fid: FunctionId) -> list[Caller]:
        """The calls on a step's path, save those that make up for an argument that was left out."""
        return [edge for edge in self._constancy.hot_callers(fid) if edge.certain and not self._is_spare(edge)]

    def _leaves_out(self, fid: FunctionId, position: int, edge: Caller) -> bool:
        argument = argument_of(self._evaluator, fid, position, edge)
        node: Any = self._evaluator.graph_of(argument[0]).nodes[argument[1]] if argument is not None else (-1,)
        return bool(node[0] == Op.CONST and node[2] == "NoneType")

    def _is_spare(self, edge: Caller) -> bool:
        outline = self._evaluator.index.function(edge.caller)
        region = outline.calls[edge.call_index].region
        while region:
            if outline.regions[region].kind == RegionKind.FALLBACK:
                return True
            region = outline.regions[region].parent
        return False

    def passed(self, fid: FunctionId, position: int, edge: Caller, depth: int) -> str | None:
        argument = argument_of(self._evaluator, fid, position, edge)
        if argument is None:
            return None
        where, node = argument
        outline = self._evaluator.index.function(edge.caller)
        loop = self._constancy.step_loop(edge.caller, outline.calls[edge.call_index].region)
        if where == edge.caller and loop and loop_walks(outline.regions[loop].text, outline.regions[loop].targets) is Walk.STEPS:
            trains = self._constancy.body(edge.caller, loop).trains or is_training(outline)
            line = outline.regions[loop].line
            same = not trains and self._hoisted.is_same(edge.caller, node, loop)
            return f"the loop in `{outline.qualname}`, line {line}, hands each step the same" if same else None
        return self.of(where, node, depth)

    def is_denoiser(self, fid: FunctionId) -> bool:
        """Whether a function is the forward of a whole model that takes the time and the text."""
        return bool(self.root(fid))

    def root(self, fid: FunctionId) -> str:
        """The name of a denoiser's forward: it takes the time and the text, and no loop over layers calls it; "" for others."""
        if fid not in self._roots:
            frame = self._evaluator.frame(fid)
            names = [param.name for param in frame.outline.params]
            takes = any(TIME.match(name) for name in names) and any(TEXT.match(name) for name in names)
            whole = takes and self._is_whole_model(frame)
            self._roots[fid] = f"`{frame.outline.qualname}`, which takes the time" if whole else ""
        return self._roots[fid]

    def _is_whole_model(self, frame: Frame) -> bool:
        outline, index = frame.outline, self._evaluator.index
        if outline.owner < 0 or not is_module_call(frame, outline) or PARTS.search(index.klass((frame.fid[0], outline.owner)).name):
            return False
        callers = self._constancy.hot_callers(frame.fid)
        outlines = [index.function(edge.caller) for edge in callers]
        for edge in callers:
            self._evaluator.files |= 1 << edge.caller[0]
        if outlines and all(is_training(each) for each in outlines):
            return False
        for edge, each in zip(callers, outlines, strict=True):
            loop = self._constancy.step_loop(edge.caller, each.calls[edge.call_index].region)
            if loop and loop_walks(each.regions[loop].text, each.regions[loop].targets) is Walk.LAYERS:
                return False
        return True


def _joined(whys: Iterable[str | None]) -> str | None:
    """The first reason of several; None as soon as one may change."""
    found = ""
    for why in whys:
        if why is None:
            return None
        found = found or why
    return found
