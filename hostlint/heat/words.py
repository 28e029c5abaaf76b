"""What names say of calls and loops: models, losses, steps, layers, data, requests."""
from __future__ import annotations

import re
from enum import Enum
from functools import cache


class Walk(Enum):
    """What a loop's names say that it walks over."""

    UNKNOWN = "unknown"
    STEPS = "steps or tokens"
    DATA = "batches"
    LAYERS = "layers, blocks, parameters"
    REQUESTS = "requests, epochs, files"


_MODEL = re.compile(
    r"(^|_)(model|net|network|unet|transformer|dit|vae|denoiser|policy|block|layer|encoder|decoder|generator|discriminator|actor|critic|"
    r"backbone|lm|llm|module|expert|controlnet|teacher|student|refiner|predictor)(_?\d+)?$",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"^_*(get|load|build|create|make|prepare|init|initialize|wrap|unwrap|save|set|setup|is|has|add|remove|register|find|parse|convert|export|"
    r"count|print|log|check|validate|configure|select|freeze|unfreeze|move|offload|onload|compile|import|list|download|quantize|shard|patch|"
    r"replace|instantiate|resolve|reset|clear|delete|free|warmup|destroy|cast|copy|merge|fuse|retrieve|update|index_for|num|max|min|on|named)_"
)
_LOSS = re.compile(r"(^|_)(loss|criterion|objective)(_fn|_func|_function)?$", re.IGNORECASE)
_STEP_CALL = re.compile(
    r"^_*forward(_(?!to_)\w+)?$|(^|_)(step|microstep|substep)$|(^|_)(model|net|network|decoder|transformer|unet|lm)_forward$"
)
_RATE_CALL = re.compile(r"(^|_)(step|batch|micro_?batch|token|forward|denoise|train_one)(_|$)", re.IGNORECASE)
_DENOISES = re.compile(r"(^|_)denoise(_|$)")
_OUTER_CALL = re.compile(
    r"(^|_)(epoch|request|eval|evaluate|validate|validation|val|test|prompt|callback|log|print|progress|writer|report|hook|key)(_|$)"
)
_SERVES = re.compile(r"(^|_)(requests?|reqs?|jobs?|tasks?|messages?|msgs?|rpc|commands?)(_|$)", re.IGNORECASE)
_RECEIVES = re.compile(r"(^|_)(recv|receive|poll)(_|$)")
_QUEUE = re.compile(r"(queue|inbox|mailbox|q)$")
_BATCH = re.compile(r"(^|_)(micro_?)?batch(_|$)")
_NO_STEPPER = re.compile(r"(^|_)(client|clients|prof|profiler|progress|bar|pbar|tqdm|timer|event|gc|callback|callbacks)$", re.IGNORECASE)

_STEPS = re.compile(
    r"(^|_)(time_?steps?|steps?|sigmas?|ticks|tokens?|horizon|iters?|iterations?)(_(cpu|host|list|iter|remaining|id|idx|index|num))?$|^t$",
    re.IGNORECASE,
)
_DATA = re.compile(
    r"(^|_)(stream|frames|batch(es)?|micro_?batch(es)?|loaders?|dataloaders?|train_data|data)(_(iter|iterator|id|idx|index|num))?$",
    re.IGNORECASE,
)
_LAYERS = re.compile(
    r"(^|_)(layers?|blocks?|experts?|heads?|modules?|resnets?|attentions?|levels?|branch(es)?|params?|parameters|groups?|norms?|convs?|"
    r"adapters?|children|depth|grads?|gradients|buckets?|hops?|ranks?|world_size|conds?|chunks?|tiles?|rows?|cols?)"
    r"(_(id|ids|idx|index|list|num|count))?$",
    re.IGNORECASE,
)
_PARTS = re.compile(
    r"(^|_)(layers?|blocks?|experts?|heads?|modules?|resnets?|attentions?|levels?|branch(es)?|norms?|convs?|adapters?|children|depth)"
    r"(_(id|ids|idx|index|list|num|count))?$",
    re.IGNORECASE,
)
_REQUESTS = re.compile(
    r"(^|_)(epochs?|requests?|reqs?|prompts?|files?|filenames?|paths?|configs?|seeds?|runs|trials?|folds?|datasets?|jobs?|examples?|"
    r"experiments?|episodes?|urls?|dirs?|checkpoints?|weights|shards|state_dict|queries|query|inbox|messages|conversations|documents|docs|"
    r"images?|videos?|references?|conditions?|conditionings?|captions?|audios?|masks?|clips?|speakers?|"
    r"resolutions?)(_(list|id|idx|index|num|names?))?$",
    re.IGNORECASE,
)
_STAGES = re.compile(r"(^|_)stages?(_(list|id|idx|index|num|count))?$", re.IGNORECASE)
_ONE_REQUEST = re.compile(r"reqs?|requests?")
_HANDS_ON = frozenset(
    {"items", "values", "keys", "parameters", "modules", "children", "unbind", "tolist", "flip", "iter", "split", "chunk"}
)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def last_name(chain: str) -> str:
    """The name that a callee goes by: `self.blocks[]` is `blocks`, `get_model()` is `get_model`."""
    return chain.rstrip("[]()").rpartition(".")[2]


def receiver_name(chain: str) -> str:
    return last_name(chain.rpartition(".")[0])


@cache
def names_model(name: str) -> bool:
    """A value of that name, called, is a model, a layer or a loss."""
    if not name or name[0].isupper() or _VERB.search(name):
        return False
    return bool(_MODEL.search(name) or _LOSS.search(name))


@cache
def names_step(name: str) -> bool:
    """A function of that name advances by one step: `step`, `training_step`, `forward_one`."""
    return bool(_STEP_CALL.search(name)) and not _VERB.search(name) and not _OUTER_CALL.search(name)


@cache
def names_rate(name: str) -> bool:
    """A function of that name does the work of one step or batch, whatever loops lie below it."""
    return bool(_RATE_CALL.search(name)) and not _VERB.search(name) and not _OUTER_CALL.search(name)


@cache
def names_denoising(name: str) -> bool:
    """`denoise_one`, `denoise`: one step, or all of them."""
    return bool(_DENOISES.search(name))


@cache
def names_outer(name: str) -> bool:
    """A function of that name works per epoch or request, or is a callback."""
    return bool(_OUTER_CALL.search(name))


@cache
def names_requests(name: str) -> bool:
    """A function of that name goes through requests or epochs: `run_grouped_requests`, `train_epochs`."""
    return any(_REQUESTS.search(part) for part in name.split("_"))


@cache
def names_request(name: str) -> bool:
    """A function of that name serves one request: `_handle_worker_request`."""
    return bool(_SERVES.search(name)) and not _RATE_CALL.search(name)


@cache
def receives(chain: str) -> bool:
    """`socket.recv()`, `self._recv_work()`, `queue.get()`: the call waits for somebody else's message."""
    name = last_name(chain)
    return bool(_RECEIVES.search(name)) or (name in ("get", "take") and bool(_QUEUE.search(receiver_name(chain))))


@cache
def advances_schedule(chain: str) -> bool:
    """`self.lr_scheduler.step`: a schedule moves on, which no model takes part in."""
    return last_name(chain) == "step" and receiver_name(chain).endswith(("scheduler", "sched", "schedule"))


def codes(chain: str) -> bool:
    """`vae.decode()`: around the steps of a chunk of a request rather than one of them."""
    return last_name(chain) in ("encode", "decode")


@cache
def names_batch(name: str) -> bool:
    """A function of that name runs or forms a batch: `run_batch`, `get_next_batch_to_run`."""
    return bool(_BATCH.search(name))


@cache
def steps_nothing(receiver: str) -> bool:
    """`profiler.step()`, `progress.step()`."""
    return bool(_NO_STEPPER.search(receiver))


@cache
def loop_walks(text: str, targets: tuple[str, ...]) -> Walk:
    """What a loop walks over, by the name of what it iterates, else by the names that it binds."""
    if text.startswith("while"):
        return _first_walk(tuple(_IDENTIFIER.findall(text)[1:]))
    inner = text[6:-1] if text.startswith("range(") else text
    parts = [part.rstrip("[]()") for part in inner.split(".")]
    while len(parts) > 1 and parts[-1] in _HANDS_ON:
        parts.pop()
    walk = _first_walk((parts[-1],))
    if walk is Walk.DATA and any(_ONE_REQUEST.fullmatch(target) for target in targets):
        return Walk.REQUESTS  # a batch of requests, each for itself
    return walk if walk is not Walk.UNKNOWN else _first_walk(targets)


@cache
def walks_blocks(text: str, targets: tuple[str, ...]) -> bool:
    """A loop over a module's parts, rather than over pieces of its data: chunks, tiles, groups of micro-batches."""
    if loop_walks(text, targets) is not Walk.LAYERS:
        return False
    inner = text[6:-1] if text.startswith("range(") else text
    return any(_PARTS.search(name) for name in (*_IDENTIFIER.findall(inner), *targets)) and not any(map(_DATA.search, targets))


@cache
def walks_stages(text: str, targets: tuple[str, ...]) -> bool:
    """A loop over the stages that a request goes through."""
    return any(_STAGES.search(name) for name in (last_name(text), *targets))


def _first_walk(names: tuple[str, ...]) -> Walk:
    for walk, pattern in ((Walk.REQUESTS, _REQUESTS), (Walk.STEPS, _STEPS), (Walk.DATA, _DATA), (Walk.LAYERS, _LAYERS)):
        if any(pattern.search(name) for name in names):
            return walk
    return Walk.UNKNOWN
