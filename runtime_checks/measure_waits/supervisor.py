"""Hands the forms to worker processes: one that hangs or dies costs its form, and the rest goes on in a fresh one."""
from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from hostlint.runtime_checks.measure_waits.catalogue import Form

WORKER = "hostlint.runtime_checks.measure_waits.worker"
START_S = 180.0
FORM_S = 30.0
Message: TypeAlias = "dict[str, object]"


class LostError(Exception):
    """The worker gave no answer; the text says why."""


class Worker:
    """A process, and the thread that reads its answers so that waiting for one can have an end."""

    def __init__(self, module: str = WORKER, start_s: float = START_S, form_s: float = FORM_S) -> None:
        self._form_s = form_s
        self.fit = True  # False once it gave no answer
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, a module of this package
            [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        self._answers: SimpleQueue[str] = SimpleQueue()
        Thread(target=self._listen, daemon=True).start()
        try:
            self.machine = self._next(start_s)
        except LostError:
            self.close()
            raise

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def _next(self, seconds: float) -> Message:
        self.fit = False
        try:
            line = self._answers.get(timeout=seconds)
        except Empty:
            raise LostError(f"no answer within {seconds:g} s") from None
        if not line:
            raise LostError(f"the process ended with status {self._process.wait()}")
        self.fit = True
        message: Message = json.loads(line)
        return message

    def measure(self, number: int) -> Message:
        """The answer for one form; raises LostError where none comes."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{number}\n")
            self._process.stdin.flush()
        except OSError:
            self.fit = False
            raise LostError(f"the process ended with status {self._process.wait()}") from None
        message = self._next(self._form_s)
        self.fit = bool(message.pop("fit"))
        return message

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def measure_all(numbered: Mapping[int, Form], module: str = WORKER, form_s: float = FORM_S) -> Iterator[Message]:
    """First what the machine is, then one answer a form, in their order. Raises LostError where no worker can be started."""
    worker = Worker(module, form_s=form_s)
    yield worker.machine
    try:
        for number, form in numbered.items():
            answer = _answer(worker, number, form)
            yield answer
            if not worker.fit:
                worker.close()
                worker = Worker(module, form_s=form_s)
    finally:
        worker.close()


def _answer(worker: Worker, number: int, form: Form) -> Message:
    try:
        return worker.measure(number)
    except LostError as lost:
        return {"entry": failed(form, str(lost)), "names": {}}


def failed(form: Form, reason: str) -> Message:
    """The entry of a form that ended its process."""
    label: Message = {"source": form.source} if form.source != form.call else {}
    reading: Message = {"blocks": None, "debug_mode_warns": None, "warnings": 0, "kind": "error", "error": reason}
    return {"group": form.group, "call": form.call, **label, **reading}
