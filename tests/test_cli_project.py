"""A scan and its project: heat from other files, changed files only, standard input, the cache, baselines, parallel jobs."""
from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

LOOP = """from pkg.metrics import report


def train(model, optimizer, batches):
    for batch in batches:
        loss = model(batch.cuda(non_blocking=True)).mean()
        loss.backward()
        optimizer.step()
        report(loss)
"""
METRICS = """def report(value):
    print(value.item())


def other(count):
    return count + 1
"""
ITEM = ("pkg/metrics.py", 2, "HL101")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pkg").mkdir()
    for name, text in {"pyproject.toml": "", "pkg/__init__.py": "", "pkg/loop.py": LOOP, "pkg/metrics.py": METRICS}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def found(done: subprocess.CompletedProcess[str]) -> list[tuple[str, int, str]]:
    return [(finding["path"], finding["line"], finding["code"]) for finding in json.loads(done.stdout)["findings"]]


@pytest.fixture
def scan(hostlint: Run, folder: Path) -> Callable[..., list[tuple[str, int, str]]]:
    return lambda *arguments, **settings: found(hostlint("scan", *arguments, "--output-format", "json", **settings))


Scan = Callable[..., list[tuple[str, int, str]]]


def test_heat_comes_from_the_whole_project(hostlint: Run, folder: Path) -> None:
    done = hostlint("scan", "pkg/metrics.py", "--output-format", "json")
    (finding,) = json.loads(done.stdout)["findings"]
    assert (finding["path"], finding["heat"]["level"]) == ("pkg/metrics.py", "call")
    assert finding["heat"]["chain"][-1] == {"path": "pkg/loop.py", "line": 9, "function": "train"}


def test_a_changed_file_shows_what_it_heats_elsewhere(scan: Scan, folder: Path) -> None:
    assert scan("pkg/loop.py") == [ITEM]
    (folder / "pkg" / "metrics.py").write_text(METRICS + "# hostlint: ignore[HL102] a comment of another file is not this scan's\n")
    assert scan("pkg/loop.py") == [ITEM]
    assert scan("pkg/__init__.py") == []


def test_a_folder_shows_what_is_inside(scan: Scan, folder: Path) -> None:
    (folder / "pkg" / "inner").mkdir()
    (folder / "pkg" / "loop.py").rename(folder / "pkg" / "inner" / "loop.py")
    assert scan("pkg/inner") == []
    assert scan(".") == [ITEM]


def test_paths_are_those_of_the_working_directory(hostlint: Run, folder: Path) -> None:
    assert found(hostlint("scan", "--output-format", "json", cwd=folder / "pkg")) == [("metrics.py", 2, "HL101")]
    done = hostlint("scan", "../pkg", "--output-format", "json", cwd=folder / "pkg")
    assert found(done) == [("metrics.py", 2, "HL101")]
    (folder / "elsewhere").mkdir()
    done = hostlint("scan", str(folder / "pkg"), "--output-format", "json", cwd=folder / "elsewhere")
    assert found(done) == [("../pkg/metrics.py", 2, "HL101")]


def test_standard_input_stands_for_its_file(hostlint: Run, folder: Path) -> None:
    text = f"# moved\n{METRICS}"
    done = hostlint("scan", "-", "--stdin-filename", "pkg/metrics.py", "--output-format", "json", stdin=text)
    assert found(done) == [("pkg/metrics.py", 3, "HL101")]
    assert json.loads(done.stdout)["summary"]["files"] == 1
    assert found(hostlint("scan", "--stdin-filename", "pkg/metrics.py", "--output-format", "json", stdin="x = 1\n")) == []


def test_standard_input_without_a_name(hostlint: Run, folder: Path) -> None:
    text = LOOP.replace("report(loss)", "print(loss.item())")
    done = hostlint("scan", "-", "--output-format", "concise", stdin=text)
    assert done.returncode == 1
    assert done.stdout.startswith("-:9:15: HL101 device-item ")
    assert "print(loss.item())" in hostlint("scan", "-", stdin=text).stdout
    broken = hostlint("scan", "-", stdin="def f(:\n", cwd=folder)
    assert broken.returncode == 2


def test_the_cache_keeps_a_scan_and_changes_nothing(hostlint: Run, scan: Scan, folder: Path) -> None:
    cold = hostlint("scan", "--output-format", "json").stdout
    assert (folder / ".hostlint_cache" / ".gitignore").read_text() == "*\n"
    assert hostlint("scan", "--output-format", "json").stdout == cold
    assert hostlint("scan", "--output-format", "json", "--no-cache").stdout == cold
    (folder / "pkg" / "metrics.py").write_text(METRICS.replace("value.item()", "1"))
    assert scan() == []
    (folder / "pkg" / "metrics.py").write_text(METRICS)
    (folder / "pkg" / "loop.py").write_text(LOOP.replace("report(loss)", "pass"))
    assert scan() == []


def test_a_change_of_equal_size_and_time_is_seen(scan: Scan, folder: Path) -> None:
    file = folder / "pkg" / "metrics.py"
    file.write_text(METRICS.replace("value.item()", "abs(1234567)"))
    before = file.stat()
    assert scan() == []
    file.write_text(METRICS)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert scan() == [ITEM]


def test_where_the_cache_lies(hostlint: Run, folder: Path) -> None:
    hostlint("scan", "--no-cache")
    assert not (folder / ".hostlint_cache").exists()
    hostlint("scan", "--cache-dir", "kept")
    assert (folder / "kept" / "CACHEDIR.TAG").is_file()
    (folder / "hostlint.toml").write_text('cache-dir = "var/facts"\n')
    hostlint("scan", cwd=folder / "pkg")
    assert (folder / "var" / "facts" / "CACHEDIR.TAG").is_file()
    assert not (folder / ".hostlint_cache").exists()


def test_a_cache_in_trouble_is_a_warning(hostlint: Run, folder: Path) -> None:
    (folder / ".hostlint_cache").write_text("no folder")
    done = hostlint("scan", "--output-format", "json")
    assert found(done) == [ITEM]
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("hostlint: warning: going on without a cache: ")
    assert hostlint("scan", "-q").stderr == ""


def test_jobs_change_nothing(hostlint: Run, folder: Path) -> None:
    for number in range(60):
        (folder / "pkg" / f"copy{number}.py").write_text(LOOP.replace("report(loss)", "print(loss.item())") + f"# {'x' * 20_000}\n")
    one, two = (hostlint("scan", "--no-cache", "--jobs", jobs, "--output-format", "json") for jobs in ("1", "3"))
    assert one.stdout == two.stdout
    assert len(found(one)) == 61


def test_verbose_speaks_on_standard_error(hostlint: Run, folder: Path) -> None:
    quiet, loud = hostlint("scan", "--no-cache"), hostlint("scan", "--no-cache", "-v")
    assert quiet.stdout == loud.stdout
    assert quiet.stderr == ""
    assert f"project {folder}: 3 Python files, 3 of them given" in loud.stderr


BASELINE = ["--baseline", "known.jsonl"]


def test_a_baseline_hides_what_is_known_through_edits(hostlint: Run, folder: Path) -> None:
    assert hostlint("baseline", "write", *BASELINE).returncode == 0
    (entry,) = map(json.loads, (folder / "known.jsonl").read_text().splitlines())
    assert (entry["code"], entry["path"], entry["function"], entry["count"]) == ("HL101", "pkg/metrics.py", "report", 1)
    done = hostlint("scan", *BASELINE, "--output-format", "json")
    assert (done.returncode, found(done)) == (0, [])
    assert json.loads(done.stdout)["summary"]["baselined"] == 1
    (folder / "pkg" / "metrics.py").write_text(f"import os\n\n{METRICS}\n\ndef more(value):\n    return report(value.item())\n")
    (folder / "pkg" / "loop.py").write_text(LOOP.replace("import report", "import more as report"))
    assert found(hostlint("scan", *BASELINE, "--output-format", "json")) == [("pkg/metrics.py", 12, "HL101")]
    (folder / "hostlint.toml").write_text('baseline = "known.jsonl"\n')
    assert found(hostlint("scan", "--output-format", "json", cwd=folder / "pkg")) == [("metrics.py", 12, "HL101")]


def test_stale_entries_fail_the_check_until_they_are_removed(hostlint: Run, folder: Path) -> None:
    hostlint("baseline", "write", *BASELINE)
    assert hostlint("baseline", "check", *BASELINE).returncode == 0
    (folder / "pkg" / "metrics.py").write_text(METRICS.replace("value.item()", "1"))
    stale = hostlint("baseline", "check", *BASELINE)
    assert (stale.returncode, stale.stdout) == (1, "pkg/metrics.py: stale: 1 x HL101 in report\n")
    assert hostlint("baseline", "check", *BASELINE, "pkg/loop.py").returncode == 0
    assert hostlint("baseline", "check", *BASELINE, "--select", "HL2").returncode == 0
    updated = hostlint("baseline", "update", *BASELINE)
    assert (updated.returncode, updated.stderr) == (0, "hostlint: known.jsonl: 1 stale removed, 0 new not added\n")
    assert (folder / "known.jsonl").read_text() == ""


def test_an_update_adds_nothing_unless_told(hostlint: Run, folder: Path) -> None:
    (folder / "known.jsonl").write_text("")
    assert "1 new not added" in hostlint("baseline", "update", *BASELINE).stderr
    assert (folder / "known.jsonl").read_text() == ""
    assert "1 new added" in hostlint("baseline", "update", *BASELINE, "--accept-new").stderr
    assert "HL101" in (folder / "known.jsonl").read_text()


def test_a_baseline_is_left_alone_where_a_file_cannot_be_read(hostlint: Run, folder: Path) -> None:
    hostlint("baseline", "write", *BASELINE)
    before = (folder / "known.jsonl").read_text()
    (folder / "pkg" / "metrics.py").write_text("def f(:\n")
    for command in ("write", "update", "check"):
        done = hostlint("baseline", command, *BASELINE)
        assert done.returncode == 2
        assert "pkg/metrics.py:1" in done.stderr
    assert (folder / "known.jsonl").read_text() == before
