"""The engine as a whole: projects of several files, spread over processes, kept in a cache, with files that cannot be read."""
from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from hostlint import engine, judge, pool, registry
from hostlint.cache import Cache
from hostlint.engine import RawScan, ScanRequest, raw_scan
from hostlint.facts import store
from hostlint.facts.kinds import FactKind
from hostlint.model import ChainLink, Confidence, FileError, Finding, HeatLevel
from hostlint.project import SourceFile, module_name
from hostlint.scan import scan_text

TESTS = Path(__file__).parent
ROOT = Path("/project")
# A small project with chains over its files: a loop in run.py reaches step.py, which reads through ops.py what state.py holds.
PROJECT = {
    "run.py": """
        from step import Model, advance
        def main(rows):
            model = Model().cuda()
            for step, row in enumerate(rows):
                out = model(row)
                advance(model, out)
    """,
    "step.py": """
        import torch
        from ops import peek, shrink
        from state import State
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.state = State()
            def forward(self, x):
                return x * self.state.scale
        def advance(model, out):
            if peek(out):
                return None
            return shrink(model.state.scale)
    """,
    "ops.py": """
        import torch
        def peek(x):
            return bool((x > 0).all())
        def shrink(x, by=None):
            if by is None:
                by = torch.tensor([1.0, 2.0], device=x.device)
            return (x * by).sum().item()
    """,
    "state.py": """
        import torch
        class State:
            def __init__(self):
                self.scale = torch.ones(2, device="cuda")
    """,
}


def sources(files: Mapping[str, str], given: Callable[[str], bool] = lambda path: True) -> tuple[SourceFile, ...]:
    return tuple(SourceFile(path, ROOT / path, given(path), module_name(ROOT / path, ROOT), dedent(text)) for path, text in files.items())


def scanned(files: Mapping[str, str], **options: object) -> RawScan:
    return raw_scan(replace(ScanRequest(ROOT, sources(files)), **options))  # type: ignore[arg-type]  # the options of a request


def places(findings: tuple[Finding, ...]) -> list[tuple[str, int, str]]:
    return [(one.path, one.span.line, one.name) for one in findings]


def write(folder: Path, files: Mapping[str, str]) -> tuple[SourceFile, ...]:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(dedent(text), encoding="utf-8")
    return tuple(SourceFile(path, folder / path, True, module_name(folder / path, folder)) for path in files)


# what a scan says


def test_findings_of_a_project_with_their_chains() -> None:
    result = scanned(PROJECT)
    assert result.errors == ()
    assert places(result.findings) == [
        ("ops.py", 4, "device-truth-test"), ("ops.py", 7, "pageable-constructor"), ("ops.py", 8, "device-item"),
    ]  # fmt: skip
    truth, upload, item = result.findings
    assert (truth.function, truth.heat.level) == ("peek", HeatLevel.CALL)
    assert truth.heat.chain == (ChainLink("run.py", 5, "main"), ChainLink("run.py", 7, "main"), ChainLink("step.py", 12, "advance"))
    assert (item.function, item.confidence) == ("shrink", Confidence.CERTAIN)
    assert item.heat.chain == (ChainLink("run.py", 5, "main"), ChainLink("run.py", 7, "main"), ChainLink("step.py", 14, "advance"))
    assert item.kind_evidence == "`self.scale`: `torch.ones` at line 5 makes it on the device"
    assert (upload.statement, upload.span.line) == ((7, 7), 7)
    assert (result.files, result.lines) == (4, 7 + 14 + 8 + 5)


def test_only_the_given_files_are_told_unless_the_whole_project_is_asked_for() -> None:
    files = sources(PROJECT, lambda path: path == "run.py")
    alone = raw_scan(ScanRequest(ROOT, files))
    assert (alone.findings, alone.files, alone.lines) == ((), 1, 7)
    whole = raw_scan(ScanRequest(ROOT, files, whole_project=True))
    assert whole.findings == scanned(PROJECT).findings
    assert (whole.files, whole.lines) == (1, 7)


def test_the_order_of_the_files_does_not_matter() -> None:
    expected = scanned(PROJECT).findings
    for seed in range(4):
        paths = list(PROJECT)
        random.Random(seed).shuffle(paths)  # noqa: S311 - no secret
        assert scanned({path: PROJECT[path] for path in paths}).findings == expected


def test_findings_are_sorted_and_each_is_told_once() -> None:
    text = """
        import torch
        class M(torch.nn.Module):
            def forward(self, x):
                for row in x:
                    b = float(row.sum()) + row.sum().item() + float(row.sum().item())
                return x.tolist(), x.tolist()
    """
    findings = scanned({"b.py": text, "a.py": text}).findings
    assert list(findings) == sorted(findings, key=lambda one: one.sort_key)
    assert len({(one.path, one.code, one.span) for one in findings}) == len(findings) == 10


def test_heat_and_names_of_the_configuration() -> None:
    text = """
        import torch
        def f(x, tokens, y):
            return fetch().item() + tokens.item() + y.cuda().item()
    """
    plain = {one.span.column for one in scanned({"m.py": text}).findings}
    named = {one.span.column for one in scanned({"m.py": text}, device_returns=("fetch",), device_names=("tokens",)).findings}
    assert len(named) == len(plain) + 2
    hot = scanned({"m.py": text}, hot=("m:f",)).findings
    assert hot
    assert all(one.heat.level >= HeatLevel.CALL for one in hot)
    assert all(one.heat.level is HeatLevel.COLD for one in scanned({"m.py": text}, cold=("m:f",)).findings)


def test_host_names_of_the_configuration() -> None:
    text = """
        import torch
        class M(torch.nn.Module):
            def forward(self, x):
                return x.item()
    """
    assert places(scanned({"m.py": text}).findings) == [("m.py", 5, "device-item")]
    assert scanned({"m.py": text}, host_names=("x",)).findings == ()


def test_files_below_the_asked_heat_are_left_out_unless_they_hold_comments() -> None:
    cold = "import torch\nV = torch.zeros(2, device='cuda')\nV.tolist()\n"
    said = cold + "x = 1  # hostlint: ignore[device-item] why\n"
    assert places(scanned({"a.py": cold, "b.py": said}).findings) == [("a.py", 3, "device-tolist"), ("b.py", 3, "device-tolist")]
    result = scanned({"a.py": cold, "b.py": said}, at_least=HeatLevel.CALL)
    assert places(result.findings) == [("b.py", 3, "device-tolist")]
    assert list(result.comments) == ["b.py"]
    assert len(result.comments["b.py"].suppressions) == 1


# errors


def test_what_is_wrong_with_a_file_is_its_error_and_the_others_are_read(tmp_path: Path) -> None:
    files = list(write(tmp_path, {"good.py": "import torch\nx = torch.zeros(2, device='cuda').tolist()\n", "bad.py": "x = 1\ny = (\n"}))
    (tmp_path / "encoding.py").write_bytes(b"x = '\xff'\n")
    (tmp_path / "unknown.py").write_bytes(b"# coding: no-such\n")
    (tmp_path / "null.py").write_bytes(b"x = 1\0\n")
    (tmp_path / "deep.py").write_text("x = " + "(" * 3000 + ")" * 3000)
    (tmp_path / "folder.py").mkdir()
    names = ("encoding", "unknown", "null", "deep", "folder", "missing")
    files += [SourceFile(f"{name}.py", tmp_path / f"{name}.py", True, name) for name in names]
    result = raw_scan(ScanRequest(tmp_path, tuple(files)))
    assert places(result.findings) == [("good.py", 2, "device-tolist")]
    told = {error.path: (error.line, error.message) for error in result.errors}
    assert set(told) == {"bad.py", *(f"{name}.py" for name in names)}
    running = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert told["bad.py"][0] == 2
    assert told["bad.py"][1].startswith(f"cannot be parsed by Python {running}: ")
    assert "encoding" in told["encoding.py"][1]
    assert "no-such" in told["unknown.py"][1]
    assert "null" in told["null.py"][1]
    assert told["folder.py"][1] == "cannot be read: is a directory"
    assert told["missing.py"][1] == "cannot be read: no such file or directory"
    assert result.files == 8


def test_syntax_that_is_newer_than_the_interpreter_is_said_to_be_so() -> None:
    (error,) = scanned({"new.py": "def f(: pass\n"}).errors
    assert (error.path, error.line) == ("new.py", 1)


def test_warnings_about_the_scanned_source_stay_away(recwarn: pytest.WarningsRecorder) -> None:
    scanned({"m.py": "x = '\\d' is 'y'\nassert (x, 'always true')\n"})
    assert list(recwarn) == []


def test_a_rule_that_crashes_is_an_error_of_that_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = registry.for_kind(FactKind.ITEM)

    def crash(*arguments: object) -> None:
        raise ZeroDivisionError

    broken = replace(rule, check=crash)
    known = registry.all_for_kind
    monkeypatch.setattr("hostlint.judge.all_for_kind", lambda kind: (broken,) if kind is FactKind.ITEM else known(kind))
    result = scanned({"m.py": "import torch\nx = torch.zeros((), device='cuda')\nx.item()\nx.tolist()\n"})
    assert places(result.findings) == [("m.py", 4, "device-tolist")]
    assert result.errors == (FileError("m.py", 3, "the rule device-item failed: ZeroDivisionError()"),)


# more than one process


def many(count: int) -> dict[str, str]:
    """Files that call one another, some of them broken."""
    files = {}
    for number in range(count):
        files[f"m{number}.py"] = f"""
            import torch
            import m{(number + 1) % count}
            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.rows = torch.zeros({number}, device="cuda")
                def forward(self, x):
                    m{(number + 1) % count}.helper(self.rows)
                    return x[self.rows > 0].tolist()
            def helper(x):
                return float(x.sum()) + torch.zeros(3).sum().item()
        """
    files["broken.py"] = "x = (\n"
    return files


@pytest.mark.parametrize("jobs", [2, 5])
def test_processes_change_nothing(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "CHUNK_BYTES", 300)
    monkeypatch.setattr(engine, "JUDGE_CHUNK", 300)
    serial = scanned(many(12))
    assert len(serial.findings) > 30
    assert len(serial.errors) == 1
    assert scanned(many(12), jobs=jobs) == serial


def test_progress_counts_up_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "CHUNK_BYTES", 300)
    monkeypatch.setattr(engine, "JUDGE_CHUNK", 300)
    told: list[tuple[str, int, int]] = []
    scanned(many(6), jobs=2, progress=lambda what, done, total: told.append((what, done, total)))
    for phase in ("reading", "judging"):
        counts = [(done, total) for what, done, total in told if what == phase]
        total = counts[-1][1]
        assert counts == [(done, total) for done in range(1, total + 1)]
        assert total > 1


def test_work_is_handed_out_in_order_and_its_trouble_comes_back() -> None:
    factor = 3
    assert list(pool.spread(lambda number: number * factor, range(20), jobs=3)) == [number * 3 for number in range(20)]
    assert list(pool.spread(lambda number: os.getpid(), range(2), jobs=1)) == [os.getpid()] * 2
    assert os.getpid() not in set(pool.spread(lambda number: os.getpid(), range(4), jobs=2))
    for jobs in (1, 2):
        with pytest.raises(ZeroDivisionError):
            list(pool.spread(lambda number: 1 // number, [1, 0], jobs=jobs))


def test_chunks_hold_everything_in_order() -> None:
    assert pool.chunks([], len, 5) == []
    assert pool.chunks(["aaa", "bb", "c", "dddddd", "e"], len, 4) == [["aaa", "bb"], ["c", "dddddd"], ["e"]]
    assert pool.chunks([1, 2, 3], lambda number: 0, 4) == [[1, 2, 3]]


def test_the_seed_of_hashes_changes_nothing() -> None:
    """Sets of strings are walked in another order in every run."""
    program = """
        import pathlib, sys
        from hostlint.scan import scan_text
        for path in sorted(pathlib.Path(sys.argv[1]).glob("*.py")):
            print(scan_text(path.read_text(encoding="utf-8"), path.name))
    """
    command = [sys.executable, "-c", dedent(program), str(TESTS / "faulty_models")]
    runs = [
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert runs[0].count("Finding(") > 5


# the cache


EDITS: list[tuple[str, Callable[[str], str]]] = [
    ("run.py", lambda text: "\n\n" + text),  # a chain's line moves
    ("run.py", lambda text: text.replace("for step, row in enumerate(rows):", "if rows:\n        row = rows")),  # no loop any more
    ("ops.py", lambda text: text.replace(".item()", "")),
    ("ops.py", lambda text: text.replace("import torch", "import torch  # hostlint: ignore-file[device-item] why")),
    ("step.py", lambda text: text.replace("shrink(model.state.scale)", "shrink(model.state.scale, out)")),  # nothing is left out any more
    ("step.py", lambda text: text.replace("shrink(model.state.scale)", "shrink(model.state.scale.cpu())")),
    ("step.py", lambda text: text.replace("peek(out)", "peek(3)")),
    ("step.py", lambda text: text.replace("from ops import peek, shrink", "from ops import peek\ndef shrink(x):\n    return x")),
    ("step.py", lambda text: text.replace("class Model(torch.nn.Module)", "class Model")),
    ("step.py", lambda text: text + "x = (\n"),  # a broken file
    ("run.py", lambda text: text.replace("advance(model, out)", "pass")),
]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cache]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("hostlint.cache._RACY_NS", -60_000_000_000)  # as if the files had been there for a while
    cache = Cache(tmp_path / "cache", pytest.fail)
    yield cache
    cache.close()


@pytest.mark.parametrize("number", range(len(EDITS)))
def test_after_a_change_the_cache_says_what_a_fresh_scan_says(tmp_path: Path, cache: Cache, number: int) -> None:
    folder = tmp_path / "project"
    files = write(folder, PROJECT)
    request = ScanRequest(folder, files)
    first = raw_scan(request)
    assert raw_scan(replace(request, cache=cache)) == first
    assert raw_scan(replace(request, cache=cache)) == first
    path, edit = EDITS[number]
    before = dedent(PROJECT[path])
    assert edit(before) != before
    write(folder, {path: edit(before)})
    fresh = raw_scan(request)
    assert fresh != first
    assert raw_scan(replace(request, cache=cache)) == fresh
    assert raw_scan(replace(request, cache=cache)) == fresh
    write(folder, {path: before})
    assert raw_scan(replace(request, cache=cache)) == first


def test_one_change_after_the_other(tmp_path: Path, cache: Cache) -> None:
    folder = tmp_path / "project"
    files = write(folder, PROJECT)
    request = ScanRequest(folder, files)
    order = list(range(len(EDITS)))
    random.Random(5).shuffle(order)  # noqa: S311 - no secret
    for number in order:
        path, edit = EDITS[number]
        text = (folder / path).read_text(encoding="utf-8")
        write(folder, {path: edit(text)})
        assert raw_scan(replace(request, cache=cache)) == raw_scan(request), number


def test_files_that_come_and_go(tmp_path: Path, cache: Cache) -> None:
    folder = tmp_path / "project"
    files = write(folder, PROJECT)
    for chosen in (files, files[1:], files[:2], files, files[::-1], tuple(replace(one, given=one.path == "run.py") for one in files)):
        request = ScanRequest(folder, chosen)
        assert raw_scan(replace(request, cache=cache)) == raw_scan(request)
        assert raw_scan(replace(request, cache=cache, whole_project=True)) == raw_scan(replace(request, whole_project=True))


def test_settings_are_not_mixed_up_in_the_cache(tmp_path: Path, cache: Cache) -> None:
    files = write(tmp_path / "project", PROJECT)
    request = ScanRequest(tmp_path / "project", files)
    variants = [
        request,
        replace(request, hot=("ops:shrink",)),
        replace(request, cold=("ops:*",)),
        replace(request, host_names=("x",)),
        replace(request, device_returns=("shrink",)),
        replace(request, at_least=HeatLevel.LOOP),
        replace(request, jobs=2),
    ]
    for variant in [*variants, *variants]:
        assert raw_scan(replace(variant, cache=cache)) == raw_scan(variant)


def test_text_that_stands_for_a_file_is_not_kept_as_that_file(tmp_path: Path, cache: Cache) -> None:
    files = write(tmp_path / "project", PROJECT)
    request = ScanRequest(tmp_path / "project", files, cache=cache)
    first = raw_scan(request)
    shown = tuple(replace(one, text="") if one.path == "ops.py" else one for one in files)
    assert raw_scan(replace(request, files=shown)).findings == ()
    assert raw_scan(request) == first


def test_a_name_that_appears_elsewhere_is_noticed(tmp_path: Path, cache: Cache) -> None:
    folder = tmp_path / "project"
    files = write(folder, {
        "use.py": "import torch\nfrom lib import *\nclass M(torch.nn.Module):\n    def forward(self, x):\n        return make().tolist()\n",
        "lib.py": "import torch\n",
    })
    request = ScanRequest(folder, files)
    assert raw_scan(replace(request, cache=cache)).findings == ()
    write(folder, {"lib.py": "import torch\ndef make():\n    return torch.zeros((), device='cuda')\n"})
    assert places(raw_scan(replace(request, cache=cache)).findings) == [("use.py", 5, "device-tolist")]


def test_what_has_not_changed_is_not_read_again(tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "project"
    files = write(folder, {**PROJECT, "apart.py": "import torch\ndef f(x):\n    return x.cuda().item()\n"})
    request = ScanRequest(folder, files, cache=cache)
    first = raw_scan(request)
    read: list[str] = []
    lower = store._lower

    def reading(source: SourceFile) -> tuple[store.Stored, os.stat_result | None]:
        read.append(source.path)
        return lower(source)

    monkeypatch.setattr(store, "_lower", reading)
    assert raw_scan(request) == first
    assert len(raw_scan(replace(request, hot=("apart:f",))).findings) == len(first.findings)
    assert read == []
    write(folder, {"apart.py": "import torch\ndef f(x):\n    return x.cuda().tolist()\n"})
    assert ("apart.py", 3, "device-tolist") in places(raw_scan(request).findings)
    assert read == ["apart.py"]


def test_only_what_a_change_reaches_is_judged_again(tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "project"
    files = write(folder, {**PROJECT, "apart.py": "import torch\ndef f(x):\n    return x.cuda().item()\n"})
    request = ScanRequest(folder, files, cache=cache)
    raw_scan(request)
    judged: list[str] = []
    file = judge.Judge.file

    def seen(self: judge.Judge, number: int, at_least: HeatLevel) -> judge.Judged:
        judged.append(files[number].path)
        return file(self, number, at_least)

    monkeypatch.setattr(judge.Judge, "file", seen)
    write(folder, {"apart.py": "import torch\ndef f(x):\n    return x.cuda().tolist()\n"})
    raw_scan(request)
    assert judged == ["apart.py"]
    judged.clear()
    write(folder, {"ops.py": dedent(PROJECT["ops.py"]).replace("bool(", "float(")})
    raw_scan(request)
    assert "ops.py" in judged
    assert "apart.py" not in judged


def test_errors_are_kept_too(tmp_path: Path, cache: Cache) -> None:
    files = write(tmp_path / "project", {**PROJECT, "bad.py": "x = (\n"})
    request = ScanRequest(tmp_path / "project", files)
    fresh = raw_scan(request)
    assert [error.path for error in fresh.errors] == ["bad.py"]
    assert raw_scan(replace(request, cache=cache)) == fresh
    assert raw_scan(replace(request, cache=cache)) == fresh


# what is hard


HARD = {
    "recursion": """
        import torch
        def f(x):
            return g(x) + f(x)
        def g(x):
            return h(f(x)) if x else g(g(x))
        def h(x):
            return f(h(g(x)))
        class M(torch.nn.Module):
            def forward(self, x):
                return f(x).item()  # here
    """,
    "objects in a circle": """
        import torch
        class A:
            def __init__(self):
                self.b = B()
                self.x = self.b.x
            @property
            def y(self):
                return self.b.y
        class B:
            def __init__(self):
                self.a = A()
                self.x = self.a.x
            @property
            def y(self):
                return self.a.y
        class M(torch.nn.Module):
            def forward(self, z):
                return A().x.item() + A().y.item() + z.item()  # here
    """,
    "a class that is its own base": """
        import torch
        class M(M):
            pass
        class N(O):
            pass
        class O(N):
            def forward(self, x):
                return x.item()  # here
        class P(torch.nn.Module):
            def forward(self, x):
                return N().forward(x).item()
    """,
    "names in a circle": """
        import torch
        a = b
        b = c + a
        c = [b, a]
        for a in c:
            b = a
            c = (b, c)
        class M(torch.nn.Module):
            def forward(self, x):
                return x.item() + a.item()  # here
    """,
    "doubled containers": """
        import torch
        class M(torch.nn.Module):
            def forward(self, x):
                a = (x, x)
                b = (a, a); c = (b, b); d = (c, c); e = (d, d); g = (e, e); h = (g, g)
                rows = [x]
                for _ in range(40):
                    rows = rows + rows
                    h = (h, h)
                return rows[0].item() + h[0][0][0][0][0][0][0].item()  # here
    """,
}


@pytest.mark.parametrize("name", HARD)
def test_circles_end(name: str) -> None:
    findings, errors = scan_text(dedent(HARD[name]))
    assert errors == []
    lines = [number for number, line in enumerate(dedent(HARD[name]).splitlines(), 1) if line.endswith("# here")]
    assert {("device-item", number) for number in lines} <= {(one.name, one.span.line) for one in findings}
    assert len(lines) == 1


def test_files_that_import_one_another_end() -> None:
    files = {f"m{number}.py": f"from m{(number + 1) % 5} import *\nfrom m{(number + 2) % 5} import thing\n" for number in range(5)}
    files["use.py"] = (
        "import torch\nfrom m0 import thing, nowhere\nclass M(torch.nn.Module):\n    def forward(self, x):\n"
        "        return thing(x).item() + nowhere.item() + x.item()\n"
    )
    result = scanned(files)
    assert result.errors == ()
    assert ("use.py", 5, "device-item") in places(result.findings)


def test_a_long_function_is_judged() -> None:
    lines = [f"        v{number} = v{number - 1} + {number}" for number in range(1, 3000)]
    head = ["import torch", "class M(torch.nn.Module):", "    def forward(self, v0):"]
    text = "\n".join([*head, *lines, "        return v2999.sum().item()"])
    findings, errors = scan_text(text)
    assert errors == []
    assert [(one.name, one.span.line) for one in findings] == [("device-item", 3003)]


def test_deep_expressions_are_judged() -> None:
    for expression in ("x" + " + x" * 200, "abs(" * 90 + "x" + ")" * 90, "(" * 150 + "x" + ")" * 150, "-" * 200 + "x", "x" + "[0]" * 200):
        body = f"        y = {expression}\n        return y.sum().item()\n"
        text = f"import torch\nclass M(torch.nn.Module):\n    def forward(self, x):\n{body}"
        findings, errors = scan_text(text)
        assert errors == []
        assert [(one.name, one.span.line) for one in findings] == [("device-item", 5)], expression[:20]
