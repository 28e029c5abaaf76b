"""Refuses to test another checkout's code, and gives the fixtures that several modules share."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_configure() -> None:
    """An editable install made from another checkout would run its rules under this engine, and every test would pass."""
    for name, folder in {"hostlint": "hostlint", "hostlint.rules": "rules"}.items():
        try:
            found = Path(import_module(name).__file__ or "").resolve().parent
        except ModuleNotFoundError as error:
            raise pytest.UsageError(f"{name} cannot be imported ({error}); run: pip install -e {ROOT}") from error
        if found != ROOT / folder:
            raise pytest.UsageError(f"{name} comes from {found}; run: pip install -e {ROOT}")


@pytest.fixture
def hostlint(tmp_path: Path) -> Run:
    """Run the command line as users do, in `tmp_path` unless `cwd` says otherwise."""

    def run(*arguments: str, cwd: Path = tmp_path, stdin: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "FORCE_COLOR"}}
        return subprocess.run(
            [sys.executable, "-m", "hostlint", *arguments],
            cwd=cwd,
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            env={**clean, "XDG_CACHE_HOME": str(tmp_path.parent / "home"), **environment},
            check=False,
        )

    return run
