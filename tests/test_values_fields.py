"""Tensors in the fields of objects: on the device where a step's function was given the object, on the host where that is written."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

PROGRAM = """\
from dataclasses import dataclass

import ray
import torch
from torch import nn


@dataclass
class Context:
    input_ids: torch.LongTensor
    lengths: torch.Tensor | None
    lengths_cpu: torch.Tensor
    image_sizes: torch.Tensor
    count: int
    rows: list

    def longest(self):
        return torch.max(self.lengths).cpu()


class Planner:
    @classmethod
    def plan(cls, context: Context, x):
        {line}


def plan(context: Context, x):
    {line}


class Model(nn.Module):
    def read(self, context: Context, x):
        {line}

    def forward(self, x, context):
        self.read(context, x)
        plan(context, x)
        return Planner.plan(context, x)
"""
LINES = [24, 28, 33]


def lines(line: str, text: str = PROGRAM) -> list[int]:
    findings, errors = scan_text(text.replace("{line}", line), "model.py")
    assert not errors
    return [finding.span.line for finding in findings if finding.code[:3] == "HL1"]


@pytest.mark.parametrize("line", [
    "return torch.max(context.lengths).cpu().item()",
    "return x[context.input_ids[0] == 3]",
    "return context.lengths.cpu()",
    "return [int(n) for n in (context.lengths.max(),)]",
    "return x if context.lengths is None else context.lengths.sum().cpu()",
])
def test_a_tensor_of_an_object_that_is_handed_down_is_the_step_s(line: str) -> None:
    assert lines(line) == LINES


@pytest.mark.parametrize("line", [
    "return torch.max(context.lengths_cpu).cpu().item()",  # named as the host's
    "return context.image_sizes.cpu()",  # a processor's
    "return context.count + len(context.rows)",
    "context = find(x); return context.lengths.cpu()",  # nobody knows which
    "context = Context(x, x, x, x, 1, []); return context.lengths.cpu()",
    "return context.longest()",
])
def test_other_fields_are_not(line: str) -> None:
    assert lines(line) == []


def test_a_driver_s_objects_are_the_host_s() -> None:
    text = """\
from dataclasses import dataclass

import ray
import torch


@dataclass
class Rows:
    lengths: torch.Tensor


def report(rows: Rows):
    return rows.lengths.cpu()


class Trainer:
    def fit(self):
        for rows in self.loader:
            report(rows)
            {line}
            self.global_step += 1
"""
    assert lines("ray.get(self.worker.train.remote(rows))", text) == []
    assert lines("self.model(rows).loss.backward()", text) == [13]


ENTRIES = """\
import torch
from torch import nn


def gather(tensor: torch.Tensor, data, other):
    {line}  # line 6


def collate(data):
    {line}


class Processor:
    def __call__(self, attn, hidden_states: torch.Tensor, cache: dict):
        {line}  # line 15


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.processor = Processor()

    def forward(self, x, cache):
        collate(cache)
        gather(x, cache, cache)
        return self.processor(self, x, cache)
"""


@pytest.mark.parametrize("line", [
    'return data["attention_mask"].sum(-1).tolist()',
    'return tensor[data["loss_mask"] == 1]',
    'return data["labels"].max().cpu()',
    'return data["input_ids"][0, -1].cpu()',
])
def test_an_entry_of_a_batch_is_the_step_s_by_its_name(line: str) -> None:
    assert 6 in lines(line, ENTRIES)


@pytest.mark.parametrize("line", [
    'return int(cache["end"].item())',
    'return int(cache["end"].item()) if isinstance(cache["end"], torch.Tensor) else int(cache["end"])',
    "return hidden_states[:, : cache['length_so_far'].item()]",
])
def test_a_number_that_a_given_dictionary_holds_is_read_from_the_device(line: str) -> None:
    assert lines(line, ENTRIES) == [15]


@pytest.mark.parametrize("line", [
    'return data["names"].tolist()',  # by its name anything
    'return data["prompts"].cpu()',
    'return data["attention_mask_cpu"].sum(-1).tolist()',
    'data = load(other); return data["labels"].tolist()',
    'return int(other[0]["labels"].item())',  # not the dictionary that was given
    'return data["labels"]',
])
def test_other_entries_are_not(line: str) -> None:
    assert 6 not in lines(line, ENTRIES)


def test_a_function_that_is_given_no_tensors_may_run_anywhere() -> None:
    assert 10 not in lines('return data["attention_mask"].tolist()', ENTRIES)


GRIDS = """\
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.merge = config.merge

    def sizes(self, grid):
        for t, h, w in grid:
            yield (t * (h // self.merge) * w).item(){more}

    def forward(self, pixels, grid):
        return pixels, list(self.sizes({given}))
"""


@pytest.mark.parametrize("more", ["", " + (w // self.merge * t).sum().tolist()"])
def test_what_a_host_tensor_and_a_setting_come_to_may_meet_the_host_s_again(more: str) -> None:
    """`h // self.merge` is a tensor whose place nobody states; with host tensors it stays as unsure as it was."""
    assert lines("", GRIDS.format(more=more, given="grid.cpu()")) == []
    assert lines("", GRIDS.format(more=more, given="grid.cuda()"))
