"""A Python number written to a single element of a device tensor: `stats[0] = 1.0`, `x[index] = 1.0`.

## Why it costs
Writing one element of a 1-D tensor, or the positions of an integer index tensor, makes a 0-dim host tensor of the number and copies it to
the device; the host waits for the copy. It looks like a fill but is none.

## Instead
- One element: a slice, `stats[0:1] = 1.0`, which a kernel fills.
- Positions: `x.index_fill_(0, index, 1.0)`; the number travels as a kernel argument.
- Many elements in turn: build the values on the device (`torch.arange`, `where`) and write them at once.

torch 2.13 and older; newer versions do not copy for the index form.

## Not flagged
Slices; rows of tensors with two or more dimensions; `x[mask] = number`; a device value as the value; host tensors, lists and NumPy.

## Evidence
NVIDIA H200, torch 2.11:
- `x[0] = 1.0`: 1 wait
- `x[idx] = 0.0`: 1 wait
- `x[0] = s`: free
- `x[m] = 0.0`: free
- `x[idx] = y[idx]`: free
- `x.index_fill(0, idx, 1.0)`: free
- `x.fill_(2.0)`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the line.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import text, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    uploads = f"the number written to `{whole(node)}` is uploaded {when(fact)}, and the host waits for the copy"
    return Problem(f"{uploads}; {_instead(node, element='element:' in fact.detail)}")


def _instead(node: cst.BaseExpression, *, element: bool) -> str:
    import libcst as cst

    match node:
        case cst.Subscript(value=base, slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
            return _one(text(base), index, element=element)
    return "write a slice, or use `index_fill_`; both take the number as a kernel argument"


def _one(base: str, index: cst.BaseExpression, *, element: bool) -> str:
    import libcst as cst

    match index:
        case cst.Integer(number) if number.isdecimal():
            return f"write a slice, `{base}[{number}:{int(number) + 1}] = ...`, which a kernel fills"
        case cst.UnaryOperation(cst.Minus(), cst.Integer("1")):
            return f"write a slice, `{base}[-1:] = ...`, which a kernel fills"
        case cst.Name(name) if element:
            return f"write a slice, `{base}[{name}:{name} + 1] = ...`, which a kernel fills"
    if element:
        return "write a slice of length one, which a kernel fills"
    return f"`{base}.index_fill_(0, {text(index)}, ...)` takes the number as a kernel argument"


RULE = Rule(
    code="HL205",
    name="scalar-element-write",
    summary="a Python number written to one element, or through an index tensor, is uploaded",
    kinds=(FactKind.ELEMENT_WRITE,),
    check=check,
    examples=(
        Example(
            bad="""\
import torch


def track(model, frames):
    stats = torch.zeros(8, device="cuda")
    table = torch.zeros(8, 4, device="cuda")
    for frame in frames:
        stats += model(frame.cuda(non_blocking=True))
        stats[0] = 1.0  # expect
        stats[1:2] = 1.0
        table[0] = 1.0
    return stats, table
""",
            good="""\
import torch


def track(model, frames):
    stats = torch.zeros(8, device="cuda")
    table = torch.zeros(8, 4, device="cuda")
    for frame in frames:
        stats += model(frame.cuda(non_blocking=True))
        stats[0:1] = 1.0
        stats[1:2] = 1.0
        table[0] = 1.0
    return stats, table
""",
        ),
        Example(
            bad="""\
import torch


def visit(model, graph, steps: int):
    graph = graph.cuda()
    seen = torch.zeros(1024, device="cuda")
    front = torch.arange(4, device="cuda")
    for _ in range(steps):
        front = model(graph).index_select(0, front).long()
        seen[front] = 1.0  # expect
        seen[seen > 1] = 1.0
    return seen
""",
            good="""\
import torch


def visit(model, graph, steps: int):
    graph = graph.cuda()
    seen = torch.zeros(1024, device="cuda")
    front = torch.arange(4, device="cuda")
    for _ in range(steps):
        front = model(graph).index_select(0, front).long()
        seen.index_fill_(0, front, 1.0)
        seen[seen > 1] = 1.0
    return seen
""",
        ),
        Example(
            bad="""\
import torch


def decode(model, token, limit: int):
    lengths = torch.zeros(16, dtype=torch.int32, device="cuda")
    host = torch.zeros(16, dtype=torch.int32)
    for position in range(limit):
        token = model(token, lengths)
        lengths[-1] = position  # expect
        host[-1] = position
    return token, host
""",
            good="""\
import torch


def decode(model, token, limit: int):
    lengths = torch.zeros(16, dtype=torch.int32, device="cuda")
    host = torch.zeros(16, dtype=torch.int32)
    for position in range(limit):
        token = model(token, lengths)
        lengths[-1:] = position
        host[-1] = position
    return token, host
""",
        ),
    ),
)
