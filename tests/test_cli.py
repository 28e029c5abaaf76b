"""The command line from outside: exit statuses, what goes where, and what happens when something is wrong."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

FAULTY = """import torch


def train(model, optimizer, batches):
    total = 0.0
    for batch in batches:
        optimizer.zero_grad()
        loss = model(batch.cuda(non_blocking=True)).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""
FOUND = "train.py:11:18: HL101 device-item "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (tmp_path / "train.py").write_text(FAULTY)
    (tmp_path / "clean.py").write_text("def f(x):\n    return x\n")
    return tmp_path


def test_findings_are_status_1(hostlint: Run, folder: Path) -> None:
    done = hostlint("scan", "--output-format", "concise")
    assert done.returncode == 1
    assert done.stdout.startswith(FOUND)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_nothing_is_status_0(hostlint: Run, folder: Path) -> None:
    done = hostlint("scan", "clean.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "No findings in 1 file.\n", "")


def test_full_shows_the_place_the_heat_and_the_reason(hostlint: Run, folder: Path) -> None:
    done = hostlint("scan", "train.py")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("warning[HL101 device-item]: ")
    assert lines[1] == "  --> train.py:11:18 in train"
    assert lines[3] == "11 |         total += loss.item()"
    assert lines[4] == "   |                  ^^^^^^^^^^^"
    assert lines[5].startswith("   = hot: runs in a step loop")
    assert lines[6].startswith("   = why: ")
    assert lines[-1] == "Found 1 finding in 1 file."


@pytest.mark.parametrize(("options", "status"), [(["--exit-zero"], 0), (["--fail-on", "error"], 0), (["--fail-on", "note"], 1)])
def test_what_counts_as_failure(hostlint: Run, folder: Path, options: list[str], status: int) -> None:
    done = hostlint("scan", *options, "--output-format", "concise")
    assert done.returncode == status
    assert done.stdout.startswith(FOUND)


def test_one_broken_file_is_an_error_and_the_others_are_reported(hostlint: Run, folder: Path) -> None:
    (folder / "broken.py").write_text("x = 1\ndef f(:\n    pass\n")
    (folder / "latin.py").write_bytes(b'x = "\xe9"\n')
    (folder / "unknown.py").write_bytes(b"# coding: klingon\nx = 1\n")
    done = hostlint("scan", ".", "missing", "--output-format", "json", "--exit-zero")
    report = json.loads(done.stdout)
    assert done.returncode == 2
    assert [finding["code"] for finding in report["findings"]] == ["HL101"]
    assert [(error["path"], error["line"]) for error in report["errors"]] == [
        ("broken.py", 2),
        ("latin.py", 1),
        ("missing", 1),
        ("unknown.py", 1),
    ]
    assert [bool(error["message"]) for error in report["errors"]] == [True] * 4
    assert len(done.stderr.splitlines()) == 4
    assert done.stderr.startswith("hostlint: error: broken.py:2: ")


def test_syntax_of_a_newer_python_is_said_to_be_beyond_this_one(hostlint: Run, tmp_path: Path) -> None:
    (tmp_path / "new.py").write_text("from x import = 3\n")
    done = hostlint("scan", "new.py")
    assert done.returncode == 2
    assert f"Python {sys.version_info[0]}.{sys.version_info[1]}" in done.stdout


def test_only_missing_paths(hostlint: Run, folder: Path) -> None:
    done = hostlint("scan", "nowhere.py")
    assert done.returncode == 2
    assert "nowhere.py" in done.stdout
    assert "no such file" in done.stdout


def test_a_missing_path_in_a_missing_folder_is_one_error(hostlint: Run, tmp_path: Path) -> None:
    done = hostlint("scan", str(tmp_path.parent / "not" / "there" / "at.py"))
    assert done.returncode == 2
    assert done.stdout.count("no such file") == 1
    assert "1 error in" in done.stdout


def test_a_folder_without_python_is_worth_a_warning(hostlint: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = hostlint("scan", "empty")
    assert (done.returncode, done.stdout) == (0, "No findings in 0 files.\n")
    assert done.stderr == "hostlint: warning: no Python files under the given paths\n"
    assert hostlint("scan", "empty", "-q").stderr == ""


def test_broken_files_elsewhere_in_the_project_are_nobodys_errors(hostlint: Run, folder: Path) -> None:
    (folder / "broken.py").write_text("def f(:\n")
    assert hostlint("scan", "clean.py").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["scan", "--selct", "HL1"], "--select"),
        (["scan", "--select", "HL777"], "--select: unknown rule 'HL777'"),
        (["scan", "--ignore", "device-itm"], "did you mean device-item?"),
        (["scan", "--per-file-ignores", "tests"], "PATTERN:RULE"),
        (["scan", "--min-heat", "warm"], "warm"),
        (["scan", "--jobs", "0"], "--jobs"),
        (["scan", "--config", "missing.toml"], "missing.toml: cannot be read"),
        (["scan", "--config", "pyproject.toml", "--isolated"], "--isolated"),
        (["scan", "-", "train.py"], "standard input"),
        (["scan", "--stdin-filename", "a.py", "train.py"], "--stdin-filename"),
        (["scan", "--statistics", "--output-format", "sarif"], "--statistics"),
        (["scan", "--baseline", "missing.jsonl"], "missing.jsonl"),
        (["scn"], "did you mean `scan`?"),
        (["rule", "HL777"], "HL777"),
        (["rule", "HL101", "--all"], "--all"),
    ],
)
def test_mistakes_in_the_call_are_status_2(hostlint: Run, folder: Path, arguments: list[str], words: str) -> None:
    done = hostlint(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_mistakes_in_the_configuration_are_status_2(hostlint: Run, folder: Path) -> None:
    (folder / "hostlint.toml").write_text("min-heat = 'call'\nselct = []\n")
    done = hostlint("scan")
    assert (done.returncode, done.stdout) == (2, "")
    assert "hostlint.toml: unknown key `selct`; did you mean `select`?" in done.stderr
    (folder / "hostlint.toml").write_text("select = ['device-itm']\n")
    done = hostlint("scan")
    assert done.returncode == 2
    assert "hostlint.toml: `select`: unknown rule 'device-itm'; did you mean device-item?" in done.stderr
    assert hostlint("scan", "--isolated").returncode == 1


def test_the_report_goes_to_a_file_in_one_step(hostlint: Run, folder: Path) -> None:
    report = folder / "report.json"
    report.write_text("old")
    report.chmod(0o640)
    done = hostlint("scan", "--output-format", "json", "--output-file", "report.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert json.loads(report.read_text())["summary"]["findings"] == 1
    assert report.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in folder.iterdir() if "report" in path.name) == ["report.json"]


@pytest.mark.parametrize("target", ["nowhere/report.json", ".", "clean.py/report.json"])
def test_a_report_that_cannot_be_written(hostlint: Run, folder: Path, target: str) -> None:
    done = hostlint("scan", "--output-file", target)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"hostlint: error: cannot write {target}")
    assert len(done.stderr.splitlines()) == 1


def test_a_link_and_a_device_stay_what_they_are(hostlint: Run, folder: Path) -> None:
    (folder / "link.txt").symlink_to(folder / "target.txt")
    assert hostlint("scan", "--output-file", "link.txt").returncode == 1
    assert (folder / "link.txt").is_symlink()
    assert "HL101" in (folder / "target.txt").read_text()
    assert hostlint("scan", "--output-file", os.devnull).returncode == 1
    assert not Path(os.devnull).is_file()


def start(folder: Path, *arguments: str, stdout: int) -> subprocess.Popen[bytes]:
    # a shell that runs the tests in the background has its children ignore SIGINT
    script = (
        "import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from hostlint.cli.main import main\nsys.exit(main())"
    )
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["scan"], ["rule", "--all"]])
def test_a_full_disk_is_one_message(folder: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        process = start(folder, *arguments, stdout=full.fileno())
    _, errors = process.communicate()
    assert process.returncode == 2
    assert errors.decode().splitlines() == ["hostlint: error: cannot write the report: no space left on device"]


@pytest.mark.parametrize(("arguments", "status"), [(["scan"], 1), (["rule", "--all"], 0)])
def test_a_reader_that_has_gone_away_is_no_news(folder: Path, arguments: list[str], status: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = start(folder, *arguments, stdout=writing)
    os.close(writing)
    _, errors = process.communicate()
    assert (process.returncode, errors) == (status, b"")


def test_an_interrupt_is_status_130(folder: Path) -> None:
    process = start(folder, "scan", "-", "-v", stdout=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"x = 1\n")
    process.stdin.flush()
    with pytest.raises(subprocess.TimeoutExpired):  # it has started, and waits for the rest of its input
        process.wait(timeout=2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert (process.returncode, errors.strip()) == (130, b"")


def test_version(hostlint: Run) -> None:
    from hostlint.version import VERSION

    assert hostlint("version").stdout == f"hostlint {VERSION}\n"
    assert hostlint("--version").stdout == f"hostlint {VERSION}\n"


def test_help_lists_the_commands_that_exist(hostlint: Run) -> None:
    listed = hostlint("--help").stdout.partition("Commands:\n")[2]
    commands = ["scan", "fix", "confirm", "report", "rule", "explain", "baseline", "test", "version"]
    assert [line.split()[0] for line in listed.splitlines()] == commands
