"""Most of these tests import torch; where it is not installed (`.ci/other-pythons`) those are not collected."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

_HERE = Path(__file__).parent
_NEEDS_TORCH = re.compile(r"^import torch$|^from hostlint\.runtime_checks\.simulated", re.MULTILINE)
_NEEDING_TORCH = [file.name for file in _HERE.glob("test_*.py") if _NEEDS_TORCH.search(file.read_text(encoding="utf-8"))]
collect_ignore = [] if find_spec("torch") else _NEEDING_TORCH


@pytest.fixture(scope="session")
def measured_names() -> Callable[..., dict[str, Any]]:
    """`names` of measured_names.py: what measured calls are written in, on the CPU."""
    spec = spec_from_file_location("measured_names", _HERE / "measured_names.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    names: Callable[..., dict[str, Any]] = module.names
    return names


@pytest.fixture
def validated_distributions() -> Iterator[None]:
    """torch.compile switches the validation of distributions off for the whole process: here it is on, as in a fresh one."""
    from torch.distributions import Distribution

    before = Distribution._validate_args
    Distribution.set_default_validate_args(True)
    yield
    Distribution.set_default_validate_args(before)
