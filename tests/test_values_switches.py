"""Branches behind switches that are off by default: an argument that nobody sets, an attribute that no construction sets."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text


def lines(text: str, code: str) -> list[int]:
    findings, errors = scan_text(text, "model.py")
    assert not errors
    return [finding.span.line for finding in findings if finding.code == code]


ARGUMENT = """\
import torch


def generate(model, x: torch.Tensor, steps: int, {name}: bool = False, **options):
    for step in range(steps):
        x = model(x)
        if {name}:
            assert (x != 0).all()
    return x


def serve(model, x: torch.Tensor, options):
    for batch in options.batches:
        generate(model, x, 5{given})
"""


@pytest.mark.parametrize("name", ["check", "sanity_check", "verify_tokens", "debug_shapes", "check_mask", "verbose"])
@pytest.mark.parametrize("given", ["", ", **options", ", {name}=False"])
def test_a_switch_of_checks_is_off_unless_a_call_sets_it(name: str, given: str) -> None:
    text = ARGUMENT.replace("{given}", given).replace("{name}", name)
    assert lines(text, "HL103") == []


def test_checks_that_a_call_asks_for_run() -> None:
    text = ARGUMENT.replace("def serve", "def step_all").replace("options.batches:", "options.batches:\n        model(batch)")
    assert lines(text.replace("{given}", ", check=True").replace("{name}", "check"), "HL103") == [8]
    assert lines(text.replace("{given}", "").replace("{name}", "check"), "HL103") == []


@pytest.mark.parametrize("name", ["greedy", "checkpointing", "use_cache", "checkered", "fast"])
def test_other_options_may_be_set_by_anyone(name: str) -> None:
    text = ARGUMENT.partition("def serve")[0].replace("{name}", name)
    assert lines(text, "HL103") == [8]


ATTRIBUTE = """\
import torch
from torch import nn


class Joint(nn.Module):
    def __init__(self, {name}: bool = False):
        super().__init__()
        self.{name} = {name}

    def forward(self, x):
        if {test}:
            torch.cuda.empty_cache()
        return x
"""
NET = """

class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.joint = Joint({given})

    def forward(self, x):
        return self.joint(x)
"""


@pytest.mark.parametrize("name", ["preserve_memory", "low_memory", "save_memory", "memory_saver", "low_vram", "debug"])
def test_a_mode_that_saves_memory_is_asked_for(name: str) -> None:
    assert lines(ATTRIBUTE.replace("{test}", "self.{name}").replace("{name}", name), "HL401") == []


@pytest.mark.parametrize("name", ["memory", "memory_bank", "tidy", "keep_memory_states"])
def test_other_attributes_that_anyone_may_set(name: str) -> None:
    assert lines(ATTRIBUTE.replace("{test}", "self.{name}").replace("{name}", name), "HL401") == [12]


@pytest.mark.parametrize("test", ["self.tidy", "self.tidy and x.is_cuda", "x.shape[0] > 1 and self.tidy"])
@pytest.mark.parametrize(("given", "found"), [
    ("", []), ("False", []), ("tidy=False", []), ("True", [12]), ("config.tidy", [12]), ("**config", [12]),
])  # fmt: skip
def test_an_attribute_is_off_where_no_construction_sets_it(test: str, given: str, found: list[int]) -> None:
    text = ATTRIBUTE.replace("{test}", test).replace("{name}", "tidy") + NET.replace("{given}", given)
    assert lines(text, "HL401") == found


@pytest.mark.parametrize("change", [
    ("tidy: bool = False", "tidy: bool = True"), ("self.tidy = tidy\n", "self.tidy = tidy or True\n"), ("if self.tidy", "if not self.tidy"),
    ("    def __init__", "    @register_to_config\n    def __init__"),
    ("    def forward(self, x):\n        if", "    def enable(self):\n        self.tidy = True\n\n    def forward(self, x):\n        if"),
])  # fmt: skip
def test_an_attribute_that_is_set_in_another_way_is_no_switch_that_is_off(change: tuple[str, str]) -> None:
    text = ATTRIBUTE.replace("{test}", "self.tidy").replace("{name}", "tidy") + NET.replace("{given}", "")
    assert change[0] in text
    assert len(lines(text.replace(*change, 1), "HL401")) == 1
