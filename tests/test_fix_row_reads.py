"""Reads of what the rows of a batch come to: all rows at once before the loop, and what keeps a read where it is."""
from __future__ import annotations

import pytest

from hostlint.fix.once import fix_text
from hostlint.model import Applicability

HEAD = """\
import torch


def fit(model, batches, pad: int, names):
    for batch in batches:
        x, mask = batch.cuda(), (batch > 0).cuda()
"""
TAIL = """\
        model.step(x)
"""
READS = frozenset({"HL101", "HL102", "HL103"})


def program(body: str) -> str:
    return HEAD + "".join(f"        {line}\n" if line else "\n" for line in body.splitlines()) + TAIL


def fixed(body: str) -> tuple[str, set[Applicability]]:
    """The body after all fixes of reads, and of which kind they were."""
    result = fix_text(program(body), "fit.py", READS, review=True)
    text = result.files[0].text if result.files else program(body)
    kinds = {one.fix.applicability for one in result.mended if one.fix is not None}
    lines = text.removeprefix(HEAD).removesuffix(TAIL).splitlines()
    return "\n".join(line.removeprefix("        ") for line in lines), kinds


SUMS = "mask.flatten(1).sum(1).tolist()"
LOOPS = [
    ("for i in range(len(x)):\n    model(x[i], mask[i].sum().item())",
     f"mask_sums = {SUMS}\nfor i in range(len(x)):\n    model(x[i], mask_sums[i])"),
    ("for i in range(len(x)):\n    model(x[i], int(mask[i : i + 1].sum()))",
     f"mask_sums = {SUMS}\nfor i in range(len(x)):\n    model(x[i], int(mask_sums[i]))"),
    ("for i in range(len(x)):\n    model(x[i], mask[i, :].sum(dim=-1).item(), int(mask[i].sum(0)))",
     f"mask_sums = {SUMS}\nfor i in range(len(x)):\n    model(x[i], mask_sums[i], int(mask_sums[i]))"),
    ("for i in range(len(x)):\n    model(x[i], mask[i, :].sum(-1).item())",
     f"mask_sums = {SUMS}\nfor i in range(len(x)):\n    model(x[i], mask_sums[i])"),
    ("for i in range(len(x)):\n    row = mask[i]  #\n    n = row.count_nonzero()\n    model(n.item())",
     "mask_counts = mask.flatten(1).count_nonzero(1).tolist()\nfor i in range(len(x)):\n    row = mask[i]  #\n    model(mask_counts[i])"),
    ("for i in range(len(x)):\n    row = mask[i]\n    n = row.count_nonzero()\n    model(x[i], n.item())",
     "mask_counts = mask.flatten(1).count_nonzero(1).tolist()\nfor i in range(len(x)):\n    model(x[i], mask_counts[i])"),
    ("for i in range(len(x)):\n    row = mask[i]\n    model(x[i], row, int(torch.sum(row)))",
     f"mask_sums = {SUMS}\nfor i in range(len(x)):\n    row = mask[i]\n    model(x[i], row, int(mask_sums[i]))"),
    ("for one, row in zip(x, mask):\n    model(one, row.sum().item())",
     f"for one, row, row_sum in zip(x, mask, {SUMS}):\n    model(one, row_sum)"),
    ("for i, row in enumerate(x):\n    model(i, (row != pad).sum().item())",
     "x_sums = (x != pad).flatten(1).sum(1).tolist()\nfor i, row in enumerate(x):\n    model(i, x_sums[i])"),
    ("for row in x:\n    model(row.ne(pad).long().sum().item())",
     "for row, row_sum in zip(x, x.ne(pad).long().flatten(1).sum(1).tolist()):\n    model(row_sum)"),
    ("for row in mask:\n    model(float((~row).sum()))",
     "for row, row_sum in zip(mask, (~mask).flatten(1).sum(1).tolist()):\n    model(float(row_sum))"),
    ("for i in range(len(x)):\n    if mask[i].any():\n        model(x[i])",
     "mask_any = mask.flatten(1).any(1).tolist()\nfor i in range(len(x)):\n    if mask_any[i]:\n        model(x[i])"),
    ("for i in range(len(x)):\n    model(int(x[i].max()))",
     "x_largest = x.flatten(1).amax(1).tolist()\nfor i in range(len(x)):\n    model(int(x_largest[i]))"),
]  # fmt: skip


LENGTHS = "completion_lengths.ne(names.padding_index).flatten(1).sum(1).tolist()"
WORDS = "names.words_of_the_answers_in_order"
ZIPPED = "for length, length_sum in zip(completion_lengths, completion_lengths_sums)"
MORE = f"for answer, word, answer_sum in zip(answers, {WORDS}, answers_sums)"
LONG = [
    ("completion_lengths = x\nfor length in completion_lengths:\n    model(x, length.ne(names.padding_index).sum().item())",
     f"completion_lengths = x\ncompletion_lengths_sums = {LENGTHS}\n{ZIPPED}:\n    model(x, length_sum)"),
    (f"answers = x\nfor answer, word in zip(answers, {WORDS}):\n    model(word, answer.eq(pad).sum().item())",
     f"answers = x\nanswers_sums = answers.eq(pad).flatten(1).sum(1).tolist()\n{MORE}:\n    model(word, answer_sum)"),
]  # fmt: skip


@pytest.mark.parametrize(("inside", "wanted"), LONG)
def test_a_header_stays_short_enough_to_be_read(inside: str, wanted: str) -> None:
    assert fixed(inside)[0] == wanted


@pytest.mark.parametrize(("inside", "wanted"), LOOPS, ids=[one[0] for one in LOOPS])
def test_rows_of_a_loop_are_counted_before_it(inside: str, wanted: str) -> None:
    assert fixed(inside) == (wanted, {Applicability.REVIEW})


COMPREHENSIONS = [
    ("parts = [model(x[i], int(mask[i].sum())) for i in range(len(x))]",
     f"mask_sums = {SUMS}\nparts = [model(x[i], int(mask_sums[i])) for i in range(len(x))]"),
    ("parts = [model(one, row.sum().item()) for one, row in zip(x, mask)]",
     f"parts = [model(one, row_sum) for one, row, row_sum in zip(x, mask, {SUMS})]"),
    ("parts = [model(one, row.sum().item()) for one, row in zip(x, mask, strict=True)]",
     f"parts = [model(one, row_sum) for one, row, row_sum in zip(x, mask, {SUMS}, strict=True)]"),
    ("parts = [model(i, row, row.sum().item()) for i, row in enumerate(mask)]",
     f"parts = [model(i, row, row_sum) for i, (row, row_sum) in enumerate(zip(mask, {SUMS}))]"),
    ("parts = [model(row, row.sum().item()) for row in mask]",
     f"parts = [model(row, row_sum) for row, row_sum in zip(mask, {SUMS})]"),
    ("lengths = [row.sum().item() for row in mask]", f"lengths = {SUMS}"),
    ("lengths = [int(row.sum()) for row in mask]", f"lengths = [int(row_sum) for row_sum in {SUMS}]"),
    ("lengths = {row.sum().item() for row in mask if names}", f"lengths = {{row_sum for row_sum in {SUMS} if names}}"),
    ("ends = x.argmax(1)\nends = [one.item() for one in ends]", "ends = x.argmax(1)\nends = ends.tolist()"),
    ("ends = x.argmax(1)\nparts = [model(ends[i].item()) for i in range(len(x))]",
     "ends = x.argmax(1)\nends_values = ends.tolist()\nparts = [model(ends_values[i]) for i in range(len(x))]"),
]  # fmt: skip


@pytest.mark.parametrize(("inside", "wanted"), COMPREHENSIONS, ids=[one[0] for one in COMPREHENSIONS])
def test_rows_of_a_comprehension_are_counted_before_it(inside: str, wanted: str) -> None:
    assert fixed(inside) == (wanted, {Applicability.REVIEW})


def test_what_may_be_none_is_not_counted_then() -> None:
    body = "if pad:\n    mask = None\nfor i in range(len(x)):\n    if mask is not None and mask[i].any():\n        model(x[i])"
    table = "mask_any = mask.flatten(1).any(1).tolist() if mask is not None else []\n"
    assert fixed(body)[0] == body.replace("mask[i].any()", "mask_any[i]").replace("for ", f"{table}for ")


LEFT = {
    "the mask changes": "for i in range(len(x)):\n    n = mask[i].sum().item()\n    mask = model(x[i], n)",
    "the mask is written to": "for i in range(len(x)):\n    n = mask[i].sum().item()\n    mask[i, n] = False",
    "written by another name": "for i in range(len(x)):\n    row = mask[i]\n    row[0] = True\n    model(row.sum().item())",
    "the row is bound anew": "for i in range(len(x)):\n    row = mask[i]\n    row = row & x[i]\n    model(row.sum().item())",
    "bound in a branch": "for i in range(len(x)):\n    if pad:\n        row = mask[i]\n    model(row.sum().item())",
    "no row of a pass": "for i in range(len(x)):\n    model(mask[pad].sum().item())",
    "rows by a mask": "flags = x > 1\nparts = [model(mask[flags == i].sum().item()) for i in range(len(x))]",
    "rows by a mask with a name": "for flags in (mask, x > 1):\n    model(mask[flags].sum().item())",
    "several rows": "for i in range(len(x)):\n    model(mask[i : i + 2].sum().item())",
    "rows from one on": "for i in range(3):\n    for j in range(3):\n        model(mask[i : j + 1].sum().item())",
    "bound anew in a branch": "for i in range(len(x)):\n    row = mask[i]\n    if pad:\n        row = x[i]\n    model(row.sum().item())",
    "a list of tensors beside": "masks = [mask, x > 1]\nfor one, row in zip(x, masks):\n    model(one, row.sum().item())",
    "compared with the comprehension's own": "parts = [model((x[i] != pad).sum().item()) for i, pad in enumerate(names)]",
    "once for each of others": "lengths = [row.sum().item() for row in mask for one in names]",
    "a column": "for i in range(len(x)):\n    model(mask[:, i].sum().item())",
    "what it is compared with changes": "for i in range(len(x)):\n    pad = pad + 1\n    model((x[i] != pad).sum().item())",
    "compared with the other rows": "for i, row in enumerate(x):\n    model((row != i).sum().item())",
    "compared with what is worked out": "for i in range(len(x)):\n    model((x[i] != x.mean()).sum().item())",
    "a largest one with its place": "for i in range(len(x)):\n    model(x[i].max(0)[0].item())",
    "a sum along another dimension": "for i in range(len(x)):\n    model(mask[i : i + 1].sum(0).item())",
    "a list of tensors": "masks = [mask, x > 1]\nfor one in masks:\n    model(one.sum().item())",
    "chunks": "parts = [model(one.sum().item()) for one in mask.chunk(2)]",
    "evaluated only now and then": "parts = [model(mask[i].sum().item()) for i in range(len(x))] if pad else []",
    "a comprehension's own name": "parts = [model((row != pad).sum().item()) for pad, row in zip(names, x)]",
    "two comprehensions": "parts = [model(row.sum().item()) for one in names for row in mask]",
    "in a nested function": "count = lambda: [mask[i].sum().item() for i in range(len(x))]\nmodel(count())",
}


@pytest.mark.parametrize("inside", LEFT.values(), ids=LEFT)
def test_a_row_that_may_be_another_is_left(inside: str) -> None:
    assert fixed(inside) == (inside, set())
