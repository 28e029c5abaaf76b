"""Whether two results are the same bit for bit: integer views with NaNs by position, dtype, shape, strides; and programs run on trial.

`torch.equal` and `assert_close(rtol=0, atol=0)` take -0.0 for 0.0, and look at neither strides nor gradients.
"""
from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes an element


def difference(one: object, other: object, name: str = "result") -> str:
    """In what two results differ, as one clause; "" where they are the same bits.

    Looks into lists, tuples, dictionaries and tensors' gradients; anything else is compared by type and `==`. It cannot see aliases between
    tensors, nor bits that neither value shows (a NaN's payload)."""
    if type(one) is not type(other):
        return f"{name} is a {type(one).__name__} and a {type(other).__name__}"
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return _tensors(one, other, name)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if list(one) != list(other):
            return f"{name} has the keys {list(one)} and {list(other)}"
        return next(filter(None, (difference(one[key], other[key], f"{name}[{key!r}]") for key in one)), "")
    if isinstance(one, Sequence) and isinstance(other, Sequence) and not isinstance(one, str | bytes):
        if len(one) != len(other):
            return f"{name} has {len(one)} and {len(other)} parts"
        return next(filter(None, (difference(a, b, f"{name}[{number}]") for number, (a, b) in enumerate(zip(one, other, strict=True)))), "")
    if isinstance(one, float) and isinstance(other, float):
        same = (one != one and other != other) or struct.pack("<d", one) == struct.pack("<d", other)  # a NaN is one
        return "" if same else f"{name} is {one!r} and {other!r}"
    return "" if one == other else f"{name} is {one!r} and {other!r}"


def _tensors(one: torch.Tensor, other: torch.Tensor, name: str) -> str:
    for what, mine, theirs in (
        ("dtype", one.dtype, other.dtype),
        ("shape", tuple(one.shape), tuple(other.shape)),
        ("layout", one.layout, other.layout),
        ("device", one.device.type, other.device.type),
        ("requires_grad", one.requires_grad, other.requires_grad),
    ):
        if mine != theirs:
            return f"{name} has the {what} {mine} and {theirs}"
    if one.layout == torch.strided and one.numel() and one.stride() != other.stride():
        return f"{name} has the strides {one.stride()} and {other.stride()}"
    if not _same_elements(one.detach(), other.detach()):
        return f"{name} has other bits: {one.detach()} and {other.detach()}"
    if one.is_leaf and (one.grad is not None or other.grad is not None):
        return difference(one.grad, other.grad, f"{name}.grad")
    return ""


def _same_elements(one: torch.Tensor, other: torch.Tensor) -> bool:
    one, other = (part.to_dense() if part.layout != torch.strided else part for part in (one, other))
    if one.is_complex():
        one, other = torch.view_as_real(one.resolve_conj()), torch.view_as_real(other.resolve_conj())
    one, other = one.resolve_neg().contiguous(), other.resolve_neg().contiguous()
    if one.is_floating_point() and one.element_size() > 1:
        nans = one.isnan()
        if not torch.equal(nans, other.isnan()):
            return False
        one, other = one.masked_fill(nans, 0.0), other.masked_fill(nans, 0.0)
    word = _WORDS[one.element_size()]
    return torch.equal(one.view(word), other.view(word))


@dataclass(frozen=True, slots=True)
class Raised:
    """What a trial gives where the program raises: the exception's type."""

    error: type[BaseException]


def trial(program: str, expression: str, seed: int = 0) -> object:
    """Run a program's text on the CPU (`"cuda"` is read as `"cpu"`, `.cuda()` as `.cpu()`) and then an expression in its names; give the
    expression's value with the state of torch's random numbers after it, or what was raised."""
    names: dict[str, object] = {"torch": torch, "__name__": "example"}
    torch.manual_seed(seed)
    exec(compile(on_cpu(program), "example.py", "exec"), names)  # noqa: S102 - a rule's own example
    try:
        value = eval(compile(on_cpu(expression), "trial", "eval"), names)  # noqa: S307 - as above
    except Exception as error:  # noqa: BLE001 - whatever the program raises is its result
        return Raised(type(error))
    return [value, torch.get_rng_state()]


def on_cpu(text: str) -> str:
    return text.replace('"cuda"', '"cpu"').replace('"cuda:0"', '"cpu"').replace(".cuda()", ".cpu()")
