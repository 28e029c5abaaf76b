"""Tables of schedules that each step converts again."""
from __future__ import annotations

from pathlib import Path

import pytest

from hostlint.engine import ScanRequest, raw_scan
from hostlint.project import SourceFile
from hostlint.scan import scan_text

SOURCE = """\
import torch


class Pipeline:
    def sigma(self, scheduler, t):
        {helper}
        return table[torch.argmin((table - t).abs())]

    def run(self, x, t, net, scheduler, kept):
        for i, t in enumerate(scheduler.timesteps):
            {line}
            x = net(x, t)
            x = scheduler.step(x, t, x).prev_sample
        return x
"""
HELPER = 1 + SOURCE.splitlines().index("        {helper}")
HERE = 1 + SOURCE.splitlines().index("            {line}")
CALL = "x = x * self.sigma(scheduler, t)"


def told(helper: str = "table = scheduler.sigmas", line: str = "pass", source: str = SOURCE) -> list[int]:
    findings, errors = scan_text(source.replace("{helper}", helper).replace("{line}", line), "pipeline.py")
    assert not errors
    return [finding.span.line for finding in findings if finding.code == "HL302"]


@pytest.mark.parametrize(
    "helper",
    [
        "table = scheduler.sigmas.double().to(t.device)",
        "table = scheduler.alphas_cumprod.to(device=t.device, dtype=torch.float32)",
        "table = self.noise_scheduler.timesteps.cuda().float()",
        "times = scheduler.timesteps.double().to(t.device); table = scheduler.sigmas.double().to(t.device)",
    ],
)
def test_a_helper_of_the_loop_converts_the_table(helper: str) -> None:
    assert told(helper, CALL) == [HELPER]


@pytest.mark.parametrize("line", ["x = x * scheduler.sigmas.to(x.device)[i]", "x = x * self.scheduler.sigmas.to(x.device, x.dtype)[i]"])
def test_the_loop_itself_converts_the_table(line: str) -> None:
    assert told(line=line) == [HERE]


@pytest.mark.parametrize(
    ("helper", "line"),
    [
        ("table = scheduler.sigmas.double().to(t.device)", "pass"),  # nobody calls it
        ("table = scheduler.sigmas", CALL),
        ("table = scheduler.sigmas.to(t.device) if self.kept is None else self.kept", "pass"),
        ("table = self.tables.sigmas.to(t.device)", CALL),  # whatever that is
        ("table = scheduler.weights.to(t.device)", CALL),
        ("table = scheduler.sigmas[t].to(t.device)", CALL),  # one entry, another each time
    ],
)
def test_what_no_step_converts_is_silent(helper: str, line: str) -> None:
    assert told(helper, line) == []


def test_a_loop_over_schedulers_has_another_table_in_each_pass() -> None:
    each = SOURCE.replace("for i, t in enumerate(scheduler.timesteps):", "for i, scheduler in enumerate(kept):")
    assert told(line="x = x * scheduler.sigmas.to(x.device)[i]", source=each) == []


PACKAGE = {
    "scheduler": """\
import torch


class Karras:
    def set_timesteps(self, steps, device=None):
        self.timesteps = torch.arange(steps).to(device)
""",
    "pipeline": """\
from scheduler import Karras


class Pipeline:
    def __init__(self, unet, scheduler: Karras):
        self.unet = unet
        self.scheduler = scheduler

    def __call__(self, x, steps, device):
        self.scheduler.set_timesteps({given})
        for t in self.scheduler.timesteps:
            before = 1.0 if t > 0 else 0.0  # line 12
            x = self.unet(x, t) * before
        return x
""",
}


@pytest.mark.parametrize(("given", "lines"), [("steps", []), ("steps, device=device", [12]), ("steps, device", [12])])
def test_a_schedule_that_is_asked_for_without_a_device_stays_on_the_host(given: str, lines: list[int]) -> None:
    files = tuple(
        SourceFile(f"{name}.py", Path(f"{name}.py"), True, name, text.replace("{given}", given)) for name, text in PACKAGE.items()
    )
    raw = raw_scan(ScanRequest(Path(), files))
    assert not raw.errors
    assert [one.span.line for one in raw.findings if one.code == "HL103"] == lines
