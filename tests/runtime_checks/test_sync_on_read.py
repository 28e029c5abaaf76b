"""SyncOnRead raises in each form that waits for the device on CUDA, in none that does not, and is otherwise the tensor that it plays."""
from __future__ import annotations

import ast
import asyncio
import builtins
import copy
import json
import re
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import hostlint.torch_ops
from hostlint.runtime_checks import CountedUploads, RecordOps, SyncOnRead, allow, forbid_host_syncs

GUARD = "SyncOnRead"
Names = Any  # a dictionary that makes what it is asked for
MakeNames = Callable[..., Names]
_FORMS = json.loads(Path(__file__).with_name("host_read_forms.json").read_text(encoding="utf-8"))
READS = [form for form, *but in _FORMS["reads"] if GUARD not in but]
FREE = [*(form for form, *_ in _FORMS["free"]), *(form for form, *but in _FORMS["reads"] if GUARD in but)]
MEASURED = json.loads((Path(hostlint.torch_ops.__file__).parent / "waits_h200.json").read_text(encoding="utf-8"))["calls"]
SPELLED = {"if s": "bool(s)", "in list": "s in [1.0, 2.0]", "x in list elementwise": "1.0 in x"}
# In these groups what waits is a read; in the others it may be an upload, which this guard lets pass.
READING = {"read", "format", "sizes", "compare", "scalars", "linalg"}
JUDGED = {*READING, "index", "write", "nn", "elementwise"}
# Forms that this guard cannot tell: copies to the host, what logging catches, modules and parameters that are plain here, values of the
# host, tensors that are made inside, sparse results, and calls that need a GPU.
UNTOLD = re.compile(r"cpu|log\.|params|device=d|torch\.tensor\(|\bh[a-z]*\b|\bsp\b|pin|cuda|big|from_dlpack|lin|print")


def played(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.as_subclass(SyncOnRead)


def plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def text_of(value: object) -> str:
    with allow("the test looks at it"):
        return repr(value)


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
    try:
        run(form, names)
    except AssertionError as error:
        return str(error) if str(error).startswith(f"{GUARD}: ") else pytest.fail(f"another failure: {error}")
    return None


@pytest.mark.parametrize("form", READS)
def test_a_read_raises_and_an_allowed_one_gives_what_the_plain_tensor_gives(form: str, measured_names: MakeNames) -> None:
    def names(on_device: Callable[[torch.Tensor], torch.Tensor]) -> Names:
        return measured_names(on_device, reached_by_backward=reached_by_backward)

    assert complaint(form, names(played)) is not None
    with allow("the test reads on purpose"):
        torch.manual_seed(0)
        ours = run(form, names(played))
    torch.manual_seed(0)
    assert "dlpack" in form or form == "torch.empty(n)" or text_of(ours) == text_of(run(form, names(plain)))


@pytest.mark.parametrize("form", FREE)
def test_what_does_not_read_passes(form: str, measured_names: MakeNames) -> None:
    assert complaint(form, measured_names(played)) is None


def test_every_measured_call_raises_where_it_blocks(measured_names: MakeNames) -> None:
    wrong, seen = {}, 0
    for call in MEASURED:
        form = SPELLED.get(call["call"], call.get("source", call["call"]))
        names = measured_names(played)
        if call["group"] not in JUDGED or call["blocks"] is None or UNTOLD.search(form) or not is_known(form, names):
            continue
        try:
            raised = complaint(form, names) is not None
        except (NotImplementedError, RuntimeError, TypeError):  # not on this machine, or not with a subclass
            continue
        seen += 1
        if raised is not call["blocks"] and (raised or call["group"] in READING):
            wrong[form] = raised
    assert wrong == {}
    assert seen > 200


def is_known(form: str, names: Names) -> bool:
    """Whether the form is a statement (some are listed under a label), of names that are known here."""
    try:
        nodes = list(ast.walk(ast.parse(form)))
    except SyntaxError:
        return False
    bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return {node.id for node in nodes if isinstance(node, ast.Name)} - bound <= {*names, *names.makers, *dir(builtins)}


def test_the_complaint_says_what_where_and_what_instead() -> None:
    t = played(torch.tensor([1.0, 2.0]))
    with pytest.raises(AssertionError) as caught:
        t.sum().item()
    first, source, *rest = str(caught.value).splitlines()
    line = test_the_complaint_says_what_where_and_what_instead.__code__.co_firstlineno + 3
    assert first.startswith("SyncOnRead: Tensor.item ")
    assert f"{__file__}:{line} in {test_the_complaint_says_what_where_and_what_instead.__name__}" in first
    assert source.strip() == "t.sum().item()"
    assert "instead: " in rest[0]
    assert "allow(" in rest[1]
    with pytest.raises(AssertionError, match=r"torch takes a number .*in test_the_complaint"):
        torch.full((2,), t[0])  # type: ignore[call-overload]


def test_results_stay_and_have_the_plain_tensors_bits() -> None:
    def steps(x: torch.Tensor, sigma: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        for step in range(3):
            velocity = torch.nn.functional.gelu(x * sigma[step]) @ noise
            x = x + (sigma[step + 1] - sigma[step]) * velocity.to(torch.bfloat16).double()
        return torch.where(x > 0, x, -x).float()

    x, sigma, noise = torch.randn(4, 4, dtype=torch.float64), torch.linspace(1, 0, 4, dtype=torch.float64), torch.randn(4, 4).double()
    ours = steps(x, played(sigma), noise)
    assert type(ours) is SyncOnRead
    assert torch.equal(ours.as_subclass(torch.Tensor).view(torch.int32), steps(x, sigma, noise).view(torch.int32))


def test_what_ops_return_is_the_subclass_also_in_sequences_and_of_a_subclass() -> None:
    class Own(SyncOnRead):
        pass

    t = torch.arange(6.0).as_subclass(Own)
    assert [type(part) for part in (*t.chunk(3), *t.max(0), t.view(2, 3), t.add_(1), copy.deepcopy(t), t.detach())] == [Own] * 9
    assert type(t.as_subclass(torch.Tensor)) is torch.Tensor
    assert t.as_subclass(torch.Tensor).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_cpu_gives_a_copy_that_reads_freely_and_to_does_not() -> None:
    t = played(torch.tensor([1.0, 2.0]))
    copied = t.cpu()
    copied[0] = 5.0
    assert type(copied) is torch.Tensor
    assert (copied[0].item(), t.cpu()[0].item()) == (5.0, 1.0)
    assert type(t.to("cpu")) is type(t.to(t.device)) is SyncOnRead


def test_autograd_views_and_inplace_work_as_on_a_plain_tensor() -> None:
    def gradient(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y[1:].mul_(3)
        (y.view(2, 2) ** 2).sum().backward()  # type: ignore[no-untyped-call]
        assert x.grad is not None
        return x.grad.cpu()

    assert gradient(played(torch.arange(4.0)).requires_grad_()).tolist() == gradient(torch.arange(4.0).requires_grad_()).tolist()
    layer = torch.nn.Linear(4, 2)
    layer(played(torch.ones(4))).sum().backward()
    torch.optim.AdamW(layer.parameters()).step()
    assert type(layer.weight) is torch.nn.Parameter


def test_allow_lets_reads_through_by_rule_and_only_inside() -> None:
    t = played(torch.tensor([1.0, 2.0]))
    with allow("only item", rules=["device-item"]):
        assert t[0].item() == 1.0
        with pytest.raises(AssertionError):
            t.tolist()
        with pytest.raises(AssertionError):
            torch.nonzero(t)
    with allow("everything"):
        t[t > 1] = t[t > 1] * 2
        assert (t.tolist(), type(t[t > 0])) == ([1.0, 4.0], SyncOnRead)
    with pytest.raises(AssertionError):
        t[0].item()


def test_the_guard_goes_with_the_tensor_into_threads_and_tasks() -> None:
    t = played(torch.tensor([1.0, 2.0]))
    raised: list[str] = []

    def read() -> None:
        try:
            t.tolist()
        except AssertionError:
            raised.append(threading.current_thread().name)

    with allow("this thread only"):
        thread = threading.Thread(target=read, name="other")
        thread.start()
        thread.join()

    async def task() -> None:
        read()

    asyncio.run(task())
    assert raised == ["other", threading.current_thread().name]


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_scripted_code_and_custom_operators_are_seen_below_python() -> None:
    scripted = torch.jit.script(_scripted)
    with pytest.raises(RuntimeError):  # TorchScript's interpreter keeps the exception, but not its type
        scripted(played(torch.ones(3)))
    assert scripted(torch.ones(3)) == 3.0


def _scripted(x: torch.Tensor) -> float:
    return float(x.sum().item())


def test_works_under_the_other_guards() -> None:
    t = played(torch.tensor([1.0, 2.0]))
    with RecordOps() as ops, forbid_host_syncs():
        result = (t * 2).to(torch.float64)
        with pytest.raises(AssertionError):
            t.tolist()
    assert type(result) is SyncOnRead
    assert (ops.casts(torch.float64), ops.uploads()) == (1, [])
    assert torch.ops.aten.mul.Tensor in [op for op, _, _ in ops.calls]
    CountedUploads.uploads = 0
    t.copy_(torch.ones(2).as_subclass(CountedUploads))
    assert type(t + torch.tensor(1.0).as_subclass(CountedUploads)) is SyncOnRead
    assert CountedUploads.uploads == 1


def test_a_compiled_layer_passes_and_its_reads_are_seen() -> None:
    layer = torch.nn.Linear(4, 4)
    compiled = torch.compile(lambda x: layer(x).relu() * 2, backend="eager")
    x = torch.randn(2, 4)
    with torch.no_grad():
        ours = compiled(played(x))
        assert type(ours) is SyncOnRead
        assert torch.equal(ours.as_subclass(torch.Tensor), compiled(x))
    for read in (lambda x: x.sum().tolist(), lambda x: x[x > 0], lambda x: torch.full((2,), x.sum())):
        with pytest.raises(AssertionError, match=GUARD):
            torch.compile(read, backend="eager")(played(torch.ones(3)))
    torch._dynamo.reset()
