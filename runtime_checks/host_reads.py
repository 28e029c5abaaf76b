"""What a guard says of a host read, at the place where it happens: what was read, where, and what to write instead."""
from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from hostlint.facts.kinds import FactKind
from hostlint.runtime_checks.blocking_operators import NUMBER_TAKEN
from hostlint.runtime_checks.calls import Verdict, judge_call
from hostlint.runtime_checks.events import EventKind
from hostlint.runtime_checks.frames import caller_outside_torch, current_stack
from hostlint.runtime_checks.permissions import CallSites, allowed_reason
from hostlint.runtime_checks.scopes import Muted

if TYPE_CHECKING:
    from hostlint.runtime_checks.calls import PlaceOf

Raw = Any  # an argument of somebody else's call
Call = Callable[..., object]

READS = frozenset({EventKind.READ, EventKind.DATA_DEPENDENT_SIZE, EventKind.HIDDEN_WAIT})
_SUBSCRIPTS = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)
# On CUDA these fail on a device tensor, or leave for a library that cannot follow: whoever calls them takes the values for the host's.
_TO_HOST = {torch.Tensor.numpy: "Tensor.numpy", torch.Tensor.__array__: "Tensor.__array__", torch.Tensor.__dlpack__: "Tensor.__dlpack__"}
_EQUAL = frozenset({torch.equal, torch.Tensor.equal})
# Kernels of the CPU read here, or select with a mask, where those of CUDA do not: what the table says of the call is the whole of it.
FREE_ON_CUDA = frozenset((
    torch.nn.functional.one_hot, torch.Tensor.__setitem__, torch.index_put, torch.index_put_, torch.Tensor.index_put,
    torch.Tensor.index_put_,
))  # fmt: skip
judged = Muted()  # on while a call runs of which enough is known not to judge what it does inside
NO_SITES = CallSites(())

_INSTEAD = {
    FactKind.ITEM: "keep it a tensor; read once after the loop, or read last step's value",
    FactKind.SCALAR_CAST: "keep it a tensor; torch has the same functions",
    FactKind.TRUTH_TEST: "decide on the device with torch.where, or from values that the host has",
    FactKind.HOST_COPY: "copy once, outside the loop, with .cpu()",
    FactKind.TOLIST: "keep the Python list that the tensor was made from, or index on the device",
    FactKind.FORMAT: "log after the loop, or every N steps",
    FactKind.INDEX: "index_select or gather with the tensor, or use the Python number that it was made from",
    FactKind.SCALAR_ARGUMENT: "expand the tensor, or multiply by it: full((n,), t) is t.expand(n)",
    FactKind.TENSOR_OF_TENSORS: "torch.stack",
    FactKind.NONZERO: "keep the mask: torch.where(mask, a, b), or nonzero_static(size=n)",
    FactKind.MASK_READ: "keep the mask: torch.where(mask, x, 0), or integer indices that were found once",
    FactKind.MASK_WRITE: "torch.where(mask, value, x)",
    FactKind.DATA_DEPENDENT_SIZE: "give the size (output_size=, num_classes=), or find it once, outside the loop",
    FactKind.CHECKED_LINALG: "the form without the check (solve_ex, inv_ex, cholesky_ex), or factor once, outside the loop",
    FactKind.EQUALITY: "compare on the device with (a == b).all() and read it once, after the loop",
}
_OTHERWISE = "do it once, outside the loop, or on values that the host has"


def host_read(func: Call, args: Sequence[Raw], kwargs: Mapping[str, Raw], place_of: PlaceOf) -> Verdict | None:
    """The read of a device value that this call makes on CUDA, by the table of torch; None for uploads, which are no reads."""
    if func in _TO_HOST:
        return Verdict(EventKind.READ, FactKind.HOST_COPY, _TO_HOST[func], "taken for host memory", measured=False, silent=False)
    with torch._C.DisableTorchFunctionSubclass():  # the judge asks tensors for their types
        calls = _by_parts(args) if func in _SUBSCRIPTS else [args]
        verdicts = (judge_call(func, call, kwargs, place_of) for call in calls)
        found = next((verdict for verdict in verdicts if verdict is not None and verdict.kind in READS), None)
        if found is None or (found.fact is FactKind.HOST_COPY and not _on_accelerator(args)):
            return None
        return None if func in _EQUAL and _told_apart_by_shape(*args[:2]) else found


def _by_parts(args: Sequence[Raw]) -> Sequence[Sequence[Raw]]:
    """One subscript for each part of an index, so that the upload of one does not hide the read of another."""
    base, index, *value = args
    # torch takes a list with tensors in it for a tuple
    several = isinstance(index, tuple) or (isinstance(index, list) and any(isinstance(part, torch.Tensor) for part in index))
    return [(base, part, *value) for part in index] if several else [args]


def _on_accelerator(args: Sequence[Raw]) -> bool:
    """Whether a copy to the host is known to be one: a CPU test cannot tell the device under test from the host."""
    return bool(args) and isinstance(args[0], torch.Tensor) and args[0].device.type not in ("cpu", "meta")


def _told_apart_by_shape(*compared: Raw) -> bool:
    """Whether `equal` need not look at the values: the same tensor twice, or two shapes."""
    if len(compared) < 2 or not all(isinstance(one, torch.Tensor) for one in compared):
        return False
    return compared[0] is compared[1] or bool(compared[0].shape != compared[1].shape)


def refuse(guard: str, read: Verdict, allowed: CallSites = NO_SITES) -> None:
    """Raises AssertionError unless the place, or an `allow` around it, permits the read.

    A number that C++ code takes out of a tensor may be meant as any kind of read; an `allow` for one of them covers it.
    """
    taken_inside = read.call == NUMBER_TAKEN
    if allowed_reason(read.kind, None if taken_inside else read.fact) is not None:
        return
    frame = caller_outside_torch(current_stack())
    if allowed.cover(frame):
        return
    line = linecache.getline(frame.path, frame.line).strip()
    instead = _INSTEAD.get(FactKind.SCALAR_ARGUMENT if taken_inside else read.fact, _OTHERWISE)
    raise AssertionError(
        f"{guard}: {read.call} makes the host wait for the device at {frame}"
        + (f"\n    {line}" if line else "")
        + f"\n  instead: {instead}\n  if it is meant: with allow('reason'): ..."
    )
