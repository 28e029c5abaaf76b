"""Debug messages that cost the host something although nobody reads them, and messages that cost next to nothing."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

MODEL = """\
import json
import logging

import torch
from torch import nn

log = logging.getLogger(__name__)


def debug_rank0(message: str):
    if torch.distributed.get_rank() == 0:
        log.debug(message)


def debug_nothing(message: str):
    return len(message)


class Model(nn.Module):
    def forward(self, x, params, settings):
        names = [p.name for p in params]
        {line}
        return x
"""
HERE = 1 + MODEL.splitlines().index("        {line}")


def told(line: str) -> list[int]:
    findings, errors = scan_text(MODEL.replace("{line}", line), "model.py")
    assert not errors
    return [finding.span.line for finding in findings if finding.code == "HL311"]


@pytest.mark.parametrize(
    "line",
    [
        'log.debug(f"params {[p.name for p in params]}")',
        'log.debug("params " + ", ".join(p.name for p in params))',
        'log.debug("params {}".format([p.name for p in params]))',
        'log.debug("params %s" % [p.name for p in params])',
        'log.debug("params %s", sorted(p.name for p in params))',
        'log.debug("settings %s", json.dumps(settings))',
        'debug_rank0(f"params {[p.name for p in params]}")',
        'for p in params:\n            log.debug(f"{p.name} {[q.name for q in params]}")\n            x = x + p(x)',
    ],
)
def test_a_message_over_a_whole_collection(line: str) -> None:
    assert told(line) == [HERE + line.count("\n            l")]


@pytest.mark.parametrize(
    "line",
    [
        'log.debug(f"x {x.shape} {len(params)}")',
        'log.debug(f"names {names}")',  # made for something else
        'log.debug("names %s", names)',
        'if log.isEnabledFor(logging.DEBUG):\n            log.debug(f"params {[p.name for p in params]}")',
        'log.warning(f"params {[p.name for p in params]}")',
        'debug_nothing(f"params {[p.name for p in params]}")',
        'settings.debug(f"params {[p.name for p in params]}")',
    ],
)
def test_a_message_that_is_cheap_or_read_is_silent(line: str) -> None:
    assert told(line) == []


def test_once_a_request_is_seldom_enough() -> None:
    head = "import logging\nimport torch\n\nlog = logging.getLogger(__name__)\n\n\ndef prepare(params):\n"
    text = head + '    log.debug(f"{[p for p in params]}")\n    return torch.zeros(1)\n'
    assert scan_text(text, "prepare.py") == ([], [])
