"""forbid_host_syncs raises where code would wait on CUDA, wherever the call comes from, and lets everything else through untouched."""
from __future__ import annotations

import ast
import asyncio
import builtins
import json
import re
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import hostlint.torch_ops
from hostlint.runtime_checks import allow, forbid_host_syncs

GUARD = "forbid_host_syncs"
Names = Any  # a dictionary that makes what it is asked for
MakeNames = Callable[..., Names]
_FORMS = json.loads(Path(__file__).with_name("host_read_forms.json").read_text(encoding="utf-8"))
READS = [form for form, *but in _FORMS["reads"] if GUARD not in but]
FREE = [*(form for form, *_ in _FORMS["free"]), *(form for form, *but in _FORMS["reads"] if GUARD in but)]
MEASURED = json.loads((Path(hostlint.torch_ops.__file__).parent / "waits_h200.json").read_text(encoding="utf-8"))["calls"]
# In these groups what waits is a read; in the others it may be an upload, which this guard lets pass.
READING = {"read", "format", "sizes", "compare", "scalars", "linalg"}
JUDGED = {*READING, "index", "write", "nn", "elementwise"}
# Forms that this guard cannot tell: copies to the host, what logging catches, values of the host, lengths of sequences, sparse tensors,
# storages, and calls that need a GPU.
UNTOLD = re.compile(r"cpu|log\.|\bh[a-z]*\b|\bsp\b|pin|cuda|big|dlpack|storage|print|torch\.tensor\(|unpad|Normal\(0")


def plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def reached_by_backward(x: torch.Tensor) -> torch.Tensor:
    weight = torch.ones(len(x), requires_grad=True)
    (weight * x).sum().backward()  # type: ignore[no-untyped-call]
    assert weight.grad is not None
    return weight.grad[0]


def run(form: str, names: Names) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own: a list as an index, a tensor made of a tensor
        try:
            return eval(form, {}, names)  # noqa: S307  the forms are ours
        except SyntaxError:
            exec(form, {}, names)  # noqa: S102
            return None


def complaint(form: str, names: Names) -> str | None:
    for name in used(form):
        if name in names.makers:
            names[name]  # made before the guard is on
    try:
        with forbid_host_syncs():
            run(form, names)
    except AssertionError as error:
        return str(error) if str(error).startswith(f"{GUARD}: ") else pytest.fail(f"another failure: {error}")
    return None


def used(form: str) -> set[str]:
    """The names that a form needs; one that is no statement, but a label, needs the impossible."""
    try:
        nodes = list(ast.walk(ast.parse(form)))
    except SyntaxError:
        return {"no name"}
    bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return {node.id for node in nodes if isinstance(node, ast.Name)} - bound


@pytest.mark.parametrize("form", READS)
def test_a_read_raises_and_an_allowed_one_passes(form: str, measured_names: MakeNames) -> None:
    assert complaint(form, measured_names(plain, reached_by_backward=reached_by_backward)) is not None
    with allow("the test reads on purpose"):
        assert complaint(form, measured_names(plain, reached_by_backward=reached_by_backward)) is None


@pytest.mark.parametrize("form", FREE)
def test_what_does_not_read_passes(form: str, measured_names: MakeNames) -> None:
    assert complaint(form, measured_names(plain)) is None


def test_every_measured_call_raises_where_it_blocks(measured_names: MakeNames) -> None:
    wrong, seen = {}, 0
    for call in MEASURED:
        names, form = measured_names(plain), call["call"]
        known = used(form) <= {*names, *names.makers, *dir(builtins)}
        if call["group"] not in JUDGED or call["blocks"] is None or UNTOLD.search(form) or not known:
            continue
        try:
            raised = complaint(form, names) is not None
        except (NotImplementedError, RuntimeError, TypeError):  # not on this machine
            continue
        seen += 1
        if raised is not call["blocks"] and (raised or call["group"] in READING):
            wrong[form] = raised
    assert wrong == {}
    assert seen > 200


def test_the_complaint_names_the_innermost_function_outside_torch() -> None:
    def inner(x: torch.Tensor) -> bool:
        return bool(x.sum() > 0)

    with pytest.raises(AssertionError) as caught, forbid_host_syncs():
        inner(torch.ones(3))
    first, source, *rest = str(caught.value).splitlines()
    line = inner.__code__.co_firstlineno + 1
    assert re.search(rf"{re.escape(__file__)}:{line} in \S*inner$", first)
    assert source.strip() == "return bool(x.sum() > 0)"
    assert "instead: " in rest[0]


def _read(x: torch.Tensor) -> float:
    return x.sum().item()


def _caller(x: torch.Tensor) -> float:
    return _read(x) + x.max().item()


def test_allow_covers_a_functions_own_call_sites_only() -> None:
    x = torch.ones(3)
    with forbid_host_syncs(allow=("runtime_checks/test_forbid_host_syncs.py:_read",)):
        assert _read(x) == 3.0
        with pytest.raises(AssertionError):
            _caller(x)
    with forbid_host_syncs(allow=["test_forbid_host_syncs.py:_caller"]), pytest.raises(AssertionError, match="in _read"):
        _caller(x)
    with forbid_host_syncs(allow=["test_forbid_host_syncs.py:_caller", "test_forbid_host_syncs.py:_read"]):
        assert _caller(x) == 4.0
    with pytest.raises(ValueError, match="end of path:function"):
        forbid_host_syncs(allow=("no function",))


def test_allow_by_rule_covers_what_the_call_does_below_as_well() -> None:
    x = torch.ones(3)
    with forbid_host_syncs(), allow("one kind", rules=["device-scalar-cast"]):
        assert float(x[0]) == 1.0
        with pytest.raises(AssertionError):
            x[0].item()


def test_modes_are_restored_after_exceptions_and_every_guard_of_a_nest_counts() -> None:
    x, guard = torch.ones(3), forbid_host_syncs()
    with pytest.raises(ZeroDivisionError), guard:
        raise ZeroDivisionError
    assert x.tolist() == [1.0] * 3
    for _ in range(2):
        with guard, pytest.raises(AssertionError):
            x.tolist()
    with guard, forbid_host_syncs(allow=["test_forbid_host_syncs.py:_read"]), guard, pytest.raises(AssertionError):
        _read(x)  # the outer one does not allow it
    with guard:
        with forbid_host_syncs(allow=["test_forbid_host_syncs.py:_read"]):
            pass
        with pytest.raises(AssertionError):
            _read(x)
    assert _read(x) == 3.0
    assert torch._C._len_torch_function_stack() == 0
    assert torch._C._len_torch_dispatch_stack() == 0


def test_other_modes_still_work_inside_and_outside() -> None:
    x = torch.ones(4, 4)
    with FlopCounterMode(display=False) as outer, forbid_host_syncs(), FlopCounterMode(display=False) as inner:
        x @ x
        with pytest.raises(AssertionError):
            x.sum().item()
    assert outer.get_total_flops() == inner.get_total_flops() == 128


def test_threads_that_the_body_starts_are_guarded_until_it_ends() -> None:
    x, raised, go, ready = torch.ones(3), [], threading.Event(), threading.Event()

    def read(name: str) -> None:
        try:
            x.tolist()
        except AssertionError:
            raised.append(name)

    def outliving() -> None:
        read("inside")
        ready.set()
        go.wait()
        read("after")

    with forbid_host_syncs():
        inner = threading.Thread(target=outliving)
        inner.start()
        ready.wait()
    go.set()
    inner.join()
    free = threading.Thread(target=read, args=("outside",))
    free.start()
    free.join()
    assert raised == ["inside"]


def test_interleaved_tasks_are_guarded_each_for_itself() -> None:
    x, seen = torch.ones(3), []

    def reads() -> bool:
        try:
            x.tolist()
        except AssertionError:
            return True
        return False

    async def guarded(name: str, entered: asyncio.Event, leave: asyncio.Event) -> None:
        with forbid_host_syncs():
            entered.set()
            await leave.wait()
            seen.append((name, reads()))
        seen.append((f"{name} left", reads()))

    async def main() -> None:
        first_in, first_out, second_in, second_out = (asyncio.Event() for _ in range(4))
        first = asyncio.create_task(guarded("first", first_in, first_out))
        await first_in.wait()
        second = asyncio.create_task(guarded("second", second_in, second_out))
        await second_in.wait()
        seen.append(("bystander", reads()))
        first_out.set()  # entered first, leaves first: not the order of a stack
        await first
        second_out.set()
        await second

    asyncio.run(main())
    assert seen == [("bystander", False), ("first", True), ("first left", False), ("second", True), ("second left", False)]
    assert torch._C._len_torch_function_stack() == 0


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_scripted_code_and_backward_passes_are_seen() -> None:
    scripted = torch.jit.script(_scripted)
    with pytest.raises(RuntimeError), forbid_host_syncs():  # TorchScript's interpreter keeps the exception, but not its type
        scripted(torch.ones(3))

    class Reading(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient * gradient.sum().item()

    x = torch.ones(3, requires_grad=True)
    loss = Reading.apply(x).sum()  # type: ignore[no-untyped-call]
    with pytest.raises(AssertionError, match=r"in \S*backward"), forbid_host_syncs():
        loss.backward()


def _scripted(x: torch.Tensor) -> float:
    return float(x.sum().item())


def test_a_number_of_the_host_may_fill_a_mask_but_a_device_scalar_may_not() -> None:
    x = torch.ones(3)
    with forbid_host_syncs():
        x.masked_fill(x > 0, torch.tensor(0.0))
        x[x > 0] = torch.tensor(0.0)
        with pytest.raises(AssertionError):
            x.masked_fill(x > 0, torch.tensor(0.0, device="cpu"))
        with pytest.raises(AssertionError):
            x[x > 0] = x.sum()


def test_training_steps_pass_with_untouched_results() -> None:
    def train(optimizer: str, **options: Any) -> torch.Tensor:
        torch.manual_seed(0)
        layer = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 2))
        stepping = getattr(torch.optim, optimizer)(layer.parameters(), lr=0.1, **options)
        for _ in range(2):
            loss = torch.nn.functional.cross_entropy(layer(torch.randn(3, 4)), torch.tensor([0, 1, 1]))
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
            stepping.step()
            stepping.zero_grad()
        return torch.cat([parameter.detach().flatten() for parameter in layer.parameters()])

    for optimizer, options in (("AdamW", {}), ("Adam", {"foreach": True}), ("SGD", {"momentum": 0.9})):
        with forbid_host_syncs():
            guarded = train(optimizer, **options)
        assert torch.equal(guarded.view(torch.int32), train(optimizer, **options).view(torch.int32))


def test_a_compiled_layer_passes_and_what_it_reads_is_seen() -> None:
    layer = torch.nn.Linear(4, 4)
    compiled = torch.compile(lambda x: layer(x).relu() * 2, backend="eager")
    reading = torch.compile(lambda x: x * x.sum().item(), backend="eager")
    x = torch.randn(2, 4)
    with torch.no_grad(), forbid_host_syncs():
        first, second = compiled(x), compiled(x)
        for _ in range(2):
            with pytest.raises(AssertionError, match=GUARD):
                reading(x)
    assert torch.equal(first, second)
    assert torch.equal(first, (layer(x).relu() * 2).detach())
    with forbid_host_syncs(allow=["test_forbid_host_syncs.py:_read"]):
        assert torch.compile(_read, backend="eager")(torch.ones(3)) == 3.0  # what follows a graph break is still that function
    torch._dynamo.reset()
