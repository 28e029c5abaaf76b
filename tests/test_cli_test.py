"""`hostlint test`: examples are proved, a wrong one is named, and what is no rule is an error."""
from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).resolve().parent.parent
OWN = '''"""Reads that we forbid.

## Why it costs
The host waits.

## Instead
Keep the tensor.

## Not flagged
Nothing else.

## Evidence
Ours.
"""
from hostlint.facts.kinds import FactKind
from hostlint.rule import Example, Problem, Rule

BAD = """def train(model, batches):
    for batch in batches:
        loss = model(batch.cuda(non_blocking=True)).mean()
        loss.backward()
        print(loss.item())  # expect
"""


def check(fact, node):
    return Problem("we do not read; keep it")


RULE = Rule(code="OUR101", name="our-read", summary="a read", kinds=(FactKind.ITEM,), check=check,
            examples=(Example(bad=BAD, good=GOOD),))
'''
GOOD = '"""def train(model, batches):\\n    return model, batches\\n"""'


def own(folder: Path, good: str = GOOD, name: str = "our_read") -> Path:
    file = folder / f"{name}.py"
    file.write_text(OWN.replace("GOOD", good).replace("our-read", name.replace("_", "-")))
    return file


@pytest.mark.parametrize("name", ["device-item", "HL101", str(ROOT / "rules" / "device_item.py")])
def test_a_rule_of_hostlints_own_is_proved(hostlint: Run, name: str) -> None:
    done = hostlint("test", name)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("HL101 device-item: ")
    assert done.stdout.endswith(" proved\n")


def test_a_rule_of_ones_own_is_proved_from_its_file(hostlint: Run, tmp_path: Path) -> None:
    done = hostlint("test", str(own(tmp_path)))
    assert (done.returncode, done.stdout) == (0, "OUR101 our-read: 1 example proved\n"), done.stderr


def test_an_example_that_does_not_hold_is_named_with_the_line(hostlint: Run, tmp_path: Path) -> None:
    file = own(tmp_path)
    file.write_text(file.read_text().replace("loss.backward()\n", "loss.backward()  # expect\n"))
    done = hostlint("test", str(file))
    assert done.returncode == 1
    assert "OUR101 our-read: 1 example failed" in done.stdout
    assert "  example 1: bad, line 4: OUR101 our-read is missing" in done.stdout


@pytest.mark.parametrize(("arguments", "words"), [(["no-such-rule"], "no-such-rule"), (["nowhere.py"], "nowhere.py")])
def test_what_is_no_rule_is_an_error(hostlint: Run, arguments: list[str], words: str) -> None:
    done = hostlint("test", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_without_a_rule_is_an_error(hostlint: Run, tmp_path: Path) -> None:
    (tmp_path / "empty_one.py").write_text("x = 1\n")
    done = hostlint("test", "empty_one.py")
    assert done.returncode == 2
    assert "no RULE" in done.stderr
