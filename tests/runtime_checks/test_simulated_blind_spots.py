"""What the stand-in cannot follow: it goes on, and says so where it can notice."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from hostlint.runtime_checks import SimulatedDeviceWarning, simulate_cuda


def traced() -> Callable[[torch.Tensor], torch.Tensor]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls tracing old
        trace: Any = torch.jit.trace
        found: Callable[[torch.Tensor], torch.Tensor] = trace(lambda x: x * 2 + x.sum(), torch.ones(2))
        return found


def test_traced_code_gives_results_of_the_device() -> None:
    double = traced()
    with simulate_cuda():
        x = torch.ones(2, device="cuda")
        with pytest.warns(SimulatedDeviceWarning, match="its waits are not seen") as told:
            results = [double(x) for _ in range(3)]
        assert [one.filename for one in told] == [__file__]
        assert {(one.device.type, float(one[0])) for one in results} == {("cuda", 4.0)}
        assert double(torch.ones(2)).device.type == "cpu"
    assert double(torch.ones(2)).tolist() == [4.0, 4.0]


def test_dlpack_is_told() -> None:
    with simulate_cuda():
        np.from_dlpack(torch.ones(2))
        with pytest.warns(SimulatedDeviceWarning, match="dlpack"):
            assert torch.utils.dlpack.from_dlpack(torch.ones(2, device="cuda")).tolist() == [1.0, 1.0]


def test_no_other_library_gets_the_device_memory() -> None:
    with simulate_cuda():
        assert not hasattr(torch.ones(2, device="cuda"), "__cuda_array_interface__")
