"""The names that measured calls and the forms of host_read_forms.json are written in, on the CPU (fixture `measured_names`)."""
from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


class Names(dict[str, Any]):
    """Names to evaluate an expression in, as its locals; each is made when it is first asked for."""

    def __init__(self, makers: dict[str, Callable[[], Any]]) -> None:
        super().__init__()
        self.makers = makers

    def __missing__(self, name: str) -> Any:
        if name not in self.makers:
            raise KeyError(name)
        self[name] = self.makers[name]()
        return self[name]


def names(on_device: Callable[[Tensor], Tensor], **more: Any) -> Names:
    """`on_device` makes a device tensor of each that is one in the measurement's legend. A value has the same bits each time; none is 0."""
    def moved(make: Callable[[], Tensor]) -> Callable[[], Tensor]:
        return lambda: on_device(make())

    found = Names({**_HOST, **_OBJECTS, **{name: moved(make) for name, make in _DEVICE.items()}})
    found.update(_MODULES, **more)
    return found


def _uniform(*size: int) -> Tensor:
    return torch.rand(*size, generator=torch.Generator().manual_seed(0)) + 0.1


def _even() -> Tensor:
    return torch.arange(16) % 2 == 0


def _matrix() -> Tensor:
    return _uniform(4, 4) + 4 * torch.eye(4)


def _parameters() -> list[nn.Parameter]:
    made = [nn.Parameter(_uniform(4)) for _ in range(2)]
    for parameter in made:
        parameter.grad = _uniform(4)
    return made


def _layer() -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)


_MODULES = {"torch": torch, "F": nn.functional, "np": np, "copy": copy, "math": math, "pickle": pickle}
_DEVICE: dict[str, Callable[[], Tensor]] = {
    "x": lambda: _uniform(16),
    "y": lambda: _uniform(16).flip(0),
    "X": lambda: _uniform(16, 16),
    "Xrow": lambda: _uniform(8, 16),
    "s": lambda: torch.tensor(2.0),
    "n": lambda: torch.tensor(3),
    "xi": lambda: torch.arange(16) % 5,
    "idx": lambda: torch.tensor([0, 2, 3]),
    "tgt": lambda: torch.arange(16),
    "m": _even,
    "mrow": _even,
    "mcol": _even,
    "m2": lambda: _even().expand(16, 16).clone(),
    "am": lambda: torch.ones(4, 4, dtype=torch.bool),
    "A": _matrix,
    "b": lambda: _uniform(4, 4),
    "PD": lambda: _matrix() @ _matrix().T,
    "E": lambda: _uniform(20, 8),
    "kpm": lambda: torch.zeros(2, 4, dtype=torch.bool),
    "q": lambda: _uniform(2, 4, 8),
    "seq": lambda: _uniform(2, 4, 8),
    "img": lambda: _uniform(1, 1, 8, 8),
    "lens_dev": lambda: torch.tensor([4, 3]),
}
_HOST: dict[str, Callable[[], Any]] = {
    "pageable": lambda: _uniform(16),
    "hm": _even,
    "hidx": lambda: torch.tensor([0, 2, 3]),
    "h": lambda: _uniform(16),
    "hs": lambda: torch.tensor(1.0),
    "hx": lambda: _uniform(16),
    "np_arr": lambda: np.ones(16, np.float32),
    "np_idx": lambda: np.array([0, 2, 3]),
    "np_mask": lambda: _even().numpy(),
    "lst": lambda: list(range(10)),
    "lst_mask": lambda: [True, False] * 8,
    "tot": lambda: int((torch.arange(16) % 5).sum()),
    "lens_cpu": lambda: torch.tensor([4, 3]),
    "lens_list": lambda: [10, 6],
    "dict_": dict,
    "d": lambda: "cpu",
}
_OBJECTS: dict[str, Callable[[], Any]] = {
    "lin": lambda: nn.Linear(8, 8),
    "params": _parameters,
    "enc": lambda: nn.TransformerEncoder(_layer(), 1, enable_nested_tensor=False),
    "enc_eval": lambda: nn.TransformerEncoder(_layer(), 1).eval(),
    "mha": lambda: nn.MultiheadAttention(8, 2, batch_first=True),
    "lstm": lambda: nn.LSTM(8, 8, batch_first=True),
    "bn": lambda: nn.BatchNorm1d(8),
    "swa": lambda: torch.optim.swa_utils.AveragedModel(nn.Linear(8, 8)),
    "opt_sgd": lambda: torch.optim.SGD(_parameters(), lr=0.1),
    "opt_adamw_foreach": lambda: torch.optim.AdamW(_parameters(), foreach=True),
    "opt_adam": lambda: torch.optim.Adam(_parameters()),
}
