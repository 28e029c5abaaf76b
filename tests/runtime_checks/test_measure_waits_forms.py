"""The forms of the measurement: each is well written, has been measured, and runs on the CPU unless it needs a GPU."""
from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import hostlint.torch_ops
from hostlint.runtime_checks.measure_waits.catalogue import GROUPS, Form, forms, names, needed, unknown
from hostlint.runtime_checks.measure_waits.describe import facts_of, words_of
from hostlint.runtime_checks.measure_waits.program import Program

ENTRIES = json.loads((Path(hostlint.torch_ops.__file__).parent / "waits_h200.json").read_text(encoding="utf-8"))["calls"]
# Why a form may fail where there is no GPU, in torch's words.
NEEDS_GPU = re.compile(
    r"not compiled with CUDA|compiled without CUDA|Cannot access accelerator device|torch\.cuda\.Stream requires CUDA|dummy base class|"
    r"pin_memory=True requires a CUDA|capturable=True, .* must be on supported devices|have a CUDA build|Cannot initialize CUDA|"
    r"nvidia-ml-py|only supported on CUDA inputs|allocated_bytes\.all\.current|torch\._C' has no attribute '_(cuda|host)\w+'"
)
# Forms that raise everywhere: what users meet is the error.
RAISE = {"round(s)", "divmod(s, 2)", "torch._check(m0)"}
TRY_ALL = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
from hostlint.runtime_checks.measure_waits.catalogue import forms
from hostlint.runtime_checks.measure_waits.program import Program
replies = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
failed = {}
for form in forms():
    try:
        Program(form, "cpu").run()
    except Exception as error:
        failed[form.call] = f"{type(error).__name__}: {error}"
replies.write(json.dumps(failed))
replies.flush()
os._exit(0)
"""


def built(source: str) -> object:
    """The value of an expression of names, on the CPU."""
    program = Program(Form("none", source, f"result = {source}", needed(source)), "cpu")
    program.run()
    return program.scope["result"]


def test_every_form_runs_on_the_cpu_or_needs_a_gpu() -> None:
    done = subprocess.run([sys.executable, "-c", TRY_ALL], capture_output=True, text=True, check=True, timeout=300)
    failed: dict[str, str] = json.loads(done.stdout)
    unexplained = {call: error for call, error in failed.items() if not NEEDS_GPU.search(error)}
    assert unexplained.keys() == RAISE, unexplained
    assert len(failed) < 0.1 * len(ENTRIES)


def test_forms_are_well_written() -> None:
    every = list(forms())
    assert {form.group for form in every} == set(GROUPS)
    assert {form.call: unknown(form.source) for form in every if unknown(form.source)} == {}
    assert {name: unknown(expression) for name, expression in names().items() if unknown(expression)} == {}
    assert len({form.call for form in every}) == len(every)


def test_every_form_has_been_measured_and_nothing_else() -> None:
    measured = {entry["call"]: (entry["group"], entry.get("source", entry["call"])) for entry in ENTRIES}
    assert {form.call: (form.group, form.source) for form in forms()} == measured


def test_every_name_is_used() -> None:
    used = {name for form in forms() for name in form.needs}
    assert names().keys() - used == set()


def test_names_are_built_from_what_they_need_first() -> None:
    order = needed("lbfgs_closure")
    assert order.index("d") < order.index("opt_lbfgs") < order.index("lbfgs_closure")
    assert needed("A @ A") == ("d", "A")


def test_a_form_writes_to_names_of_its_own() -> None:
    write = Form("write", "x[0] = 7.0", "x[0] = 7.0", needed("x[0] = 7.0"))
    first = Program(write, "cpu")
    first.run()
    assert first.scope["x"][0] == 7.0
    assert Program(write, "cpu").scope["x"][0] == 0.5


@pytest.mark.parametrize(
    ("source", "facts"),
    [
        ("s", {"place": "HOST", "rank0": True, "boolean": False, "integer": False, "rank": 0}),
        ("m", {"place": "HOST", "rank0": False, "boolean": True, "integer": False, "rank": 1}),
        ("mu8", {"boolean": True, "integer": False}),
        ("xi", {"boolean": False, "integer": True}),
        ("xt", {"strided": True, "rank": 2}),
        ("sp", {"sparse": True}),
        ("hbig", {"large": True}),
        ("h4mb", {"large": True}),
        ("np_arr", {"place": "NUMPY", "rank0": False}),
        ("np_int", {"place": "NUMPY", "rank0": True}),
        ("lst", {"place": "PYTHON", "sequence": True}),
        ("[h, hx]", {"sequence": True, "holds_host": True}),
        ("dict_", {"place": "PYTHON", "sequence": False}),
        ("None", {"place": "PYTHON", "literal": "None"}),
        ("'cpu'", {"place": "PYTHON", "target": "HOST"}),
        ("enc_eval", {"evaluating": True}),
        ("enc_flat", {"made_with": {"enable_nested_tensor": "False"}}),
        ("bn_cumulative", {"made_with": {"momentum": "None"}}),
        ("normal_free", {"made_with": {"validate_args": "False"}}),
        ("opt_asgd_capturable", {"made_with": {"capturable": "True"}}),
        ("scaler_off", {"made_with": {"enabled": "False"}}),
        ("packed", {"makes": ["PackedSequence"], "holds_host": True}),
    ],
)
def test_facts_of_names(source: str, facts: dict[str, object]) -> None:
    found = facts_of(built(source))
    assert {key: found.get(key) for key in facts} == facts


@pytest.mark.parametrize("source", ["enc", "bn", "normal", "opt_sgd", "scaler"])
def test_defaults_of_constructors_are_no_facts(source: str) -> None:
    assert "made_with" not in facts_of(built(source))


def test_small_and_dense_is_said_by_silence() -> None:
    found = facts_of(built("h"))
    assert {"large", "strided", "sparse", "pinned"}.isdisjoint(found)


def test_classes_are_named_as_the_table_names_them() -> None:
    makes = facts_of(built("bn"))["makes"]
    assert isinstance(makes, list)
    assert makes[:2] == ["BatchNorm1d", "BatchNorm"]


def test_words_for_people() -> None:
    assert words_of(built("h")) == "float32 [16] on the host"
    assert words_of(built("sp")) == "sparse_coo float32 [16,16] on the host"
    assert words_of(built("w")) == "float32 [16] on the host, requires grad"
    assert words_of(built("[h, 1]")) == "Python list of 2: float32 [16] on the host and int"
    assert words_of(built("tot")) == "Python int 30"
    assert words_of(torch.nn.Linear(1, 1)) == "torch.nn.modules.linear.Linear"
