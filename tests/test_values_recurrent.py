"""`bias` of a recurrent layer is the flag that it was made with, no tensor: torch 2.13 gives a bool for all of them."""
from __future__ import annotations

import pytest
from torch import nn

from hostlint.scan import scan_text

CELL = """\
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = {layer}

    def forward(self, x):
        return x + 1 if {read} else x
"""

OWN = """\
from torch import nn


class Own(nn.{layer}):
    def forward(self, x):
        return x + 1 if self.{name}.sum() else x
"""

RECURRENT = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]


@pytest.mark.parametrize("name", RECURRENT)
def test_the_flag_is_read_on_the_host(name: str) -> None:
    assert isinstance(getattr(nn, name)(2, 2).bias, bool)
    findings, errors = scan_text(CELL.format(layer=f"nn.{name}(width, width)", read="self.layer.bias"), "decoder.py")
    assert not errors
    assert [finding.code for finding in findings if finding.code == "HL103"] == []
    findings, errors = scan_text(OWN.format(layer=name, name="bias"), "own.py")
    assert not errors
    assert findings == []


def test_the_bias_of_other_layers_is_a_tensor() -> None:
    findings, errors = scan_text(CELL.format(layer="nn.Linear(width, 1)", read="self.layer.bias"), "decoder.py")
    assert not errors
    assert [finding.code for finding in findings] == ["HL103"]
    findings, errors = scan_text(OWN.format(layer="Linear", name="bias"), "own.py")
    assert not errors
    assert [finding.code for finding in findings] == ["HL103"]
