"""Where a corrected model behaves differently when things go wrong, as its row says: later, or with numbers that are none."""
from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.usefixtures("validated_distributions")
ROOT = Path(__file__).resolve().parent.parent.parent
LINALG_ERROR: type[Exception] = torch.linalg.LinAlgError  # type: ignore[attr-defined]  # torch's stubs leave it out
Module = Any  # a model's file: each has names of its own


def pair(name: str) -> tuple[Module, Module]:
    """The faulty and the corrected model."""
    spec = spec_from_file_location(f"failing_{name}", ROOT / "tests" / "faulty_models" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, import_module(f"hostlint.fixed_models.{name}")


def solved(module: Module, solver: Any, steps: int) -> torch.Tensor:
    """A few steps of a solver in whose schedule two steps lie at one place."""
    solver.lambdas[2] = solver.lambdas[1]
    sample = torch.ones(1, 3, 4)
    for index in range(steps):
        sample = solver.step(torch.full_like(sample, float(index)), index, sample)
    return sample


@pytest.mark.parametrize("name", ["helios_unipc", "flow_unipc"])
def test_a_singular_system_raised_and_now_gives_no_numbers(name: str) -> None:
    faulty, corrected = pair(name)

    def solver(module: Module) -> Any:
        cpu = torch.device("cpu")
        return module.UniPC(6, 3, cpu) if name == "helios_unipc" else module.FlowUniPC(module.Config(steps=6, order=3), cpu)

    with pytest.raises(LINALG_ERROR, match="singular"):
        solved(faulty, solver(faulty), 4)
    assert not solved(corrected, solver(corrected), 4).isfinite().all()


def test_a_matrix_that_is_not_positive_definite_raised_and_now_gives_a_half_done_factor() -> None:
    faulty, corrected = pair("h3_vdn")
    keys = torch.randn(1, 2, 50, 4, generator=torch.Generator().manual_seed(0))
    for ridge, is_white in ((1e-3, True), (-10.0, False)):
        whitened = corrected.Whitening(corrected.Config(width=8, heads=2, ridge=ridge, device="cpu"))(keys)
        covariance = whitened.transpose(2, 3) @ whitened / keys.shape[2]
        assert torch.allclose(covariance, torch.eye(4).expand_as(covariance), atol=1e-2) is is_white
    with pytest.raises(LINALG_ERROR, match="positive-definite"):
        faulty.Whitening(faulty.Config(width=8, heads=2, ridge=-10.0, device="cpu"))(keys)


def test_latents_that_are_no_numbers_fail_with_the_same_message_after_the_last_step() -> None:
    counts = []
    for module in pair("wan_dmd"):
        torch.manual_seed(0)
        config = module.Config(steps=3, device="cpu")
        stage, calls = module.Stage(config), list[int]()
        stage.early.register_forward_pre_hook(lambda *_, calls=calls: calls.append(1))
        with pytest.raises(AssertionError, match="the latents hold NaN"):
            stage(torch.full((1, 5, config.channels), float("nan")), torch.zeros(1, 3, config.text_width))
        counts.append(len(calls))
    assert counts == [0, 3]


def test_a_loss_that_is_no_number_fails_with_the_same_message_at_the_end_of_the_epoch() -> None:
    batches = [(torch.zeros(2, 5, dtype=torch.long), torch.zeros(2, dtype=torch.long))] * 4
    counts = []
    for module in pair("supervised_training"):
        config = module.Config(device="cpu")
        model, calls = module.Classifier(config), list[int]()
        torch.nn.init.constant_(model.head.bias, float("nan"))
        model.register_forward_pre_hook(lambda *_, calls=calls: calls.append(1))
        with pytest.raises(FloatingPointError, match="the loss is NaN"):
            module.train(model, config, batches, lambda step, loss: None)
        counts.append(len(calls))
    assert counts == [1, 4]


