"""A device tensor indexed with a Python list, a NumPy array or a host tensor.

## Why it costs
torch turns the index into a tensor on the host and copies it to the device, and the host waits for the copy. For a write the value is
uploaded as well.

## Instead
- Regular positions: a slice (`x[:, 0:4]`, `x[::2]`).
- Fixed positions: an index buffer (`register_buffer(..., persistent=False)`), or a tensor made once before the loop.
- A mask on the host: turn it into a device mask once; then `x[mask] = number` is `masked_fill`.

`hostlint fix` uploads a list of integers once, through a small function of the module that keeps it per device: an index tensor picks what
the list picked, in memory of its own. It is made outside inference mode, so that autograd may keep it. Exact for a list in the source and
a proved tensor; for review where the list is an attribute. Regular lists and ranges become slices, for review: a slice is a view, and past
the end it is shorter where a list is an error. A mask or positions in a host tensor that the function is given, or an object holds, are
moved once, as blocking-upload does with tables, for review: the next step must bring the same tensor, else it is moved again.

## Not flagged
Slices and integers; device tensors as index; a boolean host mask used for reading; lists and arrays that are indexed on the host.

## Evidence
NVIDIA H200, torch 2.11:
- `x[[0, 2, 3]]`: 1 wait
- `x[[0, 2, 3]] = 1.0`: 2 waits
- `x[hidx] = 1.0`: 2 waits
- `x[hm] = 0.0`: 1 wait
- `x[np_mask]`: 2 waits
- `x[lst_mask]`: 2 waits
- `x[hm]`: free
- `x[1:3]`: free
- `x[idx]`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the line.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.model import Applicability
from hostlint.rule import Example, Problem, Rule
from hostlint.syntax import is_constant
from hostlint.wording import text, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact
    from hostlint.fix.place import Place
    from hostlint.model import Fix

KEPT = "keep the index on the device (a buffer, or a tensor made before the loop)"
CHANGING = "one that changes each step: upload a step's indices together, `non_blocking`, from kept pinned memory"


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    uploads = f"`{whole(node)}` uploads its index {when(fact)}, and the host waits for the copy"
    return Problem(f"{uploads}; {_instead(node)}")


def _instead(node: cst.BaseExpression) -> str:
    """The slice that picks the same elements where the index is a regular one; else the index stays on the device."""
    import libcst as cst

    for part in node.slice if isinstance(node, cst.Subscript) else ():
        match part.slice:
            case cst.Index(value=cst.List(elements=elements)):
                words = _regular([element.value for element in elements])
                fixed = all(is_constant(element.value) for element in elements)
                return f"slice with `{words}` (a view), or {KEPT}" if words else KEPT if fixed else f"{KEPT}; {CHANGING}"
            case cst.Index(value=cst.Call(func=cst.Name("range"), args=bounds)):
                return f"slice with `{_bounds([text(bound.value) for bound in bounds])}` (a view)"
    return f"{KEPT}; {CHANGING}"


def _bounds(bounds: list[str]) -> str:
    return f":{bounds[0]}" if len(bounds) == 1 else ":".join(bounds)


def _regular(elements: list[cst.BaseExpression]) -> str:
    import libcst as cst

    numbers = [int(e.value) for e in elements if isinstance(e, cst.Integer) and e.value.isdecimal()]
    if len(numbers) != len(elements) or len(numbers) < 2:
        return ""
    step = numbers[1] - numbers[0]
    if step < 1 or numbers != list(range(numbers[0], numbers[-1] + 1, step)):
        return ""
    return f"{numbers[0]}:{numbers[-1] + 1}" + (f":{step}" if step > 1 else "")


def fix(place: Place) -> Fix | None:
    """`x[[0, 2, 4]]` to `x[0:5:2]`, `x[[0, 3, 5]]` to `x[index_on(x, 0, 3, 5)]`."""
    import libcst as cst

    from hostlint.fix.build import bare_code, is_repeatable
    from hostlint.fix.indices import kept_index
    from hostlint.fix.uploads_once import kept_host_index
    from hostlint.values.value import Place as Lives

    node = place.node
    if not isinstance(node, cst.Subscript):
        return None
    parts = [part.slice.value for part in node.slice if isinstance(part.slice, cst.Index)]
    uploaded = [part for part in parts if not isinstance(part, cst.Integer | cst.Ellipsis | cst.UnaryOperation) and text(part) != "None"]
    if len(uploaded) != 1:
        return None
    if isinstance(uploaded[0], cst.Name | cst.Attribute) and len(node.slice) == 1 and place.known.index.place is Lives.HOST:
        return kept_host_index(place, bare_code(uploaded[0]), bare_code(node.value)) if is_repeatable(node.value) else None
    sliced = _slice(uploaded[0])
    if sliced:
        assumed = "every position exists and nothing is written to the view that is read"
        return place.fix(Applicability.REVIEW, f"take a slice, where {assumed}", place.replace(sliced, uploaded[0]))
    return kept_index(place, node, uploaded[0])


def _slice(index: cst.BaseExpression) -> str:
    import libcst as cst

    match index:
        case cst.List(elements=elements):
            words = _regular([element.value for element in elements])
            return words if len(elements) > 2 or words.count(":") == 1 else ""
        case cst.Call(func=cst.Name("range"), args=[_] | [cst.Arg(value=cst.Integer()), _] as bounds):
            simple = all(isinstance(bound.value, cst.Name | cst.Integer) for bound in bounds)
            words = _bounds([text(bound.value) for bound in bounds])
            return words if simple else words.replace(":", " : ", 1).strip()
    return ""


RULE = Rule(
    code="HL204",
    name="host-index",
    summary="a device tensor is indexed with a list, a NumPy array or a host tensor",
    kinds=(FactKind.HOST_INDEX,),
    check=check,
    fix=fix,
    examples=(
        Example(
            bad="""\
import torch
from torch import nn


class Pick(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width, width))

    def forward(self, x):
        some = self.gain[:, [0, 2, 4]]  # expect
        first = self.gain[:, 0:3]
        return x @ (some + first)
""",
            good="""\
import torch
from torch import nn


class Pick(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width, width))

    def forward(self, x):
        some = self.gain[:, 0:5:2]
        first = self.gain[:, 0:3]
        return x @ (some + first)
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import functools

import torch


def corners(model, steps: int):
    for step in range(1, steps):
        grid = torch.linspace(0.0, step, 9, device="cuda")
        model(grid[[0, 2, 6, 8]], grid[2:7])  # expect
""",
            good="""\
import functools

import torch


@functools.lru_cache(maxsize=64, typed=True)
def made_index(device, *positions):
    with torch.inference_mode(False):
        return torch.tensor(positions, device=device)


def index_on(x, *positions):
    \"""Integers as an index on the device of `x`, uploaded once. A tracer, and its stand-ins for tensors, get one of their own.\"""
    plain = type(x) in (torch.Tensor, torch.nn.Parameter) and not torch.compiler.is_compiling()
    return (made_index if plain else made_index.__wrapped__)(x.device, *positions)


def corners(model, steps: int):
    for step in range(1, steps):
        grid = torch.linspace(0.0, step, 9, device="cuda")
        model(grid[index_on(grid, 0, 2, 6, 8)], grid[2:7])
""",
            fix=Applicability.EXACT,
            trials=("[seen := [], corners(lambda *parts: seen.extend(parts), 3)]",),
        ),
        Example(
            bad="""\
import numpy as np
import torch


def sweep(model, x, rounds: int):
    x = x.to("cuda")
    order = np.arange(64)[::-1].copy()
    for _ in range(rounds):
        x = model(x[order])  # expect
        left = order[order > 3]
        x = x + len(left)
    return x
""",
            good="""\
import numpy as np
import torch


def sweep(model, x, rounds: int):
    x = x.to("cuda")
    order = np.arange(64)[::-1].copy()
    on_device = torch.from_numpy(order).to("cuda")
    for _ in range(rounds):
        x = model(x[on_device])
        left = order[order > 3]
        x = x + len(left)
    return x
""",
        ),
        Example(
            bad="""\
import torch


def allocate(pool, rows: list[int]):
    table = torch.tensor([3, 1, 4])
    pool[rows] = 0  # expect
    return table[rows]


def engine(model, batches):
    pool = torch.ones(128, 8, device="cuda")
    host_rows = torch.tensor([1, 5, 7])
    for batch in batches:
        allocate(pool, [0, 1, 2])
        model(pool[host_rows])  # expect
        model(pool[0], batch)
""",
            good="""\
import torch


def allocate(pool, rows: int):
    table = torch.tensor([3, 1, 4])
    pool[:rows] = 0
    return table[[0, 1]]


def engine(model, batches):
    pool = torch.ones(128, 8, device="cuda")
    rows = torch.tensor([1, 5, 7], device="cuda")
    for batch in batches:
        allocate(pool, 3)
        model(pool[rows])
        model(pool[0], batch)
""",
        ),
    ),
)
