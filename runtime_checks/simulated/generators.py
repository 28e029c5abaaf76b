"""`torch.Generator("cuda")`: a generator of the host that says it is the device's, so that its numbers are those of the host."""
from __future__ import annotations

from typing import Any

import torch

from hostlint.runtime_checks.simulated.devices import as_device, real
from hostlint.runtime_checks.simulated.places import CUDA

_Generator: Any = torch._C.Generator


class _AnyGenerator(type(_Generator)):  # type: ignore[misc]  # found at run time
    """`isinstance(g, torch.Generator)` holds for every generator, also those that torch made itself."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Generator)


class Generator(_Generator, metaclass=_AnyGenerator):  # type: ignore[misc]  # torch's class is untyped
    """What torch.Generator stands for while the stand-in is on."""

    def __new__(cls, device: object = None) -> Any:
        asked = as_device("cpu" if device is None else device)
        if asked is None or asked.type != "cuda":
            return _Generator(real(asked) if asked is not None else None)
        return super().__new__(cls)

    def __init__(self, device: object = None) -> None:
        """All is done when the object is made."""

    @property
    def device(self) -> torch.device:
        return CUDA

    def clone_state(self) -> Generator:
        clone: Generator = Generator("cuda")
        clone.set_state(self.get_state())
        return clone
