"""Memos of one entry: which calls take turns in one step, and which ask for the same again."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hostlint.engine import ScanRequest, raw_scan
from hostlint.model import Confidence
from hostlint.project import SourceFile
from hostlint.scan import scan_text

HEAD = """\
from functools import lru_cache

import torch
from torch import nn
"""
MODEL = """

class Model(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.net, self.key, self.kept = nn.Linear(width, width), None, None

    {keeper}
    def table(self, n, device):
        {body}
        return positions

    def by_hand(self, n, device):
        {memo}
        return self.kept

    def forward(self, x, t, text, lens: tuple[int, ...], size: int):
        {use}
        return self.net(x) * made.sum()


def denoise(model: Model, scheduler, x, text, negative, lens, others, size: int, guided: bool, parts):
    for t in scheduler.timesteps:
        {step}
    return x
"""
USUAL = {
    "keeper": "@lru_cache(maxsize=1)",
    "body": "positions = torch.outer(torch.arange(n, device=device), torch.ones(n, device=device)).cos()",
    "memo": "pass",
    "use": "made = self.table(text.shape[1], x.device)",
    "step": "x = scheduler.step(model(x, t, text, lens, size) - model(x, t, negative, others, size), t, x)",
}
BY_HAND = {
    "keeper": "@torch.no_grad()",
    "memo": "if n != self.key: self.kept = self.table(n, device); self.key = n",
    "use": "made = self.by_hand(text.shape[1], x.device)",
}


def told(
    part: str, spellings: Sequence[str], usual: dict[str, str] = USUAL, confidence: Confidence = Confidence.LIKELY
) -> list[str]:
    """Which spellings of a part have a finding of that confidence: a model and a step loop for each."""
    text = HEAD
    for place, one in enumerate(spellings):
        model = MODEL
        for name, value in (USUAL | usual | {part: one}).items():
            model = model.replace(f"{{{name}}}", value)
        text += model.replace("Model", f"Model{place}").replace("denoise", f"denoise{place}")
    raw = raw_scan(ScanRequest(Path(), (SourceFile("model.py", Path("model.py"), True, "model", text),)))
    assert not raw.errors
    found = [one for one in raw.findings if one.code == "HL313" and one.confidence is confidence]
    return [spellings[int(one.function.removeprefix("Model").partition(".")[0])] for one in found]


def test_one_entry_is_told_however_it_is_written() -> None:
    spellings = ["@lru_cache(maxsize=1)", "@lru_cache(1)", "@lru_cache(maxsize=1, typed=True)"]
    assert told("keeper", spellings) == spellings
    assert told("keeper", ["@lru_cache(maxsize=2)", "@lru_cache(maxsize=None)", "@lru_cache()", "@lru_cache", "@torch.no_grad()"]) == []


def test_a_pair_of_attributes_is_such_a_memo() -> None:
    memos = [
        "if n != self.key: self.kept = self.table(n, device); self.key = n",
        "if self.key is None or self.key != n: self.key, self.kept = n, self.table(n, device)",
        "key = (n, device)\n        if key == self.key: return self.kept\n        self.key, self.kept = key, self.table(n, device)",
    ]
    assert told("memo", memos, BY_HAND) == memos
    others = [
        "if n != self.key: self.kept = self.table(n, device)",  # the key is not kept
        "if n != self.key: self.key = n",  # nothing else is
        "if n not in self.seen: self.seen[n] = self.kept = self.table(n, device)",
        "if self.kept is None: self.kept = self.table(n, device)",
    ]
    assert told("memo", others, BY_HAND) == []


def test_what_the_branches_differ_in_decides() -> None:
    uses = [
        "made = self.table(text.shape[1], x.device)",
        "made = self.table(tuple(lens), x.device)",
        "n = text.size(1)\n        made = self.table(n, t.device)",
    ]
    assert told("use", uses) == uses
    same = [
        "made = self.table(x.shape[1], x.device)",
        "made = self.table(size, x.device)",
        "made = self.table(self.net.in_features, x.device)",
    ]
    assert told("use", same) == []


def test_two_calls_of_one_forward_take_turns_too() -> None:
    one = "x = model(x, t, text, lens, size)"
    uses = [
        "made = self.table(text.shape[1], x.device) + self.table(x.shape[1], x.device)",
        "made = self.table(64, x.device) + self.table(128, x.device)",
    ]
    assert told("use", uses, {"step": one}) == uses
    assert told("use", ["made = self.table(64, x.device) + self.table(64, x.device)"], {"step": one}) == []


def test_which_calls_of_a_step_take_turns() -> None:
    steps = [
        "x = model(x, t, text, lens, size)\n        x = model(x, t, negative, others, size)",
        "x = model(x, t, text, lens, size)\n        if guided: x = model(x, t, negative, others, size)",
        "x = sum(model(x, t, prompt, lens, size) for prompt in (text, negative))",
        "for branch in parts:\n            x = model(x, t, branch.text, lens, size)",
    ]
    assert told("step", steps) == steps
    silent = [
        "x = model(x, t, text, lens, size)",
        "x = model(x, t, text, lens, size) - model(x, t, text * 2, lens, size)",
        "x = model(x, t, text, lens, size) - model(x, t, torch.zeros_like(text), lens, size)",
        "x = model(x, t, text, lens, size) if guided else model(x, t, negative, lens, size)",
        "if guided: x = model(x, t, text, lens, size)\n        else: x = model(x, t, negative, lens, size)",
        "for n in range(size):\n            x = model(x, t, text, lens, n)",
        "x = scheduler.step(x, t)",
    ]
    assert told("step", silent) == []
    by_lens = {"use": "made = self.table(tuple(lens), x.device)"}
    loops = [f"for {one} in parts:\n            x = model(x, t, text, {one}.lens, size)" for one in ("branch", "part", "layer", "step")]
    assert told("step", loops, by_lens) == loops[:2]
    returns = "if guided:\n            return model(x, t, text, lens, size)\n        x = model(x, t, negative, lens, size)"
    assert told("step", [returns]) == []


def test_a_denoiser_whose_calls_are_not_seen_is_possible_where_its_text_makes_the_key() -> None:
    uses = ["made = self.table(text_embeds.shape[1], x.device)", "made = self.table(x.shape[1], x.device)"]
    for step in ("x = model(**parts)", "x = x"):
        text = HEAD
        for place, use in enumerate(uses):
            model = MODEL.replace("def forward(self, x, t, text,", "def forward(self, x, timestep, text_embeds,")
            for name, value in (USUAL | {"use": use, "step": step}).items():
                model = model.replace(f"{{{name}}}", value)
            text += model.replace("Model", f"Model{place}").replace("denoise", f"denoise{place}")
        raw = raw_scan(ScanRequest(Path(), (SourceFile("model.py", Path("model.py"), True, "model", text),)))
        found = [(one.function, one.confidence) for one in raw.findings if one.code == "HL313"]
        assert found == [("Model0.table", Confidence.POSSIBLE)]


def test_what_costs_nothing_may_be_made_again() -> None:
    dear = ["positions = torch.arange(n).to(device)", "positions = torch.arange(n, device=device)[torch.ones(n, device=device) > 0]"]
    assert told("body", dear) == dear
    assert told("body", ["positions = n + 1", "positions = torch.arange(n, device=device)"]) == []


def test_shapes_of_other_tensors_are_only_possible() -> None:
    step = "x = model(x, t, text, lens, size) + model(negative, t, text, lens, size)"
    use = ["made = self.table(x.shape[1], x.device)"]
    others = {"step": step.replace("negative", "others")}
    assert told("use", use, others) == []
    assert told("use", use, others, Confidence.POSSIBLE) == use


def test_the_place_is_the_decorator_as_hot_as_the_calls_and_the_body_stays_cold() -> None:
    text = HEAD + MODEL
    for name, value in (USUAL | {"body": "positions = torch.arange(n).to(device)"}).items():
        text = text.replace(f"{{{name}}}", value)
    findings, _ = scan_text(text, "model.py")
    (found,) = [finding for finding in findings if finding.code == "HL313"]
    lines = text.splitlines()
    assert lines[found.span.line - 1][found.span.column - 1 : found.span.end_column - 1] == "lru_cache(maxsize=1)"
    (step,) = [number for number, line in enumerate(lines, 1) if "scheduler.step(model" in line]
    assert f"the calls at lines {step} and {step}" in found.message
    assert "waits or uploads in 1 place" in found.message
    assert found.heat.level.name == "LOOP"
    assert not any("arange" in lines[finding.span.line - 1] and finding.heat.level.name != "COLD" for finding in findings)
    for header in ("@lru_cache(maxsize=1)", "def table(self, n, device):"):
        kept, _ = scan_text(text.replace(header, f"{header}  # hostlint: ignore[HL313] two branches of one length"), "model.py")
        assert not any(finding.code in ("HL313", "HL901") for finding in kept)
