"""Faulty and corrected models compute the same bits; the events of a step are those of the page's table, before and after."""
from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import torch

from hostlint.runtime_checks import HostEvent, record_host_events
from hostlint.runtime_checks.bits import difference

pytestmark = pytest.mark.usefixtures("validated_distributions")
ROOT = Path(__file__).resolve().parent.parent.parent
FAULTY = ROOT / "tests" / "faulty_models"
SPECIAL = (-0.0, float("inf"), float("nan"), 65504.0, 1e-7)
WAITS = {"read", "data-dependent-size", "hidden-wait", "explicit-sync"}
LINALG_ERROR: type[Exception] = torch.linalg.LinAlgError  # type: ignore[attr-defined]  # torch's stubs leave it out
SEEDING = threading.Lock()  # weights are drawn from the one generator of all threads
Module = Any  # a model's file: each has names of its own


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is run with; the same request gives the same weights and inputs."""

    steps: int = 4
    batch: int = 2
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
    return stage(request.numbers(request.batch, 5, stage.config.channels), *texts)


def run_helios_unipc(module: Module, request: Request) -> object:
    config = request.config(module)
    return module.sample_clean(request.seeded(module.Transformer, config), config, request.numbers(request.batch, 5, config.channels))


def run_helios_dmd(module: Module, request: Request) -> object:
    config = request.config(module)
    start = request.numbers(request.batch, 5, config.channels)
    return module.generate(request.seeded(module.Transformer, config), config, start, request.seed)


def run_flow_unipc(module: Module, request: Request) -> object:
    config = request.config(module)
    texts = (request.numbers(request.batch, 3, config.text_width, shift=shift) for shift in (1, 2))
    noise = request.numbers(request.batch, 5, config.channels)
    return module.sample_clean(request.seeded(module.Transformer, config), config, noise, *texts)


def run_glm_image(module: Module, request: Request) -> object:
    config = request.config(module)
    transformer = request.seeded(module.Transformer, config)
    generator = torch.Generator().manual_seed(request.seed)
    prior = torch.randint(0, 4, (request.batch, 5), generator=generator).to(request.device)
    lengths = torch.randint(0, 5, (request.batch, 1), generator=generator)  # of texts: nothing, a part or all of them
    text_mask = (torch.arange(4) < lengths).to(request.device, torch.bool if request.seed % 2 else torch.long)
    prompts = request.numbers(request.batch, 4, config.text_width, shift=1)
    if request.special:
        transformer.prior.weight.data[:4, : len(SPECIAL)] = torch.tensor(SPECIAL)
    else:
        transformer.prior.weight.data[:4, ::2] = -0.0
    noise = request.numbers(request.batch, 5, config.channels)
    every = torch.ones_like(prior, dtype=torch.bool)
    some = every.cumsum(1) % 2 == 0
    with torch.inference_mode():  # what guidance would hide: a dropped inf is a NaN
        inputs = noise, noise[:, 0, 0], transformer.text(prompts), text_mask, prior
        alone = [transformer(*inputs, dropped) for dropped in (every, some)]
    return [module.denoise(transformer, config, noise, prompts, text_mask, prior), *alone]


def run_h3_vdn(module: Module, request: Request) -> object:
    config = request.config(module)
    noise = request.numbers(request.batch, 5, config.channels)
    return module.denoise(request.seeded(module.Transformer, config), config, noise)


def run_flux3_action(module: Module, request: Request) -> object:
    config = request.config(module)
    observation = request.numbers(request.batch, 3, config.observed, shift=1)
    return module.act(request.seeded(module.Predictor, config), config, request.numbers(request.batch, 5, config.actions), observation)


def run_wan_dmd(module: Module, request: Request) -> object:
    stage = request.seeded(module.Stage, request.config(module))
    prompt = request.numbers(request.batch, 3, stage.config.text_width, shift=1)
    return stage(request.numbers(request.batch, 5, stage.config.channels), prompt, request.seed)


def run_qwen_image_vae(module: Module, request: Request) -> object:
    """A step is an image and a chunk of a video."""
    config = module.Config(device=request.device, dtype=request.dtype, **request.options)
    model = request.seeded(module.Autoencoder, config)
    images = [request.numbers(1, 3, 1, 4, 4, shift=shift) for shift in range(request.steps)]
    latents = request.numbers(request.batch, config.channels, config.chunk * request.steps, 2, 2)
    return [model.encode(images), model.decode(latents)]


def run_ring_attention(module: Module, request: Request) -> object:
    config = request.config(module)
    noise = request.numbers(request.batch, 4 * config.ranks, config.channels)
    return module.denoise(request.seeded(module.Transformer, config), config, noise)


def run_sampled_decoding(module: Module, request: Request) -> object:
    model = request.seeded(module.Decoder, request.config(module))
    model.head.weight.data *= 20  # tokens that are far from equally likely
    if request.special:
        model.head.bias.data[3] = float("nan")
    prompt = torch.randint(0, 30, (request.batch, 3), generator=torch.Generator().manual_seed(request.seed)).to(request.device)
    return module.generate(model, prompt, request.seed)


def run_sensenova_u1(module: Module, request: Request) -> object:
    config = request.config(module)
    texts = (request.numbers(request.batch, 3, config.text_width, shift=shift) for shift in (1, 2))
    noise = request.numbers(request.batch, 5, config.channels)
    return module.denoise(request.seeded(module.Transformer, config), config, noise, *texts)


def run_supervised_training(module: Module, request: Request) -> object:
    rate = 1e30 if request.special else 1e-2  # with weights so large the loss is NaN
    config = module.Config(device=request.device, dtype=request.dtype, rate=rate, **request.options)
    generator = torch.Generator().manual_seed(request.seed)
    drawn = torch.randint(0, config.tokens, (request.steps, request.batch, 6), generator=generator)
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


def rows() -> dict[str, list[str]]:
    lines = (ROOT / "docs" / "fixed-models.md").read_text(encoding="utf-8").partition("\n## ")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    return {first.strip("`"): others for first, *others in cells}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Tensors of a few numbers gain nothing from more, and on a busy machine wait for them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_every_row_of_the_page_is_run() -> None:
    assert set(SYSTEMS) == set(rows())


@pytest.mark.parametrize("name", SYSTEMS)
class TestBits:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
    def test_seeds_batches_and_steps(self, name: str, dtype: torch.dtype) -> None:
        for options in SYSTEMS[name].variants:
            for seed, batch, steps in ((0, 1, 3), (1, 3, 5)):
                request = Request(steps, batch, seed, dtype, options=options)
                before, after = SYSTEMS[name].run(faulty(name), request), SYSTEMS[name].run(corrected(name), request)
                assert difference(before, after) == "", request

    def test_special_values(self, name: str) -> None:
        """A request that fails fails still, except where a row says that a matrix is not checked any more."""
        for options in SYSTEMS[name].variants:
            for dtype in (torch.float32, torch.bfloat16):
                request = Request(dtype=dtype, special=True, options=options)
                before, after = outcome(name, faulty(name), request), outcome(name, corrected(name), request)
                if isinstance(before, LINALG_ERROR):
                    assert "and no error" in rows()[name][-1]
                    assert not torch.as_tensor(after).isfinite().all()
                elif name == "sampled_decoding":
                    assert isinstance(before, ValueError)
                    assert isinstance(after, RuntimeError)
                elif isinstance(before, Exception):
                    assert (type(before), str(before)) == (type(after), str(after).split("\n")[0])  # pytest adds lines to messages
                else:
                    assert difference(before, after) == "", request

    def test_the_numbers_are_ones_that_could_differ(self, name: str) -> None:
        """Another seed gives other bits, and plain inputs give finite results: else the comparisons would say little."""
        options = SYSTEMS[name].variants[0]
        one, other = (SYSTEMS[name].run(corrected(name), Request(seed=seed, options=options)) for seed in (0, 1))
        assert difference(one, other) != ""
        assert all(torch.as_tensor(part).isfinite().all() for part in flat(one))

    def test_requests_in_two_threads_do_not_meet(self, name: str) -> None:
        """At every forward of one request the other one makes a forward too; their batches, seeds and dtypes differ."""
        options = SYSTEMS[name].variants[0]
        requests = Request(batch=1, seed=3, options=options), Request(batch=2, seed=4, dtype=torch.float64, options=options)
        alone = [SYSTEMS[name].run(corrected(name), request) for request in requests]
        with in_step(parties=2), ThreadPoolExecutor(2) as pool:
            together = list(pool.map(lambda request: SYSTEMS[name].run(corrected(name), request), requests))
        assert difference(alone, together) == ""


def outcome(name: str, module: Module, request: Request) -> object:
    try:
        return SYSTEMS[name].run(module, request)
    except (AssertionError, FloatingPointError, ValueError, RuntimeError) as error:  # errors of linear algebra are RuntimeErrors
        return error


def flat(result: object) -> list[Any]:
    return [one for part in result for one in flat(part)] if isinstance(result, list | tuple) else [result]


@contextmanager
def in_step(parties: int) -> Iterator[None]:
    """The outermost modules' forwards begin together, in as many threads."""
    barrier = threading.Barrier(parties, timeout=60)
    depth = threading.local()

    def begins(module: torch.nn.Module, *_: object) -> None:
        depth.now = getattr(depth, "now", 0) + 1
        if depth.now == 1:
            barrier.wait()

    def ends(module: torch.nn.Module, *_: object) -> None:
        depth.now -= 1

    handles = (
        torch.nn.modules.module.register_module_forward_pre_hook(begins),
        torch.nn.modules.module.register_module_forward_hook(ends, always_call=True),
    )
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def events(name: str, module: Module, request: Request) -> list[HostEvent]:
    """What holds the host in the model's own file."""
    getattr(module, "KEPT", {}).clear()  # tensors of another recording's device
    if hasattr(module, "made_table"):
        module.made_table.cache_clear()
    with record_host_events(device="simulated") as seen:
        SYSTEMS[name].run(module, replace(request, device="cuda"))
    return [event for event in seen if event.path == module.__file__ and event.kind not in ("collect", "flush")]


def per_step(name: str, module: Module, options: dict[str, Any]) -> tuple[int, int]:
    """Waits and uploads that one more step makes."""
    few, many = (events(name, module, Request(steps, options=options)) for steps in (5, 6))
    counted = [(sum(one.kind in WAITS for one in run), sum(one.kind == "upload" for one in run)) for run in (few, many)]
    return counted[1][0] - counted[0][0], counted[1][1] - counted[0][1]


@pytest.mark.parametrize("name", SYSTEMS)
class TestEvents:
    def test_a_step_makes_those_of_the_table(self, name: str) -> None:
        options = SYSTEMS[name].variants[0]
        before, after = per_step(name, faulty(name), options), per_step(name, corrected(name), options)
        told = [tuple(int(number) for number in cell.split(" → ")) for cell in rows()[name][2:4]]
        assert list(zip(before, after, strict=True)) == told

    def test_the_marked_lines_and_no_others_make_them(self, name: str) -> None:
        """Over all variants; a wait or an upload at request level, outside the steps, is no line of the model's loop."""
        lines = (FAULTY / f"{name}.py").read_text(encoding="utf-8").splitlines()
        waiting = re.compile(r"# expect(?: at request)?: .*HL[12]|# hostlint: ignore")
        marked = {number for number, line in enumerate(lines, 1) if waiting.search(line)}
        met: set[int] = set()
        for options in SYSTEMS[name].variants:
            first, *_, last = (events(name, faulty(name), Request(steps, options=options)) for steps in (1, 3, 5))
            met |= {event.line for event in last} - ({event.line for event in first} - marked)
        assert met == marked
