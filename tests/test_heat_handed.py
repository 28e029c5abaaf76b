"""A function that is handed to another runs where that one, or whoever it is handed on to, calls it."""
from __future__ import annotations

import pytest
from heat_probes import differences

ENGINE = """
from functools import partial

class Engine:
    def step_all(self, data, loss_function):
        for batch in data.chunk(4):
            loss = loss_function(self.module(batch))
            loss.backward()

def objective(x):
    probe()  # call
    return x

def unused(x):
    probe()  # request
    return x

class Worker:
    def __init__(self):
        self.engine = Engine()
        {kept}

    def update(self, loader):
        for batch in loader:
            self.engine.step_all(batch, {given})
"""


@pytest.mark.parametrize(
    ("kept", "given"),
    [
        ("self.loss_fn = objective", "self.loss_fn"),
        ("self.loss_fn = partial(objective)", "self.loss_fn"),
        ("self.loss_fn = objective", "loss_function=self.loss_fn"),
        ("self.loss_fn = objective", "lambda x: self.loss_fn(x)"),
        ("self.loss_fn = objective if self.engine else None", "partial(self.loss_fn, scale=2)"),
    ],
)
def test_a_function_kept_in_an_attribute_and_handed_to_a_method(kept: str, given: str) -> None:
    assert not differences(ENGINE.format(kept=kept, given=given))


def test_a_function_that_an_object_is_made_with() -> None:
    assert not differences(
        """
        def objective(x):
            probe()  # call
            return x

        def at_the_end(x):
            probe()  # request

        class Trainer:
            def __init__(self, fn, end=None):
                self.fn = fn
                self.end = end

            def run(self, model, optimizer, loader):
                for batch in loader:
                    loss = self.fn(model(batch))
                    loss.backward()
                    optimizer.step()
                self.end(loss)

        def main(model, optimizer, loader):
            Trainer(objective, end=at_the_end).run(model, optimizer, loader)
        """
    )


def test_a_function_that_is_set_later_and_handed_on_by_name() -> None:
    assert not differences(
        """
        class Engine:
            def train(self, data, loss_function):
                return self.forward_backward(data, loss_function=loss_function)

            def forward_backward(self, data, loss_function, only=False):
                for batch in data.chunk(4):
                    self.one(batch, loss_function)

            def one(self, batch, f):
                loss = f(self.module(batch))
                loss.backward()

        class Worker:
            def __init__(self):
                self.engine = Engine()
                self.loss_fn = None

            def set_loss(self, fn):
                self.loss_fn = fn

            def update(self, loader):
                for batch in loader:
                    self.engine.train(batch, self.loss_fn)

        class Main:
            def __init__(self, kind):
                self.worker = Worker()
                self.kind = kind
                self.worker.set_loss(objective)

        def objective(x):
            probe()  # call
            return x
        """
    )


def test_a_tool_for_any_function_says_nothing_of_them() -> None:
    """What runs every function of a project is as hot as its hottest, and they are not."""
    functions = "\n".join(f"def f{number}():\n    probe()  # request\n" for number in range(8))
    calls = "\n".join(f"    timed(f{number})" for number in range(8))
    assert not differences(
        f"""
def timed(fn):
    return fn()

{functions}

def hot():
    probe()  # call

def setup():
{calls}

def train(model, optimizer, loader):
    for batch in loader:
        model(batch)
        optimizer.step()
        timed(hot)
"""
    )


def test_what_is_handed_to_a_loop_that_takes_no_steps_stays_as_it_is() -> None:
    assert not differences(
        """
        class Reader:
            def each(self, files, check):
                for file in files:
                    check(file)

        def check(file):
            probe()  # request

        class Loader:
            def __init__(self):
                self.reader = Reader()
                self.fn = check

            def load_all(self, files):
                self.reader.each(files, self.fn)
        """
    )
