"""Faulty and corrected models compute the same bits; the events of a step are those of the table's row, before and after."""
from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from hostlint.runtime_checks import HostEvent, record_host_events
from hostlint.runtime_checks.bits import difference

pytestmark = pytest.mark.usefixtures("validated_distributions")
ROOT = Path(__file__).resolve().parent.parent.parent
FAULTY = ROOT / "tests" / "faulty_models"
WAITS = {"read", "data-dependent-size", "hidden-wait", "explicit-sync"}
LINALG_ERROR: type[Exception] = torch.linalg.LinAlgError  # type: ignore[attr-defined]  # torch's stubs leave it out
Module = Any  # a model's file: each has names of its own


ROWS: dict[str, dict[str, Any]] = json.loads((ROOT / "benchmarks" / "fixed_models" / "rows.json").read_text(encoding="utf-8"))


class Runs:
    """benchmarks/fixed_models/runs.py for one system: its faulty and its corrected module, its variants, and how it is run."""

    def __init__(self, module: Module, name: str) -> None:
        self.name, self.Request = name, module.Request
        self.system = module.SYSTEMS[name]
        self.variants: tuple[dict[str, Any], ...] = self.system.variants
        self.faulty, self.corrected = module.faulty(name), module.corrected(name)

    def run(self, module: Module, **options: Any) -> object:
        return self.system.run(module, self.Request(**options))

    def both(self, **options: Any) -> tuple[object, object]:
        return self.run(self.faulty, **options), self.run(self.corrected, **options)

    def outcome(self, module: Module, **options: Any) -> object:
        try:
            return self.run(module, **options)
        except (AssertionError, FloatingPointError, ValueError, RuntimeError) as error:  # errors of linear algebra are RuntimeErrors
            return error


@pytest.fixture(params=sorted(ROWS))
def runs(request: pytest.FixtureRequest, model_runs: Module) -> Runs:
    return Runs(model_runs, request.param)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Tensors of a few numbers gain nothing from more, and on a busy machine wait for them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_every_row_is_run(model_runs: Module) -> None:
    assert set(model_runs.SYSTEMS) == set(ROWS)


class TestBits:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
    def test_seeds_batches_and_steps(self, runs: Runs, dtype: torch.dtype) -> None:
        for options in runs.variants:
            for seed, batch, steps in ((0, 1, 3), (1, 3, 5)):
                before, after = runs.both(steps=steps, batch=batch, seed=seed, dtype=dtype, options=options)
                assert difference(before, after) == "", (seed, options)

    def test_special_values(self, runs: Runs) -> None:
        """A request that fails fails still, except where a row says that a matrix is not checked any more."""
        for options in runs.variants:
            for dtype in (torch.float32, torch.bfloat16):
                before, after = (runs.outcome(one, dtype=dtype, special=True, options=options) for one in (runs.faulty, runs.corrected))
                if isinstance(before, LINALG_ERROR):
                    assert "and no error" in ROWS[runs.name]["fix"]
                    assert not torch.as_tensor(after).isfinite().all()
                elif runs.name == "sampled_decoding":
                    assert isinstance(before, ValueError)
                    assert isinstance(after, RuntimeError)
                elif isinstance(before, Exception):
                    assert (type(before), str(before)) == (type(after), str(after).split("\n")[0])  # pytest adds lines to messages
                else:
                    assert difference(before, after) == "", (dtype, options)

    def test_the_numbers_are_ones_that_could_differ(self, runs: Runs) -> None:
        """Another seed gives other bits, and plain inputs give finite results: else the comparisons would say little."""
        one, other = (runs.run(runs.corrected, seed=seed, options=runs.variants[0]) for seed in (0, 1))
        assert difference(one, other) != ""
        assert all(torch.as_tensor(part).isfinite().all() for part in flat(one))

    def test_requests_in_two_threads_do_not_meet(self, runs: Runs) -> None:
        """At every forward of one request the other one makes a forward too; their batches, seeds and dtypes differ."""
        options = runs.variants[0]
        requests = {"batch": 1, "seed": 3, "options": options}, {"batch": 2, "seed": 4, "dtype": torch.float64, "options": options}
        alone = [runs.run(runs.corrected, **request) for request in requests]
        with in_step(parties=2), ThreadPoolExecutor(2) as pool:
            together = list(pool.map(lambda request: runs.run(runs.corrected, **request), requests))
        assert difference(alone, together) == ""

    def test_a_request_of_other_shapes_leaves_nothing_behind(self, runs: Runs) -> None:
        """What is kept of one request is not what the next one gets, and is right when the first comes again."""
        requests = [{"length": length, "batch": batch, "dtype": dtype, "options": options} for options in runs.variants
                    for length, batch, dtype in ((5, 2, torch.float32), (9, 1, torch.float64), (7, 3, torch.bfloat16))]  # fmt: skip
        wanted = [runs.run(runs.faulty, **request) for request in requests]
        for _ in range(2):
            assert difference(wanted, [runs.run(runs.corrected, **request) for request in requests]) == ""


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


def forget(module: Module) -> None:
    """What a corrected model keeps: tensors of another recording's device."""
    getattr(module, "KEPT", {}).clear()
    if hasattr(module, "made_table"):
        module.made_table.cache_clear()


def events(runs: Runs, module: Module, steps: int, options: dict[str, Any]) -> list[HostEvent]:
    """What holds the host in the model's own file."""
    forget(module)
    with record_host_events(device="simulated") as seen:
        runs.run(module, steps=steps, device="cuda", options=options)
    return [event for event in seen if event.path == module.__file__ and event.kind not in ("collect", "flush")]


def per_step(runs: Runs, module: Module) -> tuple[int, int]:
    """Waits and uploads that one more step makes."""
    few, many = (events(runs, module, steps, runs.variants[0]) for steps in (5, 6))
    counted = [(sum(one.kind in WAITS for one in run), sum(one.kind == "upload" for one in run)) for run in (few, many)]
    return counted[1][0] - counted[0][0], counted[1][1] - counted[0][1]


class TestEvents:
    def test_a_step_makes_those_of_its_row(self, runs: Runs) -> None:
        before, after = per_step(runs, runs.faulty), per_step(runs, runs.corrected)
        row = ROWS[runs.name]
        assert [list(one) for one in zip(before, after, strict=True)] == [row["waits"], row["uploads"]]

    def test_the_marked_lines_and_no_others_make_them(self, runs: Runs) -> None:
        """Over all variants; a wait or an upload at request level, outside the steps, is no line of the model's loop."""
        lines = (FAULTY / f"{runs.name}.py").read_text(encoding="utf-8").splitlines()
        waiting = re.compile(r"# expect(?: at request)?: .*HL[12]|# hostlint: ignore")
        marked = {number for number, line in enumerate(lines, 1) if waiting.search(line)}
        met: set[int] = set()
        for options in runs.variants:
            first, *_, last = (events(runs, runs.faulty, steps, options) for steps in (1, 3, 5))
            met |= {event.line for event in last} - ({event.line for event in first} - marked)
        assert met == marked

    def test_a_step_does_again_what_its_row_says(self, runs: Runs, redone: Module) -> None:
        counts = []
        for module in (runs.faulty, runs.corrected):
            done = []
            for steps in (5, 6, 7):
                forget(module)
                with redone.Redone() as seen:
                    runs.run(module, steps=steps, options=runs.variants[0])
                done.append(seen.count)
            assert done[2] - done[1] == done[1] - done[0]
            counts.append(done[1] - done[0])
        assert counts == ROWS[runs.name]["redone"]


def test_redone_work_is_told_by_descent_and_not_by_value(redone: Module) -> None:
    x, y = torch.ones(3), torch.ones(3)
    with redone.Redone() as seen:
        x + 1, y + 1, x * 1, torch.tensor([1.0, 2.0]), x.view(3), torch.rand(3), torch.empty(3)
    assert seen.count == 0
    with seen:
        (x + 1).exp(), x.view(3) + 1, torch.tensor([1.0, 2.0]), torch.rand(3), torch.empty(3), x.view(3), x.sum().item()
    assert seen.count == 2  # `x + 1` and the list; the view is another tensor, and nothing was made of it before
    with seen:
        x.view(3) + 1, (x + 1).exp()
    assert seen.count == 5
    x += 0
    with seen:
        x + 1, x.view(3) + 1
    assert seen.count == 7  # written to where nobody looked
    with seen:
        x.add_(0)
        x + 1, x.view(3) + 1, y + 1
    assert seen.count == 8
    view = x.view(3)
    with seen:
        view * 2, x.add_(0), view * 2
    assert seen.count == 8
