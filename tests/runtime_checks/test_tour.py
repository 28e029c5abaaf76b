"""The README's tour, command by command: what it shows is printed, and the bits stay the same."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TOUR = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Two minutes with one model\n")[2].partition("\n## ")[0]
pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="the model is one of torch's")
BITS = re.compile(r"bits \w{16}")


def stops() -> Iterator[tuple[str, list[str]]]:
    """Each block of commands, and the lines that are shown of what it prints."""
    blocks = re.findall(r"^```(console|)\n(.*?)^```$", TOUR, re.DOTALL | re.MULTILINE)
    for (_, commands), (_, shown) in zip(blocks[::2], blocks[1::2], strict=True):
        yield "\n".join(line for line in commands.splitlines() if not line.startswith("pip install ")), shown.splitlines()


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment where `python` and `hostlint` are those that run this test; the files of the tour lie in `tmp_path`, a checkout."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for file in (".gitignore", "docs/tour.py", "tests/faulty_models/wan_dmd.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    (tmp_path / "bin").mkdir()
    for name, words in (("python", ""), ("hostlint", " -m hostlint")):
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n')
        (tmp_path / "bin" / name).chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}", "XDG_CACHE_HOME": str(tmp_path)}


def test_every_command_prints_what_is_shown(tmp_path: Path, shell: dict[str, str]) -> None:
    assert TOUR.count("```console") == 4
    bits = set()
    for commands, shown in stops():
        done = subprocess.run(["bash", "-c", commands], cwd=tmp_path, env=shell, capture_output=True, text=True, check=False)
        printed = [BITS.sub("bits", line) for line in (done.stdout + done.stderr).splitlines()]
        assert shown
        assert [line for line in shown if BITS.sub("bits", line) not in printed] == [], done.stderr
        bits |= set(BITS.findall(done.stdout))
    assert len(bits) == 1
    assert (tmp_path / "tour" / "wan_dmd.py").read_bytes() == (ROOT / "fixed_models" / "wan_dmd.py").read_bytes()
