"""What cools: guards inside a function, and functions that run once, rarely, or never in earnest."""
from __future__ import annotations

import pytest
from heat_probes import differences

from hostlint.facts.lower import lower_file
from hostlint.heat import compute_heat
from hostlint.index import ProjectIndex


def test_guards_cool_places_and_what_is_only_called_behind_them() -> None:
    assert not differences("""
    def behind():
        probe()  # request

    def in_handler():
        probe()  # cold

    def go(self, model, timesteps, fallback=None):
        for step, t in enumerate(timesteps):
            model(t)
            if self.table is None:
                self.table = probe()  # request
                behind()
            if step % 100 == 0:
                probe()  # request
                behind()
            if verbose:
                probe()  # request
            if step == 0:
                probe()  # request
            try:
                probe()  # loop
            except ValueError:
                probe()  # cold
                in_handler()
            if torch.jit.is_tracing():
                probe()  # cold
            if fallback is None:
                probe()  # loop
    """)


def test_a_loop_behind_a_guard_is_no_hotter_than_the_guard() -> None:
    assert not differences("""
    def go(self, model, timesteps, valid):
        for step, t in enumerate(timesteps):
            model(t)
            if step % 100 == 0:
                for x in valid:
                    model(x)
                    probe()  # request
            if self.table is None:
                self.table = [probe() for _ in range(3)]  # request
    """)


def test_a_callee_that_is_also_called_without_a_guard_stays_hot() -> None:
    assert not differences("""
    def helper():
        probe()  # call

    def go(self, model, timesteps):
        for t in timesteps:
            model(t)
            if verbose:
                helper()
            helper()
    """)


@pytest.mark.parametrize("name", [
    "__init__", "__post_init__", "__repr__", "extra_repr", "state_dict", "load_state_dict", "load_weights", "warmup", "from_pretrained",
    "add_cli_args", "process_weights_after_loading", "bench_step", "collect_after_warmup",
])  # fmt: skip
def test_functions_that_are_cold_by_nature_keep_what_only_they_call_cold(name: str) -> None:
    assert not differences(f"""
    class Thing:
        def {name}(self, model, many):
            probe()  # cold
            for x in many:
                model(x)
                probe()  # cold
            self._only()

        def _only(self):
            probe()  # cold

        def run(self, model, timesteps):
            for t in timesteps:
                model(t)
                self.{name}(model, [])
    """)


@pytest.mark.parametrize("name", [
    "evaluate", "evaluate_model", "validation_step", "test_step", "validate", "on_validation_epoch_end", "compute_metrics",
    "log_validation", "run_eval", "eval_iteration", "unmerge", "get_eval_image_metrics_and_images",
])  # fmt: skip
def test_evaluation_runs_at_most_once_a_request(name: str) -> None:
    assert not differences(f"""
    def measure(model, x):
        probe()  # request

    def {name}(model, loader):
        probe()  # request
        for batch in loader:
            model(batch)
            measure(model, batch)
            probe()  # request

    def train(model, loader, opt):
        for batch in loader:
            model(batch).backward()
            opt.step()
            {name}(model, loader)
    """)


@pytest.mark.parametrize(("decorator", "level"), [
    ("functools.lru_cache", "cold"),
    ("functools.lru_cache(maxsize=8)", "cold"),
    ("cache", "cold"),
    ("lru_cache_unless_export()", "cold"),
    ("cached_property", "request"),
    ("cachedmethod(get)", "request"),
    ("logged", "call"),
])  # fmt: skip
def test_kept_results_cool_the_function_and_its_callees(decorator: str, level: str) -> None:
    assert not differences(f"""
    def build(n):
        probe()  # {level}

    @{decorator}
    def table(n):
        probe()  # {level}
        return build(n)

    def go(model, timesteps):
        for t in timesteps:
            model(t)
            table(t)
    """)


@pytest.mark.parametrize("name", [
    "convert_output", "quantize_input", "load_page", "setup_step_buffers",
    "prepare_lora_adapter", "_store_fused_lora_groups", "merge_adapters",
])  # fmt: skip
def test_names_of_rare_work_are_cold_unless_a_step_reaches_them(name: str) -> None:
    source = f"""
    def {name}(x):
        probe()  # LEVEL

    def go(model, timesteps):
        for t in timesteps:
            model(t)
            CALL
    """
    assert not differences(source.replace("LEVEL", "call").replace("CALL", f"{name}(t)"))
    assert not differences(source.replace("LEVEL", "cold").replace("CALL", "pass"))


def test_recursion_does_not_warm_rare_work() -> None:
    assert not differences("""
    def convert_tree(node):
        probe()  # cold
        return [convert_tree(child) for child in node.children]
    """)


@pytest.mark.parametrize(
    "path",
    [
        "tests/test_model.py", "pkg/tests/helpers.py", "conftest.py", "benchmarks/run.py", "bench_decode.py", "convert_weights.py",
        "pkg/exporters/graph.py", "pkg/integrations/executorch.py", "pkg/onnx/model.py",
        "pkg/canary/perturb/slots.py", "pkg/fault_injection.py", "pkg/tools/quantize_actions.py",
    ],
)
def test_tests_benchmarks_and_converters_are_cold(path: str) -> None:
    assert not differences("""
    def go(model, timesteps):
        for t in timesteps:
            model(t)
            probe()  # cold
    """, path=path)


def test_the_import_of_a_module_is_cold() -> None:
    assert not differences("""
    def build():
        return 3

    probe()  # cold
    TABLE = [probe() for _ in range(3)]  # cold
    """)


def test_public_helpers_that_nobody_calls_are_requests_and_private_ones_too() -> None:
    assert not differences("""
    def helper(x):
        probe()  # request

    def _other(x):
        probe()  # request
    """)


def test_what_tests_call_is_not_cooled_by_them() -> None:
    source = "def helper(x):\n    probe()\n"
    files = [
        lower_file(source, "lib.py", "lib").outline,
        lower_file("from lib import helper\ndef test_it():\n    helper(1)\n", "tests/test_lib.py", "tests.test_lib").outline,
    ]
    heat = compute_heat(ProjectIndex(files))
    assert heat.function((0, 1)).level.label == "request"
    assert heat.function((1, 1)).level.label == "cold"


def test_a_callback_handed_on_while_building_is_not_cooled_by_that() -> None:
    assert not differences("""
    class Server:
        def __init__(self, bus):
            bus.subscribe(self.handle)

        def handle(self, model, many):
            probe()  # request
            for x in many:
                model(x)
                probe()  # loop
    """)


@pytest.mark.parametrize(
    "header",
    ["@triton.jit\ndef run", "@triton.autotune(configs=[])\n@triton.jit\ndef run", "@cute.kernel\ndef run", "def test_run"],
)
def test_kernels_and_tests_are_cold_wherever_they_stand(header: str) -> None:
    loop = "def forward_step(x):\n    for step in range(9):\n        run(x)\n        test_run(x)"
    source = f"import triton, cutlass.cute as cute\n{header}(x):\n    pass\n{loop}"
    outline = lower_file(source, "main.py", "main").outline
    heat = compute_heat(ProjectIndex([outline]))
    assert heat.function((0, 1)).level.label == "cold"


@pytest.mark.parametrize("test", ["not x.is_cuda", "x.device.type == 'cpu'", "x.device.type != 'cuda'", "is_mps()", "not use_triton"])
def test_what_runs_off_the_accelerator_is_cold(test: str) -> None:
    source = f"def train_step(x):\n    if {test}:\n        slow(x)\n    fast(x)\ndef slow(x):\n    pass\ndef fast(x):\n    pass"
    outline = lower_file(source, "main.py", "main").outline
    heat = compute_heat(ProjectIndex([outline]), hot=["main:train_step"])
    assert [heat.function((0, index)).level.label for index in (2, 3)] != ["call", "call"]
    assert heat.function((0, 3)).level.label == "call"
