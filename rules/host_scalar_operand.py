"""A 0-dim host tensor where torch uploads it: `torch.where(mask, x, torch.tensor(0.0))`.

## Why it costs
Most operators take a 0-dim host tensor as a number. `torch.where` does not: it moves the scalar to the device with a blocking copy, in
every call.

## Instead
- The Python number itself: `torch.where(mask, x, 0.0)`. The dtype of `x` stays; only where `x` is 0-dim or of another kind (int, float)
  did the scalar tensor's dtype decide.
- A scalar that has to be a tensor: make it on the device once, `torch.zeros((), device=x.device, dtype=x.dtype)`.

`hostlint fix` passes the number of `torch.tensor(0.0)`, `torch.ones(())` and the like, written in place or bound once in the function,
where every float dtype holds it (0.1 is another number in float32 than in float64) or it is an integer from 0 to 127. Then both forms
promote alike and give the same bits. Exact where the other operand is proved to have dimensions, or is a number too; else for review.

## Not flagged
`x * torch.tensor(2.0)`, `x.add_(host_scalar)`, `masked_fill(mask, host_scalar)`, slices assigned from a host scalar: they go in as
numbers. Device scalars and Python numbers in `torch.where`.

## Evidence
NVIDIA H200, torch 2.11:
- `torch.where(m, x, torch.tensor(0.0))`: 1 wait
- `torch.where(m, x, s)`: free
- `x + torch.tensor(2.0)`: free
- `x.add_(hs)`: free
- `x[1:3] = hs`: free
- `x.masked_fill(m, torch.tensor(0.0))`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the call.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.model import Applicability, Confidence
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import text, when, whole

if TYPE_CHECKING:
    import ast

    import libcst as cst

    from hostlint.facts.fact import Fact
    from hostlint.fix.place import Place
    from hostlint.model import Fix


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    uploads = f"`{whole(node)}` uploads a host scalar {when(fact)}, and the host waits for the copy"
    return Problem(f"{uploads}; {_instead(node)}")


def _instead(node: cst.BaseExpression) -> str:
    import libcst as cst

    if isinstance(node, cst.Call):
        for argument in node.args:
            match argument.value:
                case cst.Call(func=cst.Attribute(value=cst.Name("torch"), attr=cst.Name("tensor")), args=[cst.Arg(value=number), *_]):
                    return f"pass `{text(number)}` itself, or make the scalar on the device once"
    return "pass the Python number itself, or make the scalar on the device once"


MOST_INTEGER = 127  # what every integer dtype holds: past it a tensor's value wraps where a Python number raises
FILLED = {"torch.zeros": "0.0", "torch.ones": "1.0"}


def fix(place: Place) -> Fix | None:
    """`torch.where(m, x, torch.tensor(0.0))` to `torch.where(m, x, 0.0)`."""
    import libcst as cst

    match place.node:
        case cst.Call(args=[_, cst.Arg(keyword=None) as one, cst.Arg(keyword=None) as two], func=func) if place.dotted(func) == WHERE:
            operands = (one, two)
            numbers = [_number(place, one.value) for one in operands]
        case _:
            return None
    edits = [place.replace(number, one.value) for one, number in zip(operands, numbers, strict=True) if number]
    if not edits:
        return None
    other = next((place.known.argument(position) for position, number in enumerate(numbers, 1) if not number), None)
    if other is None or (other.is_tensor and other.rank0 is False and other.confidence is Confidence.CERTAIN):
        return place.fix(Applicability.EXACT, "pass the number itself", edits)
    return place.fix(Applicability.REVIEW, "pass the number itself, where the other operand has dimensions", edits)


WHERE = "torch.where"


def _number(place: Place, node: cst.BaseExpression) -> str:
    """The number that a 0-dim host tensor was made of, in source; "" where that is not plain to see, or its dtype decides its value."""
    import ast

    from hostlint.fix.build import bare_code

    source = bare_code(node)
    tree = ast.parse(source, mode="eval").body
    if isinstance(tree, ast.Name):
        tree = _bound_once(place, tree.id) or tree
    match tree:
        case ast.Call(func=func, args=[ast.Tuple(elts=[])], keywords=[]) if _spelled(place, func) in FILLED:
            return FILLED[_spelled(place, func)]
        case ast.Call(func=func, args=[number], keywords=[]) if _spelled(place, func) == "torch.tensor" and _is_alike(number):
            return ast.unparse(number).replace("'", '"')
    return ""


def _spelled(place: Place, func: object) -> str:
    import ast

    import libcst as cst

    return place.dotted(cst.parse_expression(ast.unparse(func))) if isinstance(func, ast.Attribute | ast.Name) else ""


def _bound_once(place: Place, name: str) -> ast.expr | None:
    """What a local name is, if it is bound once in its function and no method writes to it."""
    import ast

    nodes = list(ast.walk(place.function)) if place.function is not None else []
    stores = [node for node in nodes if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)]
    written = any(isinstance(node, ast.Attribute) and node.attr.endswith("_") and ast.unparse(node.value) == name for node in nodes)
    found = [node.value for node in nodes if isinstance(node, ast.Assign) and node.targets == stores]
    return found[0] if len(stores) == 1 and len(found) == 1 and not written else None


def _is_alike(number: ast.expr) -> bool:
    """Whether a number means the same as a tensor and as a Python number: every float dtype holds it, or every integer one does."""
    import ast

    from hostlint.fix.scalars import is_short

    match number:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=float() as value)) | ast.Constant(value=float() as value):
            return is_short(value)
        case ast.Constant(value=int() as value):
            return value <= MOST_INTEGER
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return isinstance(inner, ast.Call) and _is_alike(inner)
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value="inf" | "-inf")], keywords=[]):
            return True
    return False


RULE = Rule(
    code="HL206",
    name="host-scalar-operand",
    summary="a 0-dim host tensor is uploaded by an op that does not take it as a number",
    kinds=(FactKind.HOST_OPERAND,),
    check=check,
    fix=fix,
    examples=(
        Example(
            bad="""\
import torch
from torch import nn


class Shrink(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.limit = nn.Parameter(torch.ones(width))

    def forward(self, x):
        small = self.limit.abs() < 0.1
        kept = torch.where(small, self.limit, torch.tensor(0.0))  # expect
        half = self.limit * torch.tensor(0.5)
        return x * (kept + half)
""",
            good="""\
import torch
from torch import nn


class Shrink(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.limit = nn.Parameter(torch.ones(width))

    def forward(self, x):
        small = self.limit.abs() < 0.1
        kept = torch.where(small, self.limit, 0.0)
        half = self.limit * torch.tensor(0.5)
        return x * (kept + half)
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch


def decode(model, ids, limit: int):
    ids = ids.cuda()
    low = torch.tensor(float("-inf"))
    for _ in range(limit):
        logits = model(ids)
        allowed = ids > 0
        logits = torch.where(allowed, ids.float(), low)  # expect
        logits = logits.masked_fill(allowed, low)
        ids = logits.argmax(-1, keepdim=True)
    return ids
""",
            good="""\
import torch


def decode(model, ids, limit: int):
    ids = ids.cuda()
    low = torch.tensor(float("-inf"))
    for _ in range(limit):
        logits = model(ids)
        allowed = ids > 0
        logits = torch.where(allowed, ids.float(), float("-inf"))
        logits = logits.masked_fill(allowed, low)
        ids = logits.argmax(-1, keepdim=True)
    return ids
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch

net = torch.nn.Linear(16, 16).cuda()


def fit(batches, opt):
    one = torch.ones(())
    for x in batches:
        error = net(x.cuda(non_blocking=True)).abs()
        weight = torch.where(error > 2.0, one, error)  # expect
        (error * weight).mean().backward()
        opt.step()
        opt.zero_grad()
""",
            good="""\
import torch

net = torch.nn.Linear(16, 16).cuda()


def fit(batches, opt):
    one = torch.ones(())
    for x in batches:
        error = net(x.cuda(non_blocking=True)).abs()
        weight = torch.where(error > 2.0, 1.0, error)
        (error * weight).mean().backward()
        opt.step()
        opt.zero_grad()
""",
            fix=Applicability.REVIEW,
        ),
    ),
)
