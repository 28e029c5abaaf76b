"""A real call of torch is judged by the table: which forms wait, of which kind, under which name; the others cost one look-up."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the name that everybody gives it
from torch.overrides import TorchFunctionMode

from hostlint.facts.kinds import FactKind
from hostlint.runtime_checks.calls import KINDS, Verdict, bytes_moved, judge_call, judge_named, known_wait
from hostlint.runtime_checks.events import EventKind
from hostlint.values.value import Place

DEVICE: set[int] = set()


def on_device(tensor: torch.Tensor) -> torch.Tensor:
    DEVICE.add(tensor.data_ptr())
    return tensor


x: Any = on_device(torch.arange(16.0))
X: Any = on_device(torch.eye(16))
s: Any = on_device(torch.tensor(2.0))
n: Any = on_device(torch.tensor(3))
m: Any = on_device(torch.arange(16) > 3)
idx: Any = on_device(torch.tensor([0, 2, 3]))
h: Any = torch.zeros(16)
hm: Any = h > 1
hidx = torch.tensor([0, 2])
big = torch.zeros(1 << 20)


def place(tensor: torch.Tensor) -> Place:
    return Place.DEVICE if tensor.data_ptr() in DEVICE else Place.HOST


class Judge(TorchFunctionMode):
    """Judges every call; runs none of those that it has a verdict on."""

    def __init__(self) -> None:
        super().__init__()
        self.verdicts: list[Verdict] = []

    def __torch_function__(
        self, func: Callable[..., object], types: object, args: tuple[object, ...] = (), kwargs: Mapping[str, object] | None = None
    ) -> object:
        found = judge_call(func, args, kwargs, place)
        if found is not None:
            self.verdicts.append(found)
        return func(*args, **(kwargs or {}))


def verdicts(call: Callable[[], object]) -> list[Verdict]:
    judge = Judge()
    with judge:
        call()
    return judge.verdicts


def write(index: object, value: object) -> Callable[[], None]:
    return lambda: x.clone().__class__.__setitem__(x, index, value)


WAITS = {
    "item": (s.item, FactKind.ITEM, "Tensor.item"),
    "float": (lambda: float(s), FactKind.SCALAR_CAST, "Tensor.__float__"),
    "bool": (lambda: bool(s), FactKind.TRUTH_TEST, "Tensor.__bool__"),
    "range": (lambda: range(n), FactKind.INDEX, "Tensor.__index__"),
    "text": (lambda: f"{s}", FactKind.FORMAT, "Tensor.__format__"),
    "print": (lambda: str(x), FactKind.FORMAT, "Tensor.__repr__"),
    "tolist": (x.tolist, FactKind.TOLIST, "Tensor.tolist"),
    "cpu": (x.cpu, FactKind.HOST_COPY, "Tensor.cpu"),
    "to a name": (lambda: x.to("cpu"), FactKind.HOST_COPY, "Tensor.to"),
    "to a host tensor": (lambda: x.to(h), FactKind.HOST_COPY, "Tensor.to"),
    "mask": (lambda: x[m], FactKind.MASK_READ, "Tensor.__getitem__"),
    "mask among others": (lambda: X[:, m], FactKind.MASK_READ, "Tensor.__getitem__"),
    "0-dim index": (lambda: x[n], FactKind.INDEX, "Tensor.__getitem__"),
    "slice": (lambda: x[:n], FactKind.INDEX, "Tensor.__getitem__"),
    "list index": (lambda: x[[0, 2]], FactKind.HOST_INDEX, "Tensor.__getitem__"),
    "array index": (lambda: x[np.array([0, 2])], FactKind.HOST_INDEX, "Tensor.__getitem__"),
    "host index": (lambda: x[hidx], FactKind.HOST_INDEX, "Tensor.__getitem__"),
    "element write": (write(0, 1.0), FactKind.ELEMENT_WRITE, "Tensor.__setitem__"),
    "index write": (write(idx, 1.0), FactKind.ELEMENT_WRITE, "Tensor.__setitem__"),
    "mask write": (write(m, s), FactKind.MASK_WRITE, "Tensor.__setitem__"),
    "host mask write": (write(hm, 0.0), FactKind.HOST_INDEX, "Tensor.__setitem__"),
    "alpha": (lambda: torch.add(x, x, alpha=s), FactKind.SCALAR_ARGUMENT, "torch.add"),
    "full": (lambda: torch.full((2,), s), FactKind.SCALAR_ARGUMENT, "torch.full"),
    "size": (lambda: torch.zeros(n), FactKind.INDEX, "torch.zeros"),
    "tensors": (lambda: torch.tensor([s, s]), FactKind.TENSOR_OF_TENSORS, "torch.tensor"),
    "nonzero": (lambda: torch.where(m), FactKind.NONZERO, "torch.where"),
    "unique": (lambda: torch.unique(idx), FactKind.DATA_DEPENDENT_SIZE, "torch.unique"),
    "one_hot": (lambda: F.one_hot(idx), FactKind.DATA_DEPENDENT_SIZE, "torch.nn.functional.one_hot"),
    "inverse": (lambda: torch.linalg.inv(X), FactKind.CHECKED_LINALG, "torch.linalg.inv"),
    "equal": (lambda: torch.equal(x, x), FactKind.EQUALITY, "torch.equal"),
    "copy_": (lambda: x.copy_(h), FactKind.BLOCKING_UPLOAD, "Tensor.copy_"),
    "host operand": (lambda: torch.where(m, x, torch.tensor(0.0)), FactKind.HOST_OPERAND, "torch.where"),
    "operator": (lambda: torch.ops.aten.nonzero(m), FactKind.NONZERO, "torch.ops.aten.nonzero"),
}


@pytest.mark.parametrize("name", WAITS)
def test_a_call_that_waits(name: str) -> None:
    call, fact, spelled = WAITS[name]
    found = verdicts(call)
    assert [(one.fact, one.call) for one in found] == [(fact, spelled)]
    assert found[0].kind is KINDS[fact]


FREE = {
    "arithmetic": lambda: x * s + 1.0, "shape": lambda: x.shape, "slice": lambda: x[1:3], "int index": lambda: X[0],
    "index": lambda: x[idx], "host mask": lambda: x[hm], "mask write of a number": write(m, 0.0),
    "write of a tensor": write(0, s), "row write": lambda: X.__setitem__(0, 1.0), "same device": lambda: x.to(x),
    "dtype": lambda: x.to(torch.float64), "host item": lambda: h.sum().item(), "host mask read": lambda: h[hm],
    "count": lambda: F.one_hot(idx, 4), "three arguments": lambda: torch.where(m, x, s), "factory": lambda: torch.zeros(3),
    "host list": lambda: torch.tensor([1.0, 2.0]), "view": lambda: x.view(4, 4), "unchecked": lambda: torch.linalg.inv_ex(X),
}  # fmt: skip


@pytest.mark.parametrize("name", FREE)
def test_a_call_that_does_not_wait(name: str) -> None:
    assert verdicts(FREE[name]) == []


@pytest.mark.parametrize(
    ("func", "args", "kwargs", "fact"),
    [
        (torch.Tensor.to, (h, "cuda"), {}, FactKind.BLOCKING_UPLOAD),
        (torch.Tensor.to, (h, torch.device("cuda", 0)), {"non_blocking": True}, None),
        (torch.Tensor.to, (big, 0), {"non_blocking": True}, FactKind.PAGEABLE_NON_BLOCKING),
        (torch.Tensor.cuda, (h,), {}, FactKind.BLOCKING_UPLOAD),
        (torch.Tensor.to, (x, "cpu"), {"non_blocking": True}, None),
        (torch.tensor, ([1.0],), {"device": "cuda"}, FactKind.UPLOAD_CONSTRUCTOR),
        (torch.as_tensor, (np.zeros(2),), {"device": torch.device("cuda")}, FactKind.UPLOAD_CONSTRUCTOR),
        (torch.full, ((), 2.0), {"device": "cuda"}, None),
        (torch.Tensor.new_tensor, (x, [1.0]), {}, FactKind.UPLOAD_CONSTRUCTOR),
    ],
)
def test_moves_and_constructors(
    func: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object], fact: FactKind | None
) -> None:
    found = judge_call(func, args, kwargs, place)
    assert (found.fact if found else None) is fact


def test_pinned_memory_is_asked_for() -> None:
    assert judge_call(torch.Tensor.to, (big, "cuda"), {"non_blocking": True}, place, is_pinned=lambda _: True) is None
    blocking = judge_call(torch.Tensor.to, (big, "cuda"), {}, place, is_pinned=lambda _: True)
    assert blocking is not None
    assert blocking.evidence == "pbig.to(d)"


def test_what_the_debug_mode_does_not_report_is_marked() -> None:
    found = [
        judge_call(torch.unique, (X,), {"dim": 0}, place),
        judge_call(torch.unique, (idx,), {}, place),
        judge_call(torch.Tensor.to, (big, "cuda"), {"non_blocking": True}, place),
    ]
    assert [one.silent for one in found if one] == [True, False, True]


def test_a_composite_is_judged_by_name() -> None:
    strict = judge_named("torch.nn.utils.clip_grad_norm_", ([x], 1.0), {"error_if_nonfinite": True}, place)
    assert strict is not None
    assert (strict.kind, strict.fact, strict.measured) == (EventKind.HIDDEN_WAIT, FactKind.HIDDEN_WAIT, True)
    assert judge_named("torch.nn.utils.clip_grad_norm_", ([x], 1.0), {}, place) is None
    assert judge_named("torch.nothing", (), {}, place) is None


def test_a_call_that_was_seen_to_wait_always_has_a_kind() -> None:
    assert known_wait(torch.Tensor.item, (s,), {}, place).fact is FactKind.ITEM
    assert known_wait(torch.linalg.inv, (h,), {}, place).fact is FactKind.CHECKED_LINALG
    unknown = known_wait(torch.matmul, (h, h), {}, place)
    assert (unknown.kind, unknown.call) == (EventKind.HIDDEN_WAIT, "torch.matmul")


def test_bytes_are_those_that_move() -> None:
    assert [bytes_moved(found, (x,), x.tolist()) for found in verdicts(x.tolist)] == [64]
    upload = judge_call(torch.tensor, ([1.0, 2.0],), {"device": "cuda"}, place)
    assert upload is not None
    assert bytes_moved(upload, ([1.0, 2.0],), torch.tensor([1.0, 2.0])) == 8
    assert [bytes_moved(found, (m,), None) for found in verdicts(m.nonzero)] == [None]


def test_nothing_is_read_to_judge() -> None:
    class Sealed(TorchFunctionMode):
        def __torch_function__(
            self, func: Callable[..., object], types: object, args: tuple[object, ...] = (), kwargs: Mapping[str, object] | None = None
        ) -> object:
            name = getattr(func, "__name__", "")
            assert name in ("dim", "__get__", "is_pinned"), name
            return func(*args, **(kwargs or {}))

    with Sealed():
        read = judge_call(torch.Tensor.item, (h,), {}, lambda _: Place.DEVICE)
        free = judge_call(torch.Tensor.__getitem__, (x, h), {}, lambda _: Place.DEVICE)
    assert read is not None
    assert free is None


def test_a_subclass_that_refuses_is_judged_all_the_same() -> None:
    class Refusing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: object, types: object, args: object = (), kwargs: object = None) -> object:
            raise AssertionError(func)

    refusing = h.as_subclass(Refusing)
    assert judge_call(torch.Tensor.item, (refusing,), {}, lambda _: Place.DEVICE) is not None
    assert judge_call(torch.Tensor.to, (refusing, "cuda"), {}, lambda _: Place.HOST, is_pinned=lambda _: False) is not None
