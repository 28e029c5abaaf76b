"""What serves requests reads their pictures, sound and text once; what trains does so at every step."""
from __future__ import annotations

import textwrap

import pytest

from hostlint.facts.lower import lower_file
from hostlint.heat import compute_heat
from hostlint.index import ProjectIndex

SERVES = """
class Pipeline:
    def __call__(self, latents, timesteps):
        for t in timesteps:
            latents = self.transformer(latents, t)
            latents = self.scheduler.step(latents, t)
        return self.vae.decode(latents)
"""
TRAINS = SERVES + """
def fit(model, optimizer, loader):
    for batch in loader:
        model(batch).backward()
        optimizer.step()
"""


def heats(module: str, source: str, rest: str = SERVES) -> dict[str, str]:
    """The heat of each call whose name begins with `at_`, in a module of a package with that pipeline."""
    texts = {module: textwrap.dedent(source), "pkg.pipeline": rest}
    index = ProjectIndex([lower_file(text, name.replace(".", "/") + ".py", name).outline for name, text in texts.items()])
    heat = compute_heat(index)
    calls = ((f, call) for f in index.files[0].functions for call in f.calls)
    return {call.chain: heat.site((0, f.index), call.region).level.label for f, call in calls if call.chain.startswith("at_")}


MODEL = """
import torch

class {name}(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block() for _ in range(3)])

    def forward(self, x):
        at_forward()
        for block in self.blocks:
            x = block(x)
        return x

class Block(torch.nn.Module):
    def forward(self, x):
        at_block()
        return x
"""


@pytest.mark.parametrize("name", [
    "MossVisionModel", "OmniAudioEncoder", "DotsSpeechEncoder", "Resampler4_5", "NaViT", "SiglipTower", "TextConnector", "PhiImageEncoder",
    "ClipTextTransformer", "ViT", "MeshDecoder", "Blip2QFormerModel", "SongTimbreEncoder",
])  # fmt: skip
def test_encoders_of_a_request_are_no_steps_where_the_project_serves(name: str) -> None:
    assert heats("pkg.models.omni", MODEL.format(name=name))["at_forward"] == "request"
    assert heats("pkg.models.omni", MODEL.format(name=name), TRAINS)["at_forward"] == "call"


def test_the_blocks_of_an_encoder_are_as_cool() -> None:
    assert heats("pkg.models.omni", MODEL.format(name="VisionModel")) == {"at_forward": "request", "at_block": "request"}


@pytest.mark.parametrize("module", ["pkg.models.omni_vision", "pkg.adapter.text_connector", "pkg.models.whisper"])
def test_files_of_encoders(module: str) -> None:
    assert heats(module, MODEL.format(name="Merger"))["at_forward"] == "request"


@pytest.mark.parametrize(("module", "name"), [
    ("pkg.models.omni", "AudioUNet"), ("pkg.models.omni", "ImageTransformer2D"), ("pkg.models.omni", "VisionForCausalLM"),
    ("pkg.models.dits.omni", "AudioModel"), ("pkg.models.transformers.speech", "AudioInjector"),
    ("pkg.models.omni", "AudioRotaryEmbedding"),
    ("pkg.models.omni", "Revision"), ("pkg.models.omni", "Vitality"), ("pkg.models.omni", "VideoModel"),
    ("pkg.models.omni", "DecoderLayer"),
])  # fmt: skip
def test_what_takes_the_steps_stays_hot(module: str, name: str) -> None:
    assert heats(module, MODEL.format(name=name))["at_forward"] == "call"


def test_a_file_alone_says_nothing_of_serving() -> None:
    assert heats("pkg.models.omni", MODEL.format(name="VisionModel"), "")["at_forward"] == "call"


SCHEDULER = """
class FlowScheduler:
    def step(self, x, t):
        at_step()
        return x

    def {name}(self, x, noise, t):
        at_helper()
        return x
"""


@pytest.mark.parametrize("name", ["add_noise", "scale_noise", "get_velocity"])
def test_helpers_of_training_are_no_steps_where_nothing_trains(name: str) -> None:
    source = SCHEDULER.format(name=name)
    assert heats("pkg.schedulers.flow", source) == {"at_step": "call", "at_helper": "request"}
    assert heats("pkg.schedulers.flow", source, TRAINS) == {"at_step": "call", "at_helper": "call"}


def test_a_helper_that_an_unknown_scheduler_is_asked_for_in_a_step_loop_may_be_any() -> None:
    calls = SERVES.replace("latents = self.scheduler.step(latents, t)", "latents = get_scheduler(t)[0](t)(latents).add_noise(latents, t)")
    many = SCHEDULER.format(name="add_noise") + "".join(f"\nclass Other{n}:\n    def add_noise(self, x):\n        pass\n" for n in range(9))
    assert heats("pkg.schedulers.flow", many, calls)["at_helper"] == "call"


def test_a_helper_that_only_a_guess_resolves_may_be_any() -> None:
    calls = SERVES.replace("latents = self.scheduler.step(latents, t)", "latents = self.scheduler.add_noise(latents, t)")
    local = "\nclass Local:\n    def add_noise(self, x, t):\n        pass\n"  # of the pipeline's own part of the project
    assert heats("pkg.schedulers.flow", SCHEDULER.format(name="add_noise"), calls + local)["at_helper"] == "call"


STAGES = """
class Executor:
    def execute(self, stages, batch, run_stage):
        for {target} in {source}:
            at_round()
            batch = run_stage(stage, batch)
        return batch
"""


@pytest.mark.parametrize(("target", "source"), [("stage", "stages"), ("i, stage", "enumerate(stages)"), ("stage", "self.pipeline_stages")])
def test_the_stages_of_a_request_are_no_steps(target: str, source: str) -> None:
    assert heats("pkg.executor", STAGES.format(target=target, source=source)) == {"at_round": "request"}


@pytest.mark.parametrize(("target", "source"), [("block", "blocks"), ("part", "self.parts"), ("stage", "timesteps")])
def test_other_rounds_of_a_callable_are_steps(target: str, source: str) -> None:
    text = STAGES.replace("run_stage(stage", f"run_stage({target}")
    assert heats("pkg.executor", text.format(target=target, source=source)) == {"at_round": "loop"}


@pytest.mark.parametrize("source", ["self.stages", "enumerate(self.stages)"])
def test_the_stages_of_a_network_are_its_layers(source: str) -> None:
    target = "i, stage" if source.startswith("enumerate") else "stage"
    text = MODEL.format(name="Backbone").replace("for block in self.blocks:", f"for {target} in {source}:").replace("block(x)", "stage(x)")
    assert heats("pkg.backbone", text.replace("x = stage(x)", "x = stage(x)\n            at_stage()"))["at_stage"] == "loop"


@pytest.mark.parametrize(("name", "heat"), [("_preprocess_frames", "request"), ("post_process", "request"), ("_process_frames", "loop")])
def test_a_request_is_preprocessed_some_pictures_at_a_time(name: str, heat: str) -> None:
    assert heats("pkg.frames", f"""
    def {name}(frames, model):
        while batch := next(frames):
            at_round()
            model(batch)
    """) == {"at_round": heat}


@pytest.mark.parametrize("wait", ["self.socket.recv_multipart()", "self.inbox.get()", "self._receive_work()"])
def test_a_step_that_waits_for_a_message_serves_a_request(wait: str) -> None:
    source = f"""
    class Worker:
        def run(self, model):
            while True:
                self._encoder_step(model)

        def _encoder_step(self, model):
            work = {wait}
            at_work()
            self.encode(model, work)

        def encode(self, model, work):
            at_encode()
            return model(work)
    """
    assert heats("pkg.worker", source) == {"at_work": "request", "at_encode": "request"}
    batched = source.replace("at_work()", "at_work(self.get_next_batch_to_run(work))")
    assert heats("pkg.worker", batched)["at_work"] == "call"
    assert heats("pkg.worker", source.replace(wait, "self.kept"))["at_work"] == "call"


CLIPS = """
class Animation:
    def animate(self, state):
        for part in state.schedule:
            at_clip()
            latents = self.draw(part)
            state.add({finish})

    def draw(self, clip):
        for t in clip.timesteps:
            at_step()
            clip = self.transformer(clip, t)
        return clip
"""


def test_the_clips_of_a_film_are_decoded_around_their_steps() -> None:
    assert heats("pkg.animation", CLIPS.format(finish="self.vae.decode(latents)")) == {"at_clip": "request", "at_step": "loop"}
    assert heats("pkg.animation", CLIPS.format(finish="self.refiner(latents)")) == {"at_clip": "loop", "at_step": "loop"}


SOMEBODY = """
class FlowScheduler:
    def {name}(self, x):
        at_scheduler()

class InpaintPipeline:
    def {name}(self, x):
        at_other()
"""


@pytest.mark.parametrize("name", ["add_noise", "scale_noise", "init_state", "record"])
def test_a_common_name_says_who_is_called_only_with_its_receiver(name: str) -> None:
    calls = SERVES.replace("latents = self.scheduler.step(latents, t)", f"self.scheduler.{name}(latents)")
    assert heats("pkg.parts.flow", SOMEBODY.format(name=name), calls) == {"at_scheduler": "call", "at_other": "request"}


def test_a_rare_name_says_who_is_called() -> None:
    calls = SERVES.replace("latents = self.scheduler.step(latents, t)", "self.scheduler.shift_moments(latents)")
    assert heats("pkg.parts.flow", SOMEBODY.format(name="shift_moments"), calls) == {"at_scheduler": "call", "at_other": "call"}


@pytest.mark.parametrize(("name", "heat"), [
    ("ComposedPipelineBase", "request"), ("LoraPipelineMixin", "request"), ("EncodingStage", "request"), ("PipelineBlock", "call"),
    ("Based", "call"),
])  # fmt: skip
def test_a_pipeline_serves_a_request_whatever_its_class_is_the_base_of(name: str, heat: str) -> None:
    assert heats("pkg.composed", f"""
    class {name}:
        def forward(self, batch):
            at_forward()
            return self.executor.run_all(batch)
    """) == {"at_forward": heat}
