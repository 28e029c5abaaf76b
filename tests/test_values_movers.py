"""Objects and batches that are moved: their own `to(device)` counts where somebody calls it, helpers that write back count in place."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

OBJECTS = """\
import torch
from torch import nn


class Batch:
    def __init__(self, batch):
        self.batch = batch
        self.made = torch.zeros(3, device="cuda")

    def {mover}(self, device):
        self.batch = self.batch.to(device)
        self.made = self.made.to(device)
        return self


def penalty(data: Batch):
    return data.batch["scores"].sum(-1).max().item()  # line 17


def made(data: Batch):
    return data.made.max().item()  # line 21


class Trainer:
    def fit(self):
        for rows in self.train_dataloader:
            loss = self.model(rows)
            loss.backward()
            self.optimizer.step()
            data = Batch(rows)
            {line}
            penalty(data)
            made(data)
"""

HELPERS = """\
import torch
from elsewhere import send_to_device
from torch import nn


def move_all(batch, device):
    for key, value in batch.items():
        if isinstance(value, torch.Tensor):
            batch[key] = value.to(device)


def deep_to(batch, device):
    for key in batch:
        if isinstance(batch[key], dict):
            deep_to(batch[key], device)
        else:
            batch[key] = batch[key].to(device, non_blocking=True)


def prepare_names(batch, device):
    for key, value in batch.items():
        batch[key] = str(value)


class Trainer:
    def _to_gpu(self, batch):
        batch["labels"] = batch["labels"].cuda()

    def fit(self):
        for batch in self.train_dataloader:
            {line}
            loss = self.model(batch)
            loss.backward()
            self.optimizer.step()
            n = (batch["labels"] != -100).sum()
            if n > 5:  # line 36
                self.count += 1
"""


def lines(text: str) -> list[int]:
    findings, errors = scan_text(text, "train.py")
    assert not errors
    return [finding.span.line for finding in findings if finding.code in {"HL101", "HL103"}]


@pytest.mark.parametrize("line", [
    'data = data.to("cuda")',
    "data = data.to(self.device)",
    'data.to("cuda")',  # a mover that stores into its own object
    'data = Batch(rows).to("cuda")',
])
def test_what_an_object_holds_is_on_the_device_where_it_was_moved(line: str) -> None:
    assert lines(OBJECTS.format(mover="to", line=line)) == [17, 21]


@pytest.mark.parametrize("mover", ["to_device", "move_to"])
def test_movers_have_many_names(mover: str) -> None:
    assert lines(OBJECTS.format(mover=mover, line=f'data = data.{mover}("cuda")')) == [17, 21]
    assert lines(OBJECTS.format(mover=mover, line="pass")) == [21]


@pytest.mark.parametrize("line", ["pass", 'data = data.to("cpu")', "other = data"])
def test_a_mover_that_nobody_calls_says_nothing(line: str) -> None:
    """Only what `__init__` itself makes on the device is found."""
    assert lines(OBJECTS.format(mover="to", line=line)) == [21]


COPIED = """\
import torch


class Result:
    def __init__(self, ids: torch.Tensor):
        self.ids = ids

    def copy_to_cpu(self):
        self.ids = self.ids.to("cpu", non_blocking=True)


class Scheduler:
    def run(self, result: Result):
        while True:
            ids = self.model(self.batch)
            result = Result(ids)
            {line}
            result.ids.tolist()  # line 18
"""


def test_what_copies_to_the_host_always_counts() -> None:
    """Whether it was called before the read or not: the object may come from anywhere."""
    findings, _ = scan_text(COPIED.format(line="result.copy_to_cpu()"), "run.py")
    assert not [finding for finding in findings if finding.code == "HL105"]


def test_what_another_method_stores_still_counts() -> None:
    assert lines(OBJECTS.format(mover="upload_rows", line="pass")) == [17, 21]


@pytest.mark.parametrize("line", [
    "move_all(batch, self.device)",
    "deep_to(batch, self.device)",
    "self._to_gpu(batch)",
    "send_to_device(batch, self.device)",  # of a library, by its name
    "batch.to(self.device)",  # an encoding, which moves itself
])
def test_a_helper_moves_a_batch_in_place(line: str) -> None:
    assert lines(HELPERS.format(line=line)) == [36]


@pytest.mark.parametrize("line", [
    "prepare_names(batch, self.device)",
    "self.prepare(batch)",
    "self.model.to(self.device)",
    "rows = dict(batch)",
])
def test_other_statements_leave_a_batch_where_it_is(line: str) -> None:
    assert lines(HELPERS.format(line=line)) == []


def test_a_text_key_is_a_dictionary_s() -> None:
    line = 'move_all(batch, self.device); batch["position"] = torch.zeros(3)[None, 0]'
    findings, _ = scan_text(HELPERS.format(line=line), "train.py")
    assert not [finding for finding in findings if finding.code == "HL203"]


BUILT = """\
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Meta:
    done: torch.Tensor
    lengths: torch.Tensor
    extra: torch.Tensor | None = None

    @classmethod
    def make(cls, values: torch.Tensor, count: int):
        return cls(**dict(zip(("done", "lengths"), values.unbind(1))))

    @property
    def all_done(self):
        return self.done.all().item()  # line 19

    def first(self):
        assert self.extra is not None
        return self.extra.max().item()  # line 23


class Model(nn.Module):
    def forward(self, x):
        meta = Meta.make({given}, 3)
        return meta.all_done, meta.first()
"""


@pytest.mark.parametrize("given", ["gather(x).wait().cpu()", "torch.zeros(4, 2)", 'x.to("cpu")'])
def test_what_a_builder_is_given_decides_where_the_fields_lie(given: str) -> None:
    assert lines(BUILT.format(given=given)) == []


@pytest.mark.parametrize("given", ["x", "gather(x)", 'torch.zeros(4, 2, device="cuda")'])
def test_fields_of_what_is_not_seen_on_the_host_are_the_step_s(given: str) -> None:
    assert lines(BUILT.format(given=given)) == [19, 23]
