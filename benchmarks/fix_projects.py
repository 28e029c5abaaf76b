"""Fixes whole projects and checks what came out, file by file: `fix_projects.py FOLDER…` works on copies and prints one JSON object.

Each folder is copied twice, for `hostlint fix` and `hostlint fix --review`. Of each copy is checked: every file still compiles; a second
run changes nothing; no finding came, save a lesser one where a graver one was mended and reads that run less often now; files without
a fix are the same bytes, and in the others encoding, byte-order mark, line ends, comments and every line away from findings, imports and
helpers stay. Exit status 1 if anything does not hold.
"""
from __future__ import annotations

import argparse
import ast
import difflib
import json
import re
import shutil
import subprocess
import sys
import time
import tokenize
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

FIXED = re.compile(r"^(?P<path>.+?):\d+:\d+: fixed (?P<code>HL\d+) (?P<name>[\w-]+): ")
LEFT = re.compile(r"^(?P<path>.+?):\d+:\d+: (?P<code>HL\d+) (?P<name>[\w-]+) .*?\(fix withheld: (?P<reason>.*?)\)(?: \[|$)")
SCAN = re.compile(r"^hostlint: (\d+) lines in ([\d.]+) s$")
RANKS = {"note": 0, "warning": 1, "error": 2}
UNTOUCHED = (".git", ".hostlint_cache", "__pycache__")


@dataclass(frozen=True, slots=True)
class Found:
    """A finding, as the JSON report tells it."""

    code: str
    path: str
    line: int
    column: int
    end_line: int
    severity: str
    function: str
    chain: frozenset[str] = frozenset()  # the functions from the hot loop to the place

    @classmethod
    def of(cls, told: dict[str, Any]) -> Found:
        chain = frozenset(link["function"] for link in told["heat"]["chain"])
        return cls(**{name: told[name] for name in cls.__dataclass_fields__ if name != "chain"}, chain=chain)


@dataclass
class Report:
    """What came of one run over one copy; `troubles` is empty where everything holds."""

    project: str
    review: bool
    files: int = 0
    changed: int = 0
    seconds: float = 0.0
    scans: list[float] = field(default_factory=list)  # seconds of each scan that the run made
    fixed: dict[str, int] = field(default_factory=dict)  # by rule
    withheld: dict[str, int] = field(default_factory=dict)  # by rule and reason
    uncovered: list[str] = field(default_factory=list)  # lesser findings where graver ones were mended
    lifted: list[str] = field(default_factory=list)  # reads that a fix moved to where they run less often
    troubles: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Command:
    """How to call hostlint on a copy."""

    python: str
    options: tuple[str, ...]

    def run(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(  # noqa: S603 - this interpreter, on folders that were given
            [self.python, "-m", "hostlint", *arguments, *self.options, "."], cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, 1) and not done.stdout:
            raise SystemExit(f"{' '.join(arguments)} in {folder}: {done.stderr}")
        return done

    def findings(self, folder: Path) -> list[Found]:
        report = json.loads(self.run(folder, "scan", "--output-format", "json").stdout)
        return [Found.of(one) for one in report["findings"]]


@dataclass(frozen=True)
class Pair:
    """One file before and after."""

    path: str
    before: bytes
    after: bytes

    @cached_property
    def lines(self) -> tuple[list[str], list[str]]:
        return tuple(_decoded(data).splitlines(keepends=True) for data in (self.before, self.after))  # type: ignore[return-value]

    @cached_property
    def hunks(self) -> Sequence[tuple[str, int, int, int, int]]:
        return difflib.SequenceMatcher(None, *self.lines, autojunk=False).get_opcodes()

    def came_from(self, line: int) -> int | None:
        """The line before that a line after is, both 1-based; None where it was written anew."""
        for kind, start, _, new_start, new_end in self.hunks:
            if new_start <= line - 1 < new_end:
                return start + line - new_start if kind == "equal" else None
        return None

    @property
    def changed(self) -> Iterator[tuple[range, range]]:
        """1-based lines of before and of after that a change covers."""
        for kind, start, end, new_start, new_end in self.hunks:
            if kind != "equal":
                yield range(start + 1, end + 1), range(new_start + 1, new_end + 1)


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file's bytes and mode."""
    files = (one for one in sorted(folder.rglob("*")) if one.is_file() and not any(part in UNTOUCHED for part in one.parts))
    return {one.relative_to(folder).as_posix(): (one.read_bytes(), one.stat().st_mode) for one in files}


def check(command: Command, folder: Path, review: bool) -> Report:
    report = Report(folder.name, review)
    before = tree(folder)
    findings = command.findings(folder)
    _fix(command, folder, report)
    after = tree(folder)
    pairs = [Pair(path, before[path][0], after[path][0]) for path in before if path in after and before[path][0] != after[path][0]]
    report.files, report.changed = sum(path.endswith(".py") for path in before), len(pairs)
    report.troubles += [f"{path}: came, went or has another mode" for path in before if before[path][1:] != after.get(path, ())[1:]]
    report.troubles += [f"{path}: came" for path in after if path not in before]
    for pair in pairs:
        report.troubles += [f"{pair.path}: {trouble}" for trouble in (*_sound(pair), *_strays(pair, findings))]
    _compare({pair.path: pair for pair in pairs}, findings, command.findings(folder), report)
    again = command.run(folder, *_fix_words(review)).stdout
    if tree(folder) != after or FIXED.search(again):
        report.troubles.append("a second run changes something")
    return report


def _fix_words(review: bool) -> Sequence[str]:
    return ("fix", "--verbose", "--review") if review else ("fix", "--verbose")


def _fix(command: Command, folder: Path, report: Report) -> None:
    began = time.perf_counter()
    done = command.run(folder, *_fix_words(report.review))
    report.seconds = round(time.perf_counter() - began, 1)
    report.scans = [float(found[2]) for line in done.stderr.splitlines() if (found := SCAN.match(line))]
    report.troubles += [line for line in done.stderr.splitlines() if line.startswith("hostlint: error")]
    lines = done.stdout.splitlines()
    report.fixed = _counted(f"{found['code']} {found['name']}" for line in lines if (found := FIXED.match(line)))
    report.withheld = _counted(f"{found['code']} {found['name']}: {found['reason']}" for line in lines if (found := LEFT.match(line)))


def _counted(words: Iterator[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


# The text


def _decoded(data: bytes) -> str:
    encoding, _ = tokenize.detect_encoding(iter(data.splitlines(keepends=True)).__next__)
    return data.decode(encoding)


def _sound(pair: Pair) -> Iterator[str]:
    """What is wrong with a changed file as a program and as bytes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(pair.after)
            compile(pair.after, pair.path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        yield f"does not compile: {error}"
        return
    if pair.before.startswith(b"\xef\xbb\xbf") != pair.after.startswith(b"\xef\xbb\xbf"):
        yield "its byte-order mark came or went"
    ends = [set(re.findall(rb"\r\n|\r|\n", data)) for data in (pair.before, pair.after)]
    if ends[1] - ends[0]:
        yield f"its line ends are {ends[1]}, were {ends[0]}"
    if pair.before.endswith(b"\n") != pair.after.endswith(b"\n"):
        yield "its last line's end came or went"
    lost = _comments(pair.before) - _comments(pair.after)
    if lost:
        yield f"comments are lost: {sorted(lost)}"
    white = [line for line in pair.after.splitlines() if line != line.rstrip()]
    old = set(pair.before.splitlines())
    if any(line not in old for line in white):
        yield "white space at the end of a new line"


def _comments(data: bytes) -> Counter[str]:
    tokens = tokenize.tokenize(iter(data.splitlines(keepends=True)).__next__)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


def _strays(pair: Pair, findings: Sequence[Found]) -> Iterator[str]:
    """Changes that are neither at a finding, nor in a function that held one, nor an import or a helper of the module."""
    here = [one for one in findings if one.path == pair.path]
    old, new = (ast.parse(data) for data in (pair.before, pair.after))
    chains = frozenset().union(*(one.chain for one in findings))  # a caller may hand in what a finding in another function needs
    outer = [span for one in here if (span := _function_around(old, one)) is not None] + list(_named(old, chains))
    top = {line for one in new.body if not isinstance(one, ast.ClassDef) for line in _lines(one)}
    for was, now in pair.changed:
        first = was.start
        at_finding = any(one.line <= line <= one.end_line for one in here for line in was)
        beside = any(span.start <= first <= span.stop and (not was or was[-1] in span) for span in outer)
        blank = all(not pair.lines[1][line - 1].strip() for line in now)
        of_module = not was and all(line in top or not pair.lines[1][line - 1].strip() for line in now)
        if not (at_finding or beside or of_module or (blank and not was)):
            yield f"line {first}: changed away from any finding: {[pair.lines[1][line - 1] for line in now]}"


def _lines(node: ast.stmt) -> range:
    decorators = [one.lineno for one in getattr(node, "decorator_list", ())]
    return range(min([node.lineno, *decorators]), (node.end_lineno or node.lineno) + 1)


def _function_around(module: ast.Module, found: Found) -> range | None:
    """The outermost function or class body that holds a finding."""
    held = [_lines(one) for one in ast.walk(module) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    around = [span for span in held if found.line in span]
    return min(around, key=len) if around else None


def _named(node: ast.AST, wanted: Collection[str], outer: str = "") -> Iterator[range]:
    """The lines of the functions with these qualified names."""
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{outer}{one.name}"
            if name in wanted:
                yield _lines(one)
            yield from _named(one, wanted, f"{name}.")
        elif isinstance(one, ast.stmt):
            yield from _named(one, wanted, outer)


# The findings


def _compare(pairs: Mapping[str, Pair], before: Sequence[Found], after: Sequence[Found], report: Report) -> None:
    """Hold the findings of after against those of before, by rule and place."""
    places = Counter((one.path, one.code, one.line, one.column) for one in before)
    waiting: list[Found] = []
    for one in after:
        line = pairs[one.path].came_from(one.line) if one.path in pairs else one.line
        key = (one.path, one.code, line or 0, one.column)
        if line is not None and places[key]:
            places[key] -= 1
        else:
            waiting.append(one)
    gone = [one for one in before if places[one.path, one.code, one.line, one.column]]
    for one in waiting:
        same = next((old for old in gone if (old.path, old.code, old.function) == (one.path, one.code, one.function)), None)
        if same is not None:
            gone.remove(same)  # its line was written anew
            continue
        graver = [old for old in gone if (old.path, old.function) == (one.path, one.function) and RANKS[old.severity] > RANKS[one.severity]]
        words = f"{one.path}:{one.line}: {one.code} in {one.function}"
        if one.path in pairs and any(_is_lifted(pairs[one.path], old, one) for old in gone):
            report.lifted.append(words)
        elif graver:
            report.uncovered.append(f"{words}, where {', '.join(sorted({old.code for old in graver}))} was mended")
        else:
            report.troubles.append(f"{words} came")


def _is_lifted(pair: Pair, old: Found, new: Found) -> bool:
    """Whether a read that came is one that went, in fewer loops of its function or up the chain of calls."""
    if old.path != new.path or old.code[:3] != new.code[:3]:
        return False
    if old.function != new.function:
        return new.function in old.chain
    return _loops_around(pair.after, new) < _loops_around(pair.before, old)


def _loops_around(data: bytes, found: Found) -> int:
    """How many loops' bodies hold a place; the header of a loop is outside of it."""
    nodes = list(ast.walk(ast.parse(data)))
    bodies = [one.body for one in nodes if isinstance(one, ast.For | ast.AsyncFor | ast.While)]
    inner = [one for one in nodes if isinstance(one, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp)]
    loops = sum(body[0].lineno <= found.line <= (body[-1].end_lineno or 0) for body in bodies)
    place = (found.line, found.column - 1)
    return loops + sum(
        (one.lineno, one.col_offset) <= place < (one.end_lineno or 0, one.end_col_offset or 0)
        and not (one.generators[0].iter.lineno, one.generators[0].iter.col_offset) <= place
        for one in inner
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="where the copies go; those of an earlier run are replaced")
    parser.add_argument("--cache-dir", type=Path, help="one cache for all copies")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--mode", choices=("exact", "review", "both"), default="both")
    given = parser.parse_args()
    cache = ("--cache-dir", str(given.cache_dir.absolute())) if given.cache_dir else ()
    command = Command(sys.executable, (*cache, "--jobs", str(given.jobs)))
    failed = False
    for folder in given.folders:
        for review in (False, True) if given.mode == "both" else (given.mode == "review",):
            copy = given.work.absolute() / f"{folder.name}-{'review' if review else 'exact'}"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(*UNTOUCHED), symlinks=True)
            report = check(command, copy, review)
            failed = failed or bool(report.troubles)
            print(json.dumps(asdict(report), indent=1, ensure_ascii=False), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
