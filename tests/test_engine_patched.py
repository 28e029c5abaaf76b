"""Scans of a fixer's rounds: what a fix adds to a file costs that file a second look, and those that rest on it, and no other."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from hostlint import judge
from hostlint.cache import Cache
from hostlint.engine import RawScan, ScanRequest, raw_scan
from hostlint.facts.lower import lower_file
from hostlint.facts.seen import only_came, seen_of
from hostlint.project import SourceFile, module_name

if TYPE_CHECKING:
    from hostlint.model import HeatLevel

RUN = """
    import torch
    from step import advance
    def main(rows):
        for step, row in enumerate(rows):
            scale = torch.tensor([0.5], device="cuda")
            advance(row.cuda() * scale)
"""
FILES = {
    "run.py": RUN,
    "step.py": "import torch\ndef advance(out):\n    return float(out.sum())\n",
    "apart.py": "import torch\nclass M(torch.nn.Module):\n    def forward(self, x):\n        return x.item()\n",
}
HELPER = "import functools\n\nKEPT = {}\n\n\ndef kept(make):\n    return KEPT.setdefault(make.__code__, make())\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cache]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("hostlint.cache._RACY_NS", -60_000_000_000)  # as if the files had been there for a while
    cache = Cache(tmp_path / "cache", pytest.fail)
    yield cache
    cache.close()


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were judged, not recalled."""
    told: list[str] = []
    file = judge.Judge.file

    def telling(self: judge.Judge, number: int, at_least: HeatLevel) -> judge.Judged:
        told.append(self._index.files[number].path)
        return file(self, number, at_least)

    monkeypatch.setattr(judge.Judge, "file", telling)
    return told


def request_of(folder: Path, files: Mapping[str, str], cache: Cache) -> ScanRequest:
    sources = []
    for path, text in files.items():
        folder.mkdir(exist_ok=True)
        (folder / path).write_text(dedent(text), encoding="utf-8")
        sources.append(SourceFile(path, folder / path, True, module_name(folder / path, folder)))
    return ScanRequest(folder, tuple(sources), cache=cache)


def patched(request: ScanRequest, **texts: str) -> ScanRequest:
    """The request with fixed texts in the place of files, as the fixer asks for it."""
    files = tuple(replace(one, text=texts.get(one.module)) for one in request.files)
    return replace(request, files=files, patched=True)


def fresh(request: ScanRequest) -> RawScan:
    return raw_scan(replace(request, cache=None, patched=False))


def test_a_helper_and_an_import_cost_their_own_file_alone(tmp_path: Path, cache: Cache, judged: list[str]) -> None:
    request = request_of(tmp_path / "project", FILES, cache)
    raw_scan(request)
    text = HELPER + dedent(RUN).replace('torch.tensor([0.5], device="cuda")', 'kept(lambda: torch.full((1,), 0.5, device="cuda"))')
    round_ = patched(request, run=text)
    expected = fresh(round_)
    assert {finding.path for finding in expected.findings} == {"step.py", "apart.py"}
    judged.clear()
    assert raw_scan(round_) == expected
    assert "apart.py" not in judged
    assert "run.py" in judged


def test_after_the_fix_is_written_only_what_changes_then_is_judged(tmp_path: Path, cache: Cache, judged: list[str]) -> None:
    request = request_of(tmp_path / "project", FILES, cache)
    raw_scan(request)
    text = HELPER + dedent(RUN).replace("torch.tensor([0.5]", "torch.full((1,), 0.5")
    raw_scan(patched(request, run=text))
    written = request_of(tmp_path / "project", {**FILES, "run.py": text, "apart.py": FILES["apart.py"] + "\n"}, cache)
    expected = fresh(written)
    judged.clear()
    assert raw_scan(written) == expected
    assert judged == ["apart.py"]


def test_a_name_that_a_star_import_hands_on_is_looked_at(tmp_path: Path, cache: Cache) -> None:
    files = {
        "use.py": "import torch\nfrom lib import *\nclass M(torch.nn.Module):\n    def forward(self, x):\n        return make().tolist()\n",
        "lib.py": "import torch\n",
    }
    request = request_of(tmp_path / "project", files, cache)
    assert raw_scan(request).findings == ()
    found = raw_scan(patched(request, lib="import torch\ndef make():\n    return torch.zeros((), device='cuda')\n")).findings
    assert [finding.path for finding in found] == ["use.py"]


def test_a_round_that_is_taken_back_finds_what_was_there(tmp_path: Path, cache: Cache, judged: list[str]) -> None:
    request = request_of(tmp_path / "project", FILES, cache)
    raw_scan(request)
    apart = FILES["apart.py"] + "\n"
    raw_scan(patched(request, run=dedent(RUN).replace("torch.tensor([0.5]", "torch.full((1,), 0.5"), apart=apart))
    round_ = patched(request, apart=apart + "# once more\n")
    judged.clear()
    after = raw_scan(round_)
    assert judged == ["apart.py"]
    assert after == fresh(round_)


def test_lines_that_move_in_a_chain_are_told_without_judging(tmp_path: Path, cache: Cache, judged: list[str]) -> None:
    run = """
        from step import advance
        class Pipe:
            def __call__(self, rows):
                for t in self.scheduler.timesteps:
                    self.transformer(rows)
                    advance()
    """
    step = "import torch\ndef advance():\n    return torch.zeros(2, device='cuda').sum().item()\n"
    request = request_of(tmp_path / "project", {"run.py": run, "step.py": step}, cache)
    [before] = raw_scan(request).findings
    assert [(link.path, link.line) for link in before.heat.chain] == [("run.py", 5), ("run.py", 7)]
    round_ = patched(request, run="import os\n" + dedent(run))
    judged.clear()
    after = raw_scan(round_)
    assert judged == ["run.py"]
    assert after == fresh(round_)
    [found] = after.findings
    assert [(link.path, link.line) for link in found.heat.chain] == [("run.py", 6), ("run.py", 8)]
    assert "run.py:6)" in found.message


# what only came


def seen(text: str) -> bytes:
    return seen_of(lower_file(dedent(text), "mod.py", "mod").outline)


BEFORE = """
    import torch
    LIMIT = 3
    def f(x, n: int = 3):
        return [one for one in x]
    class Model(torch.nn.Module):
        def forward(self, x):
            self.kept = x
            return x
"""


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("LIMIT", "import functools\nLIMIT"),
        lambda text: text.replace("LIMIT = 3", "LIMIT = 4\nKEPT = {}\ndef kept(make, *key):\n    return make(*key)"),
        lambda text: text.replace("return x\n", "return (lambda n: x[n])(0)\n"),
        lambda text: "\n\n" + text.replace("one for one in x", "one + 1 for one in x"),
    ],
)
def test_what_only_came(edit: object) -> None:
    text = dedent(BEFORE)
    changed = edit(text)  # type: ignore[operator]  # a function of text
    assert changed != text
    assert only_came(seen(text), seen(changed))


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("import torch\n", ""),
        lambda text: text.replace("LIMIT = 3", "from other import f\nLIMIT = 3"),  # which f counts?
        lambda text: text.replace("n: int", "n: float"),
        lambda text: text.replace("def f", "def g"),
        lambda text: text.replace("self.kept = x", "self.kept = x\n        self.more = x"),
        lambda text: text + "    def more(self):\n        pass\n",
        lambda text: text.replace("(torch.nn.Module)", ""),
        lambda text: text + "from other import *\n",
        lambda text: text.replace("return [one", "from other import g\n    return [one"),
        lambda text: text + "def f(x, n: int = 3):\n    return x\n",
    ],
)
def test_what_others_may_have_noticed(edit: object) -> None:
    text = dedent(BEFORE)
    changed = edit(text)  # type: ignore[operator]  # a function of text
    assert changed != text
    assert not only_came(seen(text), seen(changed))
