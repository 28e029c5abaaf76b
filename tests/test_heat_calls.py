"""Which calls carry heat: every `probe()` stands in a place whose heat the comment behind it says."""
from __future__ import annotations

from heat_probes import differences

LOOP = "def run(model, timesteps):\n    for t in timesteps:\n        model(t)\n"


def test_functions_of_other_modules_through_imports_and_re_exports() -> None:
    assert not differences(
        main="""
        from tools import helper
        import tools.deep as deep

        def run(model, timesteps):
            helper()
            for t in timesteps:
                model(t)
                probe()  # loop
                helper()
                deep.other()
            probe()  # request
        """,
        tools="from tools.impl import helper\n",
        tools__impl="""
        def helper():
            probe()  # call
            inner()

        def inner():
            probe()  # call

        def unused():
            probe()  # request
        """,
        tools__deep="def other():\n    probe()  # call\n",
    )


def test_methods_inherited_overridden_and_super() -> None:
    assert not differences(
        main="""
        class Base:
            def run(self, model, timesteps):
                for t in timesteps:
                    model(t)
                    self.advance()

            def advance(self):
                probe()  # call

            def idle(self):
                probe()  # request

        class Child(Base):
            def advance(self):
                super().advance()
                self.inner()

            def inner(self):
                probe()  # call

        class Mixin:
            def go(self, model, timesteps):
                for t in timesteps:
                    model(t)
                    self.sibling()

        class Sibling:
            def sibling(self):
                probe()  # call

        class Both(Mixin, Sibling):
            pass
        """
    )


def test_attributes_by_constructor_annotation_and_property() -> None:
    assert not differences(
        main="""
        from typing import Optional

        class Helper:
            def prepare(self):
                probe()  # call

            @property
            def length(self):
                probe()  # call
                return 3

        class Other:
            def tick(self):
                probe()  # call

        class Runner:
            other: "Optional[Other]"

            def __init__(self):
                self.helper = Helper()

            def run(self, model, timesteps):
                for t in timesteps:
                    model(t)
                    self.helper.prepare()
                    self.other.tick()
                    self.go()

            def go(self):
                n = self.helper
                return n.length
        """
    )


def test_locals_parameters_elements_and_returned_objects() -> None:
    assert not differences(
        main="""
        class One:
            def work(self):
                probe()  # call

        class Two:
            def work(self):
                probe()  # call

        class Three:
            def work(self):
                probe()  # call

        class Four:
            def work(self):
                probe()  # call

        class Never:
            def work(self):
                probe()  # request

        def make():
            return Three()

        def annotated() -> list[Four]:
            ...

        def run(model, timesteps, two: Two | None):
            ones = {"a": One()}
            for t in timesteps:
                model(t)
                for name, one in ones.items():
                    one.work()
                two.work()
                make().work()
                for four in annotated():
                    four.work()
        """
    )


def test_a_module_that_is_called_runs_forward_and_its_callees() -> None:
    assert not differences(
        main="""
        from torch import nn

        def helper():
            probe()  # call

        class Block(nn.Module):
            def forward(self, x):
                helper()
                probe()  # call
                return x

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.ModuleList([Block() for _ in range(3)])
                probe()  # cold

            def forward(self, x):
                for block in self.blocks:
                    x = block(x)
                    probe()  # loop
                return x

            def describe(self):
                probe()  # request
        """
    )


def test_partials_callbacks_lambdas_and_hooks() -> None:
    assert not differences(
        main="""
        import functools
        import torch
        from torch.utils.checkpoint import checkpoint

        def first():
            probe()  # call

        def second():
            probe()  # call

        def third():
            probe()  # call

        def fourth(module, args):
            probe()  # call

        def fifth():
            probe()  # call

        class Runner:
            def __init__(self, net):
                self.fast = functools.partial(first, 1)
                self.compiled = torch.compile(fifth)
                net.register_forward_hook(fourth)
                net.register_forward_pre_hook(lambda m, a: probe())  # call

            def run(self, model, timesteps):
                for t in timesteps:
                    model(t)
                    self.fast()
                    self.compiled()
                    checkpoint(second, t)
                    sorted([1], key=lambda v: third())
        """
    )


def test_decorators_put_their_wrapper_on_the_path() -> None:
    assert not differences(
        main="""
        def traced(function):
            def wrapper(*args):
                probe()  # call
                return function(*args)
            return wrapper

        @traced
        def helper():
            probe()  # call

        def run(model, timesteps):
            for t in timesteps:
                model(t)
                helper()
        """
    )


def test_nested_functions_and_function_level_imports() -> None:
    assert not differences(
        main="""
        def run(model, timesteps):
            from late import helper

            def inner():
                probe()  # call

            for t in timesteps:
                model(t)
                inner()
                helper()
        """,
        late="def helper():\n    probe()  # call\n",
    )


def test_iterating_an_object_runs_its_iterator() -> None:
    assert not differences(
        main="""
        class Feed:
            def __iter__(self):
                probe()  # call
                yield 1

        def run(model, timesteps):
            feed = Feed()
            for t in timesteps:
                model(t)
                for item in feed:
                    probe()  # loop
        """
    )


def test_unknown_receivers_fall_back_to_a_rare_method_name_only() -> None:
    assert not differences(
        main="""
        class Engine:
            def rotate_pages(self):
                probe()  # call

            def get(self):
                probe()  # request

        def run(model, timesteps, thing):
            for t in timesteps:
                model(t)
                thing.state.rotate_pages()
                thing.state.get()
                t.cuda()
        """
    )


def test_a_method_inherited_from_outside_is_not_taken_for_another_class_s() -> None:
    assert not differences(
        main="""
        from lib import Client

        class Mine(Client):
            pass

        class Other:
            def rotate_pages(self):
                probe()  # request

        def run(model, timesteps):
            mine = Mine()
            for t in timesteps:
                model(t)
                mine.rotate_pages()
        """
    )


def test_many_methods_of_one_name_are_no_evidence() -> None:
    classes = "\n".join(f"class C{i}:\n    def rotate_pages(self):\n        probe()  # request\n" for i in range(9))
    assert not differences(main=classes + LOOP + "        t.rotate_pages()\n")


def test_a_callee_named_like_a_callable_class() -> None:
    assert not differences(
        main="""
        class TokenSampler:
            def __call__(self, logits):
                probe()  # call

        class Other:
            def __call__(self, logits):
                probe()  # request

        def run(model, token_sampler, timesteps):
            for t in timesteps:
                token_sampler(model(t))
        """
    )


def test_functions_named_by_a_string() -> None:
    assert not differences(
        main="""
        def special_path():
            probe()  # call

        def run(model, timesteps, table):
            for t in timesteps:
                model(t)
                getattr(table, "special_path")()
        """
    )


def test_long_chains_of_assignments_end() -> None:
    steps = "".join(f"    x{i} = x{i + 1}.next()\n" for i in range(3000))
    assert not differences(main=f"def run(model):\n{steps}    probe()  # request\n")


def test_what_a_configuration_names_is_found_by_its_methods() -> None:
    assert not differences(
        main="""
        import hydra
        from torch import nn

        class Base:
            @classmethod
            def from_config_dict(cls, config):
                return hydra.utils.instantiate(config)

        class Model(nn.Module):
            def __init__(self, config):
                self.part = Base.from_config_dict(config).to("cuda")

            def forward(self, x):
                return self.part.update_async(x)
        """,
        parts="""
        class Part:
            def update_async(self, x):
                probe()  # call
        """,
    )


def test_properties_read_through_attributes() -> None:
    assert not differences(
        main="""
        import torch

        class Cache:
            @property
            def size(self):
                probe()  # call

            @property
            def room(self):
                probe()  # call

            @property
            def limit(self):
                probe()  # request

            def length(self):
                probe()  # call

        class Other:
            limit = 3

        class Attention(torch.nn.Module):
            def __init__(self):
                self.cache = Cache()
                self.other = Other()
                self.caches = [Cache() for _ in range(2)]

            def forward(self, x):
                return x + self.cache.size + self.other.limit + self.cache.length()

        class Layer(torch.nn.Module):
            def __init__(self):
                self.attention = Attention()

            def forward(self, x):
                return x + self.attention.caches[0].room
        """
    )


def test_a_name_that_three_share_says_nothing_though_one_does_not_take_the_arguments() -> None:
    method = "class {}:\n    def update_and_spread(self, {}):\n        probe()  # request\n"
    assert not differences(
        main__run="""
        def run(model, timesteps, allocator):
            for t in timesteps:
                model(t)
                allocator.update_and_spread(t)
        """,
        one__first=method.format("One", "t"),
        two__second=method.format("Two", "t"),
        three__third=method.format("Three", "t, mask"),
    )
