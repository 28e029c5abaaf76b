"""The rhythm of the work: what a generation of results does once is a request's; its rows, and what accumulation ends, stay hot."""
from __future__ import annotations

import textwrap

import pytest

from hostlint.facts.lower import lower_file
from hostlint.heat import HeatMap, compute_heat
from hostlint.index import ProjectIndex


def mapped(source: str) -> tuple[ProjectIndex, HeatMap]:
    index = ProjectIndex([lower_file(textwrap.dedent(source), "main.py", "main").outline])
    return index, compute_heat(index)


def heats(source: str) -> dict[str, str]:
    """The heat of each call whose name begins with `at_`."""
    index, heat = mapped(source)
    calls = ((function, call) for function in index.files[0].functions for call in function.calls)
    return {call.chain: heat.site((0, f.index), call.region).level.label for f, call in calls if call.chain.startswith("at_")}


STEP = """
class Learner:
    def training_step(self, model, batch, step):
        if {test}:
            at_guard()
            self.kept = self.collect(model, batch)
        at_step()

    def collect(self, model, batch):
        rows = model.generate(batch)
        at_body()
        for row in rows:
            at_row()
            self.score(row)
        for reward in self.rewards:
            at_setup()
        self.finish(rows)
        return rows

    def score(self, row):
        at_scored()

    def finish(self, rows):
        at_finish()
        return [at_listed(row) for row in rows]
"""


@pytest.mark.parametrize("test", [
    "step % self.generate_every == 0", "step % (self.steps_per_generation * 2) == 0 or self.kept is None",
    "not step % args.rollout_interval",
    "self.kept is None or step % num_iterations == 0",
])  # fmt: skip
def test_a_generation_is_a_request_and_its_rows_are_hot(test: str) -> None:
    assert heats(STEP.format(test=test)) == {
        "at_guard": "request", "at_step": "call", "at_body": "request", "at_row": "loop", "at_scored": "call", "at_setup": "request",
        "at_finish": "request", "at_listed": "loop",
    }  # fmt: skip


@pytest.mark.parametrize("test", [
    "step % self.gradient_accumulation_steps == 0", "(step + 1) % accumulate == 0", "step % steps_per_update == 0",
    "step % micro_batches == 0",
    "step % 4 == 0",
])  # fmt: skip
def test_what_accumulation_ends_is_a_step(test: str) -> None:
    assert heats(STEP.format(test=test)) == {
        "at_guard": "call", "at_step": "call", "at_body": "call", "at_row": "loop", "at_scored": "call", "at_setup": "loop",
        "at_finish": "call", "at_listed": "loop",
    }  # fmt: skip


@pytest.mark.parametrize("test", ["step % 100 == 0", "step % self.steps_per_epoch == 0", "step % steps_per_print == 0 or step == last"])
def test_what_observes_is_cool_rows_and_all(test: str) -> None:
    assert set(heats(STEP.format(test=test)).items()) - {("at_step", "call")} == {
        (name, "request") for name in ("at_guard", "at_body", "at_row", "at_scored", "at_setup", "at_finish", "at_listed")
    }


def test_tokens_of_a_generation_are_steps() -> None:
    assert heats("""
    class Learner:
        def training_step(self, model, batch, step):
            if step % self.generate_every == 0:
                self.kept = self.collect(model, batch)

        def collect(self, model, tokens):
            at_body()
            for token in range(self.max_new_tokens):
                tokens = model(tokens)
                at_token()
            return tokens
    """) == {"at_body": "request", "at_token": "loop"}


def test_what_steps_call_as_well_is_as_hot_as_there() -> None:
    assert heats("""
    class Learner:
        def training_step(self, model, batch, step):
            if step % self.generate_every == 0:
                self.kept = self.collect(batch)
            self.shared(batch)

        def collect(self, batch):
            at_body()
            return self.shared(batch)

        def shared(self, batch):
            at_shared()
    """) == {"at_body": "request", "at_shared": "call"}


def test_a_row_of_a_generation_names_its_loop() -> None:
    index, heat = mapped(STEP.format(test="step % generate_every == 0"))
    (score,) = (function for function in index.files[0].functions if function.name == "score")
    chain = heat.function((0, score.index)).chain
    assert [(link.function, link.line) for link in chain] == [("Learner.collect", 12), ("Learner.collect", 14)]
