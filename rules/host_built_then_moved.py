"""A tensor built on the host and moved at once: `torch.arange(n).to(device)`.

## Why it costs
The values are computed on the host and copied from pageable memory, and the host waits for the copy behind all queued kernels. The
device could have made most of them itself.

## Instead
- `torch.arange(n, device=...)`, `zeros`, `ones`, `full`, `linspace` with `device=`: integers and fills are the same on both sides.
- Tables with `exp`, `pow`, `sin`: the device's last bits differ from the host's. Keep the host build where bits count, and keep its
  result: a buffer, or a memo by (size, dtype, device).
- Random numbers with a host generator: draw them on the host once per request and upload the whole block.
- `torch.tensor([...]).to(device)`: see pageable-constructor; a literal becomes a buffer or `torch.full`.
- Ragged lists that are padded on the host, numbers that a host function returns: one upload a step is needed. Gather them in one tensor
  and copy it with `non_blocking=True` from pinned memory that was allocated once; rewrite that only after its event.

`hostlint fix` gives the factory the device where the values are the same on both sides: `zeros`, `ones`, `eye`, `full`, their `_like`
forms, and `arange` of proved ints, also through casts and views that keep strides (`.float()`, `.unsqueeze(0)`; not `.expand`, whose
copy is dense). A dtype in the move goes into factories of zeros and ones, and stays a cast after others; where it may be an
integer's and the number of a fill may not fit it, the fix is for review (a GPU casts such floats to other ints). One number
(`torch.tensor(-1).to(d)`) becomes a fill, as in pageable-constructor. A float range, `linspace` and `exp` would have other last bits there:
for review, what the host works out from numbers alone goes before its loop, or through a small function that the fix adds to the module,
`kept(lambda n, device: …, n, x.device)`, which makes it once for each size and device; nothing may write into the tensor that all calls
share then. `torch.tensor(self.means).to(d)` is uploaded once for its values, as in pageable-constructor. What is built before the loop
and moved in it is moved once, as in blocking-upload. Random numbers are left.

## Not flagged
Factories with `device=`; a tensor that stays on the host; uploads behind a memo, in `__init__`, before the loop; a received tensor (see
blocking-upload).

## Evidence
NVIDIA H200, torch 2.11:
- `torch.arange(10).to(d)`: 1 wait
- `torch.tensor([1.,2.]).to(d)`: 1 wait
- `torch.tensor([1.,2.]).cuda()`: 1 wait
- `torch.from_numpy(np_arr).to(d)`: 1 wait
- `torch.arange(10, device=d)`: free
- `torch.linspace(0, 1, 10, device=d)`: free
- `torch.randperm(10, device=d)`: free
- `torch.zeros_like(h, device=d)`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the `.to` or `.cuda`.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.fills import moved_to_made
from hostlint.fix.kept_attributes import kept_attribute
from hostlint.fix.memo import kept_on_device
from hostlint.fix.uploads_once import uploaded_once
from hostlint.model import Applicability
from hostlint.rule import Example, Problem, Rule
from hostlint.syntax import ELEMENTWISE, function, is_constant
from hostlint.wording import ONE_UPLOAD, text, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact
    from hostlint.fix.place import Place
    from hostlint.model import Fix

ALIKE = frozenset({"arange", "zeros", "ones", "full", "empty", "eye", "zeros_like", "ones_like", "full_like", "empty_like"})
CONSTRUCTORS = frozenset(
    {"tensor", "as_tensor", "from_numpy", "FloatTensor", "LongTensor", "IntTensor", "BoolTensor", "stack", "cat", "pad_sequence"}
)
RANDOM = frozenset({"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "normal", "bernoulli", "multinomial"})
SHAPING = ELEMENTWISE - {"exp", "expm1", "log", "log1p", "pow", "reciprocal", "rsqrt", "sigmoid", "sqrt", "tanh"} | frozenset(
    {"expand", "flatten", "permute", "repeat", "reshape", "squeeze", "t", "transpose", "tril", "triu", "unsqueeze", "view"}
)  # methods whose result has the same bits on both sides


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"`{whole(node)}` builds on the host and uploads {when(fact)}, and the host waits for the copy; {_instead(node)}")


def _instead(node: cst.BaseExpression) -> str:
    import libcst as cst

    built = _built(node)
    match built:
        case cst.Call(args=[cst.Arg(value=data), *_]) if function(built) in CONSTRUCTORS and is_constant(data):
            return f"keep `{text(data)}` on the device in a buffer or memo, or fill one number there (`torch.full`, `device=`)"
        case cst.Call(func=cst.Attribute(value=cst.Name("torch"), attr=cst.Name(factory))) if factory in ALIKE:
            return f"give `torch.{factory}` the device (`device=`), the values are the same"
        case cst.Call() if function(built) in CONSTRUCTORS:
            return f"a constant: a buffer or memo; {ONE_UPLOAD}"
        case cst.Call() if function(built) in RANDOM:
            return "draw for all steps before the loop and upload once, or draw on the device (the same seed gives other numbers)"
        case cst.Call(func=cst.Attribute(value=cst.Name("torch"))):
            return "build it on the device (`device=`), or keep the uploaded result where its last bits must stay the host's"
    return f"a constant: keep the uploaded result; fills and ranges: build with `device=`; {ONE_UPLOAD}"


def _built(node: cst.BaseExpression) -> cst.BaseExpression:
    """What is moved, without the methods between that keep its values."""
    import libcst as cst

    match node:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name("to" | "cuda"))):
            node = inner
    while True:
        match node:
            case cst.Call(func=cst.Attribute(value=cst.Call() | cst.Subscript() as inner, attr=cst.Name(name))) if name in SHAPING:
                node = inner
            case cst.Subscript(value=cst.Call() as inner):
                node = inner
            case _:
                return node


def fix(place: Place) -> Fix | None:
    return moved_to_made(place) or kept_on_device(place) or kept_attribute(place) or uploaded_once(place)


RULE = Rule(
    code="HL202",
    name="host-built-then-moved",
    summary="a tensor is built on the host and moved to the device on a step's path",
    kinds=(FactKind.HOST_BUILT_MOVE,),
    check=check,
    fix=fix,
    examples=(
        Example(
            bad="""\
import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(512, width))

    def forward(self, x):
        index = torch.arange(x.shape[1]).to(self.table.device)  # expect
        plain = torch.arange(x.shape[1], device=self.table.device)
        return x + self.table[index] + self.table[plain]
""",
            good="""\
import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(512, width))

    def forward(self, x):
        index = torch.arange(x.shape[1], device=self.table.device)
        plain = torch.arange(x.shape[1], device=self.table.device)
        return x + self.table[index] + self.table[plain]
""",
            fix=Applicability.EXACT,
            trials=("[net := Positions(4), torch.nn.init.normal_(net.table), net(torch.ones(2, 3, 4))][1:]",),
        ),
        Example(
            bad="""\
import torch


def sample(unet, x, steps: int):
    x = x.cuda()
    for i in range(steps):
        t = torch.full((x.shape[0],), 1.0 - i / steps)
        width = torch.ones(3)
        x = unet(x, t.cuda())  # expect
        x = x * width.sum()
    return x
""",
            good="""\
import torch


def sample(unet, x, steps: int):
    x = x.cuda()
    for i in range(steps):
        t = torch.full((x.shape[0],), 1.0 - i / steps, device="cuda")
        width = torch.ones(3)
        x = unet(x, t)
        x = x * width.sum()
    return x
""",
        ),
        Example(
            bad="""\
import torch


def attend(model, hidden, steps: int, dtype):
    hidden = hidden.cuda()
    for step in range(steps):
        blank = torch.zeros(len(hidden), 2).to("cuda", dtype)  # expect
        at = torch.tensor(step).to(hidden.device)  # expect
        hidden = model(hidden, blank, at, torch.arange(step).float().unsqueeze(0).to("cuda"))  # expect
    return hidden
""",
            good="""\
import torch


def attend(model, hidden, steps: int, dtype):
    hidden = hidden.cuda()
    for step in range(steps):
        blank = torch.zeros(len(hidden), 2, device="cuda", dtype=dtype)
        at = torch.full((), step, device=hidden.device)
        hidden = model(hidden, blank, at, torch.arange(step, device="cuda").float().unsqueeze(0))
    return hidden
""",
            fix=Applicability.EXACT,
            trials=(
                "attend(lambda hidden, *others: [hidden, *others][0] + sum(one.sum() for one in others), torch.ones(3), 4, torch.bfloat16)",
                "[seen := [], attend(lambda hidden, *others: seen.extend(others) or hidden, torch.ones(3), 4, torch.int64)]",
            ),
        ),
        Example(
            bad="""\
import numpy as np
import torch


def metadata(rows: list[int], device):
    starts = torch.from_numpy(np.cumsum(rows)).to(device)  # expect
    return starts, torch.tensor(rows)


def engine(model, batches):
    state = torch.zeros(8, device="cuda")
    for batch in batches:
        state = model(state, *metadata(batch.rows, state.device))
    return state
""",
            good="""\
import numpy as np
import torch


def metadata(rows: list[int]):
    return torch.from_numpy(np.cumsum(rows)), torch.tensor(rows)


def engine(model, batches):
    state = torch.zeros(8, device="cuda")
    for batch in batches:
        state = model(state, *metadata(batch.rows))
    return state
""",
        ),
        Example(
            bad="""\
import math

import torch
from torch import nn


class Sinusoid(nn.Module):
    def __init__(self, half: int):
        super().__init__()
        self.half = half

    def forward(self, t):
        table = torch.exp(-math.log(10000) * torch.arange(self.half) / self.half)
        angle = t[:, None] * table.to("cuda")  # expect
        return torch.cat([angle.cos(), angle.sin()], -1)
""",
            good="""\
import functools
import math

import torch
from torch import nn


@functools.lru_cache(maxsize=8)
def frequencies(half: int, device: str):
    return torch.exp(-math.log(10000) * torch.arange(half) / half).to(device)


class Sinusoid(nn.Module):
    def __init__(self, half: int):
        super().__init__()
        self.half = half

    def forward(self, t):
        angle = t[:, None] * frequencies(self.half, "cuda")
        return torch.cat([angle.cos(), angle.sin()], -1)
""",
        ),
        Example(
            bad="""\
import math

import torch
from torch import nn


class Embedding(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.width = width
        self.layer = nn.Linear(width, width)

    def forward(self, time, scale):
        half = self.width // 2
        steps = torch.exp(-math.log(10_000.0) * torch.arange(half) / half).to(time.device)  # expect
        waves = torch.cat(((time[:, None] * steps).cos(), (time[:, None] * steps).sin()), dim=-1)
        return self.layer(waves) * scale
""",
            good="""\
import math

import torch
from torch import nn

KEPT = {}


def kept(make, *key):
    \"""`make(*key)`, made once for each key and then shared: nothing may write into it. A compiler and a capture make their own.\"""
    captures = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
    if captures or torch.compiler.is_compiling():
        return make(*key)
    name = (make.__code__, *key, *map(type, key))
    found = KEPT.get(name)
    if found is None:
        if len(KEPT) >= 64:
            KEPT.clear()
        with torch.inference_mode(False):
            found = KEPT[name] = make(*key)
    return found


class Embedding(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.width = width
        self.layer = nn.Linear(width, width)

    def forward(self, time, scale):
        half = self.width // 2
        steps = kept(
            lambda half, device: torch.exp(-math.log(10_000.0) * torch.arange(half) / half).to(device),
            half, time.device,
        )
        waves = torch.cat(((time[:, None] * steps).cos(), (time[:, None] * steps).sin()), dim=-1)
        return self.layer(waves) * scale
""",
            fix=Applicability.REVIEW,
        ),
    ),
)
