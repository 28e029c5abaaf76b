"""Branches that a step seldom takes are no hotter than a request: errors, other machines, tensors that lie elsewhere, first rounds."""
from __future__ import annotations

import textwrap

import pytest

from hostlint.facts.lower import lower_file
from hostlint.heat import compute_heat
from hostlint.index import ProjectIndex


def heats(source: str, module: str = "main") -> dict[str, str]:
    """The heat of each call of `then()`, `other()` and `after()`."""
    outline = lower_file(textwrap.dedent(source), module.replace(".", "/") + ".py", module).outline
    heat = compute_heat(ProjectIndex([outline]))
    calls = ((function, call) for function in outline.functions for call in function.calls)
    return {call.chain: heat.site((0, f.index), call.region).level.label for f, call in calls if call.chain in ("then", "other", "after")}


def branches(test: str) -> tuple[str, str]:
    """The heat of both branches of an `if` in a step loop."""
    found = heats(f"""
    def go(self, model, timesteps, start):
        for step, t in enumerate(timesteps):
            x = model(t)
            if {test}:
                then()
            else:
                other()
    """)
    return found["then"], found["other"]


@pytest.mark.parametrize("test", [
    "torch.isnan(x).all()", "x.isnan().any()", "not torch.isfinite(x).all()", "torch.isnan(x).sum() > 0", "(~torch.isfinite(x)).any()",
    "math.isnan(loss)", "torch.any(torch.isnan(x) | torch.isinf(x))", "found_inf", "self.overflow", "not (torch.isnan(x).sum() == 0)",
])  # fmt: skip
def test_what_runs_only_for_values_that_are_no_numbers_is_cool(test: str) -> None:
    assert branches(test) == ("request", "loop")


@pytest.mark.parametrize("test", [
    "torch.isfinite(x).all()", "not x.isnan().any()", "torch.isnan(x).sum() == 0", "(~torch.isnan(x)).all()", "math.isfinite(loss)",
    "step > 3 and torch.isfinite(x).all()",
])  # fmt: skip
def test_what_runs_for_numbers_is_the_step_itself(test: str) -> None:
    assert branches(test)[0] == "loop"


@pytest.mark.parametrize("test", ["x.any()", "self.inf_loader", "mask.all()", "self.nan_policy", "x.info()"])
def test_other_tests_of_values_cool_nothing(test: str) -> None:
    assert branches(test) == ("loop", "loop")


@pytest.mark.parametrize("test", [
    'x.device.type == "mps"', 'x.device.type in ("mps", "cpu")', 'x.device.type not in ("cuda",)', "self.is_mps", "is_cpu and x.all()",
    "torch.backends.mps.is_available()", 'str(device).startswith("mps")',
])  # fmt: skip
def test_what_runs_without_an_accelerator_is_cold(test: str) -> None:
    assert branches(test) == ("cold", "loop")


@pytest.mark.parametrize("test", [
    'device.type == "npu"', 'x.device.type in ("mps", "xpu")', "is_torch_npu_available()", "_is_npu", "current_platform.is_xpu()",
    'x.device.type == "mps" or x.device.type == "npu"', "is_mps or is_npu", "_is_npu and x.all()", 'self.device.startswith("xla")',
])  # fmt: skip
def test_what_runs_on_other_accelerators_is_cool(test: str) -> None:
    assert branches(test) == ("request", "loop")


@pytest.mark.parametrize("test", [
    'x.device.type == "cuda"', 'x.device.type != "npu"', 'x.device.type in ("cuda",)', "not _is_npu", "x.is_cuda",
    'x.device.type not in ("mps", "cpu")',
])  # fmt: skip
def test_what_runs_elsewhere_than_on_the_accelerator_is_cold(test: str) -> None:
    assert branches(test)[0] == "loop"


@pytest.mark.parametrize("test", ['x.kind == "npu"', "npu_count", "self.numbers", "torch.cuda.is_available()", 'name.startswith("mps")'])
def test_names_that_only_look_like_machines_cool_nothing(test: str) -> None:
    assert branches(test) == ("loop", "loop")


@pytest.mark.parametrize("test", ["x.device != t.device", "table.device is not device", "str(x.device) != str(self.device)"])
def test_moving_what_lies_elsewhere_is_cool(test: str) -> None:
    assert branches(test) == ("request", "loop")


def test_what_an_object_keeps_elsewhere_is_moved_each_time_unless_it_keeps_the_copy() -> None:
    source = """
    class Rope:
        def forward_step(self, x):
            if self.table.device != x.device:
                TABLE = then()
            after()
    """
    assert heats(source.replace("TABLE", "table")) == {"then": "call", "after": "call"}
    assert heats(source.replace("TABLE", "self.table")) == {"then": "request", "after": "call"}


@pytest.mark.parametrize("test", ["x.device == t.device", "x.dtype != t.dtype", "x.device is None", "self.devices != others"])
def test_comparisons_that_say_nothing_of_a_tensor_elsewhere(test: str) -> None:
    assert branches(test)[0] == "loop"


@pytest.mark.parametrize("test", [
    "step - start == 1", "step + 1 == 1", "step == self.first_step", "step in (1, 2)", "first", "step - self.offset == 0", "step == 7",
    "self._step - start == 3",
])  # fmt: skip
def test_one_iteration_is_cool(test: str) -> None:
    assert branches(test) == ("request", "loop")


@pytest.mark.parametrize("test", ["step - start > 1", "x - y == 1", "step in wanted", "step in (1, start)", "first_block", "all + 1 == 3"])
def test_many_iterations_stay_hot(test: str) -> None:
    assert branches(test) == ("loop", "loop")


@pytest.mark.parametrize("line", [
    'logger.error("bad")', 'logging.exception("bad")', 'warnings.warn("bad")', 'self.logger.warning("odd")', 'logger.warning_once("odd")',
])  # fmt: skip
def test_a_branch_that_complains_is_cool(line: str) -> None:
    source = """
    def go(self, model, timesteps):
        for t in timesteps:
            x = model(t)
            if x.shape[0] > limit:
                LINE
                then()
                continue
            after()
    """
    assert heats(source.replace("LINE", line)) == {"then": "request", "after": "loop"}


def test_the_other_branch_may_complain() -> None:
    assert heats("""
    def go(self, model, timesteps):
        for t in timesteps:
            x = model(t)
            if x.shape[0] > limit:
                then()
            else:
                logger.error("bad")
                other()
    """) == {"then": "loop", "other": "request"}


@pytest.mark.parametrize("line", ['logger.info("fine")', 'print("fine")', "self.errors.append(x)", 'catalog.warning("fine")'])
def test_a_branch_that_only_tells_stays_hot(line: str) -> None:
    source = """
    def go(self, model, timesteps):
        for t in timesteps:
            x = model(t)
            if x.shape[0] > limit:
                LINE
                then()
    """
    assert heats(source.replace("LINE", line)) == {"then": "loop"}


def test_a_long_branch_that_also_warns_is_no_error_path() -> None:
    assert heats("""
    def go(self, model, timesteps):
        for t in timesteps:
            x = model(t)
            if self.fast:
                x = model(x)
                x = model(x)
                x = model(x)
                logger.warning("slow")
                then()
    """) == {"then": "loop"}


def test_an_operand_behind_such_a_test_is_as_cool() -> None:
    assert heats("""
    def go(self, model, timesteps, device):
        for t in timesteps:
            x = model(t)
            a = x if x.device == device else then()
            b = torch.isnan(x).any() and after()
    """) == {"then": "request", "after": "request"}


@pytest.mark.parametrize("test", [
    "envs.DEBUG_CONFIDENCE.get()", "flags.verbose.value", "self.recorder is not None", "self._step_recorder", "tracer is not None",
    "self.metrics_collector is not None", "not (self.profiler is None)", "settings.DUMP_STATES.is_set()",
])  # fmt: skip
def test_what_runs_while_somebody_watches_is_cool(test: str) -> None:
    assert branches(test) == ("request", "loop")


@pytest.mark.parametrize("test", ["envs.FAST_PATH.get()", "self.recorder is None", "x.get()", "self.collector is not None", "recorders"])
def test_other_switches_cool_nothing(test: str) -> None:
    assert branches(test)[0] == "loop"


OTHERS = """
class Backend:
    def forward_step(self, x):
        then()
        self.{name}(x)

    def {name}(self, x):
        other()
"""


@pytest.mark.parametrize("name", [
    "_forward_npu_decode", "launch_ascendc_exchange", "run_xpu", "on_idle", "check_during_idle",
    "_compact_pending_pages", "make_room", "_relocate_to_positions", "maybe_defragment", "reclaim_slots",
    "_maybe_record_confidence", "maybe_log_lengths",
])  # fmt: skip
def test_functions_for_other_accelerators_idle_times_and_full_pools_are_cool(name: str) -> None:
    assert heats(OTHERS.format(name=name)) == {"then": "call", "other": "request"}


@pytest.mark.parametrize("name", [
    "_forward_cuda_decode", "count_inputs", "get_idle_batch", "descend", "compact_mask", "relocated", "maybe_scale", "maybe_logits",
])  # fmt: skip
def test_names_that_only_resemble_them_stay_hot(name: str) -> None:
    assert heats(OTHERS.format(name=name)) == {"then": "call", "other": "call"}


@pytest.mark.parametrize("module", ["pkg.backends.npu.attention", "pkg.ascend_backend", "pkg.allocator_npu", "pkg.xpu"])
def test_files_for_other_accelerators_are_cool(module: str) -> None:
    assert heats(OTHERS.format(name="attend"), module) == {"then": "request", "other": "request"}


@pytest.mark.parametrize("module", ["torch_npu.attention", "pkg.inputs", "pkg.attention", "pkg.expu"])
def test_a_package_for_another_accelerator_is_its_users_whole_program(module: str) -> None:
    assert heats(OTHERS.format(name="attend"), module) == {"then": "call", "other": "call"}


@pytest.mark.parametrize("test", ["len(state) == 0", "not state", "not len(state) > 0", '"step" not in state'])
def test_a_state_is_filled_once(test: str) -> None:
    found = heats(f"""
    class Optimizer:
        def step(self, groups):
            for p in groups:
                state = self.state[p]
                if {test}:
                    state["step"] = 0
                    state["average"] = then()
                after()
    """)
    assert found == {"then": "request", "after": "loop"}


@pytest.mark.parametrize("test", ["len(state) == 1", "state", "len(state) > 0", '"step" in state', "len(p) == 0"])
def test_other_tests_of_a_state_fill_nothing(test: str) -> None:
    found = heats(f"""
    class Optimizer:
        def step(self, groups):
            for p in groups:
                state = self.state[p]
                if {test}:
                    state["step"] = 0
                    state["average"] = then()
    """)
    assert found == {"then": "loop"}


GROWS = """
class Rope:
    def forward_step(self, x, layer, seq_len):
        longest_cached = getattr(self, f"{layer}_longest_cached", self.longest)
        if TEST:
            then()
            BODY
        after()
        REST
"""


@pytest.mark.parametrize(("test", "body", "rest"), [
    ("seq_len > longest_cached", 'setattr(self, f"{layer}_longest_cached", seq_len)', ""),
    ("longest_cached < seq_len", 'setattr(self, "longest_cached", seq_len)', ""),
    ("longest_cached is None", "longest_cached = seq_len", 'setattr(self, f"{layer}_longest_cached", longest_cached)'),
])  # fmt: skip
def test_what_is_computed_when_a_kept_length_is_outgrown_is_cool(test: str, body: str, rest: str) -> None:
    assert heats(GROWS.replace("TEST", test).replace("BODY", body).replace("REST", rest)) == {"then": "request", "after": "call"}


@pytest.mark.parametrize(("test", "body"), [
    ("seq_len > longest_cached", "x = seq_len"), ("seq_len > x", 'setattr(self, "x", seq_len)'),
    ("seq_len == longest_cached", 'setattr(self, "longest_cached", 1)'), ("longest_cached is None", "longest_cached = seq_len"),
])  # fmt: skip
def test_a_length_that_nobody_notes_is_outgrown_each_time(test: str, body: str) -> None:
    assert heats(GROWS.replace("TEST", test).replace("BODY", body).replace("REST", "")) == {"then": "call", "after": "call"}
