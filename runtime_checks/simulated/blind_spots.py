"""What the stand-in cannot see, told where it can be noticed."""
from __future__ import annotations

import warnings
from functools import cache

from hostlint.runtime_checks.frames import caller_outside_torch, current_stack


class SimulatedDeviceWarning(UserWarning):
    """The program does something that the stand-in for a CUDA device cannot follow: results may be right, events may be missing."""


def warn(what: str) -> None:
    """Once for each place in the program."""
    at = caller_outside_torch(current_stack(1))
    _warn_once(what, at.path, at.line)


@cache
def _warn_once(what: str, path: str, line: int) -> None:
    warnings.warn_explicit(f"simulate_cuda() cannot follow this: {what}", SimulatedDeviceWarning, path, line)
