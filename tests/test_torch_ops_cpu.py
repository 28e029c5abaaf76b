"""What the table says of results holds for torch itself on the CPU: kind of result, rank and type, for every function that can be tried."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import pytest

from hostlint.torch_ops import function, method
from hostlint.torch_ops.spec import Op, Returns
from hostlint.torch_ops.table import index

torch = pytest.importorskip("torch")

# Methods that torch keeps only to raise an error or to be called by itself, and functions of one backend: nobody writes them.
ABSENT_METHODS = {
    "eig", "index", "lstsq", "map2_", "q_per_channel_scales", "q_per_channel_zero_points", "reinforce", "slice_inverse", "solve",
    "symeig",
}
# Methods that spoil the samples or storages for what comes after them.
UNSAFE = {
    "apply_", "backward", "map_", "module_load", "numpy", "record_stream", "register_hook", "resize_", "resize_as_", "set_",
    "share_memory_",
}
# Results that depend on more than the table tells: `type()` is a string, several arguments give several results.
UNTOLD = {"as_subclass", "storage", "untyped_storage", "type", "torch.atleast_1d", "torch.atleast_2d", "torch.atleast_3d"}


def samples() -> dict[str, Any]:
    return {
        "scalar": torch.tensor(2.0),
        "vector": torch.rand(4) + 0.5,
        "matrix": torch.rand(4, 4) + torch.eye(4) * 4,
        "count": torch.tensor(3),
        "integers": torch.tensor([0, 2, 1, 3]),
        "mask": torch.tensor([True, False, True, True]),
        "image": torch.rand(1, 1, 4, 4),
    }


def arguments() -> Iterator[tuple[Any, ...]]:
    """Argument lists to try, those that say least first."""
    s = samples()
    scalar, vector, matrix, integers, mask = (s[name] for name in ("scalar", "vector", "matrix", "integers", "mask"))
    yield from [(), (vector,), (matrix,), (integers,), (mask,), (scalar,), (0,), (2,), (1.5,), (-1, 0), (0, 0), (2, 2)]
    yield from [(0, integers), (0, integers, vector), (mask, 1.0), (mask, vector), (mask, vector, vector), (0, integers, 1.0)]
    yield from [(matrix, matrix), (vector, vector), (matrix, vector), (vector, 0.5), ((4,),), ((4,), 1.0), ((2, 2),), (0, 1, 2)]
    yield from [("i->i", vector), (([0], [0]),), ([vector, vector],), ((integers,), vector), (0.1, 2, 1.0)]


def outcome(call: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """The result, or the exception that torch raises for arguments that do not fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(*given)
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AttributeError, KeyError, AssertionError) as error:
            return error


def problems(op: Op, receiver: tuple[Any, ...], given: tuple[Any, ...], result: Any) -> list[str]:
    """What the entry says of this result and torch does otherwise; `given` are the arguments after the receiver."""
    if op.returns in (Returns.UNKNOWN, Returns.NUMPY):
        return []
    if op.returns in (Returns.PYTHON, Returns.NONE):
        return [f"{type(result).__name__}, not a Python object"] if isinstance(result, torch.Tensor) else []
    named = set(op.params[: len(receiver) + len(given)])
    sequence = op.returns is Returns.SEQUENCE or not named.issuperset(op.sequence_without)
    if sequence or (named & set(op.sequence_with) and not isinstance(given[0], torch.Tensor)):
        return [] if isinstance(result, (tuple, list)) else [f"{type(result).__name__}, not a sequence"]
    if not isinstance(result, torch.Tensor):
        return [f"{type(result).__name__}, not a tensor"]
    tensors = [one for one in (*receiver, *given) if isinstance(one, torch.Tensor)]
    numbers = any(isinstance(one, (int, float)) for one in given)
    return [*rank_problems(op, named, tensors, result), *type_problems(op, tensors, numbers, result)]


def rank_problems(op: Op, named: set[str], tensors: list[Any], result: Any) -> Iterator[str]:
    rank0 = result.dim() == 0
    if op.rank0 is not None and op.rank0 is not rank0:
        yield f"rank {result.dim()}"
    if op.rank0_without:
        if not named & set(op.rank0_without) and not rank0:
            yield f"rank {result.dim()} though none of {op.rank0_without} is given"
    elif op.broadcasts and op.rank0 is None and rank0 is not all(tensor.dim() == 0 for tensor in tensors):
        yield f"rank {result.dim()} for operands of rank {[tensor.dim() for tensor in tensors]}"


def type_problems(op: Op, tensors: list[Any], numbers: bool, result: Any) -> Iterator[str]:
    boolean = result.dtype in (torch.bool, torch.uint8)
    integer = not boolean and not result.dtype.is_floating_point and not result.dtype.is_complex
    if op.keeps_type:
        agreed = {tensor.dtype is torch.bool for tensor in tensors}
        if len(agreed) == 1 and not numbers and (result.dtype is torch.bool) not in agreed:
            yield f"{result.dtype} of {tensors[0].dtype}"
    elif (op.boolean, op.integer) != (True, True):  # byte() is both: torch takes it for a mask and for a number
        if op.boolean not in (None, boolean):
            yield f"boolean is {boolean}"
        if op.integer not in (None, integer):
            yield f"integer is {integer}"


def tried(op: Op, call: Callable[..., Any], receiver: Any | None) -> Iterator[tuple[Any, list[str]]]:
    for given in arguments():
        fresh = () if receiver is None else (receiver.clone(),)
        result = outcome(call, (*fresh, *given))
        if not isinstance(result, Exception):
            yield given, problems(op, fresh, given, result)


METHODS = sorted(n for n in dir(torch.Tensor) if not n.startswith("_") and callable(getattr(torch.Tensor, n, None)))


def test_every_tensor_method_has_an_entry() -> None:
    assert [name for name in METHODS if method(name) is None and name not in ABSENT_METHODS] == []


def test_every_entry_of_a_tensor_method_exists_in_torch() -> None:
    elsewhere = {"npu", "hpu", "musa", "mlu", "is_npu", "synchronize", "__nonzero__"}
    assert [name for name in index().methods if "." not in name and not hasattr(torch.Tensor, name) and name not in elsewhere] == []


@pytest.mark.parametrize("kind", ["scalar", "vector", "matrix", "count", "integers", "mask", "image"])
def test_methods_return_what_the_table_says(kind: str) -> None:
    wrong, checked = [], 0
    for name in METHODS:
        op = method(name)
        if op is None or name in UNSAFE | UNTOLD:
            continue
        for given, found in tried(op, getattr(torch.Tensor, name), samples()[kind]):
            checked += 1
            wrong += [f"{kind}.{name}{given}: {problem}" for problem in found]
    assert wrong == [], "\n".join(wrong)
    assert checked > 300


def test_functions_return_what_the_table_says() -> None:
    wrong, checked = [], 0
    for name in index().functions:
        if not name.startswith(("torch.linalg.", "torch.nn.functional.", "torch.special.", "torch.fft.")) and name.count(".") != 1:
            continue
        if not name.startswith("torch.") or name in ("torch.save", "torch.load", "torch.from_file") or name.startswith("torch.set_"):
            continue
        op, call = function(name), reduce(getattr, name.split(".")[1:], torch)
        assert op is not None
        if isinstance(call, type) or op.returns is Returns.NONE or name in UNTOLD:
            continue
        for given, found in tried(op, call, None):
            checked += 1
            wrong += [f"{name}{given}: {problem}" for problem in found]
    assert wrong == [], "\n".join(wrong)
    assert checked > 900
