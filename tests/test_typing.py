"""Types and style of the whole tree."""
from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.skipif(find_spec("torch") is None, reason="the types of torch are needed")
def test_mypy_is_silent(tmp_path: Path) -> None:
    """Type checkers do not follow the mapping of rules/ to hostlint.rules: a tree of links shows it to them."""
    (tmp_path / "hostlint").mkdir()
    for folder in ("rules", "runtime_checks", "fixed_models"):
        (tmp_path / "hostlint" / folder).symlink_to(ROOT / folder, target_is_directory=True)
    patterns = ("tests/*.py", "tests/runtime_checks/test_*.py")
    tests = sorted(str(file.relative_to(ROOT)) for pattern in patterns for file in ROOT.glob(pattern))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "hostlint", "rules", "runtime_checks", "fixed_models", *tests],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_is_silent() -> None:
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format", "concise"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
