"""The pytest plugin, in small runs of pytest of its own, on the stand-in."""
from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

from hostlint.runtime_checks import simulate_cuda

pytest_plugins = ["pytester"]

READS = """
import pytest, torch

def step(x):
    return x.sum().item()

@pytest.mark.no_host_sync(device="simulated")
def test_step():
    assert step(torch.ones(3, device="cuda")) == 3.0
"""


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """What torch imports only when it is needed is imported here: a run inside this process forgets the modules that it brought."""
    with simulate_cuda():
        torch.ones(2, device="cuda").sum().item()


def run(pytester: pytest.Pytester, source: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_case=source)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "--strict-markers", *options)


def test_a_waiting_test_fails_with_the_place(pytester: pytest.Pytester) -> None:
    result = run(pytester, READS)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*1 host-device sync(s)*", "*read: Tensor.item*", "*test_case.py:4 in step*"])
    result.stdout.fnmatch_lines(["*host waits (hostlint)*", "*::test_step: 1", "*1 x read Tensor.item at *.py:4 in step*"])


def test_a_test_without_waits_passes_and_nothing_is_said(pytester: pytest.Pytester) -> None:
    result = run(pytester, READS.replace("x.sum().item()", "x.sum() * 0 == 0").replace("== 3.0", "is not None"))
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*host waits*")


def test_the_tests_own_failure_is_what_is_shown(pytester: pytest.Pytester) -> None:
    result = run(pytester, READS.replace("== 3.0", "== 4.0"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert 3.0 == 4.0*"])


@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        ('allow=["test_case.py:step"]', "passed"),
        ('allow=["test_case.py:test_step"]', "failed"),
        ("max_syncs=1", "passed"),
        ("max_syncs=0", "failed"),
        ("warmup=2", "failed"),
    ],
)
def test_options_of_the_marker(pytester: pytest.Pytester, options: str, outcome: str) -> None:
    result = run(pytester, READS.replace('device="simulated"', f'device="simulated", {options}'))
    result.assert_outcomes(**{outcome: 1})


def test_warm_up_runs_are_not_counted(pytester: pytest.Pytester) -> None:
    source = """
import pytest, torch
known = {}

def step(x):
    if "n" not in known:
        known["n"] = x.sum().item()
    return x * known["n"]

@pytest.mark.no_host_sync(device="simulated", warmup=%d)
def test_step():
    step(torch.ones(3, device="cuda"))
"""
    run(pytester, source % 1).assert_outcomes(passed=1)
    run(pytester, source % 0).assert_outcomes(failed=1)


@pytest.mark.parametrize("options", ["syncs=3", "max_syncs=-1", "max_syncs='many'", "warmup=-1", "device='tpu'", "allow=['step']"])
def test_a_wrong_option_says_so(pytester: pytest.Pytester, options: str) -> None:
    result = run(pytester, READS.replace('device="simulated"', options))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*no_host_sync*{options.split('=')[0]}*"])


def test_a_real_gpu_is_asked_for_where_there_is_none(pytester: pytest.Pytester) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    run(pytester, READS.replace('"simulated"', '"cuda"')).assert_outcomes(skipped=1)


def test_the_guard_fixture_watches_a_part_of_a_test(pytester: pytest.Pytester) -> None:
    source = """
import torch

def test_part(no_host_sync):
    with no_host_sync(device="simulated", max_syncs=1) as events:
        x = torch.ones(3, device="cuda")
        float(x.sum())
    assert [str(event.kind) for event in events if event.kind != "collect"] == ["read"]
    with no_host_sync(device="simulated"):
        bool(torch.ones(1, device="cuda"))
"""
    result = run(pytester, source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*1 host-device sync(s)*", "*test_part: 2*"])


def test_fixtures_that_record(pytester: pytest.Pytester) -> None:
    source = """
import gc, torch

def test_events(host_events):
    if not torch.cuda.is_available():
        return
    torch.ones(3, device="cuda").tolist()
    torch.cuda.empty_cache()
    assert [str(event.kind) for event in host_events if event.kind != "collect"] == ["read", "flush"]

def test_device(simulated_cuda):
    assert torch.ones(3, device="cuda").is_cuda

def test_garbage(gc_events):
    before = len(gc_events)
    gc.collect(1)
    assert [event.generation for event in gc_events[before:]] == [1]
"""
    run(pytester, source).assert_outcomes(passed=3)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_the_report_file_holds_every_watched_test(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    source = f"{READS}\n\n@pytest.mark.no_host_sync(device='simulated', max_syncs=2)\ndef test_more():\n    test_step()\n    test_step()\n"
    pytester.makepyfile(test_case=source)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--host-sync-report", "waits.json", *workers)
    result.assert_outcomes(passed=1, failed=1)
    written = json.loads((pytester.path / "waits.json").read_text(encoding="utf-8"))
    name = "test_case.py"
    assert {test: len(events) for test, events in written["tests"].items()} == {f"{name}::test_step": 1, f"{name}::test_more": 2}
    (event,) = written["tests"][f"{name}::test_step"]
    assert (event["kind"], event["call"], event["line"], event["function"]) == ("read", "Tensor.item", 4, "step")
    result.stdout.fnmatch_lines(["*host waits (hostlint)*", "*::test_more: 2", "*::test_step: 1"])


def test_a_report_that_cannot_be_written_is_a_usage_error(pytester: pytest.Pytester) -> None:
    result = run(pytester, READS, "--host-sync-report", "nowhere/waits.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--host-sync-report*nowhere*"])


def test_without_a_marked_test_torch_is_not_imported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_case="import sys\n\ndef test_nothing():\n    assert 'torch' not in sys.modules\n")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1)


def test_the_marker_works_on_a_unittest_case(pytester: pytest.Pytester) -> None:
    source = """
import unittest, pytest, torch

class TestStep(unittest.TestCase):
    @pytest.mark.no_host_sync(device="simulated")
    def test_step(self):
        torch.ones(3, device="cuda").sum().item()
"""
    result = run(pytester, source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*1 host-device sync(s)*"])


def test_the_plugin_is_found_by_its_entry_point() -> None:
    done = subprocess.run([sys.executable, "-m", "pytest", "--markers"], capture_output=True, text=True, check=True)
    assert "@pytest.mark.no_host_sync(allow=(), device=" in done.stdout
