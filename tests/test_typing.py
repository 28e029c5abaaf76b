"""Types and style of the whole tree."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_mypy_is_silent(tmp_path: Path) -> None:
    """Type checkers do not follow the mapping of rules/ to hostlint.rules: a tree of links shows it to them."""
    (tmp_path / "hostlint").mkdir()
    (tmp_path / "hostlint" / "rules").symlink_to(ROOT / "rules", target_is_directory=True)
    tests = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "tests").glob("*.py"))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "hostlint", "rules", *tests],
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
