"""Fixes of indices and sizes keep the bits: lists kept on the device, counts by scatter, sizes that the host knows."""
from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from hostlint.fix.once import fix_text, fixed_text
from hostlint.runtime_checks.bits import difference, trial

INDEX = """\
import functools

import torch


@functools.lru_cache(maxsize=64, typed=True)
def made_index(device, *positions):
    with torch.inference_mode(False):
        return torch.tensor(positions, device=device)


def index_on(x, *positions):
    \"\"\"Integers as an index on the device of `x`, uploaded once. A tracer, and its stand-ins for tensors, get one of their own.\"\"\"
    plain = type(x) in (torch.Tensor, torch.nn.Parameter) and not torch.compiler.is_compiling()
    return (made_index if plain else made_index.__wrapped__)(x.device, *positions)


"""
PICK = """\
import functools

import torch


def steps(model, given, count: int):
    results = []
    for i in range(count):
        x = torch.zeros(4, 6, dtype=given.dtype, device="cuda")
        x.copy_(given)
        {}
        model(x)
        results += [x, y]
    return results
"""
PICKS = [
    ("y = x[[0, 3, 1]]", "y = x[index_on(x, 0, 3, 1)]"),
    ("y = x[:, [-1, 0, 0]]", "y = x[:, index_on(x, -1, 0, 0)]"),
    ("y = x[None, ..., [5, 2]]", "y = x[None, ..., index_on(x, 5, 2)]"),
    ("y = x[1, [0, 1, 4]]", "y = x[1, index_on(x, 0, 1, 4)]"),
    ("y = x[[2, 2, 9]]", "y = x[index_on(x, 2, 2, 9)]"),
]
SLICES = [
    ("y = x[:, [0, 2, 4]] + 1", "y = x[:, 0:5:2] + 1"),
    ("y = x[[1, 2, 3]] * 2", "y = x[1:4] * 2"),
    ("y = x[:, range(count)] * 2", "y = x[:, :count] * 2"),
    ("y = x[:, range(1, count)] * 2", "y = x[:, 1:count] * 2"),
    ("y = x[range(count - 1)] * 2", "y = x[: count - 1] * 2"),
    ("y = x[range(1, len(x))] * 2", "y = x[1 : len(x)] * 2"),
]
LEFT = ["y = x[[0, 3], [1, 2]]", "y = model(x)[[0, 3]]", "y = x[[i, 3]]", "y = x[[True, False, True, True]]", "y = x[range(i, count)]"]
GIVEN = "torch.arange(24.).view(4, 6).mul(0.1).requires_grad_()"


@pytest.mark.parametrize(("before", "after"), PICKS, ids=[before for before, _ in PICKS])
def test_a_list_is_uploaded_once(before: str, after: str) -> None:
    program, wanted = PICK.format(before), INDEX + PICK.format(after).partition("import torch\n\n\n")[2]
    assert fixed_text(program, "step.py") == wanted
    assert difference(trial(program, f"steps(len, {GIVEN}, 3)"), trial(wanted, f"steps(len, {GIVEN}, 3)")) == ""


@pytest.mark.parametrize(("before", "after"), SLICES, ids=[before for before, _ in SLICES])
def test_a_regular_list_becomes_a_slice_for_review(before: str, after: str) -> None:
    program, wanted = PICK.format(before), PICK.format(after)
    assert fixed_text(program, "step.py") == program
    assert fixed_text(program, "step.py", review=True) == wanted
    assert difference(trial(program, f"steps(len, {GIVEN}, 3)"), trial(wanted, f"steps(len, {GIVEN}, 3)")) == ""


@pytest.mark.parametrize("left", LEFT)
def test_an_index_that_changes_or_means_something_else_is_left(left: str) -> None:
    assert fixed_text(PICK.format(left), "step.py", review=True) == PICK.format(left)


def written() -> Callable[..., torch.Tensor]:
    names: dict[str, Callable[..., torch.Tensor]] = {}
    exec(compile(INDEX, "index.py", "exec"), names)  # noqa: S102 - what the fix writes
    return names["index_on"]


def test_a_kept_index_tells_masks_from_positions_and_serves_autograd() -> None:
    index_on, x = written(), torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        index_on(x, 1, 0)
    (gradient,) = torch.autograd.grad(x[index_on(x, 1, 0)].square().sum(), x)
    assert torch.equal(gradient, torch.full((2,), 2.0))
    assert index_on(x, 1, 0) is index_on(x, 1, 0)
    assert index_on(x, True, False).dtype is torch.bool


@pytest.mark.parametrize("first", ["traced", "run"])
def test_a_tracer_keeps_its_index_to_itself(first: str) -> None:
    """A kept stand-in would be handed to the next run, a kept tensor to the next trace."""
    index_on, x = written(), torch.arange(8.0).view(2, 4)

    def pick(x: torch.Tensor) -> torch.Tensor:
        return x[:, index_on(x, 0, 2)]

    class Pick(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return pick(x)

    def trace() -> None:
        traced = make_fx(pick, tracing_mode="fake")(x)
        assert torch.equal(traced(x), x[:, [0, 2]])
        exported = torch.export.export(Pick(), (x,), strict=False).module()
        assert torch.equal(exported(x), x[:, [0, 2]])
        assert torch.equal(torch.compile(pick, backend="eager")(x), x[:, [0, 2]])

    if first == "traced":
        trace()
    assert type(pick(x)) is torch.Tensor
    assert torch.equal(pick(x), x[:, [0, 2]])
    trace()


SIZED = """\
import torch


def steps(model, given, lengths, count: int):
    counts = torch.tensor(lengths, device="cuda")
    results = []
    for i in range(count):
        ids = torch.zeros(8, dtype=torch.int32, device="cuda")
        ids.copy_(given)
        x = torch.zeros(3, 2, device="cuda") + i
        more = counts.cuda()
        y = None
        {}
        model(y)
        results += [y]
    return results
"""
SIZED_FORMS = [
    ("y = torch.bincount(ids, minlength=9)", "y = count_values(ids, 9)", "no value of `ids` reaches `9`"),
    ("y = torch.bincount(ids + 1, minlength=count + 9)", "y = count_values(ids + 1, count + 9)", "reaches `count + 9`"),
    ("y = ids.bincount(minlength=9)", "y = count_values(ids, 9)", "reaches `9`"),
    ("y = torch.repeat_interleave(x, counts, dim=0)", "(x, counts, dim=0, output_size=sum(lengths))", "`lengths`"),
    ("y = x.repeat_interleave(counts, 0)", "y = x.repeat_interleave(counts, 0, output_size=sum(lengths))", "`lengths`"),
]
SIZED_LEFT = [
    "y = torch.bincount(ids)", "y = torch.bincount(ids, x.flatten(), minlength=9)", "y = torch.repeat_interleave(x, more, dim=0)",
    "y = torch.repeat_interleave(x, counts + 1, dim=0)", "counts = counts * 2\n        y = torch.repeat_interleave(x, counts, dim=0)",
    "y = torch.repeat_interleave(x, counts, dim=0); lengths = [2]",
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "assumed"), SIZED_FORMS, ids=[before for before, _, _ in SIZED_FORMS])
def test_a_size_that_the_host_knows_is_given(before: str, after: str, assumed: str) -> None:
    program = SIZED.format(before)
    result = fix_text(program, "step.py", frozenset({"HL113"}), review=True)
    assert result.files
    wanted = result.files[0].text
    assert after in wanted
    assert any(one.fix is not None and assumed in one.fix.message for one in result.mended)
    run = "steps(len, torch.tensor([0, 3, 3, 7, 8, 0, 1, 3]), [2, 0, 3], 2)"
    assert difference(trial(program, run), trial(wanted, run)) == ""


@pytest.mark.parametrize("left", SIZED_LEFT)
def test_a_size_that_is_not_known_is_left(left: str) -> None:
    program = SIZED.format(left)
    result = fix_text(program, "step.py", frozenset({"HL113"}), review=True)
    assert not result.files
    assert any(one.finding.code == "HL113" for one in result.left)
