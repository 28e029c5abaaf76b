"""Counters on the device that only the host counts up: which spellings are told, and what keeps a counter silent."""
from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from hostlint.scan import scan_text

Run = Callable[..., "subprocess.CompletedProcess[str]"]

HEAD = """\
import torch
from torch import nn
import torch.distributed as dist


def small(n):
    return n < 5
"""
MODEL = """

class Codes(nn.Module):
    def __init__(self, warmup: int, every: int, verbose=False):
        super().__init__()
        self.warmup, self.every, self.verbose = warmup, every, verbose
        {make}

    def steps_done(self):
        return int(self.steps)

    def other(self, n, seen: int):
        {other}

    def forward(self, x, mask, width: int):
        {write}
        {read}
        return x
"""
MAKE = 'self.register_buffer("steps", torch.tensor(0))'
WRITE = "self.steps += 1"
READ = "x = x if self.steps < self.warmup else x * 2"
USUAL = {"make": MAKE, "write": WRITE, "read": READ, "other": "pass"}


def model(**parts: str) -> str:
    text = MODEL
    for name, value in (USUAL | parts).items():
        text = text.replace(f"{{{name}}}", value)
    return text


def told(part: str, spellings: Sequence[str], **rest: str) -> list[str]:
    """Which spellings of a part are told where the counter is written: a class for each, with a counter of its own name."""
    text = HEAD
    for place, one in enumerate(spellings):
        text += model(**rest, **{part: one}).replace("Codes", f"Codes{place}").replace("steps", f"steps{place}")
    findings, errors = scan_text(text, "codes.py")
    assert not errors
    found = [finding for finding in findings if finding.code == "HL312"]
    assert all(finding.function.endswith(".forward") for finding in found)
    return [spellings[int(finding.function.removeprefix("Codes").partition(".")[0])] for finding in found]


def test_one_element_that_goes_with_the_module_is_told() -> None:
    spellings = [
        MAKE,
        'self.register_buffer("steps", torch.zeros(1, dtype=torch.long), persistent=False)',
        'self.register_buffer("steps", tensor=torch.zeros([]))',
        'self.register_buffer("steps", torch.LongTensor([0]))',
        "self.steps = nn.Parameter(torch.zeros(()), requires_grad=False)",
        'self.steps = torch.zeros((1,), device="cuda")',
        'self.steps = torch.full((), 0).to("cuda")',
        'self.steps = torch.tensor([0], device="cuda")',
    ]
    assert told("make", spellings) == spellings


def test_host_tensors_and_those_of_more_elements_are_not() -> None:
    spellings = [
        "self.steps = 0",
        "self.steps = torch.tensor(0)",  # no buffer: it stays on the host
        'self.steps = torch.zeros(1, device="cpu")',
        'self.register_buffer("steps", torch.zeros(2))',
        'self.register_buffer("steps", torch.zeros(warmup))',
        'self.register_buffer("steps", torch.tensor([0, 0]))',
    ]
    assert told("make", spellings) == []


def test_numbers_of_the_host_are_told() -> None:
    spellings = [
        "self.steps += width",
        "self.steps.add_(1)",
        "self.steps = self.steps + x.shape[0]",
        "self.steps.data += 1",
        "torch.add(self.steps, 1, out=self.steps)",
        "self.steps.fill_(width)",
        "self.steps += torch.ones_like(self.steps)",
    ]
    assert told("write", spellings) == spellings


def test_values_of_the_device_and_unknown_ones_are_not() -> None:
    spellings = [
        "self.steps += mask.sum()",
        "self.steps += mask.sum().item()",
        "self.steps.add_(x.new_ones(()) * mask.any())",
        "self.steps.copy_(mask.sum())",
        "self.steps = torch.where(mask.any(), self.steps + 1, self.steps)",
        "self.steps.random_()",
        "self.steps += 1; dist.all_reduce(self.steps)",
        "self.steps += 1; self.hand(self.steps)",
        "self.steps += 1; self.log = {}; self.log['steps'] = self.steps",
        "self.steps.fill_(1)",  # the same at every step: nothing is counted
    ]
    assert told("write", spellings) == []


def test_where_the_host_counts_already_the_read_alone_is_told() -> None:
    beside = ["self.steps += 1; self.seen += 1", "self.seen += width; self.steps.add_(width)"]
    assert told("write", beside, make=f"{MAKE}; self.seen = 0") == []
    apart = ["self.steps += 1; self.seen += width", "self.steps += 1; self.seen += mask.sum()"]
    assert told("write", apart, make=f"{MAKE}; self.seen = 0") == apart
    findings, _ = scan_text(HEAD + model(write=beside[0], make=f"{MAKE}; self.seen = 0"), "codes.py")
    assert ["only the host counts it up" in finding.message for finding in findings if finding.code == "HL103"] == [True]


def test_what_is_seldom_counted_is_not_told() -> None:
    spellings = [
        "if width % self.every == 0: self.steps += 1",
        "if self.verbose: self.steps += 1",
        "if not hasattr(self, 'table'): self.table = 1; self.steps += 1",
    ]
    assert told("write", spellings, read="x = x if int(self.steps) < 3 else x * 2") == []


def test_reads_of_the_host_are_told() -> None:
    spellings = [
        "x = x[: int(self.steps)]",
        "x = x * (1 - 0.9 ** self.steps.item())",
        "x = x if self.steps % self.every == 0 and width > 1 else x * 2",
        "x = x if min(self.steps, width) else x * 2",
        "x = x * sum(i for i in range(self.steps))",
        'print(f"{self.steps}")',
        "x = x if small(self.steps) and self.steps else x * 2",
        "done = self.steps >= self.warmup\n        x = x if done else x * 2",
    ]
    assert told("read", spellings) == spellings


def test_a_counter_that_the_host_does_not_read_is_not() -> None:
    spellings = [
        "x = x / self.steps",  # on the device
        "x = x if x.sum() < self.steps else x * 2",  # the sum is what the host waits for
        "x = torch.where(self.steps < self.warmup, x, x * 2)",
    ]
    assert told("read", spellings) == []


def test_what_else_writes_to_it_decides() -> None:
    harmless = [
        "self.steps.zero_()",
        "self.steps.fill_(seen)",
        "self.steps.copy_(torch.tensor(seen))",
        "self.steps: torch.Tensor",
        "return n.steps == seen",
    ]
    assert told("other", harmless) == harmless
    unknown = ["self.steps.copy_(n)", "self.steps = n", "n.codes.steps.fill_(seen)", "n.steps = seen", "setattr(n, 'steps', seen)"]
    assert told("other", unknown) == []


def test_what_brings_back_a_saved_counter_is_no_unknown_write() -> None:
    text = HEAD + model(other="self.steps.copy_(n)")
    for name, found in (("load_state_dict", 1), ("other", 0)):
        findings, _ = scan_text(text.replace("def other", f"def {name}"), "codes.py")
        assert sum(finding.code == "HL312" for finding in findings) == found


def test_another_file_that_writes_to_it_keeps_it_silent(hostlint: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "codes.py").write_text(HEAD + model())
    for line, found in (("return codes.steps", 1), ("codes.steps.fill_(n)", 0), ("return codes.steps, n", 1)):
        (tmp_path / "train.py").write_text(f"import torch\n\n\ndef restart(codes, n):\n    {line}\n")
        report = json.loads(hostlint("scan", "--select", "HL312", "--output-format", "json").stdout)
        assert len(report["findings"]) == found, line


LOOP = """

def sample(net: torch.nn.Module, x, steps: int, device):
    dt = {dt}
    time = {start}
    {kept}
    {loop} {test}:
        x = net(x, time.expand(x.shape[0]))
        {write}
    return x
"""
TIME = {"dt": "-1.0 / steps", "start": "torch.ones((), device='cuda')", "kept": "pass", "loop": "while", "test": "time > 0"}
TIME["write"] = "time += dt"


def loops_told(changes: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    text = HEAD
    for place, change in enumerate(changes):
        loop = LOOP.replace("sample", f"sample{place}")
        for name, value in (TIME | change).items():
            loop = loop.replace(f"{{{name}}}", value)
        text += loop
    findings, errors = scan_text(text, "flow.py")
    assert not errors
    return [changes[int(finding.function.removeprefix("sample"))] for finding in findings if finding.code == "HL312"]


def test_a_name_that_a_loop_counts_up_is_told() -> None:
    changes = [
        {},
        {"dt": "torch.tensor(-1.0 / steps, device=device)", "test": "time >= -dt / 2"},
        {"write": "time = time + dt"},
        {"write": "time.add_(dt)"},
    ]
    assert loops_told(changes) == changes


def test_a_name_that_may_hold_something_else_is_not() -> None:
    changes = [
        {"start": "torch.ones(())"},
        {"dt": "x.mean()"},
        {"test": "steps > 0", "write": "time += dt; steps -= 1"},
        {"kept": "net.time = time; hold = lambda: time.add_(x.mean())"},
        {"write": "time = net.advance(time)"},
        {"write": "time += 1; steps -= 1"},
        {"loop": "for step in", "test": "range(steps)", "write": "x = x[time]; time += 1"},  # the host has `step`
        {"loop": "for step, row in", "test": "enumerate(x)", "write": "x = x[time]; time += 1"},
    ]
    assert loops_told(changes) == []


def test_the_read_says_that_only_the_host_counts() -> None:
    text = HEAD + model()
    findings, _ = scan_text(text, "codes.py")
    (read,) = [finding for finding in findings if finding.code == "HL103"]
    (counter,) = [finding for finding in findings if finding.code == "HL312"]
    assert f"only the host counts it up (line {counter.span.line})" in read.message
    assert f"line {read.span.line} waits to read it back" in counter.message
    findings, _ = scan_text(text.replace(WRITE, "self.steps += mask.sum()"), "codes.py")
    assert not any("only the host counts" in finding.message for finding in findings)
