"""Functions that convention says run once a step, and those that begin a request."""
from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from hostlint.heat import owners, words
from hostlint.heat.codecs import Codecs
from hostlint.heat.loops import LoopKind
from hostlint.heat.nature import installs, is_unused

if TYPE_CHECKING:
    from hostlint.facts.schema import FunctionOutline
    from hostlint.heat.loops import StepLoops
    from hostlint.index import ClassId, FunctionId, ProjectIndex

_STEP = re.compile(
    r"^_*((training|train|forward|optimizer|decode|denoise|denoising|micro|inner)_)?"
    r"step(_(?!index|idx|id|num|count|size|lr|fn|func|name|time|log|sched)\w+)?$|(^|_)step$"
)
_CONFIG = re.compile(r"(Config|Configuration)\W*$")
_BATCH_HOOK = re.compile(
    r"^on_((train|before|after)_)?(step|batch|backward|optimizer_step|zero_grad)(_(start|end|begin))?$|^on_\w*(batch|step)_(start|end|begin)$"
)
_OTHER_STEP = re.compile(
    r"(^|_)(val|valid|validation|validate|test|eval|evaluate|evaluation|predict|prediction|warmup|reset|set|get|num|log|should|is|has|last|first)_"
)
_LOSS = re.compile(r"(^|_)loss(es)?(_fn|_func|_function)?$|^(compute|calc|calculate)_\w*loss(es)?(_\w+)?$")
_NO_LOSS = re.compile(r"^_*(merge|get|build|make|create|log|print|plot|load|save|register|set|init|add|reset|has|is|prepare)_")
_HOOK = re.compile(r"(^|_)hook(_fn|_func|_function|s)?$")
_NO_HOOK = re.compile(
    r"^_*((maybe|try)_)?(get|make|create|build|has|is|list|find|check|use|update|reset|setup|wrap)_|state_dict|load|save|"
    r"^_*(enc|dec|object|object_pairs|except|exit|import|display|json)_?hook$"  # of serializers and interpreters
)
_WRAPPED_CALL = frozenset({"pre_forward", "post_forward", "new_forward"})
_ATTENTION = re.compile(r"Attn\w*Processor|Attention\w*Processor")
_SCHEDULER = re.compile(r"(Scheduler|Solver|Optimizer|Optim)(Mixin|Base|V\d+)?$")
_SCHEDULER_METHODS = frozenset({"step", "scale_model_input", "add_noise", "convert_model_output", "get_velocity", "scale_noise"})
_SCHEDULER_HELPERS = frozenset({"add_noise", "get_velocity", "scale_noise"})  # a training step calls them; who serves, seldom
_REPLAY = re.compile(r"(Buffer|Sampler|Memory)$")
_EXPERIENCE = re.compile(r"Replay|Buffer|Memory|Priorit|Experience|(^|[._])(replay|rl)([._]|$)|replay|buffer")  # not rays, not points
_REPLAY_METHODS = frozenset({"sample", "update_priority"})
_RUNNER = re.compile(r"(Runner|Worker)(Base|Mixin)?$")
_RUNS_BATCH = "execute_model"  # what a serving engine asks a worker for with each batch of tokens
_LOGITS = "compute_logits"  # a model that a serving engine drives: it calls these for each token, too
_TOKEN_METHODS = frozenset({_LOGITS, "sample"})
_INPUTS = "prepare_inputs_for_generation"  # a generating library calls it before each forward
_TRAINER = re.compile(r"(^|\.)\w*Trainer$")
_TRAINER_METHODS = frozenset({"_prepare_inputs"})  # the library's training step calls it with each batch
_LOADER = re.compile(r"Data\w*Loader|DataLoader\w*")
_METRIC = re.compile(r"(^|\.)Metric$")
_HELPER_OWNER = re.compile(r"(Manager|Trainer|Processor|Tokenizer|Extractor|Executor)$")
_REQUEST = re.compile(
    r"^_*(main|run|generate|sample|infer|inference|fit|train|denoise|serve|execute|stream|rollout|encode|decode|chat|predict|forward)(_\w+)?$"
    r"|^__call__$|_(loop|generate|main|run)$"
    # a model's inputs that are no text are encoded once, whatever calls this by a name that is put together
    r"|^_*(get|extract|compute|embed|encode|process)_(\w+_)?(multimodal|mm|images?|videos?|audios?|visions?|visual|pixels?|speech)_"
    r"(features?|embeds?|embeddings?|tokens?|hidden)(_\w+)?$"
)
_WHOLE_REQUEST = re.compile(
    r"(^|_)(generate|sample|sampling|infer|inference|fit|train|denoise|serve|rollout|chat|forward)(_|$)|^__call__$|_loop$"
)
_AUTOGRAD = "torch.autograd.Function"


class Entries:
    def __init__(self, index: ProjectIndex, loops: StepLoops) -> None:
        self._index = index
        self._loops = loops
        self._codecs = Codecs(index, loops)

    @property
    def serves_only(self) -> bool:
        """Whether the project serves models and trains none."""
        return self._codecs.never_trains

    def is_step(self, fid: FunctionId) -> bool:
        """Whether the function runs once a step (a layer, a batch) by convention."""
        function = self._index.function(fid)
        if function.index == 0 or function.name == "<lambda>" or is_unused(self._index.files[fid[0]]):
            return False
        if self._is_hook(function.name) or self._index.replaces_forward(fid):
            return True
        if _LOSS.search(function.name) and not _NO_LOSS.search(function.name) and not _configures(function):
            return True
        return function.owner >= 0 and self._is_step_method((fid[0], function.owner), function)

    def _is_hook(self, name: str) -> bool:
        """A hook itself, rather than what installs or removes hooks."""
        return name in _WRAPPED_CALL or (bool(_HOOK.search(name)) and not _NO_HOOK.search(name) and not installs(name))

    def is_request(self, fid: FunctionId) -> bool:
        """Whether the function begins the work of a request by convention, whoever else calls it."""
        function = self._index.function(fid)
        return function.index > 0 and bool(_REQUEST.search(function.name))

    def is_whole_request(self, fid: FunctionId) -> bool:
        """A function that holds a request's step loop, or is a stage of its pipeline: heat from outside stops at its door."""
        function = self._index.function(fid)
        if owners.is_request_method(self._index, fid) or (function.name == "generate" and self._hands_on(function)):
            return True
        if function.name == "generate" and function.owner >= 0 and self._is_of_model((fid[0], function.owner)):
            return True  # a model's own: all tokens of a request
        if _STEP.search(function.name) and _answers(function):
            return True
        return bool(_WHOLE_REQUEST.search(function.name)) and self._walks_steps(fid)

    def _is_of_model(self, cid: ClassId) -> bool:
        """A module, or what is mixed into modules."""
        return self._index.is_nn_module(cid) or self._index.klass(cid).name.endswith("Mixin")

    def _hands_on(self, function: FunctionOutline) -> bool:
        """A `generate` that prepares a request and leaves its steps to another one."""
        return any(words.last_name(call.chain) == function.name for call in function.calls)

    def reads_request(self, fid: FunctionId) -> bool:
        """A module's forward that encodes what a request brings along, in a project that serves and does not train."""
        function = self._index.function(fid)
        if function.owner < 0 or function.name not in ("forward", "__call__") or not self._codecs.serve_only:
            return False
        cid = (fid[0], function.owner)
        return self._index.is_nn_module(cid) and owners.reads_request(self._index, cid)

    @cached_property
    def _helpers_of_steps(self) -> set[str]:
        """The names of a scheduler's helpers that step loops call without saying on which scheduler."""
        found: set[str] = set()
        for file, outline in enumerate(self._index.files):
            for function in outline.functions:
                fid = (file, function.index)
                if self._loops.kinds(fid):
                    in_loops = (chain for chain, region in self._loops.unresolved(fid) if self._loops.surrounding(fid, region))
                    found.update(_SCHEDULER_HELPERS.intersection(map(words.last_name, in_loops)))
        return found

    def _walks_steps(self, fid: FunctionId) -> bool:
        regions = self._index.function(fid).regions
        loops = (regions[loop] for loop, kind in self._loops.kinds(fid).items() if kind is LoopKind.STEPS)
        return any(words.loop_walks(loop.text, loop.targets) is words.Walk.STEPS for loop in loops)

    def _is_step_method(self, cid: ClassId, function: FunctionOutline) -> bool:
        name = function.name
        if name in ("forward", "__call__", "backward"):
            return self._is_forward(cid, function)
        if _BATCH_HOOK.search(name) or name in ("__torch_dispatch__", "__torch_function__"):
            return not _OTHER_STEP.search(name)
        if _STEP.search(name) and not _OTHER_STEP.search(name):
            return not (words.steps_nothing(self._index.klass(cid).name) or self._has_step_loop(cid, function) or _answers(function))
        return self._is_step_by_class(cid, name)

    def _is_forward(self, cid: ClassId, function: FunctionOutline) -> bool:
        if self._index.is_nn_module(cid):
            if function.name == "backward" or owners.is_request_owner(self._index, cid):
                return False
            return not (owners.is_codec(self._index, cid) and self._codecs.serve)
        names = owners.class_names(self._index, cid)
        if _AUTOGRAD in names or any(_ATTENTION.search(name) for name in names):
            return True
        if function.name != "forward" or owners.is_request_owner(self._index, cid) or any(map(_HELPER_OWNER.search, names)):
            return False
        if _returns_host_copy(function):  # a worker's answer
            return False
        return not self._has_step_loop(cid, function)

    def _is_step_by_class(self, cid: ClassId, name: str) -> bool:
        names = owners.class_names(self._index, cid)
        if name == _INPUTS or (name in _TOKEN_METHODS and self._index.find_method(cid, _LOGITS) is not None):
            return self._index.is_nn_module(cid)
        if name == _RUNS_BATCH:
            return any(_RUNNER.search(each) for each in names)
        if name in _SCHEDULER_HELPERS and self._codecs.serve_only and name not in self._helpers_of_steps:
            return False
        if name in _SCHEDULER_METHODS:
            return any(_SCHEDULER.search(each) for each in names)
        if name in _REPLAY_METHODS:
            kept = name != "sample" or any(_EXPERIENCE.search(each) for each in (*names, self._index.files[cid[0]].module))
            return kept and any(_REPLAY.search(each) for each in names)
        if name in _TRAINER_METHODS:
            return any(_TRAINER.search(each) for each in names)
        if name in ("__iter__", "__next__"):
            return any(_LOADER.search(each) for each in names)
        return name in ("update", "compute") and any(_METRIC.search(each) for each in names)

    def _has_step_loop(self, cid: ClassId, function: FunctionOutline) -> bool:
        return LoopKind.STEPS in self._loops.kinds((cid[0], function.index)).values()


def _returns_host_copy(function: FunctionOutline) -> bool:
    """Whether what the function returns is moved to the host, for whoever asked."""
    returned = {text for name, text in function.assigns if name == "return"}
    returned |= {text for name, text in function.assigns if name in returned}
    moves = (call for call in function.calls if words.last_name(call.chain) == "cpu" or "cpu" in call.strings)
    return any(f"{call.chain}()" in returned for call in moves if words.last_name(call.chain) in ("cpu", "to"))


def _configures(function: FunctionOutline) -> bool:
    """Whether a function named after a loss chooses one: it is handed nothing to compute it of, or gives a configuration."""
    free = function.parent == 0 and function.owner < 0 and not function.params
    return free or bool(_CONFIG.search(function.returns))


def _answers(function: FunctionOutline) -> bool:
    """Whether the function waits for a message, which is a request, and forms no batch of what has come."""
    chains = [call.chain for call in function.calls]
    return any(map(words.receives, chains)) and not any(words.names_batch(words.last_name(chain)) for chain in chains)
