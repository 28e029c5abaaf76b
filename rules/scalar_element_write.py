"""A Python number written to a single element of a device tensor: `stats[0] = 1.0`, `x[index] = 1.0`.

## Why it costs
Writing one element of a 1-D tensor, or the positions of an integer index tensor, makes a 0-dim host tensor of the number and copies it to
the device; the host waits for the copy. It looks like a fill but is none.

## Instead
- One element: `stats[0].fill_(1.0)`, or a slice, `stats[0:1] = 1.0`, which a kernel fills. A slice past the end writes nothing, where the
  element is an error.
- Positions: `x[index] = x.new_full((), 1.0)`, a number that is made on the device, or `x.index_fill_(0, index, 1.0)` for a 1-D int64 index.
- Many elements in turn: build the values on the device (`torch.arange`, `where`) and write them at once.

`hostlint fix` writes `stats[0].fill_(1.0)` for one proved host integer and `x[index] = x.new_full((), 1.0)` for every other index: both
take the same view or index as before and give the number the dtype of `x` by the same conversion, errors for a place outside and for a
number that the dtype cannot hold included (where both are wrong, the other one may come first). It is exact where `x` is proved to be a
tensor.

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
from hostlint.model import Applicability, Confidence
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import text, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact
    from hostlint.fix.place import Place
    from hostlint.model import Fix


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    uploads = f"the number written to `{whole(node)}` is uploaded {when(fact)}, and the host waits for the copy"
    return Problem(f"{uploads}; {_instead(node, element='element:' in fact.detail)}")


def _instead(node: cst.BaseExpression, *, element: bool) -> str:
    import libcst as cst

    match node:
        case cst.Subscript(value=base, slice=[cst.SubscriptElement(slice=cst.Index(value=index))]) if not isinstance(index, cst.Tuple):
            return _one(text(base), index, element=element)
        case cst.Subscript(value=base) if not element:
            return f"write `{text(base)}.new_full((), ...)` in the number's place: a kernel makes it"
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


def fix(place: Place) -> Fix | None:
    """`x[0] = 1.0` to `x[0].fill_(1.0)`; `x[index] = 1.0` to `x[index] = x.new_full((), 1.0)`."""
    import ast

    import libcst as cst

    from hostlint.fix.build import bare_code, is_repeatable

    written = place.statement
    if not isinstance(place.node, cst.Subscript) or not isinstance(written, ast.Assign) or len(written.targets) != 1:
        return None
    if place.outline.span(written.targets[0]) != place.fact.span or not is_repeatable(place.node.value):
        return None
    base, number = bare_code(place.node.value), place.outline.source(place.outline.span(written.value))
    if _is_one(place, place.node) and "\n" not in number:
        edit = place.replace(f"{bare_code(place.node)}.fill_({number})", written)
    else:
        edit = place.replace(f"{base}.new_full((), {number})", written.value)
    proved = place.known.container
    if proved.is_tensor and proved.confidence is Confidence.CERTAIN:
        return place.fix(Applicability.EXACT, "write a number that a kernel makes", edit)
    return place.fix(Applicability.REVIEW, f"write a number that a kernel makes, where `{base}` is a tensor", edit)


def _is_one(place: Place, node: cst.Subscript) -> bool:
    """Whether the index is one host integer: then `x[i]` is a view; of an index tensor it would be a copy."""
    import libcst as cst

    from hostlint.values.value import Place as Lives

    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.Integer() | cst.UnaryOperation(cst.Minus(), cst.Integer())))]:
            return True
        case [cst.SubscriptElement(slice=cst.Index(value=cst.Name()))]:
            index = place.known.index
            return index.place is Lives.PYTHON and bool(index.integer) and index.confidence is Confidence.CERTAIN
    return False


RULE = Rule(
    code="HL205",
    name="scalar-element-write",
    summary="a Python number written to one element, or through an index tensor, is uploaded",
    kinds=(FactKind.ELEMENT_WRITE,),
    check=check,
    fix=fix,
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
        stats[0].fill_(1.0)
        stats[1:2] = 1.0
        table[0] = 1.0
    return stats, table
""",
            fix=Applicability.EXACT,
            trials=("track(lambda x: x * 2, [type('Frame', (), {'cuda': lambda self, non_blocking: torch.arange(8.0)})()] * 2)",),
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
        seen[front] = seen.new_full((), 1.0)
        seen[seen > 1] = 1.0
    return seen
""",
            fix=Applicability.EXACT,
            trials=("visit(lambda graph: torch.arange(9).flip(0), torch.zeros(1), 3)",),
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
        lengths[-1].fill_(position)
        host[-1] = position
    return token, host
""",
            fix=Applicability.EXACT,
            trials=("decode(lambda token, lengths: token + lengths.sum(), torch.tensor(1), 4)",),
        ),
    ),
)
