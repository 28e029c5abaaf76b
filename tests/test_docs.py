"""README says what is true: its excerpt, its commands, its tables."""
from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hostlint.cli.main import commands
from hostlint.config.keys import KEYS
from hostlint.report.base import FORMATS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_the_excerpt_is_what_a_scan_prints(hostlint: Run) -> None:
    printed = hostlint("scan", "--no-cache", cwd=ROOT / "tests" / "faulty_models").stdout.splitlines()
    shown = [line for line in blocks("")[0].splitlines() if re.match(r"\s*(-->|\d* \||= hot)", line)]
    assert len(shown) == 5
    assert [line for line in shown if line not in printed] == []


def test_two_commands_do_all_the_setting_up() -> None:
    install, work = blocks("console")[:2]
    assert install == "pip install . && hostlint scan tests/faulty_models\n"
    assert work == "pip install -e '.[test]' && pytest -n 2\n"


def test_every_configuration_key_is_explained() -> None:
    table = README.partition("## Configuration")[2].partition("\n## ")[0]
    named = {key for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for key in re.findall(r"`([\w-]+)`", row)}
    assert named == set(KEYS)


def test_every_format_is_named() -> None:
    assert [form for form in FORMATS if f"`{form}`" not in README] == []


@pytest.mark.parametrize("option", sorted(set(re.findall(r"(?<![\w-])--[a-z][\w-]+", README))))
def test_every_option_that_is_named_exists(option: str) -> None:
    context = commands.make_context("hostlint", ["version"])
    found = [command for name in commands.list_commands(context) if (command := commands.get_command(context, name)) is not None]
    assert len(found) > 5
    known = {name for command in found for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    plugin = set(re.findall(r'addoption\("(--[\w-]+)"', (ROOT / "runtime_checks" / "plugin.py").read_text(encoding="utf-8")))
    assert option in {*known, *plugin, "--help", "--accept-new", "--epochs"}  # --epochs is the user's program's


def test_ci_runs_the_readmes_command(tmp_path: Path) -> None:
    """With the commands of README replaced by ones that only speak: what CI runs is what stands there, in an environment of its own."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_bytes((ROOT / ".ci" / "run").read_bytes())
    spoken = "pip install -e '.[test]' --help >/dev/null && echo pytest && which python && echo '== 3 passed in 1s =='"
    (tmp_path / "README.md").write_text(README.replace("pip install -e '.[test]' && pytest -n 2", spoken), encoding="utf-8")
    done = subprocess.run(["bash", ".ci/run"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "pytest: == 3 passed in 1s =="
    assert f"\n{Path(sys.executable).parent}/python\n" not in done.stdout
    failing = README.replace("pip install -e '.[test]' && pytest -n 2", "pip install -e . --help >/dev/null && false pytest")
    (tmp_path / "README.md").write_text(failing, encoding="utf-8")
    assert subprocess.run(["bash", ".ci/run"], cwd=tmp_path, capture_output=True, check=False).returncode != 0
