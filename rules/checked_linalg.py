"""A factorisation or solve that checks its result on the host: `solve`, `inv`, `cholesky`, `svd`, `eigh`.

## Why it costs
To raise an error for a singular or indefinite matrix, torch reads the solver's info flag after every call, so the host waits for the
whole solve. Some (`svd`, `pinv`, `matrix_rank`, `matrix_exp`) read several values.

## Instead
- `torch.linalg.solve_ex(A, b).result`, `inv_ex(A).inverse`, `cholesky_ex(A).L`, `lu_factor_ex(A)`: the same values, but no error for a bad
  matrix. Keep the `info` tensor and look at it every N steps.
- Code that catches the error to choose another way needs the check: it has to choose on the device instead.
- `MultivariateNormal(covariance_matrix=c)`: `scale_tril=` with a factor that is kept.
- `eigh`, `svd`, `lstsq`, `pinv` have no unchecked form: factorise once, before the loop or every N steps.

`hostlint fix --review` writes the `_ex` forms of `solve`, `inv`, `cholesky` and of `lu_factor` where its result is unpacked, and leaves
out `check_errors=True`. A matrix that can be solved gives the same bits, strides and gradients; a bad one gives inf, NaN or a half done
factor where it raised. In a `try` that handles the error the call is left as it is.

## Not flagged
The `_ex` forms; `qr`, `lu`, `det`, `cholesky_solve`, norms, matrix products; matrices on the host.

## Evidence
NVIDIA H200, torch 2.11:
- `torch.linalg.solve(A, b)`: 1 wait
- `torch.linalg.inv(A)`: 1 wait
- `torch.inverse(A)`: 1 wait
- `torch.linalg.eigvalsh(PD)`: 1 wait
- `torch.linalg.svd(A)`: 2 waits
- `torch.linalg.pinv(A)`: 2 waits
- `torch.linalg.lstsq(A, b)`: 1 wait
- `torch.linalg.matrix_exp(A)`: 6 waits
- `torch.linalg.inv_ex(A)`: free
- `torch.linalg.lu_factor_ex(A)`: free
- `torch.linalg.qr(A)`: free
- `torch.linalg.det(A)`: free
- `torch.cholesky_solve(b, PD)`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the line; it is silent on `ldl_factor_ex`, which waits although it is unchecked.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.model import Applicability
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import waits, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact
    from hostlint.fix.place import Place
    from hostlint.model import Fix

UNCHECKED = {
    "solve": "torch.linalg.solve_ex(...).result",
    "inv": "torch.linalg.inv_ex(...).inverse",
    "inverse": "torch.linalg.inv_ex(...).inverse",
    "cholesky": "torch.linalg.cholesky_ex(...).L",
    "lu_factor": "torch.linalg.lu_factor_ex(...)",
}

FACTORISING = frozenset({"MultivariateNormal", "Wishart"})


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"{waits(fact, whole(node))} to check the result; {_instead(node)}")


def _instead(node: cst.BaseExpression) -> str:
    import libcst as cst

    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(name)) | cst.Name(name)) if name.endswith("_ex") and name != "ldl_factor_ex":
            return "leave out `check_errors=True` and look at its info every N steps"
        case cst.Call(func=cst.Attribute(attr=cst.Name(name)) | cst.Name(name)) if name in FACTORISING:
            return "pass `scale_tril=` with a factor that is kept, or one from `torch.linalg.cholesky_ex`"
        case cst.Call(func=cst.Attribute(attr=cst.Name(name)) | cst.Name(name)) if name in UNCHECKED:
            return f"`{UNCHECKED[name]}` gives the same values without the check; look at its info every N steps"
    return "it has no unchecked form: factorise once before the loop or every N steps and keep the result"


FORMS = {
    "torch.linalg.solve": ("solve_ex", ".result"),
    "torch.linalg.inv": ("inv_ex", ".inverse"),
    "torch.inverse": ("inv_ex", ".inverse"),
    "torch.linalg.cholesky": ("cholesky_ex", ".L"),
    "torch.cholesky": ("cholesky_ex", ".L"),
    "torch.linalg.lu_factor": ("lu_factor_ex", "[:2]"),
}  # the unchecked form, and what of its result the checked form gives


def fix(place: Place) -> Fix | None:
    """`torch.linalg.solve(a, b)` to `torch.linalg.solve_ex(a, b).result`."""
    import libcst as cst

    from hostlint.fix.calls import follow, given, is_handled, is_plain, without_argument

    call = place.node
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or is_handled(place):
        return None
    dotted = place.dotted(call.func)
    checked = given(call, "check_errors")
    if dotted.endswith("_ex") and checked is not None:
        return place.fix(Applicability.REVIEW, f"leave the check out: {BAD}", without_argument(place, call, checked))
    if dotted not in FORMS or not is_plain(call, frozenset({"left", "upper", "pivot", "input", "A", "B"})):
        return None
    name, part = FORMS[dotted]
    if name == "lu_factor_ex" and not _is_unpacked(place):
        return None
    renamed = place.replace(name if dotted.startswith("torch.linalg.") else f"linalg.{name}", call.func.attr)
    return place.fix(Applicability.REVIEW, f"do not check: {BAD}", renamed, follow(place, call, part))


BAD = "a singular or indefinite matrix then gives inf, NaN or a half done factor instead of an error"


def _is_unpacked(place: Place) -> bool:
    import ast

    match place.statement:
        case ast.Assign(targets=[ast.Tuple(elts=[_, _])], value=value):
            return place.outline.span(value) == place.fact.span
    return False


RULE = Rule(
    code="HL114",
    name="checked-linalg",
    summary="a linear algebra call checks its result on the host",
    kinds=(FactKind.CHECKED_LINALG,),
    check=check,
    fix=fix,
    examples=(
        Example(
            bad="""\
import torch


def predict(model, x, steps: int):
    lam = torch.linspace(4.0, -4.0, steps, device="cuda")
    for i in range(3, steps):
        matrix = torch.stack([lam[i - 3 : i], lam[i - 3 : i] ** 2, torch.ones_like(lam[i - 3 : i])])
        weights = torch.linalg.solve(matrix, lam[i - 3 : i])  # expect
        x = model(x, weights)
    return x
""",
            good="""\
import torch


def predict(model, x, steps: int):
    lam = torch.linspace(4.0, -4.0, steps, device="cuda")
    for i in range(3, steps):
        matrix = torch.stack([lam[i - 3 : i], lam[i - 3 : i] ** 2, torch.ones_like(lam[i - 3 : i])])
        weights = torch.linalg.solve_ex(matrix, lam[i - 3 : i]).result
        x = model(x, weights)
    return x
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Whiten(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.spread = nn.Parameter(torch.eye(width))

    def forward(self, x):
        factor = torch.linalg.cholesky(self.spread @ self.spread.mT)  # expect
        basis, _ = torch.linalg.qr(self.spread)
        return torch.linalg.solve_triangular(factor, x.mT, upper=False).mT @ basis
""",
            good="""\
import torch
from torch import nn


class Whiten(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.spread = nn.Parameter(torch.eye(width))

    def forward(self, x):
        factor = torch.linalg.cholesky_ex(self.spread @ self.spread.mT).L
        basis, _ = torch.linalg.qr(self.spread)
        return torch.linalg.solve_triangular(factor, x.mT, upper=False).mT @ basis
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch


class Shaped(torch.optim.Optimizer):
    def __init__(self, params, lr: float):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                gram = p.grad @ p.grad.mT
                values, vectors = torch.linalg.eigh(gram)  # expect
                p.sub_(vectors @ (values.rsqrt()[:, None] * (vectors.mT @ p.grad)), alpha=group["lr"])
                p.mul_(1 - torch.linalg.vector_norm(p) * 1e-4)
""",
            good="""\
import torch


class Shaped(torch.optim.Optimizer):
    def __init__(self, params, lr: float):
        super().__init__(params, {"lr": lr})
        self.count = 0

    @torch.no_grad()
    def step(self, closure=None):
        self.count += 1
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if self.count % 100 == 1:
                    state["basis"] = torch.linalg.eigh(p.grad @ p.grad.mT)
                values, vectors = state["basis"]
                p.sub_(vectors @ (values.rsqrt()[:, None] * (vectors.mT @ p.grad)), alpha=group["lr"])
                p.mul_(1 - torch.linalg.vector_norm(p) * 1e-4)
""",
        ),
    ),
)
