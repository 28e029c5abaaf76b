"""What names say of calls and loops: models, losses, steps, layers, data, requests."""
from __future__ import annotations

import re
from functools import cache

_MODEL = re.compile(
    r"(^|_)(model|net|network|unet|transformer|dit|vae|denoiser|policy|block|layer|encoder|decoder|generator|discriminator|actor|critic|"
    r"backbone|lm|llm|module|expert|controlnet|teacher|student|refiner|predictor)s?(_?\d+)?$",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"^_*(get|load|build|create|make|prepare|init|initialize|wrap|unwrap|save|set|setup|is|has|add|remove|register|find|parse|convert|export|"
    r"count|print|log|check|validate|configure|select|freeze|unfreeze|move|offload|onload|compile|import|list|download|quantize|shard|patch|"
    r"replace|instantiate|resolve|reset|clear|delete|free|warmup|destroy|cast|copy|merge|fuse|retrieve|update|index_for|num|max|min|on)_"
)
_LOSS = re.compile(r"(^|_)(loss|criterion|objective)(_fn|_func|_function)?$", re.IGNORECASE)
_STEP_CALL = re.compile(r"^_*forward(_\w+)?$|(^|_)(step|microstep|substep)$")
_RATE_CALL = re.compile(r"(^|_)(step|batch|micro_?batch|token|forward|denoise|train_one)(_|$)", re.IGNORECASE)
_OUTER_CALL = re.compile(r"(^|_)(epoch|request|eval|evaluate|validate|validation|val|test|prompt|callback|log|print|progress|writer|report|hook|key)(_|$)")
_NO_STEPPER = re.compile(r"(^|_)(prof|profiler|progress|bar|pbar|tqdm|timer|event|gc|callback|callbacks)$", re.IGNORECASE)

_STEP_LOOP = re.compile(
    r"(^|_)(time_?steps?|steps?|sigmas?|ticks|tokens?|loaders?|dataloaders?|batch(es)?|micro_?batch(es)?|horizon|iters?|iterations?|"
    r"stream|frames)(_(cpu|host|list|iter|iterator|remaining))?$",
    re.IGNORECASE,
)
_STEP_TARGET = re.compile(r"^(t|step|i_?step|timestep|tick|sigma|token|batch|micro_?batch|step_(id|idx|index|num)|batch_(id|idx|index)|global_step)$")
_DATA = re.compile(r"(^|_)(stream|frames|batches|loader|dataloader)$", re.IGNORECASE)
_LAYER = re.compile(
    r"(^|_)(layers?|blocks?|experts?|heads?|modules?|resnets?|attentions?|levels?|branch(es)?|params?|parameters|groups?|norms?|convs?|"
    r"adapters?|down_blocks|up_blocks|children|depth|grads?|gradients|buckets?|hops?|ranks?|world_size|conds?|chunks?|tiles?|rows?|cols?)"
    r"(_(id|ids|idx|index|list|num|count))?$",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"(^|_)(epochs?|requests?|reqs?|prompts?|files?|filenames?|paths?|configs?|seeds?|runs|trials?|folds?|datasets?|jobs?|examples?|"
    r"experiments?|episodes?|urls?|dirs?|checkpoints?|weights|shards|state_dict|queries|query|inbox|messages|conversations|documents|docs)"
    r"(_(list|id|idx|index|num|names?))?$",
    re.IGNORECASE,
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
def names_outer(name: str) -> bool:
    """A function of that name works per epoch or request, or is a callback."""
    return bool(_OUTER_CALL.search(name))


@cache
def steps_nothing(receiver: str) -> bool:
    """`profiler.step()`, `progress.step()`."""
    return bool(_NO_STEPPER.search(receiver))


@cache
def loop_words(text: str, targets: tuple[str, ...]) -> tuple[str, ...]:
    """The names that say what a loop walks over."""
    inner = text[6:-1] if text.startswith("range(") else text
    if text.startswith("while"):
        return tuple(_IDENTIFIER.findall(inner)[1:])
    parts = inner.rstrip("[]()").split(".")
    if parts[-1] in ("items", "values", "keys", "parameters", "modules", "children", "unbind", "tolist", "flip", "iter"):
        return (*parts[-2:], *targets)
    return (parts[-1].rstrip("[]()"), *targets)


def walks_steps(words: tuple[str, ...]) -> bool:
    return any(_STEP_LOOP.search(word) or _STEP_TARGET.match(word) for word in words)


def walks_data(words: tuple[str, ...]) -> bool:
    return any(_DATA.search(word) for word in words)


def walks_layers(words: tuple[str, ...]) -> bool:
    return any(_LAYER.search(word) for word in words)


def walks_requests(words: tuple[str, ...]) -> bool:
    return any(_REQUEST.search(word) for word in words)
