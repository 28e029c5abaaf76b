"""What is built and installed is what the tree holds; it runs without torch, and says what is missing in a checkout."""
from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAPPED = {  # folder of the tree -> folder of the wheel
    "hostlint": "hostlint",
    "rules": "hostlint/rules",
    "runtime_checks": "hostlint/runtime_checks",
    "fixed_models": "hostlint/fixed_models",
}
FAULTY = """def train(model, optimizer, batches):
    for batch in batches:
        loss = model(batch.cuda(non_blocking=True)).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean copy: a wheel built in the tree itself could take old files out of build/."""
    copy = tmp_path_factory.mktemp("tree")
    for folder in MAPPED:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, copy / file)
    return copy


@pytest.fixture(scope="session")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "-w", str(target), str(tree)]
    subprocess.run(command, check=True)
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content, to be run without the editable install of the checkout."""
    target = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def python(*arguments: str, path: Path | None, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run without site, hence without editable installs: only `path`, and the libraries, can be imported."""
    places = [str(path)] if path else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*places, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])}
    return subprocess.run([sys.executable, "-S", *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_the_wheel_holds_every_file_of_the_tree(tree: Path, wheel: Path) -> None:
    expected = {
        f"{place}/{file.relative_to(tree / folder).as_posix()}"
        for folder, place in MAPPED.items()
        for file in (tree / folder).rglob("*")
        if file.is_file()
    }
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert found == expected
    assert {"hostlint/py.typed", "hostlint/rules/device_item.py"} <= found


def test_the_wheel_names_its_command_and_carries_its_license(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (entry_points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        parsed = configparser.ConfigParser()
        parsed.read_string(archive.read(entry_points).decode())
        licenses = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]
        (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("METADATA"))
    assert dict(parsed["console_scripts"]) == {"hostlint": "hostlint.cli.main:main"}
    assert len(licenses) == 1
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert not [line for line in required if "torch" in line]


def test_the_installed_wheel_runs_from_anywhere(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(FAULTY)
    done = python("-m", "hostlint", "scan", "--output-format", "concise", path=installed, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "a.py:6:15: HL101 device-item" in done.stdout


def test_a_scan_never_imports_torch(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('torch was imported')\n")
    (tmp_path / "a.py").write_text(f"import torch\n{FAULTY}")
    (tmp_path / "many").mkdir()
    for number in range(40):
        (tmp_path / "many" / f"b{number}.py").write_text(FAULTY)
    script = (
        "import sys\nfrom hostlint.cli.main import main\n"
        "status = main(['scan'])\nassert 'torch' not in sys.modules\nsys.exit(status)\n"
    )
    done = python("-c", script, path=installed, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")


def test_the_version_needs_none_of_the_slow_libraries(installed: Path, tmp_path: Path) -> None:
    script = (
        "import sys\nfrom hostlint.cli.main import main\nmain(['version'])\n"
        "print(sorted({'libcst', 'rich', 'pathspec', 'sqlite3', 'hostlint.rules', 'hostlint.scan'} & set(sys.modules)))\n"
    )
    done = python("-c", script, path=installed, cwd=tmp_path)
    assert done.stdout.splitlines()[1:] == ["[]"], done.stderr


def test_a_checkout_without_its_rules_says_what_to_run(tree: Path) -> None:
    done = python("-m", "hostlint", "rule", path=None, cwd=tree)
    assert done.returncode == 2
    assert "pip install -e ." in done.stderr
    assert "Traceback" not in done.stderr


def test_the_hook_is_one_that_pre_commit_knows() -> None:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    for line in ("- id: hostlint", "entry: hostlint scan", "language: python", "types_or: [python, pyi]", "require_serial: true"):
        assert line in text
    assert "- id: hostlint-fix\n" in text
    assert "entry: hostlint fix\n" in text
