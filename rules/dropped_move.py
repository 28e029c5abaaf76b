"""`x.to(...)`, `x.cpu()` or `x.cuda()` of a tensor as a statement of its own: the result is dropped.

## Why it costs
A module moves in place, a tensor does not: the call makes a copy, and the copy is thrown away. The name still stands for the tensor where
it was, so that the next operation fails with tensors on two devices, or silently runs on the host, while the copy itself was paid for.

## Instead
- `x = x.to(device, non_blocking=True)`.
- For what a module owns: register it (`register_buffer`), and it moves with the module.

`hostlint fix --review` assigns the result to the name (or attribute) that was to be moved. From there on the program works with the copy,
which is what was meant, but not what it did.

## Not flagged
Modules, batches and other objects whose `to` works in place; values that are not known to be tensors; results that are assigned, returned
or passed on.

## Evidence
The meaning of `Tensor.to`. What the copy costs, on an NVIDIA H200 with torch 2.11:
- `h.cuda()`: 1 wait
- `x.cpu()`: 1 wait

## How to confirm
`print(x.device)` after the statement.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.model import Applicability
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import happens, receiver, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact
    from hostlint.fix.place import Place
    from hostlint.model import Fix


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    moved = receiver(node, fact.subject)
    return Problem(
        f"`{whole(node)}` makes a copy {happens(fact)} and drops it, for a tensor does not move in place: assign it to `{moved}`"
    )


def fix(place: Place) -> Fix | None:
    """`x.to(device)` to `x = x.to(device)`."""
    import ast

    import libcst as cst

    from hostlint.fix.build import bare_code, is_repeatable
    from hostlint.model import Edit, Span

    match place.node:
        case cst.Call(func=cst.Attribute(value=(cst.Name() | cst.Attribute()) as moved)) if is_repeatable(moved):
            name = bare_code(moved)
        case _:
            return None
    if not isinstance(place.statement, ast.Expr) or place.outline.span(place.statement) != place.fact.span:
        return None
    if isinstance(moved, cst.Name) and not _is_own(place, name):
        return None
    at = place.fact.span
    edit = Edit(Span(at.line, at.column, at.line, at.column), f"{name} = ")
    return place.fix(Applicability.REVIEW, f"assign it: what follows then works with the copy of `{name}`", edit)


def _is_own(place: Place, name: str) -> bool:
    """Whether the function binds the name already: another one's would be shadowed by an assignment."""
    import ast

    if place.function is None:
        return False
    arguments = {node.arg for node in ast.walk(place.function.args) if isinstance(node, ast.arg)}
    return name in arguments or any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for statement in place.function.body
        for node in ast.walk(statement)
    )


RULE = Rule(
    code="HL505",
    name="dropped-move",
    summary="the result of moving a tensor is dropped",
    kinds=(FactKind.DROPPED_MOVE,),
    check=check,
    fix=fix,
    examples=(
        Example(
            bad="""\
import torch


def noise(model, shape, steps: int):
    model.to("cuda")
    x = torch.randn(shape)
    x.to("cuda")  # expect
    for i in range(steps):
        x = model(x, i)
    return x
""",
            good="""\
import torch


def noise(model, shape, steps: int):
    model.to("cuda")
    x = torch.randn(shape)
    x = x.to("cuda")
    for i in range(steps):
        x = model(x, i)
    return x
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch


def score(model, tokenizer, ids: torch.Tensor, text: str):
    ids.cuda()  # expect
    batch = tokenizer(text, return_tensors="pt")
    batch.to("cuda")
    return model(ids) + model(**batch)
""",
            good="""\
import torch


def score(model, tokenizer, ids: torch.Tensor, text: str):
    ids = ids.cuda()
    batch = tokenizer(text, return_tensors="pt")
    batch.to("cuda")
    return model(ids) + model(**batch)
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch

weights = torch.linspace(0.0, 1.0, 8)


def weigh(model, x: torch.Tensor):
    weights.to(x.device, torch.float16)  # expect
    return model(x) * weights
""",
            good="""\
import torch


def weigh(model, x: torch.Tensor):
    weights = torch.linspace(0.0, 1.0, 8, device=x.device, dtype=torch.float16)
    return model(x) * weights
""",
        ),
    ),
)
