"""Which findings a scan shows: rules, files, heat, confidence and comments, from the command line and the configuration."""
from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

TRAIN = """import torch


def train(model, optimizer, batches):
    for batch in batches:
        loss = model(batch.cuda(non_blocking=True)).mean()
        loss.backward()
        optimizer.step()
        scale = torch.tensor([1.0, 2.0], device="cuda")
        print((loss * scale).sum().item())


def setup(path):
    return torch.zeros(3, device="cuda").sum().item()
"""
ITEM, UPLOAD = ("train.py", 10, "HL101"), ("train.py", 9, "HL201")
SETUP = ("train.py", 14, "HL101")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def found(done: subprocess.CompletedProcess[str]) -> list[tuple[str, int, str]]:
    return [(finding["path"], finding["line"], finding["code"]) for finding in json.loads(done.stdout)["findings"]]


@pytest.fixture
def scan(hostlint: Run, folder: Path) -> Callable[..., list[tuple[str, int, str]]]:
    return lambda *arguments, **settings: found(hostlint("scan", *arguments, "--output-format", "json", **settings))


Scan = Callable[..., list[tuple[str, int, str]]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", [UPLOAD, ITEM]),
        ("--select HL1", [ITEM]),
        ("--select HL2,device-item", [UPLOAD, ITEM]),
        ("--select HL2 --select device-item", [UPLOAD, ITEM]),
        ("--ignore device-item", [UPLOAD]),
        ("--select ALL --ignore HL2", [ITEM]),
        ("--select HL2 --extend-select HL101", [UPLOAD, ITEM]),
        ("--per-file-ignores train.py:HL1", [UPLOAD]),
        ("--per-file-ignores other.py:HL1", [UPLOAD, ITEM]),
        ("--per-file-ignores *.py:HL1,HL2", []),
        ("--exclude train.py", []),
        ("--extend-exclude tr*.py", []),
        ("--min-heat loop", [UPLOAD, ITEM]),
        ("--min-heat any", [UPLOAD, ITEM, SETUP]),
        ("--hot train:setup", [UPLOAD, ITEM, SETUP]),
        ("--min-confidence certain", [UPLOAD, ITEM]),
    ],
)
def test_options(scan: Scan, options: str, expected: list[tuple[str, int, str]]) -> None:
    assert scan(*options.split()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('select = ["HL1"]', [ITEM]),
        ('ignore = ["device-item"]', [UPLOAD]),
        ('select = ["HL2"]\nextend-select = ["device-item"]', [UPLOAD, ITEM]),
        ('[per-file-ignores]\n"train.py" = ["HL1"]', [UPLOAD]),
        ('exclude = ["train.py"]', []),
        ('extend-exclude = ["/train.py"]', []),
        ('min-heat = "any"', [UPLOAD, ITEM, SETUP]),
        ('hot = ["train:setup"]', [UPLOAD, ITEM, SETUP]),
        ('cold = ["train:train"]', []),
    ],
)
def test_configuration(scan: Scan, folder: Path, text: str, expected: list[tuple[str, int, str]]) -> None:
    (folder / "hostlint.toml").write_text(text)
    assert scan() == expected


def test_the_command_line_overrules_the_configuration(scan: Scan, folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.hostlint]\nselect = ["HL2"]\nmin-heat = "any"\n')
    assert scan() == [UPLOAD]
    assert scan("--select", "HL1") == [ITEM, SETUP]
    assert scan("--min-heat", "call", "--extend-select", "HL1") == [UPLOAD, ITEM]
    assert scan("--isolated") == [UPLOAD, ITEM]
    (folder / "other.toml").write_text('ignore = ["HL1"]\n')
    assert scan("--config", "other.toml") == [UPLOAD]


def test_fail_on_from_the_configuration(hostlint: Run, folder: Path) -> None:
    (folder / "train.py").write_text(TRAIN.replace("(loss * scale)", "loss"))  # likely, hence a warning
    (folder / "hostlint.toml").write_text('fail-on = "error"\nselect = ["HL101"]\n')
    assert hostlint("scan").returncode == 0
    assert hostlint("scan", "--fail-on", "warning").returncode == 1
    assert hostlint("scan", "--select", "HL201").returncode == 1


def test_names_from_the_configuration_place_values(scan: Scan, folder: Path) -> None:
    (folder / "train.py").write_text(
        "def train(model, optimizer, batches, codes):\n    for b in batches:\n        model(b).backward()\n        optimizer.step()\n"
        "        print(codes.tolist())\n"
    )
    assert scan() == []
    (folder / "hostlint.toml").write_text('device-names = ["codes"]\n')
    assert scan() == [("train.py", 5, "HL105")]


def test_gitignore(scan: Scan, folder: Path) -> None:
    (folder / ".gitignore").write_text("train.py\n")
    assert scan() == []
    assert scan("--no-respect-gitignore") == [UPLOAD, ITEM]
    assert scan("train.py") == [UPLOAD, ITEM]


def with_line(folder: Path, number: int, old: str, new: str) -> None:
    lines = TRAIN.splitlines(keepends=True)
    assert old in lines[number - 1]
    lines[number - 1] = lines[number - 1].replace(old, new)
    (folder / "train.py").write_text("".join(lines))


def test_a_comment_suppresses(hostlint: Run, scan: Scan, folder: Path) -> None:
    with_line(folder, 10, "item())", "item())  # hostlint: ignore[device-item] the number is the product")
    done = hostlint("scan", "--output-format", "json")
    assert found(done) == [UPLOAD]
    assert json.loads(done.stdout)["summary"]["suppressed"] == 1
    assert scan("--min-heat", "any") == [UPLOAD, SETUP]


@pytest.mark.parametrize(
    ("comment", "code"),
    [
        ("ignore[device-tolist] why", "HL901"),
        ("ignore[device-item]", "HL902"),
        ("ignore[device-item] why until=2001-01-01", "HL903"),
        ("ignore device-item", "HL904"),
    ],
)
def test_what_is_wrong_with_a_comment_shows_at_every_heat(scan: Scan, folder: Path, comment: str, code: str) -> None:
    with_line(folder, 10, "item())", f"item())  # hostlint: {comment}")
    for heat in ("any", "loop"):
        assert ("train.py", 10, code) in scan("--min-heat", heat, "--min-confidence", "certain")
    assert ("train.py", 10, code) not in scan("--ignore", code)
    assert (ITEM in scan()) == (code != "HL902")


def test_a_suppression_that_only_a_cold_finding_needs_is_not_unused(scan: Scan, folder: Path) -> None:
    with_line(folder, 14, "item()", "item()  # hostlint: ignore[device-item] once at start-up")
    assert scan() == [UPLOAD, ITEM]
    assert scan("--min-heat", "loop") == [UPLOAD, ITEM]


def test_hints_in_comments(scan: Scan, folder: Path) -> None:
    with_line(folder, 13, ":", ":  # hostlint: hot")
    assert scan() == [UPLOAD, ITEM, SETUP]
    with_line(folder, 4, ":", ":  # hostlint: cold a demonstration")
    assert scan() == []


def test_statistics(hostlint: Run, folder: Path) -> None:
    done = hostlint("scan", "--statistics", "--min-heat", "any")
    assert done.returncode == 1
    assert done.stdout.splitlines() == ["2  HL101  device-item", "1  HL201  pageable-constructor"]


def test_colours(hostlint: Run, folder: Path) -> None:
    assert "\x1b[" not in hostlint("scan").stdout
    assert "\x1b[" not in hostlint("scan", FORCE_COLOR="1", NO_COLOR="1").stdout
    assert "\x1b[" in hostlint("scan", FORCE_COLOR="1").stdout
    assert "\x1b[" in hostlint("scan", "--color", "always", NO_COLOR="1").stdout
    assert "\x1b[" not in hostlint("scan", "--color", "never", FORCE_COLOR="1").stdout
