"""`hostlint fix` as a black box: what it writes, prints and exits with."""
from __future__ import annotations

import io
import json
import stat
import subprocess
import sys
import tempfile
from codecs import BOM_UTF8
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hostlint.cli.main import main
from hostlint.judge import Judge

if TYPE_CHECKING:
    from hostlint.judge import Judged
    from hostlint.model import HeatLevel


@dataclass(frozen=True)
class Done:
    returncode: int
    out: bytes
    stderr: str

    @property
    def stdout(self) -> str:
        return self.out.decode()


Run = Callable[..., Done]

BAD = """\
import torch


def decode(model, token, limit: int, scale: float):
    for position in range(limit):
        where = torch.tensor([position], device="cuda")  # where
        size = torch.tensor(scale, device="cuda")
        token = model(token, where, size, torch.zeros(3).to("cuda"))
        print(token.sum().item())
    return token
"""
FACTORY = BAD.replace('torch.zeros(3).to("cuda")', 'torch.zeros(3, device="cuda")')
EXACT = FACTORY.replace("torch.tensor([position], ", "torch.full((1,), position, ")
REVIEWED = EXACT.replace("torch.tensor(scale, ", "torch.full((), scale, ")
ONLY_FIXABLE = BAD.replace("        print(token.sum().item())\n", "").replace('torch.tensor(scale, device="cuda")', "1")
WARNED = """\
import torch


class M(torch.nn.Module):
    def forward(self, x):
        return x * x.sum().item()
"""


@pytest.fixture
def hostlint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line in this process, with streams of its own: what a test of bytes needs, and a tenth of the time."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path.parent / "home"))
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str, cwd: Path = tmp_path, stdin: str | bytes = "") -> Done:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        streams = [io.TextIOWrapper(io.BytesIO(start), encoding="utf-8", newline="") for start in (data, b"", b"")]
        with monkeypatch.context() as patch:
            patch.chdir(cwd)
            for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
                patch.setattr(sys, name, stream)
            status = main([*arguments, "--jobs", "1"])
        for stream in streams[1:]:
            stream.flush()
        out, err = (stream.buffer.getvalue() for stream in streams[1:] if isinstance(stream.buffer, io.BytesIO))
        return Done(status, out, err.decode())

    return run


@pytest.fixture
def mod(tmp_path: Path) -> Path:
    file = tmp_path / "mod.py"
    file.write_text(BAD, encoding="utf-8")
    return file


def test_exact_fixes_are_written(hostlint: Run, mod: Path) -> None:
    done = hostlint("fix")
    assert mod.read_text(encoding="utf-8") == EXACT
    assert done.returncode == 1
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line.split(": ")[0] for line in lines[:-1]] == ["mod.py:6:17", "mod.py:8:43", "mod.py:7:16", "mod.py:9:15"]
    assert lines[0].startswith("mod.py:6:17: fixed HL201 pageable-constructor: ")
    assert "(--review: fill on the device, where `scale` is" in lines[2]
    assert lines[-1] == "fixed 2 findings in 1 file; 2 left (1 with --review)"
    again = hostlint("fix")
    assert again.stdout.splitlines()[-1] == "fixed 0 findings; 2 left (1 with --review)"
    assert mod.read_text(encoding="utf-8") == EXACT


def test_review(hostlint: Run, mod: Path) -> None:
    done = hostlint("fix", "--review", "mod.py")
    assert mod.read_text(encoding="utf-8") == REVIEWED
    assert done.stdout.splitlines()[-1] == "fixed 3 findings in 1 file; 1 left"


@pytest.mark.parametrize(("options", "status"), [((), 1), (("--exit-zero",), 0), (("--select", "HL202"), 0)])
def test_status_is_that_of_what_is_left(hostlint: Run, mod: Path, options: tuple[str, ...], status: int) -> None:
    assert hostlint("fix", *options).returncode == status


def test_what_is_left_counts_from_the_severity_that_fails(hostlint: Run, mod: Path) -> None:
    mod.write_text(WARNED, encoding="utf-8")
    assert hostlint("fix").returncode == 1
    assert hostlint("fix", "--fail-on", "error").returncode == 0


def test_nothing_left(hostlint: Run, mod: Path) -> None:
    mod.write_text(ONLY_FIXABLE, encoding="utf-8")
    done = hostlint("fix", "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "fixed 2 findings in 1 file; 0 left"
    assert "torch.full((1,), position" in mod.read_text(encoding="utf-8")


def test_diff_is_what_git_applies(hostlint: Run, tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    odd, whole = folder / "m\u00f6d.py", tmp_path / "mod.py"
    odd.write_bytes(BAD.replace("\n", "\r\n").removesuffix("\r\n").encode())
    whole.write_text(BAD, encoding="utf-8")
    before = {file: file.read_bytes() for file in (odd, whole)}
    done = hostlint("fix", "--diff")
    assert done.returncode == 1
    assert {file: file.read_bytes() for file in before} == before
    assert done.stderr.splitlines()[-1].startswith("would fix 4 findings in 2 files; 4 left")
    assert "--- a/a b/m\u00f6d.py\t\n+++ b/a b/m\u00f6d.py\t\n" in done.stdout
    assert "--- a/mod.py\n+++ b/mod.py\n" in done.stdout
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], cwd=tmp_path, input=done.out, check=True)
    assert odd.read_bytes() == EXACT.replace("\n", "\r\n").removesuffix("\r\n").encode()
    assert whole.read_text(encoding="utf-8") == EXACT
    clean = hostlint("fix", "--diff")
    assert (clean.returncode, clean.stdout) == (0, "")


def test_diff_says_that_a_last_line_has_no_end(hostlint: Run, mod: Path) -> None:
    text = 'import torch\n\n\ndef f(model, limit: int):\n    for i in range(limit):\n        model(torch.tensor(i, device="cuda"))'
    mod.write_text(text, encoding="utf-8")
    lines = hostlint("fix", "--diff").stdout.splitlines()
    assert lines[:2] == ["--- a/mod.py", "+++ b/mod.py"]
    assert lines[-4:] == [
        '-        model(torch.tensor(i, device="cuda"))',
        "\\ No newline at end of file",
        '+        model(torch.full((), i, device="cuda"))',
        "\\ No newline at end of file",
    ]


def test_standard_input(hostlint: Run, tmp_path: Path) -> None:
    done = hostlint("fix", "-", "--stdin-filename", "pkg/mod.py", stdin=BAD)
    assert done.stdout == EXACT
    assert done.returncode == 1
    assert done.stderr.splitlines()[0].startswith("pkg/mod.py:6:17: fixed HL201")
    assert done.stderr.splitlines()[-1] == "fixed 2 findings in 1 file; 2 left (1 with --review)"
    assert not (tmp_path / "pkg").exists()
    diff = hostlint("fix", "-", "--stdin-filename", "pkg/mod.py", "--diff", stdin=BAD)
    assert diff.stdout.startswith("--- a/pkg/mod.py\n+++ b/pkg/mod.py\n@@")
    unchanged = hostlint("fix", "-", stdin="x = 1")
    assert (unchanged.returncode, unchanged.stdout, unchanged.stderr) == (0, "x = 1", "fixed 0 findings; 0 left\n")


def test_quiet_leaves_standard_error_to_errors(hostlint: Run) -> None:
    done = hostlint("fix", "-", "-q", stdin=BAD)
    assert (done.returncode, done.stdout, done.stderr) == (1, EXACT, "")
    diff = hostlint("fix", "-", "-q", "--diff", stdin=BAD)
    assert (diff.returncode, diff.stdout[:4], diff.stderr) == (1, "--- ", "")


def test_standard_input_keeps_its_bytes(hostlint: Run) -> None:
    data = BOM_UTF8 + BAD.replace("# where", "# w\u00f6").replace("\n", "\r\n").encode()
    done = hostlint("fix", "-", "--isolated", stdin=data)
    assert done.out == BOM_UTF8 + EXACT.replace("# where", "# w\u00f6").replace("\n", "\r\n").encode()


def test_standard_input_that_cannot_be_parsed_comes_out_as_it_went_in(hostlint: Run) -> None:
    done = hostlint("fix", "-", stdin="def f(:\n")
    assert (done.returncode, done.stdout) == (2, "def f(:\n")
    assert "cannot be parsed" in done.stderr


@pytest.mark.parametrize(
    ("codec", "head", "newline"),
    [
        ("latin-1", "# coding: latin-1\n", "\n"),
        ("utf-8-sig", "", "\r\n"),
        ("utf-8", "", "\r"),
        ("cp1252", "# -*- coding: cp1252 -*-\n", "\r\n"),
    ],
)
def test_files_keep_encoding_and_line_ends(hostlint: Run, mod: Path, codec: str, head: str, newline: str) -> None:
    def made(text: str) -> bytes:
        return (head + text.replace("# where", "# w\u00f6")).replace("\n", newline).encode(codec)

    mod.write_bytes(made(BAD))
    mod.chmod(0o751)
    assert hostlint("fix").returncode == 1
    assert mod.read_bytes() == made(EXACT)
    assert stat.S_IMODE(mod.stat().st_mode) == 0o751
    assert sorted(path.name for path in mod.parent.iterdir()) == [".hostlint_cache", "mod.py"]


def test_a_read_only_file_is_one_clear_error(hostlint: Run, mod: Path) -> None:
    other = mod.with_name("other.py")
    other.write_text(BAD, encoding="utf-8")
    mod.chmod(0o444)
    done = hostlint("fix")
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["hostlint: error: mod.py:1: is read-only"]
    assert mod.read_text(encoding="utf-8") == BAD
    assert other.read_text(encoding="utf-8") == EXACT
    assert "fixed 2 findings in 1 file; " in done.stdout
    assert "mod.py:6:17: fixed" not in done.stdout.replace("other.py", "")


def test_a_file_that_cannot_be_parsed_is_an_error_and_the_others_are_fixed(hostlint: Run, mod: Path) -> None:
    mod.with_name("broken.py").write_text("def f(:\n", encoding="utf-8")
    done = hostlint("fix")
    assert done.returncode == 2
    assert "broken.py:1: cannot be parsed" in done.stderr
    assert mod.read_text(encoding="utf-8") == EXACT


def test_suppressed_findings_are_left_alone(hostlint: Run, mod: Path) -> None:
    suppressed = BAD.replace("# where", "# hostlint: ignore[pageable-constructor] measured: it costs nothing here")
    mod.write_text(suppressed, encoding="utf-8")
    hostlint("fix")
    assert mod.read_text(encoding="utf-8") == suppressed.replace('torch.zeros(3).to("cuda")', 'torch.zeros(3, device="cuda")')


def test_baselined_findings_are_left_alone_unless_asked_for(hostlint: Run, mod: Path) -> None:
    assert hostlint("baseline", "write").returncode == 0
    done = hostlint("fix", "--baseline", "hostlint-baseline.jsonl")
    assert (done.returncode, done.stdout) == (0, "fixed 0 findings; 0 left (4 more in the baseline)\n")
    assert mod.read_text(encoding="utf-8") == BAD
    hostlint("fix", "--baseline", "hostlint-baseline.jsonl", "--baselined")
    assert mod.read_text(encoding="utf-8") == EXACT


def test_a_link_is_written_through(hostlint: Run, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere"
    real.mkdir()
    (real / "real.py").write_text(BAD, encoding="utf-8")
    project = tmp_path / "project"
    project.mkdir()
    (project / "mod.py").symlink_to(real / "real.py")
    hostlint("fix", cwd=project)
    assert (project / "mod.py").is_symlink()
    assert (real / "real.py").read_text(encoding="utf-8") == EXACT


def test_selection_and_configuration(hostlint: Run, mod: Path) -> None:
    (mod.parent / "hostlint.toml").write_text('ignore = ["HL201"]\n', encoding="utf-8")
    hostlint("fix")
    assert mod.read_text(encoding="utf-8") == FACTORY
    hostlint("fix", "--isolated", "--ignore", "HL202")
    assert mod.read_text(encoding="utf-8") == EXACT


def test_the_json_report_holds_the_edits(hostlint: Run, mod: Path) -> None:
    report = json.loads(hostlint("scan", "--output-format", "json").stdout)
    by_place = {(finding["line"], finding["code"]): finding["fix"] for finding in report["findings"]}
    assert by_place[9, "HL101"] is None
    assert by_place[7, "HL201"]["applicability"] == "review"
    fix = by_place[6, "HL201"]
    assert fix["applicability"] == "exact"
    lines = BAD.splitlines()
    for edit in sorted(fix["edits"], key=lambda edit: -edit["column"]):
        line = lines[edit["line"] - 1]
        lines[edit["line"] - 1] = line[: edit["column"] - 1] + edit["text"] + line[edit["end_column"] - 1 :]
    assert lines[5] == EXACT.splitlines()[5]


def test_a_hook_mends_only_what_it_is_given(hostlint: Run, mod: Path) -> None:
    caller = mod.with_name("caller.py")
    caller.write_text("from mod import decode\n\nfor step in range(9):\n    decode(None, None, 1, 1.0)\n", encoding="utf-8")
    done = hostlint("fix", "caller.py")
    assert mod.read_text(encoding="utf-8") == BAD
    assert done.stdout.splitlines()[-1].startswith("fixed 0 findings; ")


@pytest.mark.parametrize("cache", [(), ("--no-cache",)])
def test_a_round_looks_only_at_what_it_changed(
    hostlint: Run, mod: Path, cache: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also without a cache that stays: a round over a large project would cost as much as the first scan."""
    (mod.parent / "other.py").write_text(WARNED, encoding="utf-8")
    judged: list[str] = []
    file = Judge.file

    def telling(self: Judge, number: int, at_least: HeatLevel) -> Judged:
        judged.append(self._index.files[number].path)
        return file(self, number, at_least)

    monkeypatch.setattr(Judge, "file", telling)
    monkeypatch.setattr(tempfile, "tempdir", str(mod.parent.parent))
    done = hostlint("fix", *cache)
    assert done.stdout.splitlines()[-1] == "fixed 2 findings in 1 file; 3 left (1 with --review)"
    assert judged == ["mod.py", "other.py", "mod.py"]
    assert (mod.parent / ".hostlint_cache").exists() is not bool(cache)
    assert not list(mod.parent.parent.glob("hostlint-*"))


def test_what_is_known_of_a_file_without_fixes_stays_known(hostlint: Run, mod: Path) -> None:
    hostlint("baseline", "write", "--baseline", "known.jsonl")
    other = mod.with_name("other.py")
    other.write_text(BAD, encoding="utf-8")
    hostlint("fix", "--baseline", "known.jsonl")
    assert other.read_text(encoding="utf-8") == EXACT
    assert mod.read_text(encoding="utf-8") == BAD
