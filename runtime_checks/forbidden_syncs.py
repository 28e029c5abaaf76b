"""`forbid_host_syncs`: code that makes its own tensors on the CPU fails at the place where it would wait for a GPU."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from hostlint.runtime_checks.blocking_operators import operator_read
from hostlint.runtime_checks.frames import current_stack
from hostlint.runtime_checks.host_reads import FREE_ON_CUDA, host_read, judged, refuse
from hostlint.runtime_checks.permissions import CallSites
from hostlint.runtime_checks.scopes import Scope, compiling
from hostlint.runtime_checks.untraced import untraced
from hostlint.values.value import Place

if TYPE_CHECKING:
    from typing_extensions import Self

    from hostlint.runtime_checks.calls import Verdict

Raw = Any  # an argument of somebody else's call
Call = Callable[..., Raw]
_T = torch.Tensor
_NAME = "forbid_host_syncs"
# Calls that take a 0-dim tensor of the host for a number.
_FILLS = frozenset({_T.masked_fill, _T.masked_fill_, torch.masked_fill, _T.__setitem__, _T.index_put, _T.index_put_})
_READERS = (
    *((str(Path("torch", "optim")), start) for start in ("_get_value", "_single_tensor_", "_multi_tensor_")),
    (str(Path("torch", "nn", "modules", "rnn.py")), ""),
)
_host_numbers = WeakIdKeyDictionary()  # 0-dim tensors that torch.tensor made without a device: on CUDA too they live on the host


class forbid_host_syncs:  # noqa: N801  used as a statement
    """Raises AssertionError, at the place, where the body would make the host wait for a device if its tensors lived there.

    Every tensor plays a device tensor, plain ones included. The torch table decides, for calls from Python, and what they, scripted code,
    C++ extensions and backward passes do below is judged by operator: item, float, bool, tolist, numpy, text, masks that select, sizes
    that depend on values, numbers taken from tensors, checked linear algebra. What does not wait on CUDA passes: `x[mask] = 0.0`,
    `one_hot(x, n)`, integer indices (but not one that is 0-dim), three-argument `where`, `multinomial`, `nonzero_static`.

    `.cpu()` and `.to("cpu")` pass: the tensor is there already, and the copy is what an author writes on purpose; reading the result
    raises. On a real GPU's tensors a copy to the host raises unless it is non-blocking. Uploads pass. Optimizers may read their step
    counters and recurrent layers the lengths of packed sequences, which live on the host on CUDA as well; other tensors that the code
    keeps on the host on purpose cannot be told from the rest.

    `allow` names functions as "end of path:function" whose own call sites may read; `with allow("reason"):` works too. The exception goes
    through the code under test, where a broad `except` can swallow it. Made once, it can be entered any number of times, in any thread and
    task, and nested. Threads that the body starts are guarded, tasks that were running before are not. Reads while torch.compile traces are
    let through; compiled code is seen where it calls operators, which kernels of its own are not.

    Not seen: memory taken by address (`data_ptr()`), threads not started through `threading`. TorchScript turns what is raised inside
    scripted code into a RuntimeError without text. An add of four elements takes 7.0 microseconds instead of 0.8, on one core.
    """

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self.allow = CallSites.parse(allow)

    def __enter__(self) -> Self:
        _scope.enter(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _scope.leave(self, kind, error, trace)


class _Functions(TorchFunctionMode):
    """Judges what Python calls, with the arguments as they were written."""

    @untraced
    def __torch_function__(
        self, func: Call, types: Sequence[type], args: tuple[Raw, ...] = (), kwargs: dict[str, Raw] | None = None
    ) -> Raw:
        kwargs = kwargs or {}
        if torch.compiler.is_compiling() or not _on():
            return func(*args, **kwargs)
        read = host_read(func, args, kwargs, _place_of_fill if func in _FILLS else _device)
        if read is not None and not _reads_its_own():
            _refuse(read)
        if read is not None or func in FREE_ON_CUDA:
            with judged.during():
                return func(*args, **kwargs)
        result = func(*args, **kwargs)
        if func is torch.tensor and kwargs.get("device") is None and result.dim() == 0:
            _host_numbers[result] = True
        return result


class _Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch does not annotate it
    """Judges what reaches torch's dispatcher, from wherever it was called."""

    @untraced
    def __torch_dispatch__(
        self, func: Call, types: Sequence[type], args: tuple[Raw, ...] = (), kwargs: dict[str, Raw] | None = None
    ) -> Raw:
        kwargs = kwargs or {}
        if not judged.depth:
            read = operator_read(func, args, kwargs)
            if read is not None and _on() and not _reads_its_own():
                _refuse(read)
        return func(*args, **kwargs)


def _on() -> bool:
    return bool(_scope.active()) and not compiling()


def _refuse(read: Verdict) -> None:
    for guard in _scope.active():
        refuse(_NAME, read, guard.allow)


def _reads_its_own() -> bool:
    """Whether torch itself reads what it keeps on the host on CUDA as well: step counters of optimizers, lengths of packed sequences."""
    stack = current_stack()
    return bool(stack) and any(end in stack[0].path and stack[0].function.startswith(start) for end, start in _READERS)


def _device(tensor: torch.Tensor) -> Place:
    return Place.DEVICE


def _place_of_fill(tensor: torch.Tensor) -> Place:
    return Place.HOST if tensor in _host_numbers else Place.DEVICE


@contextmanager
def _modes() -> Iterator[None]:
    with _Functions(), _Operators():  # type: ignore[no-untyped-call]
        yield


_scope: Scope[forbid_host_syncs] = Scope("hostlint_forbid_host_syncs", _modes)
