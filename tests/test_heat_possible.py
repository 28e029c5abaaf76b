"""Of several functions that a call may run, those that do not take its arguments, or never meet the caller on an object, are left out."""
from __future__ import annotations

import pytest
from heat_probes import differences

BUILDERS = """
class Builder:
    def build(self, **kwargs):
        raise NotImplementedError


class Sliding(Builder):
    def build(self, step, shape, **kwargs):
        probe()  # call


class Cube(Builder):
    def build(self, {params}):
        probe()  # {heat}


def run(model, timesteps, builder: Builder):
    for t in timesteps:
        model(t)
        builder.build({given})
"""


@pytest.mark.parametrize(("params", "given", "heat"), [
    ("*, packed, ratio=0.5, **kwargs", "step=t, shape=(1, 2)", "request"),
    ("step, shape, cache, **kwargs", "step=t, shape=(1, 2)", "request"),
    ("step, shape, cache", "t, (1, 2)", "request"),
    ("step", "t, (1, 2)", "request"),
    ("step, other=None", "step=t, shape=(1, 2)", "request"),
    ("shape, step", "t, shape=(1, 2)", "request"),  # given twice
    ("step, shape, cache=None, **kwargs", "step=t, shape=(1, 2)", "call"),
    ("*rest", "t, (1, 2)", "call"),
    ("step, *, shape", "t, shape=(1, 2)", "call"),
    ("*, packed, ratio", "**{'shape': t}", "call"),  # what stars hide may be anything
    ("*, packed, ratio", "*t", "call"),
])  # fmt: skip
def test_a_method_runs_only_where_it_takes_the_arguments(params: str, given: str, heat: str) -> None:
    assert not differences(BUILDERS.format(params=params, given=given, heat=heat))


@pytest.mark.parametrize(("decorator", "heat"), [
    ("@unpacked", "call"), ("@functools.wraps(other)", "call"), ("@torch.no_grad()", "request"), ("@override", "request"),
])  # fmt: skip
def test_a_decorator_may_change_what_a_method_takes(decorator: str, heat: str) -> None:
    text = BUILDERS.format(params="packed, other", given="step=t, shape=(1, 2)", heat=heat)
    assert not differences(text.replace("    def build(self, packed", f"    {decorator}\n    def build(self, packed"))


def test_a_method_that_only_a_name_speaks_for_takes_the_arguments_as_well() -> None:
    assert not differences("""
    class Packer:
        def pack_rows(self, rows, lengths):
            probe()  # request

    class Unpacker:
        def unpack_rows(self, rows, lengths=None):
            probe()  # call

    def run(model, timesteps, packer, unpacker):
        for t in timesteps:
            model(t)
            packer.pack_rows(t)
            unpacker.unpack_rows(t)
    """)


def test_a_call_that_fits_none_of_its_targets_may_still_run_each() -> None:
    assert not differences("""
    class A:
        def work(self, x):
            probe()  # call

    class B(A):
        def work(self, x):
            probe()  # call

    def run(model, timesteps, a: A):
        for t in timesteps:
            model(t)
            a.work(t, 1, 2)
    """)


TRAINERS = """
class Trainer:
    def train(self, model, loader):
        for batch in loader:
            self.train_step(model, batch)

    def train_step(self, model, batch):
        self.forward_backward(model, batch)

    def forward_backward(self, model, batch):
        model(batch)
        probe()  # call


class Flow(Trainer):
    def train_step(self, model, batch):
        {own}

    def forward_backward(self, model, batch):
        probe()  # {heat}
"""


@pytest.mark.parametrize(("own", "heat"), [
    ("model(batch)", "request"),
    ("self.train_step_of(model, batch)", "request"),
    ("super().train_step(model, batch)", "call"),
    ("Trainer.train_step(self, model, batch)", "call"),
    ("self.forward_backward(model, batch)", "call"),
])  # fmt: skip
def test_what_overrides_the_caller_does_not_run_from_it(own: str, heat: str) -> None:
    assert not differences(TRAINERS.format(own=own, heat=heat))


def test_what_an_attribute_holds_runs_whoever_overrides_the_caller() -> None:
    assert not differences("""
    def held(batch):
        probe()  # call

    class Trainer:
        def train(self, model, loader):
            for batch in loader:
                model(batch)
                self.train_step(batch)

        def train_step(self, batch):
            self.work(batch)

        def work(self, batch):
            probe()  # call

    class Flow(Trainer):
        def __init__(self):
            self.work = held

        def train_step(self, batch):
            pass

        def work(self, batch):
            probe()  # request
    """)


def test_an_arm_for_another_machine_is_not_what_a_name_stands_for() -> None:
    assert not differences("""
    def copy_host(x):
        probe()  # request

    def copy_device(x):
        probe()  # call

    def copy_npu(x):
        probe()  # request

    def copy_either(x):
        probe()  # call

    copy = copy_host if _is_cpu else copy_device
    other = copy_device if not is_npu() else copy_npu
    third = copy_either if fast else copy_device

    def run(model, timesteps):
        for t in timesteps:
            model(t)
            copy(t)
            other(t)
            third(t)
    """)


CONFIGURABLE = """
class Configurable:
    class Config:
        _owner = None

        def build(self, **kwargs):
            {made}

    def __init_subclass__(cls, **kwargs):
        cls.Config._owner = cls


class Module(Configurable):
    class Config(Configurable.Config):
        scale: float = 1.0

        def build(self, **kwargs):
            module = {base}
            module.scale = self.scale
            return module


class Encoder(Module):
    class Config(Module.Config):
        depth: int = 1

    def encode(self, x):
        probe()  # {heat}


class Wide(Encoder):
    def encode(self, x):
        probe()  # {heat}


class Schedule(Configurable):
    class Config(Configurable.Config):
        def build(self, *, steps):
            return Schedule()

    def encode(self, x):
        probe()  # request


class Model:
    class Config(Module.Config):
        encoder: Encoder.Config | None = None

    def __init__(self, config: Config):
        self.encoder = config.encoder.build() if config.encoder is not None else None


def run(model: Model, timesteps):
    for t in timesteps:
        forward(t)
        model.encoder.encode(t)
"""


@pytest.mark.parametrize(("made", "base", "heat"), [
    ("return self._owner(config=self)", "Configurable.Config.build(self, **kwargs)", "call"),
    ("return self._owner(config=self)", "super().build(**kwargs)", "call"),
    ("made = self._owner(config=self)\n            return made", "super().build(**kwargs)", "call"),
])  # fmt: skip
def test_a_nested_configuration_makes_the_class_around_it(made: str, base: str, heat: str) -> None:
    assert not differences(CONFIGURABLE.format(made=made, base=base, heat=heat))


def test_resolutions_are_passes_of_a_request() -> None:
    assert not differences("""
    def run(model, resolutions, latents):
        for size in resolutions[1:]:
            model(latents)
            probe()  # request
    """)
