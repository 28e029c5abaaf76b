"""RecordOps lists the operators of a body, its casts, and the tensors that it builds from host data."""
from __future__ import annotations

import threading
import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch

from hostlint.runtime_checks import RecordOps

X = torch.ones(4)
ARRAY = np.arange(4, dtype=np.float32)
BUFFER = bytearray(16)


def from_dlpack(source: object) -> object:
    return vars(torch)["from_dlpack"](source)


UPLOADS: dict[str, tuple[Callable[[], object], list[tuple[int, ...]]]] = {
    "tensor": (lambda: torch.tensor([1.0, 2.0]), [(2,)]),
    "empty": (lambda: torch.tensor([]), [(0,)]),
    "tensor of an array": (lambda: torch.tensor(ARRAY), [(4,)]),
    "as_tensor": (lambda: torch.as_tensor([1, 2, 3]), [(3,)]),
    "as_tensor of an array": (lambda: torch.as_tensor(ARRAY), [(4,)]),
    "asarray": (lambda: torch.asarray([1.0]), [(1,)]),
    "asarray of a buffer": (lambda: torch.asarray(BUFFER, dtype=torch.float32), [(4,)]),
    "from_numpy": (lambda: torch.from_numpy(ARRAY), [(4,)]),
    "frombuffer": (lambda: torch.frombuffer(BUFFER, dtype=torch.float32), [(4,)]),
    "from_dlpack": (lambda: from_dlpack(ARRAY), [(4,)]),
    "new_tensor": (lambda: X.new_tensor([[1.0, 2.0]]), [(1, 2)]),
    "a legacy constructor": (lambda: torch.FloatTensor([1.0, 2.0]), [(2,)]),
    "a list as an index": (lambda: X[[0, 2]], [(2,)]),
    "a list of bools as an index": (lambda: X[[True, False, True, False]], [(4,)]),
    "an array as an index": (lambda: X[np.array([0, 1])], [(2,)]),
    "a list as an index to write to": (lambda: X.clone().__setitem__([0, 1], 1.0), [(2,)]),
    "two": (lambda: torch.tensor([1.0]) + torch.tensor([1.0, 2.0]), [(1,), (2,)]),
    # numbers, which kernels take by value
    "a number": (lambda: torch.tensor(1.0), []),
    "a number as a write": (lambda: X.clone().__setitem__(0, 1.0), []),
    # no host data
    "full": (lambda: torch.full((4,), 2.0), []),
    "arange": (lambda: torch.arange(4), []),
    "tensor of a tensor": (X.clone, []),
    "asarray of a tensor": (lambda: torch.asarray(X), []),
    "from_dlpack of a tensor": (lambda: from_dlpack(X), []),
    "a tensor as an index": (lambda: X[torch.arange(2)], []),
    "stack": (lambda: torch.stack([X, X]), []),
}
HALF = torch.ones(4, dtype=torch.float16)
CASTS: dict[str, tuple[Callable[[], object], int]] = {
    "to": (lambda: X.to(torch.float64), 1),
    "bool": (X.bool, 1),
    "type_as": (lambda: X.type_as(HALF), 1),
    "to with copy": (lambda: X.to(torch.float32, copy=True), 1),
    "tensor of an array": (lambda: torch.tensor(ARRAY), 1),
    "two": (lambda: X.double().half(), 2),
    "to what it is": (lambda: X.to(torch.float32), 0),
    "promotion": (lambda: X + HALF, 0),
    "copy_ between dtypes": (lambda: HALF.clone().copy_(X), 0),
    "float of a float": (X.float, 0),
}


@pytest.mark.parametrize("form", UPLOADS)
def test_tensors_built_from_host_data_are_listed_in_order(form: str) -> None:
    build, shapes = UPLOADS[form]
    with RecordOps() as ops:
        build()
    assert [tuple(tensor.shape) for tensor in ops.uploads()] == shapes


@pytest.mark.parametrize("form", CASTS)
def test_casts_are_counted(form: str) -> None:
    cast, count = CASTS[form]
    with RecordOps() as ops:
        cast()
    assert ops.casts() == count


def test_casts_to_one_dtype_and_uploads_hold_the_values() -> None:
    with RecordOps() as ops:
        mask = X.bool()
        X.double()
        mask.to(torch.bool)
        torch.tensor([3.0, 4.0])
    assert (ops.casts(torch.bool), ops.casts(torch.float64), ops.casts(torch.float16), ops.casts()) == (1, 1, 0, 2)
    assert [tensor.tolist() for tensor in ops.uploads()] == [[3.0, 4.0]]


def test_calls_hold_operators_and_arguments_of_the_body_only() -> None:
    X.sin()
    with RecordOps() as ops:
        torch.add(X, X, alpha=2)
        X.sum(dim=0, keepdim=True)
    X.cos()
    assert [op for op, _, _ in ops.calls] == [torch.ops.aten.add.Tensor, torch.ops.aten.sum.dim_IntList]
    (_, args, keywords), (_, summed, _) = ops.calls
    assert args[0] is X
    assert keywords == {"alpha": 2}
    assert summed[1:] == ([0], True)


def test_nested_and_reentered_recorders_see_their_own_bodies() -> None:
    outer = RecordOps()
    with outer:
        X.sin()
        with RecordOps() as inner:
            X.cos()
    with outer:
        X.tan()
    with pytest.raises(ZeroDivisionError), outer:
        raise ZeroDivisionError
    X.exp()
    assert [str(op) for op, _, _ in outer.calls] == ["aten.sin.default", "aten.cos.default", "aten.tan.default"]
    assert [str(op) for op, _, _ in inner.calls] == ["aten.cos.default"]
    assert torch._C._len_torch_dispatch_stack() == 0


def test_functions_of_torch_are_put_back() -> None:
    before = torch.frombuffer, torch.asarray, vars(torch)["from_dlpack"]
    with RecordOps(), RecordOps():
        assert torch.frombuffer is not before[0]
    assert (torch.frombuffer, torch.asarray, vars(torch)["from_dlpack"]) == before


def test_threads_of_the_body_are_recorded_and_others_are_not() -> None:
    recorded, other = threading.Event(), threading.Event()

    def bystander() -> None:
        recorded.wait()
        torch.tensor([9.0])
        torch.frombuffer(BUFFER, dtype=torch.float32)
        other.set()

    before = threading.Thread(target=bystander)
    before.start()
    with RecordOps() as ops:
        inside = threading.Thread(target=lambda: torch.tensor([1.0]))
        inside.start()
        inside.join()
        recorded.set()
        other.wait()
    before.join()
    assert [tensor.tolist() for tensor in ops.uploads()] == [[1.0]]


def test_a_compiled_layer_is_recorded_where_it_runs() -> None:
    layer = torch.nn.Linear(4, 4)
    compiled = torch.compile(lambda x: layer(x).double(), backend="eager")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = compiled(X)
        with RecordOps() as first:
            result = compiled(X)
    assert torch.equal(result, expected)
    assert (first.casts(torch.float64), first.uploads()) == (1, [])
    torch._dynamo.reset()
    with torch.no_grad(), RecordOps() as tracing:
        compiled(X)
    assert tracing.casts(torch.float64) == 1  # what runs on tensors without data, to trace, does not count
    torch._dynamo.reset()
