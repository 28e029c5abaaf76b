"""`RecordOps`: the operators that a body runs, how often it copies to another dtype, and what it builds from host data."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hostlint.runtime_checks.patches import Patch
from hostlint.runtime_checks.scopes import Scope, compiling
from hostlint.runtime_checks.untraced import untraced

if TYPE_CHECKING:
    from typing_extensions import Self

Raw = Any  # an operator, or an argument of one
_LIFT = torch.ops.aten.lift_fresh.default  # what every tensor goes through that is made of Python or NumPy data
_READ_FILE = torch.ops.aten.from_file.default
_COPY = torch.ops.aten._to_copy.default
_UNSEEN = ("frombuffer", "asarray", "from_dlpack")  # these can take memory over without calling an operator


class RecordOps:
    """Records the ATen operators that the body runs; read it after the body.

    Made without arguments; entering returns the object. It can be entered again (the lists go on), nested, and used in several threads and
    tasks; threads that the body starts are recorded too. `calls` holds the arguments, and with them their memory.

    Not seen: operators inside kernels that torch.compile made, and what runs while it traces; moves of host tensors (`host.to(device)`,
    `copy_`: see CountedUploads); scripted constants; `frombuffer` and its like where the function was imported by name before. An add of
    four elements takes 5.0 microseconds instead of 0.8, on one core.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[Raw, tuple[Raw, ...], dict[str, Raw]]] = []
        self._built: list[torch.Tensor] = []

    def casts(self, dtype: torch.dtype | None = None) -> int:
        """How many copies changed dtype or device; those to `dtype` only, where one is given.

        `.to`, `.bool()`, `type_as`, `.to(copy=True)`, `torch.tensor(array)`; promotion inside an operator and `copy_` are none.
        """
        return sum(op is _COPY and (dtype is None or keywords.get("dtype") is dtype) for op, _, keywords in self.calls)

    def uploads(self) -> list[torch.Tensor]:
        """The tensors that were built from host data, each a blocking copy on CUDA.

        By `torch.tensor`, `as_tensor`, `asarray`, `from_numpy`, `frombuffer`, `from_dlpack`, `from_file`, `new_tensor` and the legacy
        constructors, or as a list or array used as an index.

        0-dim ones are left out: most are Python numbers that kernels take by value (`x + torch.tensor(2.0)`), although
        `torch.tensor(2.0, device="cuda")` does wait. `from_numpy` counts, although nothing leaves the host until it is moved.
        """
        return list(self._built)

    def __enter__(self) -> Self:
        _scope.enter(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _scope.leave(self, kind, error, trace)

    def _record(self, op: Raw, args: tuple[Raw, ...], kwargs: dict[str, Raw]) -> None:
        self.calls.append((op, args, kwargs))
        if op is _LIFT:
            self._build(args[0])

    def _build(self, tensor: torch.Tensor) -> None:
        if tensor.dim() > 0:
            self._built.append(tensor)


class _Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch does not annotate it
    @untraced
    def __torch_dispatch__(
        self, func: Raw, types: Sequence[type], args: tuple[Raw, ...] = (), kwargs: dict[str, Raw] | None = None
    ) -> Raw:
        keywords = dict(kwargs or {})
        recorders = [] if compiling() else _scope.active()
        for recorder in recorders:
            recorder._record(func, args, keywords)
        result = func(*args, **keywords)
        if func is _READ_FILE:
            for recorder in recorders:
                recorder._build(result)
        return result


def _taking_over(original: Callable[..., Raw]) -> Callable[..., Raw]:
    """Notes the result of a function that took host memory over, unless an operator has told of it already."""

    @wraps(original)
    def function(data: Raw, *args: Raw, **kwargs: Raw) -> Raw:
        recorders = [] if isinstance(data, torch.Tensor) or compiling() else _scope.active()
        before = [len(recorder._built) for recorder in recorders]
        result = original(data, *args, **kwargs)
        for recorder, built in zip(recorders, before, strict=True):
            if len(recorder._built) == built:
                recorder._build(result)
        return result

    return function


_PATCHES = tuple(Patch(torch, name, _taking_over) for name in _UNSEEN)


@contextmanager
def _modes() -> Iterator[None]:
    with ExitStack() as exits:
        for patch in _PATCHES:
            exits.enter_context(patch.applied())
        exits.enter_context(_Operators())  # type: ignore[no-untyped-call]
        yield


_scope: Scope[RecordOps] = Scope("hostlint_record_ops", _modes)
