"""Constants that fixes keep: the same bits as before for every key, made once for each, fresh where they must be."""
from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from hostlint.fix.memo import KEEPER, TABLE
from hostlint.fix.once import fix_text, fixed_text
from hostlint.fix.uploads_once import MOVER
from hostlint.runtime_checks.bits import difference, trial

MODEL = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.half = width
        self.sizes = [width, width - 1]
        self.mix = nn.Linear(width, width)

    def forward(self, x, n: int, dtype=torch.float32):
        table = {}
        return self.mix(x) * table


def made(x, n=3, dtype=torch.float32):
    model = Model.__new__(Model)
    nn.Module.__init__(model)
    model.half, model.sizes, model.mix = 3, [3, 2], nn.Identity()
    return [model(x, n, dtype), model(x, n, dtype), model(x.double(), n, dtype)]
"""
MASK = """kept(
            lambda size, size_2, device: torch.tril(torch.ones(size, size_2, device=device)),
            x.shape[0], x.shape[-1], x.device,
        )"""
TYPED = """kept(
            lambda half, dtype, device: torch.tril(torch.ones(half, 3, dtype=dtype, device=device)),
            self.half, x.dtype, x.device,
        )"""
KEPT = [
    ("torch.tril(torch.ones(x.shape[0], x.shape[-1], device=x.device))", MASK),
    ("torch.tril(torch.ones(self.half, 3, dtype=x.dtype, device=x.device))", TYPED),
    ("torch.tril(torch.ones(self.half, 3)) * 2", "kept(lambda half: torch.tril(torch.ones(half, 3)) * 2, self.half)"),
    ("torch.tril(torch.ones(self.half, 3)) * x", "kept(lambda half: torch.tril(torch.ones(half, 3)), self.half) * x"),
    ("torch.exp(torch.tril(torch.ones(self.half, 3)) * -0.1).cos()",
     "kept(lambda half: torch.exp(torch.tril(torch.ones(half, 3)) * -0.1).cos(), self.half)"),
    ("torch.tril(torch.ones(self.half, 3))[:2][1:] + x", "kept(lambda half: torch.tril(torch.ones(half, 3))[:2][1:], self.half) + x"),
    ("torch.tril(torch.ones(self.sizes[0], 3)) - x", "kept(lambda size: torch.tril(torch.ones(size, 3)), self.sizes[0]) - x"),
    ("torch.tril(torch.ones(max(self.sizes), 3)) - x", "kept(lambda number: torch.tril(torch.ones(number, 3)), max(self.sizes)) - x"),
    ("torch.tensor([0.1, -0.0, 3e-45], device=x.device)", "kept_table((0.1, -0.0, 3e-45), device=x.device)"),
    ("torch.tensor([[1], [2], [3]], dtype=x.dtype, device=x.device)", "kept_table(((1,), (2,), (3,)), dtype=x.dtype, device=x.device)"),
    ("torch.tensor([[1.0, 2.0, 3.0],], device=x.device)", "kept_table(((1.0, 2.0, 3.0),), device=x.device)"),
]  # fmt: skip
RUNS = ("torch.ones(3, 3)", "torch.full((3, 3), -0.0)", "torch.full((3, 3), float('nan')).half()", "torch.ones(3, 3, requires_grad=True)")
LEFT = [
    "torch.tensor([n, 2, 3], device=x.device)",
    "torch.tensor([0.1, 0.2, 0.3], device=x.device, requires_grad=True)",
    "torch.tensor(data=[0.1, 0.2, 0.3], device=x.device)",
]


@pytest.mark.parametrize(("before", "after"), KEPT, ids=[one for one, _ in KEPT])
def test_a_constant_is_kept(before: str, after: str) -> None:
    program = MODEL.format(before)
    text = fixed_text(program, "model.py", frozenset({"HL201", "HL301"}), review=True)
    assert f"        table = {after}\n        return" in text
    assert fixed_text(program, "model.py", frozenset({"HL201", "HL301"})) == program
    for run in RUNS:
        for dtype in ("torch.float32", "torch.bfloat16", "torch.int64", "torch.bool"):
            call = f"made({run}, 3, {dtype})"
            assert difference(trial(program, call), trial(text, call)) == "", call


@pytest.mark.parametrize("left", LEFT)
def test_what_may_differ_is_left(left: str) -> None:
    result = fix_text(MODEL.format(left), "model.py", frozenset({"HL201", "HL301"}), review=True)
    assert not result.files
    assert {one.finding.code for one in result.left} == {"HL201"}


def namespace(source: str) -> dict[str, object]:
    names: dict[str, object] = {"torch": torch}
    exec("from functools import lru_cache\n" + source, names)  # noqa: S102 - the text that a fix adds
    return names


def test_one_tensor_for_each_key() -> None:
    kept = namespace(KEEPER)["kept"]
    assert callable(kept)

    def make(n: float) -> object:
        return kept(lambda n: torch.arange(n) + 0, n)

    one, other = make(3), make(3.0)
    assert isinstance(one, torch.Tensor)
    assert isinstance(other, torch.Tensor)
    assert one is make(3)
    assert (one.dtype, other.dtype) == (torch.int64, torch.float32)
    for number in range(100):
        make(number)
    assert make(3) is not one  # few are kept
    with torch.inference_mode():
        inside = make(7000)
    assert isinstance(inside, torch.Tensor)
    assert not inside.is_inference()


def test_one_table_for_each_key() -> None:
    table = namespace(TABLE.format(cache="lru_cache"))["kept_table"]
    assert callable(table)
    one, float_one, negative = table((1, 0), "cpu"), table((1.0, 0.0), "cpu"), table((1.0, -0.0), "cpu")
    assert one is table((1, 0), device="cpu")
    assert one.dtype is torch.int64
    assert difference(float_one, torch.tensor([1.0, 0.0])) == ""
    assert difference(negative, torch.tensor([1.0, -0.0])) == ""
    assert table((1, 0), "cpu", torch.float16).dtype is torch.float16


def test_a_capture_makes_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, table = namespace(KEEPER)["kept"], namespace(TABLE.format(cache="lru_cache"))["kept_table"]
    assert callable(kept)
    assert callable(table)

    def make() -> list[object]:
        return [kept(lambda n: torch.arange(n) + 0, 3), table((1, 2), "cpu")]

    before = make()
    assert all(one is other for one, other in zip(before, make(), strict=True))
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    during = make()
    assert all(one is not other for one, other in zip(before, during, strict=True))
    assert all(one is not other for one, other in zip(during, make(), strict=True))
    monkeypatch.undo()
    assert all(one is other for one, other in zip(before, make(), strict=True))


def test_a_table_is_moved_once_for_each_state_and_dtype() -> None:
    move = namespace(MOVER.format(cache="lru_cache"))["on_device"]
    assert callable(move)
    table = torch.tensor([0.1, -0.0, float("nan"), 65504.0], dtype=torch.float64)
    halves = move(table, "cpu", torch.float16)
    assert move(table, torch.device("cpu"), torch.float16) is halves
    assert difference(halves, table.to("cpu", torch.float16)) == ""
    assert difference(halves[1], table[1].to("cpu", torch.float16)) == ""
    table.mul_(2)
    assert difference(move(table, "cpu", torch.float16), table.half()) == ""
    assert move(table.clone(), "cpu", torch.float32) is not move(table.clone(), "cpu", torch.float32)
    trained = torch.ones(2, requires_grad=True)
    assert move(trained, "cpu", torch.float64) is not move(trained, "cpu", torch.float64)
    with torch.inference_mode():
        made = torch.ones(2)
        inside = move(table, "cpu", torch.bfloat16)
        assert move(made, "cpu", torch.float64) is not move(made, "cpu", torch.float64)
    assert not inside.is_inference()


class Scaled(torch.nn.Module):
    """Uses one kept constant, whose maker is given."""

    def __init__(self, make: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.make = make
        self.weights = torch.tensor([1.0, 2.0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.make(x)


KEEPING = {
    "kept": (KEEPER, "lambda x: kept(lambda n, device: torch.arange(1.0, n, device=device), 3, x.device)"),
    "kept_table": (TABLE.format(cache="lru_cache"), "lambda x: kept_table((1.0, 2.0), x.device)"),
    "on_device": (MOVER.format(cache="lru_cache"), "lambda x, weights=torch.tensor([1, 2]): on_device(weights, x.device, torch.double)"),
}


@pytest.mark.parametrize("name", KEEPING)
def test_an_export_keeps_its_constants_to_itself(name: str) -> None:
    """What a tracer makes stands in for tensors: a program that runs afterwards must not be handed that."""
    source, call = KEEPING[name]
    model, x = Scaled(eval(call, namespace(source))), torch.ones(2)  # noqa: S307 - what the fix writes
    exported = torch.export.export(model, (x,), strict=False).module()
    for run in (exported, model):
        result = run(x)
        assert type(result) is torch.Tensor
        assert result.tolist() == [1.0, 2.0]
