"""Refuses to test another checkout's code, and gives the fixtures that several modules share."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hostlint.index import ProjectIndex
    from hostlint.values.evaluator import Evaluator
    from hostlint.values.judging import Meeting
    from hostlint.values.value import Value

ROOT = Path(__file__).resolve().parent.parent
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_configure() -> None:
    """An editable install made from another checkout would run its rules under this engine, and every test would pass."""
    for name, folder in {"hostlint": "hostlint", **{f"hostlint.{one}": one for one in ("rules", "runtime_checks", "fixed_models")}}.items():
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


def _evaluator(sources: str | Mapping[str, str]) -> tuple[Evaluator, ProjectIndex]:
    from hostlint.facts.lower import lower_file
    from hostlint.heat import compute_heat
    from hostlint.index import ProjectIndex
    from hostlint.judge import Project
    from hostlint.project import module_name
    from hostlint.values.conventions import Conventions
    from hostlint.values.evaluator import Evaluator

    files = {"main.py": sources} if isinstance(sources, str) else sources
    root = Path("/project")
    facts = [lower_file(text, path, module_name(root / path, root), path.endswith("__init__.py")) for path, text in files.items()]
    index = ProjectIndex([one.outline for one in facts])
    heat = compute_heat(index)
    return Evaluator(index, lambda fid: facts[fid[0]].graphs[fid[1]], Project(heat.graph, heat), Conventions()), index


@pytest.fixture(scope="session")
def value_of() -> Callable[..., Value]:
    """What a function of a program (or of one file of a project, by path) returns, as the engine sees it."""

    def value(sources: str | Mapping[str, str], function: str = "f", path: str = "main.py") -> Value:
        from hostlint.values.evaluator import FUEL

        evaluator, index = _evaluator(sources)
        file = next(number for number, one in enumerate(index.files) if one.path == path)
        found = [one.index for one in index.files[file].functions if one.qualname == function]
        return evaluator.returned((file, found[-1]), FUEL)

    return value


@pytest.fixture(scope="session")
def meetings_of() -> Callable[..., list[Meeting]]:
    """Every place of a program at which a host waits or uploads, however often it runs."""

    def met(sources: str | Mapping[str, str], path: str = "main.py") -> list[Meeting]:
        from hostlint.values.waits import meetings

        evaluator, index = _evaluator(sources)
        file = next(number for number, one in enumerate(index.files) if one.path == path)
        return [meeting for one in index.files[file].functions for meeting in meetings(evaluator.frame((file, one.index)))]

    return met
