"""Which loops are step loops, and which only go around them: every `probe()` has the heat that the comment behind it says."""
from __future__ import annotations

import pytest
from heat_probes import differences

from hostlint.facts.lower import lower_file
from hostlint.heat import compute_heat
from hostlint.heat.callgraph import SEVERAL
from hostlint.index import ProjectIndex


@pytest.mark.parametrize("work", [
    "net(x)", "self.unet(x)", "loss.backward()", "opt.step()", "scheduler.step(x)", "graph.replay()", "self.vae.decode(x)", "criterion(x)",
    "engine.forward(x)", "train_step(x)", "fn(x)", "blocks[0](x)",
])  # fmt: skip
def test_a_loop_with_a_step_in_it_is_a_step_loop(work: str) -> None:
    assert not differences(f"""
    def go(self, fn, blocks, many):
        for x in many:
            {work}
            probe()  # loop
        probe()  # request
    """)


@pytest.mark.parametrize("work", [
    "load_model(x)", "profiler.step()", "progress.step()", "tokenizer.decode(x)", "Model(x)", "print(x)", "on_epoch(x)", "self.modules()",
])  # fmt: skip
def test_a_loop_without_a_step_is_as_hot_as_its_function(work: str) -> None:
    assert not differences(f"""
    def go(self, on_epoch, many):
        for x in many:
            {work}
            probe()  # request
    """)


def test_only_the_innermost_loop_is_the_step_loop() -> None:
    assert not differences("""
    def train(model, loader, opt, epochs):
        for epoch in range(epochs):
            probe()  # request
            for batch in loader:
                model(batch).backward()
                opt.step()
                probe()  # loop
            scheduler.step()
    """)


@pytest.mark.parametrize(
    "outer", ["for request in inbox", "for prompt in prompts", "for path in paths", "for config in configs", "while True", "for x in many"]
)
def test_a_loop_around_a_function_with_its_own_step_loop_is_once_a_request(outer: str) -> None:
    assert not differences(f"""
    def denoise(model, timesteps):
        for t in timesteps:
            model(t)
            probe()  # loop
        probe()  # request

    def serve(model, inbox, prompts, paths, configs, many):
        {outer}:
            denoise(model, 3)
            probe()  # request
    """)


def test_a_step_that_is_reached_through_helpers_makes_the_loop_hot() -> None:
    assert not differences("""
    def predict(model, x):
        probe()  # call
        return model(x)

    def advance(model, x):
        return predict(model, x)

    def go(model, many):
        for x in many:
            advance(model, x)
            probe()  # loop
    """)


def test_loops_over_layers_do_not_hide_the_loop_over_steps() -> None:
    assert not differences("""
    def run_blocks(blocks, x):
        for block in blocks:
            x = block(x)
            probe()  # loop
        return x

    def go(blocks, x, n):
        for _ in range(n):
            x = run_blocks(blocks, x)
            probe()  # loop
    """)


def test_a_loop_around_a_loop_over_layers_is_a_step_loop() -> None:
    assert not differences("""
    def go(blocks, x, n):
        for _ in range(n):
            for block in blocks:
                x = block(x)
                probe()  # loop
            probe()  # loop
    """)


def test_a_loop_over_steps_around_a_loop_over_branches_is_hot() -> None:
    assert not differences("""
    def go(model, timesteps, texts):
        for t in timesteps:
            for text in texts:
                model(t, text)
                probe()  # loop
            probe()  # loop
    """)


def test_batches_around_a_token_loop_stay_hot() -> None:
    assert not differences("""
    def go(joint, frames, limit):
        for frame in frames:
            while limit:
                joint(frame)
                probe()  # loop
            probe()  # loop
    """)


def test_a_serving_loop_that_runs_batches_is_hot_whatever_loops_lie_below() -> None:
    assert not differences("""
    class Scheduler:
        def event_loop(self):
            while True:
                batch = self.next_batch()
                self.run_batch(batch)
                self.report(batch)

        def next_batch(self):
            probe()  # call

        def run_batch(self, batch):
            for i in range(batch.drafts):
                self.draft_model(batch)
            return self.model(batch)

        def report(self, batch):
            probe()  # call
    """)


def test_every_loop_of_a_hot_function_is_hot_and_comprehensions_are_loops() -> None:
    assert not differences("""
    def norms(params):
        probe()  # call
        for p in params:
            probe()  # loop
        return [probe() for p in params]  # loop

    def go(model, opt, loader):
        for batch in loader:
            model(batch).backward()
            norms(model.parameters())
            opt.step()
    """)


def test_data_on_its_way_to_the_device_makes_a_stream_hot() -> None:
    assert not differences("""
    import torch

    def track(stream):
        for x in stream:
            x.cuda()
            probe()  # loop

    def names(stream):
        for x in stream:
            print(x)
            probe()  # request
    """)


def test_loops_over_steps_without_a_model_only_build_schedules() -> None:
    assert not differences("""
    import torch

    def set_timesteps(steps):
        out = []
        for t in range(steps):
            out.append(torch.tensor(t))
            probe()  # request
        return out
    """)


def test_a_training_loop_at_module_level_is_real() -> None:
    assert not differences("""
    def helper():
        probe()  # call

    probe()  # cold
    for batch in loader:
        model(batch).backward()
        helper()
        probe()  # loop
    if __name__ == "__main__":
        for batch in loader:
            model(batch)
            probe()  # loop
    """)


def test_generate_is_a_request_with_a_hot_loop_even_where_a_hot_loop_calls_it() -> None:
    assert not differences("""
    class Policy:
        def generate(self, ids, max_new_tokens):
            probe()  # request
            for _ in range(max_new_tokens):
                self.model(ids)
                probe()  # loop

    def train(policy: Policy, loader, opt):
        for batch in loader:
            policy.generate(batch, 8)
            loss(batch).backward()
            opt.step()
            probe()  # loop
    """)


def test_a_stage_is_a_request_whoever_calls_it() -> None:
    assert not differences("""
    class DecodingStage:
        def forward(self, x):
            probe()  # request

    def run(model, stage: DecodingStage, timesteps):
        for t in timesteps:
            model(t)
            stage.forward(t)
    """)


def test_a_pipeline_is_a_request_and_its_denoise_loop_is_hot() -> None:
    assert not differences("""
    class Pipeline:
        def __init__(self, unet):
            probe()  # cold
            self.unet = unet

        def __call__(self, x, steps):
            self.encode(x)
            for t in range(steps):
                x = self.unet(x, t)
                probe()  # loop
            probe()  # request
            return self.finish(x)

        def encode(self, x):
            probe()  # request

        def finish(self, x):
            probe()  # request
    """)


def test_parts_of_a_film_whose_steps_a_call_takes_are_no_steps() -> None:
    source = """
    class Film:
        def draw(self, tiles):
            for tile in tiles:
                probe()  # HEAT
                tile = self.denoise(tile)

        def denoise(self, latents):
            latents = self.encoder(latents)
            for t in WALKED:
                latents = self.transformer(latents, t)
                probe()  # loop
            return latents
    """
    assert not differences(source.replace("HEAT", "request").replace("WALKED", "self.timesteps"))
    assert not differences(source.replace("HEAT", "loop").replace("WALKED", "self.blocks"))
    others = source.replace("for t in WALKED", "for one in self.candidates").replace("(latents, t)", "(one)")
    assert not differences(others.replace("HEAT", "loop"))


def test_a_loop_of_iterations_around_the_steps_goes_over_parts() -> None:
    source = """
    def draw(self, count, latents):
        for iter_idx in range(n_iter):
            probe()  # request
            for t in self.timesteps:
                latents = self.transformer(latents, t)
                probe()  # loop
    """
    assert not differences(source)
    own = source.replace("probe()  # request", "probe()  # loop\n            latents = self.refiner(latents)")
    assert not differences(own)
    assert not differences(source.replace("self.timesteps", "self.blocks").replace("# request", "# loop"))


def test_a_forward_shows_itself_before_a_call_of_any_model() -> None:
    """Where a call may run the forward of each of many classes, none of them is told to be reached from there."""
    kinds = "".join(
        f"\nclass Kind{number}(Base):\n    def forward(self, x):\n        inner{number}(x)\n\n"
        f"def inner{number}(x):\n    return x\n"
        for number in range(SEVERAL + 2)
    )
    source = (
        "from torch import nn\n\nclass Base(nn.Module):\n    pass\n\n"
        "def draft(model: Base, tokens):\n    for token in tokens:\n        model(token)\n" + kinds
    )
    index = ProjectIndex([lower_file(source, "main.py", "main").outline])
    heat = compute_heat(index)
    inner = next(f.index for f in index.files[0].functions if f.name == "inner3")
    assert [link.function for link in heat.function((0, inner)).chain] == ["Kind3.forward", "Kind3.forward"]


def test_a_schedule_that_moves_on_between_epochs_makes_no_step() -> None:
    assert not differences("""
    def fit(model, loader, scheduler, optimizer):
        while True:
            scheduler.step()
            probe()  # request
            for batch in loader:
                model(batch).backward()
                optimizer.step()
                probe()  # loop

    def denoise(model, timesteps, scheduler, branches):
        for t in timesteps:
            for branch in branches:
                model(t)
            scheduler.step()
            probe()  # loop
    """)
