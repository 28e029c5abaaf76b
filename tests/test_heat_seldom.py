"""What runs seldom though a step's driver calls it: models are saved and moved, a run is measured; and what only sounds like that."""
from __future__ import annotations

import textwrap

import pytest

from hostlint.facts.lower import lower_file
from hostlint.heat import compute_heat
from hostlint.index import ProjectIndex


def level_of(source: str, module: str = "main") -> str:
    """The heat of the place that calls `probe()`."""
    outline = lower_file(textwrap.dedent(source), module.replace(".", "/") + ".py", module).outline
    heat = compute_heat(ProjectIndex([outline]))
    found = [heat.site((0, one.index), call.region).level.label for one in outline.functions for call in one.calls if call.chain == "probe"]
    assert len(found) == 1
    return found[0]


STEP = """
    def {name}(models, x):
        for p in models.parameters():
            probe()

    def train(model, loader):
        for batch in loader:
            model(batch).backward()
            {name}(model, batch)
"""


@pytest.mark.parametrize("name", [
    "merge_sharded_ckpt_model", "_convert_checkpoint_keys", "gather_state_dict", "maybe_save_checkpoint", "export_hf_state_dict",
    "offload_model_to_cpu", "offload_wrapped_optimizer", "load_model_to_gpu", "copy_model_to_cpu", "onload_params", "move_params_to_host",
    "calibrate", "run_calibration_step", "search_clip_ratio", "tune_thresholds",
])  # fmt: skip
def test_what_saves_moves_or_measures_is_asked_for(name: str) -> None:
    assert level_of(STEP.format(name=name)) == "request"


@pytest.mark.parametrize("name", [
    "copy_to_cpu", "batch_to_cpu", "offload_activations", "offload_layer", "copy_grads_to_cpu", "checkpoint_forward", "merge_heads",
    "beam_search", "calibration_error", "finetune_batch", "timed_out", "gather_logits", "load_batch_to_gpu", "convert_tokens",
])  # fmt: skip
def test_what_a_step_moves_or_merges_stays_hot(name: str) -> None:
    assert level_of(STEP.format(name=name)) == "loop"


LAYERS = """
    def merge_sharded_ckpt(models, config):
        def gather(x):
            probe()

        for layer in range(config.num_hidden_layers):
            block = models[layer]
            gather(block(config))
"""


def test_what_a_merge_calls_for_every_layer_is_as_seldom() -> None:
    assert level_of(LAYERS) == "request"
    assert level_of(LAYERS.replace("merge_sharded_ckpt", "run_sharded")) == "call"


ENTRY = """
    class Net(nn.Module):
        def forward(self, x):
            probe()
"""


@pytest.mark.parametrize(("module", "level"), [
    ("pkg.saver", "request"), ("pkg.model_loader", "request"), ("pkg.ckpt_converter", "request"), ("pkg.weight_utils", "request"),
    ("pkg.calibration", "request"), ("pkg.data_loader", "call"), ("pkg.checkpoint", "call"),
    ("pkg.loader", "call"), ("pkg.calibration_error", "call"), ("pkg.profile_net", "call"),
])  # fmt: skip
def test_modules_that_load_save_or_calibrate(module: str, level: str) -> None:
    assert level_of(ENTRY, module) == level


@pytest.mark.parametrize(("name", "level"), [
    ("ActivationCalibrator", "request"), ("CalibrationError", "call"), ("ProfileEncoder", "call"),
])  # fmt: skip
def test_classes_that_calibrate(name: str, level: str) -> None:
    assert level_of(ENTRY.replace("Net", name)) == level


EACH = """
    def train(model, loader):
        for batch in loader:
            model(batch).backward()
            {call}
"""
HOOKED = """
    import torch

    def note(module, args, out):
        probe()

    def collect(model, layers, x):
        {put}
        model(x)
        {take}
"""


@pytest.mark.parametrize(("put", "take"), [
    ("handle = model.register_forward_hook(note)", "handle.remove()"),
    ("handle = model.register_forward_pre_hook(note, with_kwargs=True)", "handle.remove()"),
    ("kept = []\n        for layer in layers:\n            kept.append(layer.register_forward_hook(note))",
     "for one in kept:\n            one.remove()"),
])  # fmt: skip
def test_a_hook_that_its_installer_takes_away_runs_where_that_runs(put: str, take: str) -> None:
    source = HOOKED.format(put=put, take=take)
    assert level_of(source) == "request"
    assert level_of(source + EACH.format(call="collect(model, [], batch)")) == "call"
    looped = source.replace("probe()", "for block in module.blocks:\n            block.forward(args)\n            probe()")
    assert level_of(looped) == "request"
    assert level_of(HOOKED.format(put=put, take="pass")) == "call"
    assert level_of(HOOKED.format(put=put, take="other.remove()")) == "call"


LOSS = """
    def drift_loss(a, b):
        probe()

    def calibrate(model, batches):
        return [drift_loss(model(one), one) for one in batches]
"""


def test_a_loss_that_only_a_calibration_computes_is_no_step() -> None:
    assert level_of(LOSS) == "request"
    assert level_of(LOSS.replace("def calibrate", "def compare")) == "call"
    assert level_of(LOSS.partition("def calibrate")[0]) == "call"
    picked = LOSS.replace("def calibrate", "def pick(kind):\n        return drift_loss\n\n    def calibrate")
    assert level_of(picked.replace("[drift_loss(", "[(")) == "call"
    assert level_of(LOSS + EACH.format(call="drift_loss(model(batch), batch)")) == "call"


TIMED = """
    class {owner}:
        def {name}(self, model, x):
            {first}
            return self.work(model, x)

        def work(self, model, x):
            {second}

        def train(self, model, loader):
            for batch in loader:
                model(batch).backward()
                self.{name}(model, batch)
"""


@pytest.mark.parametrize(("owner", "name", "module"), [
    ("Runner", "_run_timed_pipe", "main"), ("Runner", "timed_call", "main"), ("Runner", "profiling_step", "main"),
    ("StepProfiler", "call", "main"), ("Runner", "call", "pkg.step_profiler"),
])  # fmt: skip
def test_what_times_a_run_waits_on_purpose_and_the_run_is_as_hot_as_ever(owner: str, name: str, module: str) -> None:
    source = TIMED.replace("{owner}", owner).replace("{name}", name)
    assert level_of(source.format(first="probe()", second="pass"), module) == "request"
    if (owner, module) == ("Runner", "main"):
        assert level_of(source.format(first="pass", second="probe()"), module) == "call"


@pytest.mark.parametrize("name", ["timeout", "timed_out", "width_profile", "time_embedding", "stopwatch"])
def test_other_names_time_nothing(name: str) -> None:
    assert level_of(TIMED.replace("{owner}", "Runner").replace("{name}", name).format(first="probe()", second="pass")) == "call"
