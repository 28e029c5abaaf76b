"""The command: measures the forms on the GPU of this machine, or lists them."""
from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from hostlint.runtime_checks.measure_waits.catalogue import GROUPS, Form, forms
from hostlint.runtime_checks.measure_waits.output import document, write_whole
from hostlint.runtime_checks.measure_waits.supervisor import LostError, measure_all

SAVE_EVERY = 200  # forms: an interrupted run leaves what it measured
NO_GPU = "measure_waits needs a CUDA GPU and a torch that sees it (--list shows the forms without one)"


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m hostlint.runtime_checks.measure_waits", description=__doc__)
    options.add_argument("--output", type=Path, default=Path("waits.json"), metavar="FILE", help="the measurement (default: %(default)s)")
    options.add_argument("--only", action="append", choices=GROUPS, metavar="GROUP", help="one group of forms; may be given again")
    options.add_argument("--copies", action="store_true", help="measure from which size a non_blocking copy waits, instead of the forms")
    options.add_argument("--list", action="store_true", help="print the forms, by group, and measure nothing")
    return options


def chosen(groups: Sequence[str] | None) -> dict[int, Form]:
    """The forms by their number in the whole list."""
    return {number: form for number, form in enumerate(forms()) if groups is None or form.group in groups}


def has_gpu() -> bool:
    """Whether torch is there and sees a GPU."""
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def measure(selected: dict[int, Form], output: Path) -> int:
    messages = measure_all(selected)
    try:
        machine = next(messages)
        answers = []
        for count, answer in enumerate(messages, 1):
            answers.append(answer)
            if count % SAVE_EVERY == 0:
                write_whole(output, document(machine, answers))
                sys.stderr.write(f"{count} of {len(selected)}\n")
    except LostError as lost:
        sys.stderr.write(f"measure_waits: the measuring process cannot be started: {lost}\n")
        return 2
    write_whole(output, document(machine, answers))
    sys.stderr.write(f"{len(answers)} forms in {output}\n")
    return 0


def measure_copies(output: Path) -> int:
    from hostlint.runtime_checks.measure_waits.copy_sizes import measured

    parts = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in measured().items())
    write_whole(output, "{\n" + ",\n".join(parts) + "\n}\n")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """0: measured or listed; 2: nothing can be measured here."""
    options = parser().parse_args(arguments)
    selected = chosen(options.only)
    if options.list:
        sys.stdout.writelines(f"{form.group}\t{form.call}\n" for form in selected.values())
        return 0
    if not has_gpu():
        sys.stderr.write(f"{NO_GPU}\n")
        return 2
    return measure_copies(options.output) if options.copies else measure(selected, options.output)


if __name__ == "__main__":
    sys.exit(main())
