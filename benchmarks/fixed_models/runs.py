"""How each faulty or corrected model is run: the same request gives the same weights and inputs, on any device."""
from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch

FAULTY = Path(__file__).resolve().parent.parent.parent / "tests" / "faulty_models"
SPECIAL = (-0.0, float("inf"), float("nan"), 65504.0, 1e-7)
SEEDING = threading.Lock()  # weights are drawn from the one generator of all threads
Module = Any  # a model's file: each has names of its own


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is run with; `length`: of images, actions and sequences, in tokens or as a side."""

    steps: int = 4
    batch: int = 2
    length: int = 5
    seed: int = 0
    dtype: torch.dtype = torch.float32
    device: str = "cpu"
    special: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    def config(self, module: Module) -> Any:
        return module.Config(steps=self.steps, device=self.device, dtype=self.dtype, **self.options)

    def seeded(self, make: Callable[[Any], Any], config: Any) -> Any:
        with SEEDING:
            torch.manual_seed(self.seed)
            return make(config)

    def numbers(self, *size: int, shift: int = 0) -> torch.Tensor:
        made = torch.randn(size, generator=torch.Generator().manual_seed(self.seed + shift))
        if self.special:
            made.view(-1)[1 : 1 + len(SPECIAL)] = torch.tensor(SPECIAL)
        return made.to(self.device, self.dtype)


def run_flow_match_stage(module: Module, request: Request) -> object:
    stage = request.seeded(module.Stage, request.config(module))
    texts = (request.numbers(request.batch, 3, stage.config.text_width, shift=shift) for shift in (1, 2))
    return stage(request.numbers(request.batch, request.length, stage.config.channels), *texts)


def run_helios_unipc(module: Module, request: Request) -> object:
    config = request.config(module)
    noise = request.numbers(request.batch, request.length, config.channels)
    return module.sample_clean(request.seeded(module.Transformer, config), config, noise)


def run_helios_dmd(module: Module, request: Request) -> object:
    config = request.config(module)
    start = request.numbers(request.batch, request.length, config.channels)
    return module.generate(request.seeded(module.Transformer, config), config, start, request.seed)


def run_flow_unipc(module: Module, request: Request) -> object:
    config = request.config(module)
    texts = (request.numbers(request.batch, 3, config.text_width, shift=shift) for shift in (1, 2))
    noise = request.numbers(request.batch, request.length, config.channels)
    return module.sample_clean(request.seeded(module.Transformer, config), config, noise, *texts)


def run_glm_image(module: Module, request: Request) -> object:
    config = request.config(module)
    transformer = request.seeded(module.Transformer, config)
    generator = torch.Generator().manual_seed(request.seed)
    prior = torch.randint(0, 4, (request.batch, request.length), generator=generator).to(request.device)
    lengths = torch.randint(0, 5, (request.batch, 1), generator=generator)  # of texts: nothing, a part or all of them
    text_mask = (torch.arange(4) < lengths).to(request.device, torch.bool if request.seed % 2 else torch.long)
    prompts = request.numbers(request.batch, 4, config.text_width, shift=1)
    if request.special:
        transformer.prior.weight.data[:4, : len(SPECIAL)] = torch.tensor(SPECIAL)
    else:
        transformer.prior.weight.data[:4, ::2] = -0.0
    noise = request.numbers(request.batch, request.length, config.channels)
    every = torch.ones_like(prior, dtype=torch.bool)
    some = every.cumsum(1) % 2 == 0
    with torch.inference_mode():  # what guidance would hide: a dropped inf is a NaN
        inputs = noise, noise[:, 0, 0], transformer.text(prompts), text_mask, prior
        alone = [transformer(*inputs, dropped) for dropped in (every, some)]
    return [module.denoise(transformer, config, noise, prompts, text_mask, prior), *alone]


def run_h3_vdn(module: Module, request: Request) -> object:
    config = request.config(module)
    noise = request.numbers(request.batch, request.length, config.channels)
    return module.denoise(request.seeded(module.Transformer, config), config, noise)


def run_flux3_action(module: Module, request: Request) -> object:
    config = request.config(module)
    observation = request.numbers(request.batch, 3, config.observed, shift=1)
    noise = request.numbers(request.batch, request.length, config.actions)
    return module.act(request.seeded(module.Predictor, config), config, noise, observation)


def run_wan_dmd(module: Module, request: Request) -> object:
    stage = request.seeded(module.Stage, request.config(module))
    prompt = request.numbers(request.batch, 3, stage.config.text_width, shift=1)
    return stage(request.numbers(request.batch, request.length, stage.config.channels), prompt, request.seed)


def run_qwen_image_vae(module: Module, request: Request) -> object:
    """A step is an image and a chunk of a video."""
    config = module.Config(device=request.device, dtype=request.dtype, **request.options)
    model, side = request.seeded(module.Autoencoder, config), request.length // 2
    images = [request.numbers(1, 3, 1, 2 * side, 2 * side, shift=shift) for shift in range(request.steps)]
    latents = request.numbers(request.batch, config.channels, config.chunk * request.steps, side, side)
    return [model.encode(images), model.decode(latents)]


def run_ring_attention(module: Module, request: Request) -> object:
    config = request.config(module)
    noise = request.numbers(request.batch, (request.length - 1) * config.ranks, config.channels)
    return module.denoise(request.seeded(module.Transformer, config), config, noise)


def run_sampled_decoding(module: Module, request: Request) -> object:
    model = request.seeded(module.Decoder, request.config(module))
    if not hasattr(model, "is_sharp"):
        model.head.weight.data *= 20  # tokens that are far from equally likely
        model.is_sharp = True
    if request.special:
        model.head.bias.data[3] = float("nan")
    generator = torch.Generator().manual_seed(request.seed)
    prompt = torch.randint(0, 30, (request.batch, request.length - 2), generator=generator).to(request.device)
    return module.generate(model, prompt, request.seed)


def run_sensenova_u1(module: Module, request: Request) -> object:
    config = request.config(module)
    texts = (request.numbers(request.batch, 3, config.text_width, shift=shift) for shift in (1, 2))
    noise = request.numbers(request.batch, request.length, config.channels)
    return module.denoise(request.seeded(module.Transformer, config), config, noise, *texts)


def run_supervised_training(module: Module, request: Request) -> object:
    rate = 1e30 if request.special else 1e-2  # with weights so large the loss is NaN
    config = module.Config(device=request.device, dtype=request.dtype, rate=rate, **request.options)
    generator = torch.Generator().manual_seed(request.seed)
    drawn = torch.randint(0, config.tokens, (request.steps, request.batch, request.length + 1), generator=generator)
    batches = [(one[:, 1:], one[:, 0] % config.classes) for one in drawn]
    model, shown = request.seeded(module.Classifier, config), list[object]()
    epochs = module.train(model, config, batches, lambda step, loss: shown.append((step, loss)))
    results = [[one.loss, one.accuracy, list(one.norms)] for one in epochs]
    return [results, shown, [parameter.detach() for parameter in model.parameters()]]


@dataclass(frozen=True, slots=True)
class System:
    run: Callable[[Module, Request], object]
    variants: tuple[dict[str, Any], ...] = ({},)  # of the configuration; events are counted in the first


SYSTEMS = {
    "flow_match_stage": System(run_flow_match_stage),
    "flow_unipc": System(run_flow_unipc, ({}, {"order": 1}, {"order": 3})),
    "flux3_action": System(run_flux3_action),
    "glm_image": System(run_glm_image),
    "h3_vdn": System(run_h3_vdn),
    "helios_dmd": System(run_helios_dmd, ({"chunks": 1}, {})),
    "helios_unipc": System(run_helios_unipc, ({}, {"order": 1}, {"order": 3})),
    "qwen_image_vae": System(run_qwen_image_vae, ({}, {"means": (0.1, -0.0, 1e-3, 7.0)})),
    "ring_attention": System(run_ring_attention, ({}, {"ranks": 1}, {"ranks": 4})),
    "sampled_decoding": System(run_sampled_decoding, ({"end": -1}, {}, {"end": 5})),
    "sensenova_u1": System(run_sensenova_u1, ({"window": (0.0, 1.0)}, {}, {"window": (0.3, 0.6)}, {"width": 64})),
    "supervised_training": System(run_supervised_training, ({"epochs": 1}, {})),
    "wan_dmd": System(run_wan_dmd, ({}, {"boundary": 500})),
}


@cache
def faulty(name: str) -> Module:
    spec = spec_from_file_location(f"faulty_{name}", FAULTY / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def corrected(name: str) -> Module:
    return import_module(f"hostlint.fixed_models.{name}")
