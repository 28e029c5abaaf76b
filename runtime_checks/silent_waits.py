"""Functions of torch some form of which blocks although torch's debug mode says nothing."""
from __future__ import annotations

from collections.abc import Callable

from hostlint.runtime_checks.call_names import named
from hostlint.torch_ops.table import measured_silent

_KNOWN: dict[Callable[..., object], bool] = {}


def may_wait_silently(func: Callable[..., object]) -> bool:
    """Whether a call of `func` that drew no warning has to be looked at."""
    found = _KNOWN.get(func)
    if found is None:
        op = named(func).op()
        found = _KNOWN[func] = op is not None and any(measured_silent(wait.evidence) for wait in op.waits)
    return found
