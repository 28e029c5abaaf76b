"""Fixes of one expression or statement: what they write, what they say that they assume, and where they are withheld."""
from __future__ import annotations

import pytest

from hostlint.fix.once import fix_text

STEP = """\
import torch
import torch.distributions as D


def steps(model, x: torch.Tensor, a, b, d: torch.device, count: int):
    x = torch.ones(count, 4, device="cuda")
    a = torch.eye(4, device="cuda")
    b = torch.ones(4, device="cuda")
    s = b.mean()
    for i in range(count):
        y = None
        {}
        x = model(x, y)
    return x
"""


def statement(before: str, review: bool = True) -> tuple[str, str]:
    """What the fixes make of a statement of a step loop, and what they say."""
    result = fix_text(STEP.format(before.replace("\n", "\n        ")), "step.py", review=review)
    text = result.files[0].text if result.files else STEP.format(before)
    head, _, rest = text.partition("        y = None\n")
    assert head == STEP.partition("        y = None\n")[0]
    lines = [line.removeprefix("        ") for line in rest.partition("        x = model(x, y)\n")[0].splitlines()]
    return "\n".join(lines), " ".join(one.fix.message for one in result.mended if one.fix is not None)


REVIEWED = [
    ("y = torch.linalg.solve(a, b)", "y = torch.linalg.solve_ex(a, b).result", "singular"),
    ("y = torch.linalg.solve(a, b, left=True).t()", "y = torch.linalg.solve_ex(a, b, left=True).result.t()", "singular"),
    ("y = x.masked_fill(x > 0, s)", "y = torch.where(x > 0, s, x)", "`s` is 0-dim and of the kind of `x`"),
    ("y = torch.masked_fill(x * 2, value=s, mask=x > 0)", "y = torch.where(x > 0, s, x * 2)", "of the kind"),
    ("x.masked_fill_(x > 0, s)", "x.copy_(torch.where(x > 0, s, x))", "of the kind"),
    ("y = torch.sub(x, x + 1, alpha=s)", "y = torch.sub(x, (x + 1) * s)", "rounded before it is added"),
    ("x.sub_(x.exp(), alpha=s)", "x.sub_(x.exp() * s)", "rounded"),
    ("y = torch.addcmul(x, x, b, value=-s)", "y = torch.addcmul(x, x * (-s), b)", "rounded"),
    ("x[torch.where(s > x)] = 0.5", "x[s > x] = 0.5", "`s > x` is boolean"),
    ("x[(x > s).nonzero(as_tuple=True)] = -1", "x[x > s] = -1", "is boolean"),
    ("x[torch.nonzero(x > s, as_tuple=True)] = 0", "x[x > s] = 0", "is boolean"),
    ("y = torch.linalg.inv(a) @ b", "y = torch.linalg.inv_ex(a).inverse @ b", "singular"),
    ("y = torch.inverse(a)", "y = torch.linalg.inv_ex(a).inverse", "singular"),
    ("y = torch.linalg.cholesky(a, upper=True)", "y = torch.linalg.cholesky_ex(a, upper=True).L", "indefinite"),
    ("lu, y = torch.linalg.lu_factor(a)", "lu, y = torch.linalg.lu_factor_ex(a)[:2]", "singular"),
    ("y = torch.linalg.inv_ex(a, check_errors=True).inverse", "y = torch.linalg.inv_ex(a).inverse", "leave the check out"),
    ("try:\n    y = torch.inverse(a)\nfinally:\n    pass", "try:\n    y = torch.linalg.inv_ex(a).inverse\nfinally:\n    pass", "singular"),
    ("y = D.Normal(x, x.abs()).rsample()", "y = D.Normal(x, x.abs(), validate_args=False).rsample()", "do not raise"),
    (
        "y = D.Categorical(\n    logits=x,\n).entropy()",
        "y = D.Categorical(\n    logits=x,\n    validate_args=False,\n).entropy()",
        "do not raise",
    ),
]
SCALARS = """\
import torch
from torch import nn


class Solver:
    def step(self, x: torch.Tensor, d: torch.device, order: int):
        lam = torch.linspace(4.0, -4.0, 9, device="cuda")
        rows = []
        for i in range(order):
            rows.append(lam[i])
        y = None
        {}
        return x * y


def sample(solver: Solver, x, d: torch.device):
    for _ in range(3):
        x = solver.step(x, d, 2)
    return x
"""
STACKS = [
    ("y = torch.tensor(rows, device=d)", "y = torch.stack(rows).to(d)", "`rows` holds at least one 0-dim tensor and nothing else"),
    ("y = torch.tensor(rows, dtype=x.dtype, device=d)", "y = torch.stack(rows).to(d, x.dtype)", "at least one 0-dim tensor"),
    ("y = torch.tensor([lam[0]] * order, device=d)", "y = lam[0].repeat(order).to(d)", "`lam[0]` is a 0-dim tensor"),
    ("y = torch.tensor([lam[0]])", "y = torch.stack([lam[0]])", "which was on the host, may stay on the device"),
    ("rows.append(1.0)\ny = torch.tensor(rows, device=d)", "rows.append(1.0)\ny = stack_scalars(rows, d)", "no gradient"),
    ("rows = [0.5] + rows\ny = torch.tensor(rows, device=d)", "rows = [0.5] + rows\ny = stack_scalars(rows, d)", "0-dim"),
    ("rows.append(0.1)\ny = torch.tensor(rows, device=d)", "", ""),
    ("rows.append(1.0)\ny = torch.tensor(rows, device=d, dtype=x.dtype)", "", ""),
    ("y = torch.tensor([lam[0], *rows], device=d)", "", ""),
    ("y = torch.tensor([lam[0]], device=d, requires_grad=True)", "", ""),
]


@pytest.mark.parametrize(("before", "after", "assumed"), STACKS, ids=[before for before, _, _ in STACKS])
def test_stacks_for_review(before: str, after: str, assumed: str) -> None:
    program = SCALARS.format(before.replace("\n", "\n        "))
    result = fix_text(program, "step.py", review=True)
    if not after:
        assert not result.files
        return
    wanted = SCALARS.format(after.replace("\n", "\n        "))
    assert result.files[0].text[-len(wanted.partition("class")[2]):] == wanted.partition("class")[2]
    assert ("def stack_scalars(values, device):" in result.files[0].text) == ("stack_scalars" in after)
    assert any(one.fix is not None and assumed in one.fix.message for one in result.mended)


def test_a_list_is_stacked_without_its_gradient_where_autograd_may_be_on() -> None:
    program = SCALARS.format('y = torch.tensor([lam[0], lam[1]], device="cuda")')
    assert 'torch.stack([lam[0], lam[1]]).detach().to("cuda")' in fix_text(program, "step.py").files[0].text
    for off in ("@torch.no_grad()", "@torch.inference_mode()", "@torch.no_grad"):
        switched = program.replace("    def step", f"    {off}\n    def step")
        assert 'torch.stack([lam[0], lam[1]]).to("cuda")' in fix_text(switched, "step.py").files[0].text
    for on in ("@torch.inference_mode(False)", "@torch.enable_grad()", "@torch.no_grad()  # and\n    @off"):
        switched = program.replace("    def step", f"    {on}\n    def step").replace("= []", "= []; torch.set_grad_enabled(True)")
        assert 'torch.stack([lam[0], lam[1]]).detach().to("cuda")' in fix_text(switched, "step.py").files[0].text


WRITES = """\
import torch


@torch.no_grad()
def steps(model, count: int):
    for i in range(1, count):
        x = torch.linspace(0.0, i, 8, device="cuda")
        m = x > 1
        y = None
        {}
        model(x, y)
"""
TESTS = [  # after, and whether it is exact
    ("if m.any():\n    x[m] = 0.5", "x[m] = 0.5", True),
    ("if torch.any(x > 2):\n    x[x > 2] = 1\n    x[x > 2] = 3.0  # so", "x[x > 2] = 1\nx[x > 2] = 3.0  # so", True),
    ("if m.any():\n    x[m] = -1.0", "x[m] = -1.0", False),
    ("if m.any():\n    x[m] = 0.1", "x[m] = 0.1", False),
    ("y = model(x)\nif m.any():\n    y[m] = 0.0", "y = model(x)\ny[m] = 0.0", False),
]
TESTS_LEFT = [
    "if m.any():\n    x[m] = x.sum()", "if m.any():\n    x[~m] = 0.0", "if m.any():\n    x[m] = 0.0\nelse:\n    y = x",
    "if m.all():\n    x[m] = 0.0",
    "if m.any(): x[m] = 0.0", "if m.any():\n    x[m] += 1.0", "if m.any():  # why\n    x[m] = 0.0", "if m.any(0):\n    x[m] = 0.0",
    "if m.any():\n    x[m] = 0.0\n    y = 1", "while m.any():\n    x[m] = 0.0",
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "exact"), TESTS, ids=[before for before, _, _ in TESTS])
def test_a_write_that_may_write_nothing_needs_no_test(before: str, after: str, exact: bool) -> None:
    program, wanted = (WRITES.format(text.replace("\n", "\n        ")) for text in (before, after))
    for review in (False, True):
        result = fix_text(program, "step.py", frozenset({"HL103"}), review=review)
        assert [file.text for file in result.files] == ([wanted] if exact or review else [])


@pytest.mark.parametrize("left", TESTS_LEFT)
def test_a_test_that_decides_something_is_left(left: str) -> None:
    program = WRITES.format(left.replace("\n", "\n        "))
    result = fix_text(program, "step.py", frozenset({"HL103"}), review=True)
    assert not any("write without asking" in one.fix.message for one in result.mended if one.fix is not None)


LEFT = [
    "x[torch.where(x > s)] = s",
    "y = x[torch.where(x > s)]",
    "x[torch.where(x > s)] += 1.0",
    "y, i = torch.where(x > s)",
    "y = model(x).masked_fill_(x > 0, s)",
    "y = x.baddbmm(x, x, alpha=s)",
    "try:\n    y = torch.linalg.inv(a)\nexcept torch.linalg.LinAlgError:\n    y = a",
    "y = torch.linalg.lu_factor(a)",
    "y = torch.linalg.solve(a, b, out=a)",
    "y = torch.linalg.eigvalsh(a)",
    "y = D.Normal(x, x.abs(), True)",
    "y = D.Normal(x, x.abs(), validate_args=True)",
    "try:\n    y = D.Normal(x, x.abs())\nexcept ValueError:\n    y = None",
]


@pytest.mark.parametrize(("before", "after", "assumed"), REVIEWED, ids=[before for before, _, _ in REVIEWED])
def test_a_fix_for_review(before: str, after: str, assumed: str) -> None:
    assert statement(before, review=False) == (before, "")
    text, message = statement(before)
    assert text == after
    assert assumed in message


@pytest.mark.parametrize("left", LEFT)
def test_what_is_left(left: str) -> None:
    result = fix_text(STEP.format(left.replace("\n", "\n        ")), "step.py", review=True)
    assert not result.files
    assert result.left


DEBUG = """\
import logging

import torch

log = logging.getLogger(__name__)


class Run:
    def fit(self, model, x, logger, count: int):
        for k in range(1, count):
            loss = torch.linspace(0.0, k, 8, device="cuda").sum()
            {}
            x = model(x, loss)
        return x
"""
DEBUG_LINES = [  # after, and whether it is exact
    ('log.debug(f"loss {loss:.3f}")  # why', 'if log.isEnabledFor(logging.DEBUG):\n    log.debug(f"loss {loss:.3f}")  # why', True),
    ('log.debug(f"{k:4d} {loss}")', 'if log.isEnabledFor(logging.DEBUG):\n    log.debug(f"{k:4d} {loss}")', True),
    ('logging.debug(f"{loss:e}")', 'if logging.getLogger().isEnabledFor(logging.DEBUG):\n    logging.debug(f"{loss:e}")', False),
    ('log.debug(f"{loss:e}")', 'if log.isEnabledFor(logging.DEBUG):\n    log.debug(f"{loss:e}")', True),
    ('log.debug(f"{loss.item():.2f}")', 'if log.isEnabledFor(logging.DEBUG):\n    log.debug(f"{loss.item():.2f}")', False),
    ('log.debug("%.2f" % loss)', 'if log.isEnabledFor(logging.DEBUG):\n    log.debug("%.2f" % loss)', False),
    ('log.debug(f"{loss:d}")', 'if log.isEnabledFor(logging.DEBUG):\n    log.debug(f"{loss:d}")', False),
    ('log.debug(f"{count} {loss}")', 'if log.isEnabledFor(logging.DEBUG):\n    log.debug(f"{count} {loss}")', False),
    ('log.debug(f"{model(x)} {loss}")', 'if log.isEnabledFor(logging.DEBUG):\n    log.debug(f"{model(x)} {loss}")', False),
    ('logger.debug(f"{loss}")', 'if logger.isEnabledFor(logging.DEBUG):\n    logger.debug(f"{loss}")', False),
    ('self.log.debug(f"{loss}")', 'if self.log.isEnabledFor(logging.DEBUG):\n    self.log.debug(f"{loss}")', False),
    (
        'log.debug(\n    f"{loss:.1f}"  # one\n)',
        'if log.isEnabledFor(logging.DEBUG):\n    log.debug(\n        f"{loss:.1f}"  # one\n    )',
        True,
    ),
]
DEBUG_LEFT = [
    'log.info(f"{loss}")', 'print(f"{loss}")', 'x = log.debug(f"{loss}")', 'log.debug(f"{loss}"); k = 1', 'log.debug(f"""{loss}\n""")',
    'if count: log.debug(f"{loss}")', 'model.get().debug(f"{loss}")',
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "exact"), DEBUG_LINES, ids=[before for before, _, _ in DEBUG_LINES])
def test_a_debug_line_goes_behind_its_level(before: str, after: str, exact: bool) -> None:
    program, wanted = (DEBUG.replace("{}", text.replace("\n", "\n            ")) for text in (before, after))
    for review in (False, True):
        result = fix_text(program, "step.py", frozenset({"HL106", "HL101", "HL102"}), review=review)
        assert [file.text for file in result.files] == ([wanted] if exact or review else [])


@pytest.mark.parametrize("left", DEBUG_LEFT)
def test_a_line_that_cannot_go_behind_a_level_is_left(left: str) -> None:
    result = fix_text(DEBUG.replace("{}", left), "step.py", frozenset({"HL106"}), review=True)
    assert not result.files
    assert result.left


def test_where_logging_is_another_module_nothing_is_put_behind_its_level() -> None:
    program = DEBUG.replace("{}", 'log.debug(f"{loss}")').replace("import logging", "from own.utils import logging")
    assert not fix_text(program, "step.py", frozenset({"HL106"}), review=True).files


FLUSH = """\
import torch


def get_free_memory({}) -> int:
    if clear:
        torch.cuda.empty_cache()
    return torch.cuda.mem_get_info()[0]


def fit(model, loader, opt, log):
    for x in loader:
        model(x.cuda(non_blocking=True)).mean().backward()
        opt.step()
        log.debug("free %d", get_free_memory())
"""


@pytest.mark.parametrize("default", ["clear: bool = True", "unit: int = 1, clear=True", "*, clear: bool = True, unit: int = 1"])
def test_a_flush_in_an_observer_is_off_by_default(default: str) -> None:
    result = fix_text(FLUSH.format(default), "step.py", review=True)
    assert [file.text for file in result.files] == [FLUSH.format(default.replace("True", "False"))]
    assert not fix_text(FLUSH.format(default), "step.py").files


def test_a_flush_that_an_observer_always_makes_goes() -> None:
    program = FLUSH.format("").replace("    if clear:\n        torch", "    torch")
    (file,) = fix_text(program, "step.py", review=True).files
    assert file.text == program.replace("    torch.cuda.empty_cache()\n", "")
    assert not fix_text(program, "step.py").files
    told = program.replace("empty_cache()", "empty_cache()  # fragments hide it")
    (file,) = fix_text(told, "step.py", review=True).files
    assert file.text == program.replace("torch.cuda.empty_cache()", "# fragments hide it")


def test_a_flush_that_is_all_a_branch_does_or_gives_its_result_is_left() -> None:
    for flush in ("if torch.cuda.is_available():\n        torch.cuda.empty_cache()", "done = torch.cuda.empty_cache()"):
        program = FLUSH.format("log=None").replace("if clear:\n        torch.cuda.empty_cache()", flush)
        result = fix_text(program, "step.py", review=True)
        assert not result.files
        assert [one.finding.code for one in result.left] == ["HL402"]


ENVIRONMENT = """\
import os

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x) * int({})
        return x
"""


def test_the_environment_is_read_at_import() -> None:
    result = fix_text(ENVIRONMENT.format('os.environ.get("scale", "2")'), "step.py", frozenset({"HL310"}), review=True)
    assert "from torch import nn\n\nSCALE = os.environ.get(\"scale\", \"2\")\n\n\nclass Model" in result.files[0].text
    assert "x = layer(x) * int(SCALE)" in result.files[0].text
    taken = ENVIRONMENT.format('os.getenv("SCALE")').replace("class Model", "SCALE = 3\n\n\nclass Model")
    assert "int(SCALE_2)" in fix_text(taken, "step.py", frozenset({"HL310"}), review=True).files[0].text
    assert not fix_text(taken, "step.py", frozenset({"HL310"})).files


ENVIRONMENT_LEFT = ['os.environ["SCALE"]', 'os.getenv("SCALE", str(len(x)))', 'os.getenv("a-b", "2")', "os.getenv(f'{x}', '2')"]


@pytest.mark.parametrize("left", ENVIRONMENT_LEFT)
def test_another_read_of_the_environment_is_left(left: str) -> None:
    assert not fix_text(ENVIRONMENT.format(left), "step.py", frozenset({"HL310"}), review=True).files


CAST_FILLS = [
    ("torch.full((4,), {}).to(d, torch.uint8)", "-1.0", "3"),
    ("torch.full((4,), {}).long().to(d)", "1e30", "0.5"),
    ("torch.full((4,), dtype=torch.float64, fill_value={}).to(d, torch.int16)", "40000.5", "127"),
    ("torch.full((4,), {}).to(d, torch.long)", "limit", "x.shape[0]"),
    ("torch.full((4,), {}).int().unsqueeze(0).to(d)", "limit", "count"),
]


@pytest.mark.parametrize(("form", "not_held", "held"), CAST_FILLS)
def test_a_fill_that_is_cast_to_ints_is_exact_where_every_dtype_holds_it(form: str, not_held: str, held: str) -> None:
    """A float that an integer dtype cannot hold becomes another number on a GPU than on the host."""

    def fixed(number: str, review: bool) -> str:
        text = STEP.format(f"limit = float('nan') * count\n        y = {form.format(number)}")
        result = fix_text(text, "step.py", {"HL202"}, review)
        return (result.files[0].text if result.files else text).partition("y = torch")[2].partition("\n")[0]

    assert ", device=d)" in fixed(held, False)
    assert ".to(d" in fixed(not_held, False)
    assert ", device=d)" in fixed(not_held, True)


@pytest.mark.parametrize("dtype", ["torch.float16", "torch.double", "torch.bfloat16"])
def test_a_fill_that_is_cast_to_floats_is_exact(dtype: str) -> None:
    assert statement(f"y = torch.full((4,), -0.1).to(d, {dtype})", review=False)[0] == f"y = torch.full((4,), -0.1, device=d).to({dtype})"


FORMS = [
    ("y = torch.tensor(\n    count,\n    device=d,\n)", "y = torch.full(\n    (),\n    count,\n    device=d,\n)"),
    ("y = torch.tensor(\n    [count], device=d\n)", "y = torch.full(\n    (1,), count, device=d\n)"),
    ("y = torch.tensor(\n    [0.5],  # half\n    device=d,\n)", "y = torch.full(\n    (1,), 0.5,  # half\n    device=d,\n)"),
]


@pytest.mark.parametrize(("before", "after"), FORMS)
def test_a_fill_has_the_form_of_the_constructor(before: str, after: str) -> None:
    assert statement(before, review=False)[0] == after
