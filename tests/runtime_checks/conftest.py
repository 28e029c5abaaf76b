"""Most of these tests import torch; where it is not installed (`.ci/other-pythons`) those are not collected."""
from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

_HERE = Path(__file__).parent
_BENCHMARKS = _HERE.parent.parent / "benchmarks" / "fixed_models"
_NEEDS_TORCH = re.compile(r"^import torch$|^from hostlint\.runtime_checks\.simulated", re.MULTILINE)
_NEEDING_TORCH = [file.name for file in _HERE.glob("test_*.py") if _NEEDS_TORCH.search(file.read_text(encoding="utf-8"))]
collect_ignore = [] if find_spec("torch") else _NEEDING_TORCH


def _loaded(name: str, file: Path) -> Any:
    spec = spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def measured_names() -> Callable[..., dict[str, Any]]:
    """`names` of measured_names.py: what measured calls are written in, on the CPU."""
    names: Callable[..., dict[str, Any]] = _loaded("measured_names", _HERE / "measured_names.py").names
    return names


@pytest.fixture(scope="session")
def model_runs() -> Any:
    """How each faulty and corrected model is run."""
    return _loaded("model_runs", _BENCHMARKS / "runs.py")


@pytest.fixture(scope="session")
def redone() -> Any:
    """Counts operators that are run again on the same values."""
    return _loaded("redone", _BENCHMARKS / "redone.py")


@pytest.fixture
def validated_distributions() -> Iterator[None]:
    """torch.compile switches the validation of distributions off for the whole process: here it is on, as in a fresh one."""
    from torch.distributions import Distribution

    before = Distribution._validate_args
    Distribution.set_default_validate_args(True)
    yield
    Distribution.set_default_validate_args(before)
