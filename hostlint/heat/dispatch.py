"""Which functions of the project a call may run, and whether the call itself is a step of a model."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from hostlint.facts.schema import RegionKind
from hostlint.heat import words
from hostlint.heat.kinds import Kind, Type, Types
from hostlint.heat.nature import is_unused
from hostlint.heat.possible import Possible
from hostlint.index import is_module_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hostlint.facts.schema import Call
    from hostlint.heat.types import Typing
    from hostlint.index import ClassId, FunctionId, ProjectIndex

FALLBACK_LIMIT = 8
FEW = 2  # methods of one name that a call may run
SHORTEST_NAME = 3  # of a receiver that may stand for a class
_CONSTRUCTION = ("__init__", "__post_init__", "__new__", "__enter__", "__exit__")
_LAMBDA = "<lambda:"
_GRADIENTS = frozenset({"backward", "grad"})
_NO_MODELS = frozenset({Kind.CLASS, Kind.INSTANCE, Kind.MODULE})
# Names that any container, file, thread or client has: by the name alone they say nothing.
_GENERIC = frozenset({
    "acquire", "add", "append", "apply", "barrier", "broadcast", "build", "call", "cancel", "children", "clear", "close", "collect",
    "compute", "config", "connect", "copy", "count", "cpu", "create", "cuda", "debug", "decode", "delete", "device", "dim", "discard",
    "done", "dtype", "dump", "dumps", "encode", "error", "eval", "execute", "exists", "extend", "finalize", "flush", "format", "get",
    "get_model", "group", "groups", "index", "info", "init", "initialize", "insert", "item", "items", "join", "keys", "load", "loads",
    "log", "lower", "main", "match", "mkdir", "modules", "name", "open", "parameters", "parse", "pop", "prepare", "print", "put", "read",
    "recv", "register", "release", "remove", "render", "replace", "reset", "result", "reverse", "run", "save", "search", "seek", "send",
    "set", "setdefault", "setup", "shutdown", "size", "sort", "split", "start", "state_dict", "stop", "strip", "submit", "synchronize",
    "tell", "to", "train", "union", "update", "upper", "values", "wait", "warning", "write", "to_bytes", "from_bytes", "to_dict",
    "from_dict", "to_json",
})  # fmt: skip
# Names that distributions, models and tensors have as well: the receiver, or the package, must speak for the method, too.
_COMMON = frozenset({
    "sample", "mode", "mean", "std", "kl", "nll", "log_prob", "entropy", "rsample", "generate", "predict", "transform", "process", "expand",
    "evaluate", "score", "reward", "detach", "numpy", "tolist", "fit", "init_state", "record", "add_noise", "scale_noise",
})
_RUNS_ITS_ARGUMENT = re.compile(
    r"(^|[._])(checkpoint|map|filter|reduce|vmap|grad|value_and_grad|jvp|vjp|custom_op|cond|while_loop|tree_map\w*|apply_to_collection|"
    r"run_in_executor|to_thread|call|call_fn|partial)$"
)
_STARTS_THREADS = frozenset({"Thread", "Timer", "Process"})
_REGISTERS_HOOK = re.compile(
    r"(^|_)register_(\w+_)?hook$|^register_(forward|step)\w*$|^register_\w*backward\w*$|^add_\w*hook$|^distribute_module$"
)
# `get` alone is a dictionary's
_BY_STRING = re.compile(
    r"(^|_)(getattr|build|create|make|dispatch|lookup|resolve|call|invoke|collective_rpc|rpc|execute_method)(_|$)|^get_\w"
)


Target = tuple["FunctionId", bool]  # what may run, and whether that is certain


class Dispatched(NamedTuple):
    targets: Sequence[Target]
    steps: bool  # the call is a model call, a backward, an optimizer's or scheduler's step
    hooks: tuple[FunctionId, ...] = ()  # functions that the call registers to run at every step
    escaping: tuple[FunctionId, ...] = ()  # functions handed to something that may keep them
    kept: tuple[tuple[FunctionId, int, FunctionId], ...] = ()  # who calls what it is handed for a memo alone, in which region


_NOTHING = Dispatched((), steps=False)
_STEP = Dispatched((), steps=True)


class Dispatch:
    """Resolves calls, by types first, by the bare method name where nothing is known of the receiver."""

    def __init__(self, index: ProjectIndex, typing: Typing) -> None:
        self._index = index
        self._typing = typing
        self._possible = Possible(index)
        self._methods_named: dict[str, list[FunctionId]] = {}
        self._functions_named: dict[str, list[FunctionId]] = {}
        self._callable_classes: dict[str, list[FunctionId]] = {}  # `sampler(x)` may call an instance of Sampler
        for file, outline in enumerate(index.files):
            if is_unused(outline):
                continue
            for function in outline.functions[1:]:
                bound = function.owner >= 0 or function.parent  # nested functions are set on objects, too
                names = self._methods_named if bound else self._functions_named
                names.setdefault(function.name, []).append((file, function.index))
                if function.name == "__call__" and function.owner >= 0:
                    owner = outline.classes[function.owner].name.lower()
                    self._callable_classes.setdefault(owner, []).append((file, function.index))

    def dispatch(self, fid: FunctionId, call: Call) -> Dispatched:
        types = tuple(found for found in self._typing.of_chain(*fid, call.chain) if found.kind < Kind.FILED)
        name = words.last_name(call.chain)
        if len(types) == 1 and types[0].kind is Kind.EXTERNAL:  # most calls: torch, NumPy, builtins
            steps, targets = name in _GRADIENTS, []
        else:
            steps, targets = self._steps(fid, call.chain, name, types), self._targets(fid, call, types, name)
        if call.strings and _BY_STRING.search(name):
            targets.extend(self._by_string(fid, call))
        passed = tuple(self._passed(fid, call)) if call.passed else ()
        if not passed:
            return Dispatched(targets, steps) if targets else _STEP if steps else _NOTHING
        if _REGISTERS_HOOK.search(name):  # they run where modules are called, not here
            return Dispatched(targets, steps, passed, passed)
        if name in _STARTS_THREADS:  # what it does holds up nobody here; its own loops say how often
            return Dispatched(targets, steps, (), passed)
        memos = [(function, region) for function, certain in targets if certain and (region := self._memo_of(function))]
        if memos:
            return Dispatched(targets, steps, kept=tuple((*memo, function) for memo in memos for function in passed))
        certain = bool(_RUNS_ITS_ARGUMENT.search(name))
        targets.extend((function, certain) for function in passed)
        return Dispatched(targets, steps, (), () if certain else passed)

    def _memo_of(self, fid: FunctionId) -> int:
        """The region in which a function calls a parameter of its own because its memo has no answer yet; 0 where there is none."""
        function = self._index.function(fid)
        names = {param.name for param in function.params}
        for call in function.calls:
            region = call.region if call.chain in names else 0
            while region and function.regions[region].kind != RegionKind.MEMO:
                region = function.regions[region].parent
            if region:
                return region
        return 0

    def _targets(self, fid: FunctionId, call: Call, types: Types, name: str) -> list[Target]:
        known = [found for found in types if not found.depth]
        if known:
            return [(function, True) for function in self._run(fid, call, known)]
        if "." in call.chain and name in self._methods_named and not self._receiver_known(fid, call.chain):
            named = self._named(fid, name)
            found = self._possible.taking(named, call)
            return [(function, False) for function in found if self._is_related(fid, function, call.chain, len(named))]
        return [(function, False) for function in self._callable_classes.get(name.replace("_", ""), ())]

    def _run(self, fid: FunctionId, call: Call, known: Sequence[Type]) -> Sequence[FunctionId]:
        """What the callee's types run; where those are several, without what the arguments or the caller's own object rule out."""
        found = list(dict.fromkeys(function for callee in known for function in self._run_by(callee)))
        if len(found) < FEW or any(callee.kind is Kind.CLASS for callee in known):
            return found
        found = self._possible.on_self(fid, found, call.chain) or found
        return self._possible.taking(found, call) or found

    def _run_by(self, callee: Type) -> Iterable[FunctionId]:
        if callee.kind is Kind.FUNCTION:
            return (callee.target,)
        if callee.kind is Kind.INSTANCE:
            return self._typing.calls_of(callee)
        if callee.kind is Kind.CLASS:
            found = (self._index.find_method(callee.target, name) for name in _CONSTRUCTION)
            return [function for function in found if function is not None]
        return ()

    def _receiver_known(self, fid: FunctionId, chain: str) -> bool:
        """Whether the receiver's class is known, so that a missing method is inherited from outside and not the project's."""
        types = self._typing.of_chain(*fid, chain.rpartition(".")[0])
        instances = [found.target for found in types if found.kind is Kind.INSTANCE and not found.depth]
        return any(map(self._inherits_outside, instances)) if instances else bool(types)

    def _inherits_outside(self, cid: ClassId) -> bool:
        return bool(self._index.external_bases(cid) - {"builtins.object", "abc.ABC", "ABC", "typing.Protocol", "typing.Generic"})

    def _named(self, fid: FunctionId, name: str) -> list[FunctionId]:
        """Methods of that name, those of the caller's own part of the project first, where they are few."""
        if name in _GENERIC or name.startswith("__"):
            return []
        found = self._methods_named.get(name, [])
        if len(found) > 1:
            part = self._part(fid)
            found = [each for each in found if self._part(each) == part] or found
        return found if len(found) <= FALLBACK_LIMIT else []

    def _is_related(self, caller: FunctionId, method: FunctionId, chain: str, among: int) -> bool:
        """Whether more than a name that is common, or that several have, speaks for the method: the receiver is named after its class, or
        it lives next to the caller."""
        name = words.last_name(chain)
        if (name not in _COMMON and among <= FEW) or self._package(caller) == self._package(method):
            return True
        receiver = words.receiver_name(chain).replace("_", "").lower()
        return len(receiver) >= SHORTEST_NAME and receiver in self._owner_name(method)

    def _owner_name(self, method: FunctionId) -> str:
        owner = self._index.function(method).owner
        return self._index.klass((method[0], owner)).name.lower() if owner >= 0 else ""

    def _package(self, fid: FunctionId) -> str:
        return self._index.files[fid[0]].module.rpartition(".")[0]

    def _part(self, fid: FunctionId) -> str:
        return ".".join(self._index.files[fid[0]].module.split(".")[:2])

    def _by_string(self, fid: FunctionId, call: Call) -> Iterator[Target]:
        for string in call.strings:
            if string in _COMMON:  # `getattr(output, "sample")`: a part of a result far more often than a method of the project
                continue
            found = self._functions_named.get(string) or self._named(fid, string)
            if len(found) <= FALLBACK_LIMIT:
                yield from ((function, False) for function in found)

    def _passed(self, fid: FunctionId, call: Call) -> Iterator[FunctionId]:
        for chain in call.passed:
            if chain.startswith(_LAMBDA):
                yield (fid[0], int(chain[len(_LAMBDA) : -1]))
                continue
            name = chain.rpartition(".")[2]
            if name in self._functions_named or name in self._methods_named:
                for found in self._typing.of_chain(*fid, chain):
                    if found.kind is Kind.FUNCTION and not found.depth:
                        yield found.target

    def _steps(self, fid: FunctionId, chain: str, name: str, types: Types) -> bool:
        kinds = set()
        for found in types:
            if self._is_module(found):
                return True
            kinds.add(found.kind)
        if Kind.FUNCTION in kinds:
            return (name in ("forward", "backward") or words.names_step(name)) and not words.steps_nothing(words.receiver_name(chain))
        if kinds & _NO_MODELS:
            return False
        return name in _GRADIENTS if Kind.EXTERNAL in kinds else self._steps_by_name(fid, chain, name)

    def _is_module(self, found: Type) -> bool:
        if found.depth:
            return False
        if found.kind is Kind.INSTANCE:
            return self._index.is_nn_module(found.target)
        return found.kind is Kind.OBJECT and is_module_name(found.name)

    def _steps_by_name(self, fid: FunctionId, chain: str, name: str) -> bool:
        element = name.removesuffix("s") if chain.endswith("[]") else name  # blocks[i](x) calls a block
        if name in ("backward", "replay") or words.names_model(element):
            return True
        receiver = words.receiver_name(chain)
        if words.names_step(name):
            return not words.steps_nothing(receiver)
        if name in ("encode", "decode"):
            return words.names_model(receiver)
        return "." not in chain and self._is_callable_parameter(fid, name)

    def _is_callable_parameter(self, fid: FunctionId, name: str) -> bool:
        """A parameter that is called: in a loop over tensors it is the model, unless its name says callback."""
        params = self._index.function(fid).params
        return any(param.name == name and param.kind == "positional" for param in params) and not words.names_outer(name)
