"""`torch.tensor(data, device=...)` on a step's path: Python data uploaded from pageable memory.

## Why it costs
The constructor builds the tensor on the host and copies it from ordinary (pageable) memory. That copy is queued behind all kernels and
the host waits until it is done, also for a single number.

## Instead
- One number: `torch.full((1,), v, dtype=..., device=...)` or `torch.full((), ...)`; it travels as a kernel argument. State the dtype: a
  list of ints gives int64, a NumPy float64 scalar gives float64 in `torch.tensor` and float32 in `torch.full`.
- A range: `torch.arange(a, b, device=...)`.
- A constant: a buffer (`register_buffer(..., persistent=False)`), or a memo by (values, dtype, device) that nobody writes into. Keep the
  order of the operations: in half precision `1 / std` cast is not `1 / cast(std)`.
- Values of all steps that are known before the loop: one upload there, then index it by the host's step counter.
- Values that come from the host anew each step (a simulator, a tokenizer, ragged lists): one upload a step is needed. Gather them in one
  tensor and copy it with `non_blocking=True` from pinned memory that was allocated once; rewrite that only after its event.
- Nothing is made in a graph capture; an upload there is an error, or stale data.

`hostlint fix` writes the fill where the data is one number, or one number over and over: `torch.tensor(3.0, ...)` becomes
`torch.full((), 3.0, ...)`, `x.new_tensor([0])` becomes `x.new_full((1,), 0)`. It is exact for literals and for proved ints: both
forms take the default dtype for a float, int64 for an int and bool for a truth value, both round to half precision through
float32, and the size is the list's. The dtype of an int that is written down is stated. Proved ints count something (a loop's
passes, lengths, sizes), and stay below 2**53 for that: past int64, and for None, the two forms raise different errors. A float
literal past float32's range stays (`torch.tensor` gives inf, `torch.full` raises). Other numbers are for review: a NumPy float64
scalar gives float64 in one form and float32 in the other, and one that is too large raises. A name of unknown type is taken for a
number where one stands in for it (`config.scale or 0.5`, `def decode(x, scale=0.5)`).

A list of literals goes before its loop, or through two small functions that the fix adds to the module: `kept_table((0.1, 0.2), device=d)`
uploads it once for each device and dtype and hands the same tensor out from then on; the same constructor gets the same numbers. A compiler
and a graph capture make their own. For review: nothing may write into the shared tensor. So do lists with
sizes in them (`[0, x.shape[1]]`), rows that the function writes down and leaves alone, constants of the module, and attributes of `self` or
of a configuration (`config.means`), as tuples: their values are the key, and they must be flat lists of numbers. What hangs on other
objects (`batch.lengths`) is left: it is likely to differ each time.

## Not flagged
Factories that fill on the device (`full`, `zeros`, `arange`, `new_full`, `scalar_tensor`); tensors without `device=` or on the CPU; memos
and buffers; `as_tensor` of a tensor that is on the device already.

## Evidence
NVIDIA H200, torch 2.11:
- `torch.tensor(3, device=d)`: 1 wait
- `torch.as_tensor(2.0, device=d)`: 1 wait
- `torch.as_tensor(np_arr, device=d)`: 1 wait
- `x.new_tensor([1.0, 2.0])`: 1 wait
- `torch.full((4,), 2.0, device=d)`: free
- `torch.arange(10, device=d)`: free
- `torch.scalar_tensor(2.0, device=d)`: free
- `x.new_full((3,), 1.0)`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the constructor.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.fills import constructor_to_fill
from hostlint.fix.kept_attributes import kept_attribute
from hostlint.fix.memo import kept_list
from hostlint.model import Applicability
from hostlint.rule import Example, Problem, Rule
from hostlint.syntax import function, is_constant
from hostlint.wording import ONE_UPLOAD, text, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact
    from hostlint.fix.place import Place
    from hostlint.model import Fix


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"`{whole(node)}` uploads host data {when(fact)}, and the host waits for the copy; {_instead(node)}")


def _instead(node: cst.BaseExpression) -> str:
    import libcst as cst

    fill = "new_full" if function(node) == "new_tensor" else "torch.full"
    data = _data(node)
    match data:
        case cst.BaseNumber() | cst.UnaryOperation(expression=cst.BaseNumber()):
            return f"fill on the device: `{fill}((), {text(data)}, ...)`, with the dtype stated"
        case cst.List(elements=[cst.Element(value=value)]) if not isinstance(value, cst.List | cst.Tuple | cst.ListComp):
            number = isinstance(value, cst.BaseNumber | cst.UnaryOperation | cst.BinaryOperation)
            condition = "" if number else f"where `{text(value)}` is one number, "
            return f"{condition}fill on the device: `{fill}((1,), {text(value)}, ...)`, with the dtype stated"
        case cst.Call(func=cst.Name("range")) | cst.List(elements=[cst.StarredElement(value=cst.Call(func=cst.Name("range")))]):
            return "make the range on the device with `torch.arange`"
    if data is not None and is_constant(data):
        one = f" (one number: `{fill}`)" if isinstance(data, cst.Attribute | cst.Subscript) else ""
        return f"keep the constant `{text(data)}` on the device in a buffer or memo{one}; upload a schedule as a whole, then index it"
    return f"one number: `{fill}`; a constant: a buffer or memo; {ONE_UPLOAD}"


def _data(node: cst.BaseExpression) -> cst.BaseExpression | None:
    import libcst as cst

    for argument in node.args if isinstance(node, cst.Call) else ():
        if argument.keyword is None or argument.keyword.value in {"data", "obj"}:
            return argument.value
    return None


def fix(place: Place) -> Fix | None:
    return constructor_to_fill(place) or kept_list(place) or kept_attribute(place)


RULE = Rule(
    code="HL201",
    name="pageable-constructor",
    summary="a tensor constructor uploads Python or NumPy data to the device on a step's path",
    kinds=(FactKind.UPLOAD_CONSTRUCTOR,),
    check=check,
    fix=fix,
    examples=(
        Example(
            bad="""\
import torch


def decode(model, token, limit: int):
    for position in range(limit):
        where = torch.tensor([position], device="cuda")  # expect
        start = torch.zeros(1, dtype=torch.long, device="cuda")
        token = model(token, where, start)
    return token
""",
            good="""\
import torch


def decode(model, token, limit: int):
    for position in range(limit):
        where = torch.full((1,), position, device="cuda")
        start = torch.zeros(1, dtype=torch.long, device="cuda")
        token = model(token, where, start)
    return token
""",
            fix=Applicability.EXACT,
            trials=("decode(lambda token, where, start: token * 3 + where + start, torch.ones(1), 5)",),
        ),
        Example(
            bad="""\
import torch


def denoise(model, x, sigmas: list[float], lengths):
    for sigma, length in zip(sigmas, lengths):
        noise = torch.tensor([sigma], device="cuda")  # expect
        x = model(x, noise, torch.zeros(length, device="cuda"))
    return x
""",
            good="""\
import torch


def denoise(model, x, sigmas: list[float], lengths):
    for sigma, length in zip(sigmas, lengths):
        noise = torch.full((1,), sigma, device="cuda")
        x = model(x, noise, torch.zeros(length, device="cuda"))
    return x
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Denormalise(nn.Module):
    def __init__(self, mean: list[float]):
        super().__init__()
        self.mean = mean
        self.gain = nn.Parameter(torch.ones(len(mean)))

    def forward(self, z):
        shift = torch.tensor(self.mean, device=self.gain.device, dtype=z.dtype)  # expect
        half = self.gain.new_full((1,), 0.5)
        return (z * self.gain + shift) * half
""",
            good="""\
import functools

import torch
from torch import nn


@functools.lru_cache(maxsize=64)
def made_table(values, words, device, dtype):
    with torch.inference_mode(False):
        return torch.tensor(values, device=device, dtype=dtype)


def kept_table(values, device, dtype=None):
    \"""`torch.tensor(values, ...)`, made once for each key and then shared: nothing may write into it. A capture makes its own.\"""
    captures = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
    make = made_table.__wrapped__ if captures or torch.compiler.is_compiling() else made_table
    return make(values, str(values), device, dtype)


class Denormalise(nn.Module):
    def __init__(self, mean: list[float]):
        super().__init__()
        self.mean = mean
        self.gain = nn.Parameter(torch.ones(len(mean)))

    def forward(self, z):
        shift = kept_table(tuple(self.mean), device=self.gain.device, dtype=z.dtype)
        half = self.gain.new_full((1,), 0.5)
        return (z * self.gain + shift) * half
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import numpy as np
import torch

net = torch.nn.Linear(4, 4).cuda()


def control(robot, steps: int):
    goal = torch.zeros(4, device="cuda")
    for _ in range(steps):
        pull = goal.new_tensor([0.0, 0.0, 9.81, 0.0])  # expect
        sensed = torch.as_tensor(np.ones(4, dtype=np.float32), device="cuda")  # expect
        goal = net(goal + pull + torch.as_tensor(goal, device="cuda") + sensed)
    return goal
""",
            good="""\
import torch

net = torch.nn.Linear(4, 4).cuda()


def control(robot, steps: int):
    goal = torch.zeros(4, device="cuda")
    pull = goal.new_tensor([0.0, 0.0, 9.81, 0.0])
    sensed = torch.ones(4, device="cuda")
    for _ in range(steps):
        goal = net(goal + pull + torch.as_tensor(goal, device="cuda") + sensed)
    return goal
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        std = torch.tensor([0.18, 0.92, 0.46], device=x.device, dtype=x.dtype)  # expect
        return self.mix(x) * std
""",
            good="""\
import functools

import torch
from torch import nn


@functools.lru_cache(maxsize=64)
def made_table(values, words, device, dtype):
    with torch.inference_mode(False):
        return torch.tensor(values, device=device, dtype=dtype)


def kept_table(values, device, dtype=None):
    \"\"\"`torch.tensor(values, ...)`, made once for each key and then shared: nothing may write into it. A capture makes its own.\"\"\"
    captures = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
    make = made_table.__wrapped__ if captures or torch.compiler.is_compiling() else made_table
    return make(values, str(values), device, dtype)


class Decoder(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        std = kept_table((0.18, 0.92, 0.46), device=x.device, dtype=x.dtype)
        return self.mix(x) * std
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Hop(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.key = nn.Linear(width, width)

    def forward(self, x, attend):
        keys = self.key(x)
        bounds = torch.tensor([0, keys.shape[-2]], dtype=torch.int32, device=x.device)  # expect
        return attend(x, keys, bounds)
""",
            good="""\
import functools

import torch
from torch import nn


@functools.lru_cache(maxsize=64)
def made_table(values, words, device, dtype):
    with torch.inference_mode(False):
        return torch.tensor(values, device=device, dtype=dtype)


def kept_table(values, device, dtype=None):
    \"""`torch.tensor(values, ...)`, made once for each key and then shared: nothing may write into it. A capture makes its own.\"""
    captures = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
    make = made_table.__wrapped__ if captures or torch.compiler.is_compiling() else made_table
    return make(values, str(values), device, dtype)


class Hop(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.key = nn.Linear(width, width)

    def forward(self, x, attend):
        keys = self.key(x)
        bounds = kept_table((0, keys.shape[-2]), dtype=torch.int32, device=x.device)
        return attend(x, keys, bounds)
""",
            fix=Applicability.REVIEW,
        ),
    ),
)
