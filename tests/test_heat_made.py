"""Objects that a step makes anew run their constructors there; what is set up once does not."""
from __future__ import annotations

import pytest
from heat_probes import differences

PROGRAM = """
import torch
from dataclasses import dataclass

{klass}

class Kept:
    def __init__(self):
        probe()  # cold

{before}

def train(model, optimizer, loader, given=None, verbose=False):
    kept = Kept()
    for batch in loader:
        loss = model(batch)
        {made}
        optimizer.step()
"""
METRIC = """
class Metric:
    def __init__(self, value):
        probe()  # {heat}
        note(value)

def note(value):
    probe()  # {heat}
"""
BASE = "class Base:\n    def __init__(self, value):\n        probe()  # call\n\n"


def program(made: str, heat: str = "call", klass: str = METRIC, before: str = "") -> str:
    return PROGRAM.format(klass=klass.replace("{heat}", heat), made=made, before=before)


@pytest.mark.parametrize(
    ("made", "before"),
    [
        ("metric = Metric(value=loss)", ""),
        ("metrics = [Metric(part) for part in loss]", ""),
        ("note_down(loss)", "def note_down(loss):\n    return Metric(loss)\n"),
        ("metric = Metric(loss) if batch.labels else loss", ""),
    ],
)
def test_an_object_that_every_step_makes(made: str, before: str) -> None:
    assert not differences(program(made, before=before))


@pytest.mark.parametrize(
    "klass",
    [
        BASE + "class Metric(Base):\n    def __init__(self, value):\n        super().__init__(value)\n        probe()  # call\n",
        "@dataclass\nclass Metric:\n    value: float\n\n    def __post_init__(self):\n        probe()  # call\n",
        BASE + "class Metric(Base):\n    pass\n",
    ],
)
def test_constructors_that_are_inherited_or_written_for_it(klass: str) -> None:
    assert not differences(program("metric = Metric(loss)", klass=klass))


@pytest.mark.parametrize(
    "made",
    [
        "if given is None:\n            given = Metric(loss)",
        "if not hasattr(model, 'metric'):\n            model.metric = Metric(loss)",
        "if step % 100 == 0:\n            metric = Metric(loss)",
        "metric = Metric(loss) if verbose else None",
    ],
)
def test_an_object_that_is_made_once_or_seldom(made: str) -> None:
    assert not differences(program(made, "cold"))


@pytest.mark.parametrize("name", ["Engine", "SpanModel", "SchedulerConfig", "KVCache", "MyPipeline"])
def test_what_is_set_up_by_its_name(name: str) -> None:
    source = program(f"made = {name}(loss)", "cold", METRIC.replace("Metric", name))
    assert not differences(source)


def test_modules_and_what_a_user_says() -> None:
    module = METRIC.replace("class Metric:", "class Metric(torch.nn.Module):")
    assert not differences(program("made = Metric(loss)", "cold", module))
    said = METRIC.replace("def __init__(self, value):", "def __init__(self, value):  # hostlint: cold it is small")
    assert not differences(program("made = Metric(loss)", "cold", said))
    assert not differences(program("made = Metric(loss)", "cold"), cold=("main:Metric.*",))


def test_what_a_builder_makes_is_not_known() -> None:
    builder = "def build_op(kind):\n    return Metric(kind)\n"
    assert not differences(program("op = build_op(loss)", "cold", before=builder))


def test_what_an_object_keeps_of_what_it_makes_is_set_up() -> None:
    """`change_decoding` is called beside the steps, and what it makes is kept from then on."""
    keeper = "class Keeper:\n    def change(self, loss):\n        self.metric = Metric(loss)\n\nkeeper = Keeper()\n"
    assert not differences(program("keeper.change(loss)", "cold", before=keeper))
    assert not differences(program("keeper.change(loss)", "call", before=keeper.replace("self.metric = ", "metric = ")))
