"""Drivers hand their work to remote workers: what they read is in host memory, while what their workers run is not."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

PROGRAM = """\
import ray
import torch
from torch.distributed import rpc


def lengths(batch):
    return batch["attention_mask"].sum(-1).float()


def report(advantages: torch.Tensor, log_probs):
    return advantages.max().item(), log_probs.max().item()  # line 11


class Trainer:
    def fit(self):
        for rollout in self.dataloader:
            n = torch.sum(lengths(rollout)).item()  # line 17
            report(rollout["advantages"], rollout["log_probs"])
            {line}
            self.update(rollout)
            self.global_step += 1

    def update(self, rollout):
        {update}
"""
REMOTE = "ray.get(self.actor.train.remote(rollout))"


def lines(line: str, update: str = REMOTE) -> list[int]:
    findings, errors = scan_text(PROGRAM.format(line=line, update=update), "train.py")
    assert not errors
    return sorted({finding.span.line for finding in findings if finding.code == "HL101"})


@pytest.mark.parametrize("update", [
    REMOTE,
    "rpc.rpc_sync('worker', train, args=(rollout,))",
    "self.actor_wg.update_actor(rollout)",
    "self.pending.append(self.workers[0].train.remote(rollout))",
])
def test_what_a_driver_reads_is_the_host_s(update: str) -> None:
    assert lines("pass", update) == []


@pytest.mark.parametrize("line", [
    "self.loss.backward()",
    "self.strategy.backward(self.loss, self.model)",
    "self.optimizer.step()",
    "values = self.critic(rollout)",
])
def test_a_loop_that_works_itself_is_no_driver(line: str) -> None:
    assert lines(line) == [11, 17]


def test_without_remote_workers_a_loop_is_no_driver() -> None:
    assert lines("loss = self.model(rollout)", "self.history.append(rollout)") == [11, 17]


def test_what_is_on_the_device_for_certain_is_told_of_drivers_too() -> None:
    assert lines('torch.zeros(3, device="cuda").max().item()') == [19]


WORKER = """\
import ray
import torch


def read(batch):
    return batch["rewards"].max().item()  # line 6


@ray.remote
class Actor:
    def train(self, batch):
        for rows in batch.split(4):
            loss = self.model(rows)
            loss.backward()
            self.optimizer.step()
            read(rows)


class Trainer:
    def fit(self):
        for rollout in self.dataloader:
            read(rollout)
            ray.get(self.actor.train.remote(rollout))
            self.global_step += 1
"""


def test_what_workers_call_too_is_told() -> None:
    findings, _ = scan_text(WORKER, "train.py")
    assert [finding.span.line for finding in findings if finding.code == "HL101"] == [6]
    alone, _ = scan_text(WORKER.replace("            read(rows)\n", ""), "train.py")
    assert not [finding for finding in alone if finding.code == "HL101"]


@pytest.mark.parametrize("step", ["self.optimizer.step()", "self.scaler.step(self.optimizer)"])
def test_an_optimizer_s_step_is_not_the_driver_s(step: str) -> None:
    """The worker's call has the name of the driver's method, and calls it no more than that."""
    source = WORKER.replace("            read(rows)\n", "").replace("def fit(self):", "def step(self):")
    source = source.replace("self.optimizer.step()", step)
    findings, _ = scan_text(source + "\n    def fit(self):\n        for _ in range(3):\n            self.step()\n", "train.py")
    assert not [finding for finding in findings if finding.code == "HL101"]


@pytest.mark.parametrize(("line", "expected"), [("pass", []), ("self.loss.backward()", [6])])
def test_what_a_driver_makes_beside_its_tensors_is_no_upload(line: str, expected: list[int]) -> None:
    text = f"""\
import ray
import torch

def advantages(scores: torch.Tensor):
    device = scores.device
    return scores - torch.tensor([0.5, 1.0], device=device)

class Trainer:
    def fit(self):
        for rollout in self.dataloader:
            torch.sum(advantages(rollout["scores"]))
            {line}
            self.update(rollout)

    def update(self, rollout):
        ray.get(self.actor.train.remote(rollout))
"""
    findings, errors = scan_text(text, "train.py")
    assert not errors
    assert [finding.span.line for finding in findings if finding.code == "HL201"] == expected


SCALED = """\
import ray
import torch


def report(advantages: torch.Tensor):
    return advantages.max().item()


class Engine:
    def finish(self):
        for rows in self.loader:
            self.scaler.step(self.optimizer)


class Trainer:
    def fit(self):
        for rollout in self.dataloader:
            self.step(rollout)
            self.global_step += 1

    def step(self, rollout):
        report(rollout["advantages"])
        ray.get(self.actor.train.remote(rollout))
"""


def test_a_scaler_s_step_is_no_call_of_the_driver_s() -> None:
    findings, _ = scan_text(SCALED, "train.py")
    assert not [finding for finding in findings if finding.code == "HL101"]
