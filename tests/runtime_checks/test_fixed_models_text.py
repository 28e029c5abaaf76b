"""The corrected models are what `hostlint fix` makes of the faulty ones, byte for byte, and the scan has nothing to say about them."""
from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
FAULTY, FIXED = ROOT / "tests" / "faulty_models", ROOT / "fixed_models"
NAMES = sorted(file.stem for file in FIXED.glob("*.py") if file.stem != "__init__")
PROGRAMS = {"decode_loop", "denoise_loop", "denoise_schedule", "training_loop"}  # what the README scans; nobody corrects them
AT_REQUEST = {"qwen_image_vae"}  # the faults lie once a request: told with `--min-heat request`
MARK = re.compile(r"  # expect(?: at request)?: (HL\d+(?:, HL\d+)*)$", re.MULTILINE)


def unmarked(name: str) -> str:
    return MARK.sub("", (FAULTY / f"{name}.py").read_text(encoding="utf-8"))


def rows() -> dict[str, list[str]]:
    """The page's table: a system's cells by its name."""
    lines = (ROOT / "docs" / "fixed-models.md").read_text(encoding="utf-8").partition("\n## ")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    return {first.strip("`"): others for first, *others in cells}


def hostlint(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hostlint", *arguments, "--no-cache"]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", check=False)


def fixed(folder: Path, *options: str) -> dict[str, str]:
    """The models as the command line leaves them, in a project of their own."""
    (folder / "hostlint.toml").touch()
    for name in NAMES:
        (folder / f"{name}.py").write_text(unmarked(name), encoding="utf-8", newline="\n")
    for names, heat in ((sorted({*NAMES} - AT_REQUEST), "call"), (sorted(AT_REQUEST), "request")):
        done = hostlint("fix", *options, "--min-heat", heat, *(f"{name}.py" for name in names), cwd=folder)
        assert done.returncode in (0, 1), done.stderr
    return {name: (folder / f"{name}.py").read_bytes().decode() for name in NAMES}


def test_each_faulty_model_has_its_corrected_one_and_its_row() -> None:
    assert {file.stem for file in FAULTY.glob("*.py")} - PROGRAMS == set(NAMES) == set(rows())


def test_the_fix_gives_the_corrected_models_byte_for_byte(tmp_path: Path) -> None:
    made = fixed(tmp_path, "--review")
    assert {name: (FIXED / f"{name}.py").read_bytes().decode() for name in NAMES} == made
    again = hostlint("fix", "--review", ".", cwd=tmp_path)
    assert (again.returncode, {name: (tmp_path / f"{name}.py").read_text(encoding="utf-8") for name in NAMES}) == (0, made)


def test_exact_fixes_alone_give_those_whose_row_says_exact(tmp_path: Path) -> None:
    made = fixed(tmp_path)
    exact = {name for name in NAMES if made[name] == (FIXED / f"{name}.py").read_text(encoding="utf-8")}
    assert exact == {name for name, cells in rows().items() if cells[-1] == "exact"}
    assert all(cells[-1] == "exact" or cells[-1].startswith("review: ") for cells in rows().values())


def test_the_scan_finds_nothing_in_the_corrected_models(tmp_path: Path) -> None:
    (tmp_path / "hostlint.toml").touch()
    for name in NAMES:
        (tmp_path / f"{name}.py").write_bytes((FIXED / f"{name}.py").read_bytes())
    done = hostlint("scan", ".", "--output-format", "concise", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    for name in AT_REQUEST:
        found = hostlint("scan", f"{name}.py", "--min-heat", "request", "--output-format", "json", cwd=tmp_path).stdout
        assert json.loads(found)["findings"] == []


@pytest.mark.parametrize("name", sorted(AT_REQUEST))
def test_what_lies_once_a_request_is_found_there(name: str, tmp_path: Path) -> None:
    (tmp_path / "hostlint.toml").touch()
    text = (FAULTY / f"{name}.py").read_text(encoding="utf-8")
    (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    report = json.loads(hostlint("scan", ".", "--min-heat", "request", "--output-format", "json", cwd=tmp_path).stdout)
    found = {(one["line"], one["code"]) for one in report["findings"]}
    marked = {(number, mark[1]) for number, line in enumerate(text.splitlines(), 1) if (mark := MARK.search(line))}
    assert found == marked


@pytest.mark.parametrize("name", NAMES)
def test_a_row_names_the_rules_of_the_marked_lines(name: str) -> None:
    marked = {code for codes in MARK.findall((FAULTY / f"{name}.py").read_text(encoding="utf-8")) for code in codes.split(", ")}
    assert set(re.findall(r"HL\d+", rows()[name][0])) == marked


def test_importing_the_package_does_not_import_torch() -> None:
    program = "import sys, hostlint.fixed_models as m; assert 'torch' not in sys.modules; print(*m.__all__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == NAMES
