"""One process that measures the forms it is told to, a line in and a line out; it ends where the GPU's context is lost."""
from __future__ import annotations

import gc
import json
import os
import sys
import warnings
from typing import TextIO

import torch

from hostlint.runtime_checks.measure_waits.catalogue import Form, forms
from hostlint.runtime_checks.measure_waits.describe import facts_of, words_of
from hostlint.runtime_checks.measure_waits.gpu import Kind, Spin, read
from hostlint.runtime_checks.measure_waits.program import Program

LOST = 3  # the exit status where the context of the GPU is gone


def answer(form: Form, spin: Spin) -> dict[str, object]:
    """The entry of one form and what its names are."""
    head: dict[str, object] = {"group": form.group, "call": form.call}
    if form.source != form.call:
        head["source"] = form.source
    legend: dict[str, object] = {}
    try:
        program = Program(form, "cuda")
        legend = {name: [words_of(program.scope[name]), facts_of(program.scope[name])] for name in form.needs}
        torch.cuda.synchronize()
        reading = read(program.run, spin).as_json()
    except Exception as error:  # noqa: BLE001 - whatever a form raises is its result
        text = " ".join(str(error).split())[:300]
        nothing: dict[str, object] = {"blocks": None, "debug_mode_warns": None, "warnings": 0}
        reading = {**nothing, "kind": Kind.ERROR.value, "error": f"{type(error).__name__}: {text}"}
    return {"entry": {**head, **reading}, "names": legend}


def main() -> int:
    """Answers on the standard output as it was at the start; what forms print goes nowhere."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    warnings.simplefilter("ignore")
    torch.set_warn_always(True)
    gc.disable()
    every = list(forms())
    spin = Spin()
    say(replies, {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda})
    for count, line in enumerate(sys.stdin):
        reply = answer(every[int(line)], spin)
        fit = has_context()
        say(replies, {**reply, "fit": fit})
        if not fit:
            return LOST
        if count % 50 == 0:
            gc.collect()
    return 0


def has_context() -> bool:
    """Whether the GPU still answers: a kernel that failed an assertion takes the process's context with it."""
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def say(replies: TextIO, message: dict[str, object]) -> None:
    replies.write(json.dumps(message) + "\n")
    replies.flush()


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # a process group or a capture that a form left behind must not hold the process at its end
