"""What runs once a request although it looks like a step: every `probe()` has the heat that the comment behind it says."""
from __future__ import annotations

import textwrap

import pytest
from heat_probes import differences

from hostlint.facts.lower import lower_file
from hostlint.heat import compute_heat
from hostlint.index import ProjectIndex


@pytest.mark.parametrize("name", ["prediction_step", "validation_step", "test_step", "eval_step", "evaluation_step", "predict_step"])
def test_a_step_of_an_evaluation_is_no_step(name: str) -> None:
    assert not differences(main=f"""
    class Run(Trainer):
        def {name}(self, model, inputs):
            probe()  # request
            self._score(inputs)

        def _score(self, inputs):
            probe()  # request

        def training_step(self, model, inputs):
            probe()  # call
    """)


@pytest.mark.parametrize(("test", "train", "evaluation"), [
    ('mode == "train"', "call", "request"),
    ('mode != "eval"', "call", "request"),
    ('not mode == "eval"', "call", "request"),
    ('mode in ("train",)', "call", "request"),
    ('mode == "colocate"', "call", "call"),
    ('name == "train"', "call", "call"),
    ("self.model.training", "call", "request"),
    ("is_training", "call", "request"),
    ("training and x", "call", "call"),
])  # fmt: skip
def test_the_arm_for_evaluation_is_cool(test: str, train: str, evaluation: str) -> None:
    assert not differences(main=f"""
    class Run:
        def training_step(self, name, is_training, training, x):
            mode = "train" if self.model.training else "eval"
            if {test}:
                probe()  # {train}
            else:
                probe()  # {evaluation}
    """)


@pytest.mark.parametrize(("test", "heat"), [
    ('mode == "eval"', "request"),
    ('mode in ("val", "test")', "request"),
    ('mode != "train"', "request"),
    ("not is_training", "request"),
    ('mode == "fast"', "call"),
])  # fmt: skip
def test_the_branch_for_evaluation_is_cool(test: str, heat: str) -> None:
    assert not differences(main=f"""
    class Run:
        def training_step(self, is_training):
            mode = "train" if self.model.training else "eval"
            if {test}:
                probe()  # {heat}
            probe()  # call
    """)


def test_what_is_made_every_n_steps_or_for_an_evaluation_is_cool() -> None:
    assert not differences(main="""
    class Run:
        def training_step(self, inputs):
            self._prepare(inputs)

        def _prepare(self, inputs):
            mode = "train" if self.model.training else "eval"
            if mode == "train":
                refresh_every = self.span * self.rounds
                if self._step % refresh_every == 0:
                    self._kept = self._generate(inputs)
                probe()  # call
                return self._kept
            else:
                return self._generate(inputs)

        def _generate(self, inputs):
            probe()  # request
    """)


@pytest.mark.parametrize("test", ["step % (n * m) == 0", "step % (self.n * m) == 0", "(step + 1) % (n * m) == 0"])
def test_a_product_is_a_period(test: str) -> None:
    assert not differences(main=f"""
    class Run:
        def training_step(self, step, n, m):
            if {test}:
                probe()  # request
            probe()  # call
    """)


def test_a_helper_that_unpacks_after_the_steps_is_no_step() -> None:
    assert not differences(main="""
    class TextPipeline:
        @staticmethod
        def _unpack(x, x_ids):
            for data, pos in zip(x, x_ids):
                top = torch.max(pos)
                probe()  # request

        def __call__(self, x):
            for t in self.scheduler.timesteps:
                x = self.transformer(x, t)
                probe()  # loop
            return self._unpack(x, x)
    """)


@pytest.mark.parametrize("header", [
    "for index, reference in enumerate(references)", "for item in things", "for condition in conditions", "for video in videos",
    "for index in range(len(things))", "for batch in batches",
])  # fmt: skip
def test_a_loop_over_what_is_given_beside_the_steps_is_no_step(header: str) -> None:
    assert not differences(main=f"""
    class TextPipeline:
        def __call__(self, references, things, conditions, videos, batches, x):
            {header}:
                latent = self.vae.encode(x.to(device)).latent_dist.mean
                probe()  # request
                self._ids(latent)
            for t in self.scheduler.timesteps:
                x = self.transformer(x, t)
                probe()  # loop

        def _ids(self, latent):
            probe()  # request
    """)


@pytest.mark.parametrize(("name", "header"), [
    *((name, "for chunk in x") for name in ("prepare_latents", "encode_images", "_get_embeddings", "_pack", "decode_latents")),
    ("helper", "for frame in frames"),
    ("helper", "for index, part in enumerate(x)"),
])  # fmt: skip
def test_a_loop_of_a_helper_of_the_request_is_no_step(name: str, header: str) -> None:
    assert not differences(main=f"""
    class TextPipeline:
        def {name}(self, x, frames):
            {header}:
                self.vae.encode(x)
                probe()  # request

        def __call__(self, x):
            self.{name}(x, x)
            while self.busy:
                self.scheduler.step(x)
                probe()  # loop
    """)


def test_the_only_model_loop_of_a_request_is_its_step_loop() -> None:
    assert not differences(main="""
    def embed_all(model, batches):
        for batch in batches:
            model(batch)
            probe()  # loop

    def score(model, things):
        for thing in things:
            model(thing)
            probe()  # loop
    """)


def test_a_token_loop_beside_another_stays_hot() -> None:
    assert not differences(main="""
    def generate(model, draft, tokens, x):
        for token in tokens:
            draft(token)
            probe()  # loop
        while not done(x):
            model(x)
            probe()  # loop
        for i in range(2):
            loss(x).backward()
            probe()  # loop
    """)


MODULES = """
import torch

class Checker(torch.nn.Module):
    def __init__(self):
        self.inner = Inner()
        self.layers = torch.nn.ModuleList([Inner() for _ in range(4)])

    def forward(self, x):
        probe()  # {checker}
        for layer in self.layers:
            layer(x)
        self.inner(x)

class Inner(torch.nn.Module):
    def forward(self, x):
        probe()  # {inner}
"""


def with_modules(checker: str, inner: str, main: str) -> list[str]:
    source = "from modules import Checker, Inner\n" + textwrap.dedent(main)
    return differences(modules=MODULES.format(checker=checker, inner=inner), main=source)


def test_a_module_that_is_called_once_a_request_is_no_entry() -> None:
    assert not with_modules("request", "request", """
    class TextPipeline:
        def __init__(self, checker: Checker):
            self.checker = checker

        def __call__(self, x):
            for t in self.scheduler.timesteps:
                x = self.transformer(x, t)
            return self.checker(x)
    """)  # fmt: skip


@pytest.mark.parametrize("main", [
    "",  # nobody is seen to call it
    """
    class TextPipeline:
        def __init__(self, checker: Checker):
            self.checker = checker

        def __call__(self, x):
            for t in self.scheduler.timesteps:
                x = self.checker(x, t)
    """,
    """
    class Net(torch.nn.Module):
        def __init__(self):
            self.part = Checker()

        def forward(self, x):
            return self.part(x)
    """,
    """
    class Holder:
        def __init__(self):
            self.checker = Checker()

        def whoever_calls_this(self, x):
            return self.checker(x)
    """,
    """
    class TextPipeline:
        def __init__(self, first: Checker):
            self.first = first

        def __call__(self, x):
            self.first(x)
            for t in self.scheduler.timesteps:
                x = self.checker(self.unet(x), t)
    """,
    """
    class Loop(Checker):
        def forward(self, x):
            return Loop()(x) + super().forward(x)
    """,
], ids=["nobody", "loop", "module", "unknown caller", "unknown callee of that name", "only itself"])  # fmt: skip
def test_a_module_that_steps_may_call_stays_an_entry(main: str) -> None:
    assert not with_modules("call", "call", "import torch\n" + textwrap.dedent(main))


@pytest.mark.parametrize(("test", "heat"), [
    ("i == reasoning_steps", "request"),
    ("x and i == reasoning_steps", "request"),
    ("step == self.switch_step", "request"),
    ("i == next_step", "loop"),
    ("i == other", "loop"),
    ("i != reasoning_steps", "loop"),
    ("i >= reasoning_steps", "loop"),
])  # fmt: skip
def test_a_counter_meets_a_number_once(test: str, heat: str) -> None:
    assert not differences(main=f"""
    def run(self, net, x, reasoning_steps, other, next_step):
        for i, step in enumerate(self.timesteps):
            net(x)
            if {test}:
                probe()  # {heat}
            next_step = next_step + 2
    """)


def test_a_property_stands_for_what_its_attribute_keeps() -> None:
    assert not differences(main="""
    class EulerScheduler:
        @property
        def step_index(self):
            return self._step_index

        def step(self, x):
            if self.step_index is None:
                self._step_index = self.find(x)
                probe()  # request
            if self.other_index is None:
                self._step_index = self.find(x)
                probe()  # call
            probe()  # call
    """)


@pytest.mark.parametrize("name", [
    "maybe_free_model_hooks", "enable_hooks", "disable_forward_hook", "free_hooks", "remove_all_hooks", "register_module_hooks",
    "_apply_block_hook", "apply_forward_hooks", "install_hook", "add_hook_to_module", "unregister_hook",
])  # fmt: skip
def test_what_installs_or_removes_hooks_is_no_hook(name: str) -> None:
    assert not differences(main=f"""
    def {name}(modules):
        probe()  # request
    """)


@pytest.mark.parametrize("name", ["pre_forward", "post_forward", "new_forward", "_post_backward_hook", "zero_grad_hooks"])
def test_what_modules_run_is_a_hook(name: str) -> None:
    assert not differences(main=f"""
    class Offload(ModelHook):
        def {name}(self, module, x):
            probe()  # call
    """)


def test_the_chain_of_a_hook_starts_at_the_hook() -> None:
    source = textwrap.dedent("""
    def apply_split_hooks(blocks, x):
        for block in blocks:
            block(x)
            block.register_forward_hook(after)

    def after(module, x, y):
        return helper(y)

    def helper(y):
        return y.item()
    """)
    outline = lower_file(source, "main.py", "main").outline
    heat = compute_heat(ProjectIndex([outline]))
    helper = next(function.index for function in outline.functions if function.name == "helper")
    assert [link.function for link in heat.function((0, helper)).chain] == ["after", "after"]


@pytest.mark.parametrize(("call", "heat"), [
    ("self.vae.encode(x).latent_dist.sample()", "request"),
    ("x.sample()", "request"),
    ("self.ray_sampler.sample()", "call"),
    ("sampler.sample()", "call"),
])  # fmt: skip
def test_a_common_name_alone_is_no_call(call: str, heat: str) -> None:
    assert not differences(
        pkg__render="""
        class RaySampler:
            def sample(self):
                probe()  # HEAT
        """.replace("HEAT", heat),
        app__train=f"""
        def train(self, net, sampler, loader):
            for batch in loader:
                x = net(batch)
                {call}
                x.backward()
        """,
    )


def test_what_an_installer_defines_is_what_runs_each_step() -> None:
    assert not differences(main="""
    class Cache(ModelHook):
        def initialize_hook(self, module):
            probe()  # request
            def cached_stack(x):
                probe()  # call
                return self._run(x)
            module.stack = cached_stack

        def _run(self, x):
            probe()  # call
    """)


def test_a_helper_that_generates_has_a_step_loop_of_its_own() -> None:
    assert not differences(main="""
    class TextPipeline:
        def generate_beam(self, x, entry_length):
            for i in range(entry_length):
                self.model(x)
                probe()  # loop

        def __call__(self, x):
            for t in self.scheduler.timesteps:
                x = self.transformer(x, t)
            return self.generate_beam(x, 67)
    """)


def test_a_module_that_the_only_loop_calls_is_called_in_the_innermost_loop() -> None:
    assert not with_modules("call", "call", """
    def serve(requests, checker: Checker):
        for request in requests:
            request.reply(checker(request.image))
    """)


def test_tools_to_debug_with_and_other_machines_are_cold() -> None:
    source = """
    def compare(pairs, model):
        for pair in pairs:
            model(pair)
            probe()  # LEVEL
    """
    assert not differences(app__debug_utils__compare=source.replace("LEVEL", "cold"))
    assert not differences(app__backends__mlx__compare=source.replace("LEVEL", "cold"))
    assert not differences(app__model_debugging_utils=source.replace("LEVEL", "cold"))
    assert not differences(app__kernel_debug=source.replace("LEVEL", "cold"))
    assert not differences(app__cpu_offload=source.replace("LEVEL", "loop"))
    assert not differences(app__compare=source.replace("LEVEL", "loop"))


@pytest.mark.parametrize(("name", "level"), [
    ("_maybe_dump_logits", "request"), ("plot_scores", "request"), ("rebalance_experts", "request"), ("capture_cuda_graphs", "request"),
    ("_capture_graph", "request"), ("set_timesteps", "request"), ("record_scores", "call"),
    ("process_input_requests", "request"), ("abort_req", "request"), ("self_check_while_busy", "request"),
    ("_determinism_check", "request"), ("check_invariants", "request"),
    ("request_finished", "request"), ("maybe_recover_ranks", "request"), ("_raise_stale", "cold"), ("_forward_mps_streamed", "cold"),
    ("_prewarm_routes", "cold"), ("pre_warm", "cold"),
    ("process_request_batch", "call"), ("copy_cpu", "call"), ("build_graph", "call"), ("capture_hidden_states", "call"),
])  # fmt: skip
def test_what_runs_beside_the_steps_is_no_step(name: str, level: str) -> None:
    assert not differences(main=f"""
    class Model(torch.nn.Module):
        def forward(self, x):
            self.{name}(x)

        def {name}(self, x):
            probe()  # {level}
    """)


def test_a_loop_over_the_stages_of_a_request_is_no_step_loop() -> None:
    assert not differences(main="""
    import torch

    class DenoisingStage:
        def forward(self, batch):
            for t in self.timesteps:
                probe()  # loop
                self.model(t)

    class DecodingStage:
        def forward(self, batch):
            self.vae(batch)
            probe()  # request

    class Executor:
        def __init__(self):
            self.stages: list[DenoisingStage | DecodingStage] = []
            self.blocks = [Block()]

        def execute_stages(self, batch):
            for stage in self.stages:
                probe()  # request
                batch = stage.forward(batch)

        def execute_blocks(self, batch):
            for block in self.blocks:
                probe()  # loop
                batch = block.forward(batch)

    class Block(torch.nn.Module):
        def forward(self, batch):
            return batch
    """)


@pytest.mark.parametrize(("name", "level"), [("handle_request", "request"), ("process_message", "request"), ("run_batch", "loop")])
def test_an_endless_loop_that_serves_requests_is_no_step_loop(name: str, level: str) -> None:
    assert not differences(main=f"""
    def {name}(model, message):
        model(message)

    def serve(model, inbox):
        while True:
            message = inbox.take()
            probe()  # {level}
            {name}(model, message)
    """)


@pytest.mark.parametrize(("name", "level"), [
    ("SamVideoProcessor", "request"), ("AudioAttnProcessor", "loop"), ("TextEncodingStage", "request"),
    ("VaeEncoderStep", "request"), ("ImagePreprocessStage", "request"), ("RefiningStage", "loop"),
])  # fmt: skip
def test_a_stage_that_prepares_or_finishes_holds_no_step_loop(name: str, level: str) -> None:
    assert not differences(main=f"""
    class {name}:
        def __call__(self, state):
            for part in state.parts:
                probe()  # {level}
                self.model(part)
    """)


def test_a_generate_that_hands_on_is_a_whole_request() -> None:
    assert not differences(main="""
    class Captioner:
        def generate(self, image):
            probe()  # request
            return self.language_model.generate(self.embed(image))

    class Planner:
        def generate(self, image):
            probe()  # loop
            return self.score(image)

    def search(captioner: Captioner, planner: Planner, model, rounds):
        for i in range(rounds):
            model(i)
            captioner.generate(i)
            planner.generate(i)
    """.replace("loop", "call"))


def test_features_of_a_requests_pictures_are_made_once_unless_a_step_asks() -> None:
    source = """
    import torch

    class Tower(torch.nn.Module):
        def forward(self, pixels):
            probe()  # LEVEL

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tower = Tower()

        def get_image_feature(self, items):
            return self.tower(items)

        def forward(self, x):
            return NEXT
    """
    assert not differences(main=source.replace("LEVEL", "request").replace("NEXT", "x"))
    assert not differences(main=source.replace("LEVEL", "call").replace("NEXT", "self.get_image_feature(x)"))


def test_an_autoencoder_that_only_serves_is_no_step() -> None:
    source = """
    import torch

    class Mid(torch.nn.Module):
        def forward(self, x):
            probe()  # LEVEL

    class AutoencoderKL(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mid = Mid()

        def decode(self, z):
            return self.mid(z)

        def forward(self, x):
            probe()  # LEVEL
            return self.decode(x)

    def sample(transformer, vae, scheduler, x, timesteps):
        for t in timesteps:
            x = scheduler.step(transformer(x, t), t, x)
        return vae.decode(x)
    """
    training = """
    def train(vae, loader, optimizer):
        for batch in loader:
            loss = (vae(batch) - batch).square().mean()
            loss.backward()
            optimizer.step()
    """
    assert not differences(main=source.replace("LEVEL", "request"))
    assert not differences(main=source.replace("LEVEL", "call"), fit=training)


@pytest.mark.parametrize(("take", "name", "level"), [
    ("self.queue.get()", "encoder_step", "request"), ("self.socket.recv()", "encoder_step", "request"),
    ("self.queue.get()", "run_batch", "loop"), ("self.counter()", "encoder_step", "loop"),
])  # fmt: skip
def test_a_loop_that_receives_serves_requests_unless_it_runs_batches(take: str, name: str, level: str) -> None:
    assert not differences(main=f"""
    class Scheduler:
        def loop(self):
            while self.running:
                message = {take}
                probe()  # {level}
                self.{name}(message)

        def {name}(self, message):
            self.model(message)
            for t in message.timesteps:
                self.model(t)
    """)


def test_the_variant_for_the_host_is_cold_where_one_for_the_device_stands_beside_it() -> None:
    assert not differences(main="""
    def copy_cpu(x):
        probe()  # cold

    def copy_triton(x):
        probe()  # call

    class Model(torch.nn.Module):
        def forward(self, x):
            return copy_cpu(x) if self.on_host else copy_triton(x)
    """)


def test_a_batch_of_requests_is_served_one_by_one() -> None:
    assert not differences(main="""
    def serve(model, batch, loader):
        for req in batch:
            probe()  # request
            model(req)
        for images in loader:
            probe()  # loop
            model(images)
    """)


def test_a_trunk_that_a_step_calls_is_no_tower() -> None:
    source = """
    import torch

    class VisionTransformer(torch.nn.Module):
        def forward(self, pixels):
            probe()  # request

    class FlowTransformer(torch.nn.Module):
        def forward(self, x):
            probe()  # call

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tower, self.flow = VisionTransformer(), FlowTransformer()

        def get_image_feature(self, items):
            self.flow(items)
            return self.tower(items)

    def denoise(transformer, timesteps, x):
        for t in timesteps:
            x = transformer(x, t)
    """
    assert not differences(main=source)


def test_encoders_of_a_project_that_serves_are_no_steps() -> None:
    module = """
    import torch

    class TextModel(torch.nn.Module):
        def forward(self, ids):
            probe()  # LEVEL
    """
    serving = """
    def sample(transformer, vae, scheduler, x, timesteps):
        for t in timesteps:
            x = scheduler.step(transformer(x, t), t, x)
        return vae.decode(x)
    """
    assert not differences(models__encoders__text=module.replace("LEVEL", "request"), main=serving)
    assert not differences(models__encoders__text=module.replace("LEVEL", "call"))
    assert not differences(models__dits__text=module.replace("LEVEL", "call"), main=serving)


def test_a_loop_over_the_pieces_of_a_request_is_no_step_loop_because_it_decodes_them() -> None:
    assert not differences(main="""
    def segments(transformer, vae, scheduler, count, timesteps, x):
        for _ in range(count):
            probe()  # request
            for t in timesteps:
                probe()  # loop
                x = scheduler.step(transformer(x, t), t, x)
            vae.decode(x)

    def stream(vae, count, x):
        for _ in range(count):
            probe()  # loop
            vae.decode(x)
    """)


def test_a_part_of_a_result_that_is_asked_for_by_name_is_no_call_of_a_method() -> None:
    assert not differences(main="""
    class Gaussian:
        def sample(self):
            probe()  # request

        def reshape_rows(self):
            probe()  # call

    def denoise(model, timesteps):
        for t in timesteps:
            out = getattr(model(t), "sample", None)
            out = getattr(model(t), "reshape_rows", None)
    """)


def test_what_a_serving_engine_calls_for_each_token() -> None:
    assert not differences(main="""
    from torch import nn

    class Talker(nn.Module):
        def compute_logits(self, hidden):
            probe()  # call

        def sample(self, logits, metadata):
            probe()  # call

        def prepare_inputs_for_generation(self, context):
            probe()  # call

        def load_weights(self, weights):
            probe()  # cold

    class Other(nn.Module):
        def sample(self, n):
            probe()  # request

    class Plain:
        def prepare_inputs_for_generation(self, context):
            probe()  # request

        def execute_model(self, batch):
            probe()  # request

    class GPUModelRunner:
        def execute_model(self, batch):
            probe()  # call
    """)


def test_a_pipeline_that_is_a_module_serves_a_request() -> None:
    assert not differences(main="""
    from torch import nn

    class DemoPipeline(nn.Module):
        def forward(self, prompt, timesteps):
            probe()  # request
            for t in timesteps:
                self.net(t)
                probe()  # loop

    class Net(nn.Module):
        def forward(self, x):
            probe()  # call
    """)


BRANCHES = """
    import torch

    class Net(torch.nn.Module):
        def forward(self, x):
            probe()  # call
            if TEST:
                probe()  # LEVEL
                self.spread(x)
            return x

        def spread(self, x):
            probe()  # LEVEL
"""
SERVING = """
    def sample(transformer, vae, scheduler, x, timesteps):
        for t in timesteps:
            x = scheduler.step(transformer(x, t), t, x)
        return vae.decode(x)
"""
TRAINING = """
    def fit(model, loader, optimizer):
        for batch in loader:
            model(batch).backward()
            optimizer.step()
"""


@pytest.mark.parametrize("test", ["self.training", "self.training and x.requires_grad", 'self.mode == "train"', "not (not self.training)"])
def test_who_only_serves_never_trains(test: str) -> None:
    source = BRANCHES.replace("TEST", test)
    assert not differences(main=source.replace("LEVEL", "request"), run=SERVING)
    assert not differences(main=source.replace("LEVEL", "call"), run=SERVING, fit=TRAINING)
    assert not differences(main=source.replace("LEVEL", "call"))


@pytest.mark.parametrize("test", ["self.trained", "self.training or x.requires_grad", 'self.mode == "fast"', "self.training_steps"])
def test_other_tests_say_nothing_of_training(test: str) -> None:
    assert not differences(main=BRANCHES.replace("TEST", test).replace("LEVEL", "call"), run=SERVING)


def test_a_forward_in_whose_place_another_method_is_called() -> None:
    assert not differences(main="""
    from torch import nn

    class Rope(nn.Module):
        def forward(self, positions):
            probe()  # request

        def forward_uncached(self, positions):
            probe()  # call

    class Other(nn.Module):
        def forward(self, positions):
            probe()  # call

        def forward_uncached(self, positions):
            probe()  # request

    class Own(nn.Module):
        def forward(self, x):
            probe()  # call
            return self.forward_native(x)

        def forward_native(self, x):
            probe()  # call

    class Net(nn.Module):
        def __init__(self):
            self.rope = Rope()

        def forward(self, x):
            return self.rope.forward_uncached(x)
    """)


def test_a_barrier_of_an_unknown_object_is_nobody_s_in_particular() -> None:
    assert not differences(
        main="""
        class Net:
            def training_step(self, batch, group, plan):
                group.barrier()
                plan.prepare(batch)
        """,
        parts="""
        class Backend:
            def barrier(self):
                probe()  # request

            def prepare(self, batch):
                probe()  # request
        """,
    )


def test_a_model_s_own_generate_is_a_whole_request() -> None:
    assert not differences(main="""
    from torch import nn

    class Speech(nn.Module):
        def generate(self, ids, limit):
            probe()  # request
            while len(ids) < limit:
                ids = self.forward(ids)
                probe()  # loop
            return ids

        def forward(self, ids):
            return ids

    class Rag(nn.Module):
        def forward(self, x, speech: Speech):
            return speech.generate(x, 8)
    """)


def test_a_name_that_several_have_takes_a_receiver_that_is_named_after_one() -> None:
    assert not differences(
        main="""
        class Net:
            def training_step(self, batch, router, thing):
                router.place(batch)
                thing.settle(batch)
        """,
        parts__router="""
        class Router:
            def place(self, batch):
                probe()  # call

            def settle(self, batch):
                probe()  # request
        """,
        parts__pool="""
        class Pool:
            def place(self, batch):
                probe()  # request

            def settle(self, batch):
                probe()  # request
        """,
        parts__queue="""
        class Queue:
            def place(self, batch):
                probe()  # request

            def settle(self, batch):
                probe()  # request
        """,
    )


@pytest.mark.parametrize("owner", ["class SpeechGenerationMixin:", "class Speech(torch.nn.Module):"])
def test_a_loop_over_examples_around_a_models_generate_makes_no_step_of_it(owner: str) -> None:
    assert not differences(main=f"""
    import torch

    {owner}
        def generate(self, x):
            probe()  # request
            self.detect(x)
            return self._sample(x)

        def detect(self, x):
            probe()  # request

        def _sample(self, x):
            probe()  # request
            model_forward = self.__call__
            while not self.finished(x):
                x = model_forward(x)
                probe()  # loop
            return x

    class Ranker(torch.nn.Module):
        def generate(self, ids):
            found = []
            for i in range(len(ids)):
                self.forward(ids[i])
                found.append(self.generator.generate(ids[i]))
            return found
    """)


@pytest.mark.parametrize("start", [
    "threading.Thread(target=self._write, daemon=True).start()", "self.thread = Thread(target=self._write)",
    "Timer(2.0, self._write).start()", "multiprocessing.Process(target=self._write).start()",
])  # fmt: skip
def test_what_a_thread_does_holds_up_no_step(start: str) -> None:
    source = f"""
    import multiprocessing
    import threading
    from threading import Thread, Timer

    class Writer:
        def open(self):
            {start}

        def _write(self):
            probe()  # LEVEL
            for chunk in self.chunks:
                probe()  # LEVEL
            for batch in self.batches:
                self.model(batch)
                probe()  # loop

    def run(model, timesteps, writer: Writer):
        for t in timesteps:
            model(t)
            writer.open()
    """
    assert not differences(main=source.replace("LEVEL", "request"))
    inside = source.replace(start, "self._write()").replace("# LEVEL", "# call", 1).replace("# LEVEL", "# loop")
    assert not differences(main=inside)


def test_the_hosts_variant_of_an_imported_kernel_is_cold() -> None:
    assert not differences(main="""
    from kernels import move_triton

    def move_cpu(x):
        probe()  # cold

    move = move_cpu if ON_HOST else move_triton

    def run(model, timesteps):
        for t in timesteps:
            model(t)
            move(t)
    """)


@pytest.mark.parametrize(("name", "level"), [("_denoise_one_clip", "request"), ("denoise_part", "request"), ("_advance_one_step", "loop")])
def test_a_clip_whose_steps_are_taken_a_call_away_is_a_request(name: str, level: str) -> None:
    assert not differences(main=f"""
    class Stage:
        def run(self, state):
            for part in state.schedule:
                probe()  # {level}
                latents = self.{name}(part)
                self.keep(latents)
            return latents

        def {name}(self, part):
            self.scheduler.set_timesteps(part.steps)
            return self._loop(part)

        def _loop(self, part):
            for t in part.timesteps:
                part = self.transformer(part, t)
                probe()  # loop
            return part

        def keep(self, latents):
            probe()  # {level.replace("loop", "call")}
    """)
