"""A worker receives requests and runs a model, and nothing in the project says when the cyclic collector may run.

## Why it costs
Python collects when its counters say so, also in the middle of a request. A full collection walks every container of the process: with a
model, its parameters and the caches of an inference engine that is tens to hundreds of milliseconds, in which the host launches nothing and
the device runs dry. With several ranks the others wait for the one that collects. Throughput hardly moves; the slowest requests do.

## Instead
- `with request_gc.defer():` around the work of one request (`hostlint.runtime_checks`, or a few lines of your own: a counter of active
  requests, `gc.disable()` at the first, `gc.enable()` after the last, also on exceptions), `request_gc.collect_after_warmup()` once the
  worker is up, and a collection when no request runs.
- At least `gc.collect(); gc.freeze()` after the warm-up, so that later collections skip what stays.
- Never `gc.disable()` alone: cycles then keep their tensors for ever (collector-off).

## Not flagged
Projects in which anything outside tests freezes, collects, paces or defers; training loops; loops that run no model within a few calls. The
rule is off unless it is selected (`--select HL405`): it says what a project lacks, not what a line does.

## Evidence
Serving engines report stalls of 100 to 300 ms every second and a half, and one of 41 s over 75 million objects, until they froze or
deferred.
NVIDIA H200, torch 2.11:
- `gc.collect()`: host work

## How to confirm
`hostlint.runtime_checks.record_gc()` around a few hundred requests lists each collection with its generation and its time.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.model import Severity
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import happens, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(
        f"`{whole(node)}` starts work that a full collection may interrupt, {happens(fact)}: {fact.evidence}; run each request under "
        "`request_gc.defer()` and collect between requests"
    )


RULE = Rule(
    code="HL405",
    name="unguarded-collections",
    summary="a serving worker whose requests the cyclic collector may interrupt (off unless selected)",
    kinds=(FactKind.UNGUARDED_COLLECTIONS,),
    check=check,
    severity=Severity.NOTE,
    on=False,
    examples=(
        Example(
            bad="""\
import torch


class Worker:
    def __init__(self, model, inbox):
        self.model = model.cuda()
        self.inbox = inbox

    def answer(self, request):
        request.reply(self.model(request.ids.cuda(non_blocking=True)))

    def serve(self):
        while True:
            request = self.inbox.get()  # expect
            self.answer(request)

    def drain(self):
        while not self.inbox.empty():
            print(self.inbox.get())
""",
            good="""\
import torch

from hostlint.runtime_checks import request_gc


class Worker:
    def __init__(self, model, inbox):
        self.model = model.cuda()
        self.inbox = inbox

    @request_gc.defer()
    def answer(self, request):
        request.reply(self.model(request.ids.cuda(non_blocking=True)))

    def serve(self):
        while True:
            request = self.inbox.get()
            self.answer(request)
""",
        ),
        Example(
            bad="""\
import torch


def serve(socket, engine):
    running = True
    while running:
        message = socket.recv_pyobj()  # expect
        socket.send_pyobj(engine.generate(message))
""",
            good="""\
import gc

import torch


def serve(socket, engine):
    gc.collect()
    gc.freeze()
    running = True
    while running:
        message = socket.recv_pyobj()
        socket.send_pyobj(engine.generate(message))
""",
        ),
        Example(
            bad="""\
import torch


def run(model, requests):
    while requests:
        prompt = requests.popleft()  # expect
        prompt.done(model(prompt.ids.cuda(non_blocking=True)))


def count(requests):
    total = 0
    while requests:
        total += len(requests.popleft())
    return total
""",
            good="""\
import torch


def count(requests):
    total = 0
    while requests:
        total += len(requests.popleft())
    return total
""",
        ),
    ),
)
