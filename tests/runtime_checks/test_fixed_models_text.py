"""The corrected models are what `hostlint fix` makes of the faulty ones, byte for byte, and the scan has nothing to say about them."""
from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
FAULTY, FIXED = ROOT / "tests" / "faulty_models", ROOT / "fixed_models"
NAMES = sorted(file.stem for file in FIXED.glob("*.py") if file.stem != "__init__")
PROGRAMS = {"decode_loop", "denoise_loop", "denoise_schedule", "training_loop"}  # what the README scans; nobody corrects them
AT_REQUEST = {"qwen_image_vae"}  # the faults lie once a request: told with `--min-heat request`
BENCHMARK = ROOT / "benchmarks" / "fixed_models"
ROWS: dict[str, dict[str, Any]] = json.loads((BENCHMARK / "rows.json").read_text(encoding="utf-8"))
MARK = re.compile(r"  # expect(?: at request)?: (HL\d+(?:, HL\d+)*)$", re.MULTILINE)


def unmarked(name: str) -> str:
    return MARK.sub("", (FAULTY / f"{name}.py").read_text(encoding="utf-8"))


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
    assert {file.stem for file in FAULTY.glob("*.py")} - PROGRAMS == set(NAMES) == set(ROWS)


def test_the_fix_gives_the_corrected_models_byte_for_byte(tmp_path: Path) -> None:
    made = fixed(tmp_path, "--review")
    assert {name: (FIXED / f"{name}.py").read_bytes().decode() for name in NAMES} == made
    again = hostlint("fix", "--review", ".", cwd=tmp_path)
    assert (again.returncode, {name: (tmp_path / f"{name}.py").read_text(encoding="utf-8") for name in NAMES}) == (0, made)


def test_exact_fixes_alone_give_those_whose_row_says_exact(tmp_path: Path) -> None:
    made = fixed(tmp_path)
    exact = {name for name in NAMES if made[name] == (FIXED / f"{name}.py").read_text(encoding="utf-8")}
    assert exact == {name for name, row in ROWS.items() if row["fix"] == "exact"}
    assert all(row["fix"] == "exact" or row["fix"].startswith("review: ") for row in ROWS.values())


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
    assert set(re.findall(r"HL\d+", ROWS[name]["fault"])) == marked


def test_the_table_is_what_its_data_say(tmp_path: Path) -> None:
    """The page beside the models is what the script writes, and a changed figure would show in it."""
    copy, page = tmp_path / "benchmarks" / "fixed_models", tmp_path / "fixed_models" / "README.md"
    shutil.copytree(BENCHMARK, copy)
    page.parent.mkdir()
    subprocess.run([sys.executable, str(copy / "table.py")], check=True)
    assert page.read_bytes() == (FIXED / "README.md").read_bytes()
    changed = {name: {**row, "waits": [one + 1 for one in row["waits"]]} for name, row in ROWS.items()}
    (copy / "rows.json").write_text(json.dumps(changed), encoding="utf-8")
    subprocess.run([sys.executable, str(copy / "table.py")], check=True)
    assert "| 13 → 1 | 0 → 0 |" in page.read_text(encoding="utf-8")


def test_every_model_was_measured_with_equal_bits_and_fewer_waits() -> None:
    systems = json.loads((BENCHMARK / "h200.json").read_text(encoding="utf-8"))["systems"]
    assert set(systems) == set(ROWS)
    for name, sizes in systems.items():
        for measured in sizes.values():
            before, after = measured["waits"]
            assert measured["bits"] == "equal"
            assert after < before or ROWS[name]["fix"] == "exact"
            assert all(low <= middle <= high for middle, low, high in measured["step_ms"])


def found_in(folder: Path, name: str, text: str) -> set[tuple[str, str]]:
    """The codes of what a scan finds in a text, each with its line's words."""
    (folder / "hostlint.toml").touch()
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    report = json.loads(hostlint("scan", f"{name}.py", "--output-format", "json", cwd=folder).stdout)
    return {(one["code"], text.splitlines()[one["line"] - 1].strip()) for one in report["findings"]}


def test_scan_knows_who_calls_where_the_line_stays_the_same(tmp_path: Path) -> None:
    """The same line waits where its caller leaves something to it, and does not where the caller does it."""
    fixed_text = (FIXED / "glm_image.py").read_text(encoding="utf-8")
    assert found_in(tmp_path, "glm_image", fixed_text) == set()
    line = "text_mask_sums = text_mask.flatten(1).sum(1).tolist()"
    assert found_in(tmp_path, "glm_image", fixed_text.replace(", text_mask_sums=text_mask_sums", "")) == {("HL105", line)}
    faulty = unmarked("helios_dmd")
    codes = {code for code, _ in found_in(tmp_path, "helios_dmd", faulty)}
    ticks = "schedule.timesteps[:-1], schedule.timesteps[1:]"
    on_host = faulty.replace(ticks, ticks.replace("]", "].cpu()"))
    assert (codes, found_in(tmp_path, "helios_dmd", on_host)) == ({"HL108"}, set())


def test_what_is_suppressed_would_be_found(tmp_path: Path) -> None:
    text = (FIXED / "sampled_decoding.py").read_text(encoding="utf-8")
    assert text.count("# hostlint: ignore") == 1
    assert found_in(tmp_path, "sampled_decoding", re.sub(r"  # hostlint: ignore.*", "", text)) == {("HL103", "if ended.all():")}


def test_importing_the_package_does_not_import_torch() -> None:
    program = "import sys, hostlint.fixed_models as m; assert 'torch' not in sys.modules; print(*m.__all__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == NAMES
