"""Rounds: what the fixer applies, withholds and leaves, shown with a rule of its own: every `bad` of a text is a finding."""
from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hostlint.cache import digest
from hostlint.fix import rounds
from hostlint.fix.rounds import Fixer, Result, Wanted
from hostlint.model import Applicability, Confidence, Edit, FileError, Finding, Fix, Heat, HeatLevel, ScanResult, Severity, Span
from hostlint.project import SourceFile
from hostlint.scan import Outcome
from hostlint.settings import Options, resolve
from hostlint.sources import Sources

Make = Callable[[str, int, "re.Match[str]"], "Fix | None"]
FILE = Path("/nowhere/mod.py")


def span(line: int, found: re.Match[str]) -> Span:
    return Span(line, found.start() + 1, line, found.end() + 1)


def exact(*edits: Edit) -> Fix:
    return Fix(Applicability.EXACT, "write good", edits)


def to_good(text: str, line: int, found: re.Match[str]) -> Fix:
    return exact(Edit(span(line, found), "good"))


@dataclass
class Scanner:
    """Scans one text; a word in `words` is a finding of the rule with that code."""

    text: str
    make: Make = to_good
    words: Mapping[str, str] = field(default_factory=lambda: {"bad": "HL201"})
    baseline: Path | None = None
    texts: list[str] = field(default_factory=list)
    broken: Callable[[str], bool] = lambda text: False
    notes: frozenset[str] = frozenset()  # the codes of findings that are notes

    def __call__(self, texts: Mapping[Path, str], only: Collection[Path] | None = None) -> Outcome:
        text = texts.get(FILE, self.text)
        self.texts.append(text)
        settings = replace(resolve(Options(working=Path("/nowhere"), paths=(FILE,), isolated=True, cache=False)), baseline=self.baseline)
        source = SourceFile("mod.py", FILE, True, "mod", text)
        lines = enumerate(text.splitlines(), 1)
        findings = tuple(self._finding(text, number, hit) for number, line in lines for hit in self._hits(line))
        errors = (FileError("mod.py", 1, "the rule failed"),) if self.broken(text) else ()
        return Outcome(ScanResult(findings, errors), settings, Sources(Path("/nowhere"), {"mod.py": text}), (source,))

    def _hits(self, line: str) -> list[re.Match[str]]:
        """A word, with the arguments of a call; words inside those are hits of their own."""
        pattern = re.compile(r"\b(" + "|".join(self.words) + r")\b(\(.*\))?")
        return [hit for start in range(len(line)) if (hit := pattern.match(line, start))]

    def _finding(self, text: str, number: int, hit: re.Match[str]) -> Finding:
        code = self.words[hit[1]]
        fix = self.make(text, number, hit)
        severity = Severity.NOTE if code in self.notes else Severity.WARNING
        return Finding(
            code, f"rule-{code}", "mod.py", span(number, hit), "it waits", severity, Confidence.CERTAIN, "f", Heat(HeatLevel.LOOP),
            "", fix, (number, number),
        )  # fmt: skip


def run(scanner: Scanner, wanted: Wanted = Wanted()) -> Result:  # noqa: B008 - frozen
    return Fixer(scanner, wanted, scanner.text.encode()).run()


def text_of(result: Result, scanner: Scanner) -> str:
    return result.files[0].text if result.files else scanner.text


def test_all_findings_of_a_file_in_one_round() -> None:
    scanner = Scanner("x = bad + bad\ny = 1\nz = bad\n")
    result = run(scanner)
    assert text_of(result, scanner) == "x = good + good\ny = 1\nz = good\n"
    assert len(scanner.texts) == 2
    assert [finding.span.line for finding in result.mended] == [1, 1, 3]
    assert not result.left
    assert not result.errors


def test_overlapping_fixes_take_turns() -> None:
    def whole_call(text: str, line: int, found: re.Match[str]) -> Fix:
        return exact(Edit(span(line, found), f"good{found[2]}"))

    scanner = Scanner("x = bad(bad(1))\n", whole_call)
    result = run(scanner)
    assert scanner.texts == ["x = bad(bad(1))\n", "x = good(bad(1))\n", "x = good(good(1))\n"]
    assert len(result.mended) == 2


def test_a_fix_that_would_lose_a_comment_is_withheld() -> None:
    def whole_line(text: str, line: int, found: re.Match[str]) -> Fix:
        return exact(Edit(Span(line, 1, line + 1, 1), f"x = good{'  # why' if 'keeps' in text else ''}\n"))

    scanner = Scanner("x = bad  # why\n", whole_line)
    result = run(scanner)
    assert not result.files
    assert result.left[0].withheld == "a comment would be lost"
    assert len(scanner.texts) == 1
    scanner = Scanner("x = bad  # why\nkeeps = 1\n", whole_line)
    assert text_of(run(scanner), scanner) == "x = good  # why\nkeeps = 1\n"


def test_a_fix_that_does_not_compile_is_withheld_and_others_are_not() -> None:
    def make(text: str, line: int, found: re.Match[str]) -> Fix:
        return exact(Edit(span(line, found), "good good" if line == 2 else "good"))

    scanner = Scanner("x = bad\ny = bad\nz = bad\n", make)
    result = run(scanner)
    assert text_of(result, scanner) == "x = good\ny = bad\nz = good\n"
    assert [(one.finding.span.line, one.withheld) for one in result.left] == [(2, "the result would not compile: invalid syntax")]


def test_a_finding_that_stays_takes_its_fix_back() -> None:
    def make(text: str, line: int, found: re.Match[str]) -> Fix:
        return exact(Edit(span(line, found), "(bad)" if line == 1 else "good"))

    scanner = Scanner("x = bad\ny = bad\n", make)
    result = run(scanner)
    assert text_of(result, scanner) == "x = bad\ny = good\n"
    assert [one.withheld for one in result.left] == ["the finding would stay"]


def test_what_is_taken_back_is_scanned_with_the_next_round() -> None:
    """A scan costs most of a round: there is none for the file as it was before."""

    def make(text: str, line: int, found: re.Match[str]) -> Fix:
        return exact(Edit(span(line, found), "(bad)" if line == 1 else "good"))

    scanner = Scanner("x = bad\ny = bad\n", make)
    run(scanner)
    assert scanner.texts == ["x = bad\ny = bad\n", "x = (bad)\ny = good\n", "x = bad\ny = good\n"]
    alone = Scanner("x = bad\n", make)
    result = run(alone)
    assert alone.texts == ["x = bad\n", "x = (bad)\n", "x = bad\n"]  # what is told is what the last scan saw
    assert [one.finding.span.line for one in result.left] == [1]


def test_a_finding_that_would_come_takes_the_fix_back() -> None:
    def make(text: str, line: int, found: re.Match[str]) -> Fix | None:
        new = "worse" if line == 2 else "good"
        return exact(Edit(span(line, found), new)) if found[1] == "bad" else None

    scanner = Scanner("x = bad\ny = bad\nz = worse\n", make, {"bad": "HL201", "worse": "HL101"})
    result = run(scanner)
    assert text_of(result, scanner) == "x = good\ny = bad\nz = worse\n"
    assert [(one.finding.code, one.withheld) for one in result.left] == [
        ("HL201", "HL101 rule-HL101 would come in its place"),
        ("HL101", ""),
    ]


def test_a_lesser_finding_at_the_mended_place_is_let_through() -> None:
    def make(text: str, line: int, found: re.Match[str]) -> Fix | None:
        return exact(Edit(span(line, found), "note")) if found[1] == "bad" else None

    scanner = Scanner("x = bad\n", make, {"bad": "HL201", "note": "HL301"}, notes=frozenset({"HL301"}))
    result = run(scanner)
    assert text_of(result, scanner) == "x = note\n"
    assert [(one.finding.code, one.withheld) for one in result.left] == [("HL301", "")]
    grave = Scanner("x = bad\n", make, {"bad": "HL201", "note": "HL301"})
    assert text_of(run(grave), grave) == "x = bad\n"


def test_a_lesser_finding_elsewhere_takes_the_fix_back() -> None:
    def make(text: str, line: int, found: re.Match[str]) -> Fix | None:
        return exact(Edit(span(line, found), "good"), Edit(Span(1, 1, 1, 1), "note\n")) if found[1] == "bad" else None

    scanner = Scanner("y = 1\nx = bad\n", make, {"bad": "HL201", "note": "HL301"}, notes=frozenset({"HL301"}))
    result = run(scanner)
    assert text_of(result, scanner) == "y = 1\nx = bad\n"
    assert [one.withheld for one in result.left] == ["HL301 rule-HL301 would come in its place"]


def test_findings_of_others_may_move() -> None:
    def make(text: str, line: int, found: re.Match[str]) -> Fix | None:
        new = (Edit(Span(1, 1, 1, 1), "import torch\n"), Edit(span(line, found), "something = longer"))
        return exact(*new) if found[1] == "bad" else None

    scanner = Scanner("worse\nbad; worse\nworse\n", make, {"bad": "HL201", "worse": "HL101"})
    result = run(scanner)
    assert text_of(result, scanner) == "import torch\nworse\nsomething = longer; worse\nworse\n"
    assert [(one.finding.span.line, one.finding.span.column) for one in result.left] == [(2, 1), (3, 21), (4, 1)]


def test_a_rule_that_fails_on_the_result_takes_the_fixes_back() -> None:
    scanner = Scanner("x = bad\n", broken=lambda text: "good" in text)
    result = run(scanner)
    assert not result.files
    assert result.left[0].withheld == "the rule failed"


def test_a_rule_that_fails_before_and_after_takes_nothing_back() -> None:
    scanner = Scanner("x = bad\n", broken=lambda text: True)
    result = run(scanner)
    assert text_of(result, scanner) == "x = good\n"
    assert [error.message for error in result.errors] == ["the rule failed"]


def test_review_only_where_asked_for() -> None:
    def review(text: str, line: int, found: re.Match[str]) -> Fix:
        return Fix(Applicability.REVIEW if line == 1 else Applicability.EXACT, "m", (Edit(span(line, found), "good"),))

    scanner = Scanner("x = bad\ny = bad\n", review)
    assert text_of(run(scanner), scanner) == "x = bad\ny = good\n"
    assert text_of(run(scanner, Wanted(review=True)), scanner) == "x = good\ny = good\n"


def test_what_the_baseline_knows_is_left_unless_asked_for(tmp_path: Path) -> None:
    from hostlint import baseline
    from hostlint.fingerprint import Fingerprints

    scanner = Scanner("x = bad\ny = bad\n")
    first = scanner({})
    known = Fingerprints(first.settings.root, first.sources).of(first.result.findings[0])
    scanner.baseline = tmp_path / "known.jsonl"
    scanner.baseline.write_text(baseline.dump({known: 1}), encoding="utf-8")
    result = run(scanner)
    assert text_of(result, scanner) == "x = bad\ny = good\n"
    assert (result.baselined, result.left) == (1, ())
    everything = run(scanner, Wanted(baselined=True))
    assert text_of(everything, scanner) == "x = good\ny = good\n"


def test_a_known_finding_whose_statement_is_rewritten_stays_known(tmp_path: Path) -> None:
    from hostlint import baseline
    from hostlint.fingerprint import Fingerprints

    def make(text: str, line: int, found: re.Match[str]) -> Fix | None:
        return to_good(text, line, found) if found[1] == "bad" else None

    scanner = Scanner("x = bad + worse\n", make, {"bad": "HL201", "worse": "HL101"})
    first = scanner({})
    known = Fingerprints(first.settings.root, first.sources).of(first.result.findings[1])
    scanner.baseline = tmp_path / "known.jsonl"
    scanner.baseline.write_text(baseline.dump({known: 1}), encoding="utf-8")
    result = run(scanner)
    assert text_of(result, scanner) == "x = good + worse\n"
    assert (result.baselined, result.left) == (1, ())


def test_fixes_that_do_not_come_to_an_end_change_nothing_and_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "MOST_ROUNDS", 3)

    def one_at_a_time(text: str, line: int, found: re.Match[str]) -> Fix:
        return exact(Edit(Span(1, 1, 1, 2), text[0]), Edit(span(line, found), "good"))

    scanner = Scanner("x = [bad, bad, bad, bad, bad]\n", one_at_a_time)
    result = run(scanner)
    assert not result.files
    assert not result.mended
    assert [error.message for error in result.errors] == [
        "the fixes of rule-HL201 do not come to an end in 3 rounds; the file is left as it is"
    ]
    assert len(result.left) == 5


def test_bytes_that_cannot_be_kept_leave_the_file_alone() -> None:
    scanner = Scanner("x = bad\n")
    result = Fixer(scanner, Wanted(), b"# coding: utf-7\nx = bad  # +AGE-\n").run()
    assert not result.files
    assert result.errors[0].path == "mod.py"
    assert len(result.left) == 1


def test_a_file_that_is_not_what_was_scanned_is_left_alone(tmp_path: Path) -> None:
    from hostlint.cache import digest

    file = tmp_path / "mod.py"
    file.write_text("x = 1 + bad\n", encoding="utf-8")

    def scan(content: bytes) -> Scanner:
        class Disk(Scanner):
            def __call__(self, texts: Mapping[Path, str], only: Collection[Path] | None = None) -> Outcome:
                outcome = super().__call__({FILE: texts[file]} if file in texts else {})
                return replace(outcome, given=(SourceFile("mod.py", file, True, "mod"),), digests={"mod.py": digest(content)})

        return Disk("x = bad\n")

    stale = Fixer(scan(b"x = bad\n"), Wanted()).run()
    assert not stale.files
    assert [error.message for error in stale.errors] == ["changed while it was being scanned; it is left as it is"]
    file.write_text("x = bad\n", encoding="utf-8")
    assert Fixer(scan(b"x = bad\n"), Wanted()).run().files[0].after == b"x = good\n"


# more than one file


@dataclass
class Folder:
    """Scans a folder's files as `Scanner` scans one; `told` holds which files each scan was to look at."""

    texts: dict[str, str]
    folder: Path
    told: list[list[str]] = field(default_factory=list)
    also: Callable[[Mapping[str, str]], Mapping[str, str]] = lambda texts: {}  # what files seem to hold by what others hold

    def __call__(self, texts: Mapping[Path, str], only: Collection[Path] | None = None) -> Outcome:
        now = {name: texts.get(self.folder / name, text) for name, text in self.texts.items()}
        chosen = [name for name in now if only is None or self.folder / name in only]
        self.told.append(chosen)
        found = [one for name in chosen for one in self._findings(name, {**now, **self.also(now)}[name])]
        settings = resolve(Options(working=self.folder, paths=(self.folder,), isolated=True, cache=False))
        sources = tuple(SourceFile(name, self.folder / name, True, name[:-3]) for name in chosen)
        digests = {name: digest(self.texts[name].encode()) for name in chosen}
        return Outcome(ScanResult(tuple(found)), settings, Sources(self.folder), sources, digests)

    def _findings(self, name: str, text: str) -> list[Finding]:
        def make(text: str, line: int, found: re.Match[str]) -> Fix | None:  # the arguments are written anew, as they are
            return exact(Edit(span(line, found), f"good{found[2] or ''}")) if "stuck" not in text else None

        findings = Scanner(text, make)({}).result.findings
        return [replace(one, path=name) for one in findings]


def folder_of(tmp_path: Path, **texts: str) -> Folder:
    files = {f"{name}.py": text for name, text in texts.items()}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return Folder(files, tmp_path)


def test_a_round_scans_what_it_changed_and_the_end_scans_all(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a="x = bad\n", b="x = bad(bad(1))\n", c="x = 1\n")
    result = Fixer(folder, Wanted()).run()
    assert folder.told == [["a.py", "b.py", "c.py"], ["a.py", "b.py"], ["b.py"], ["a.py", "b.py", "c.py"]]
    assert {one.source.path: one.text for one in result.files} == {"a.py": "x = good\n", "b.py": "x = good(good(1))\n"}
    assert len(result.mended) == 3
    assert not result.left


def test_what_a_fix_brings_to_light_in_another_file_is_mended_too(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a="x = bad\n", b="x = 1\n", c="x = fine\n")
    folder.also = lambda texts: {"c.py": texts["c.py"].replace("fine", "bad ")} if "good" in texts["a.py"] else {}
    result = Fixer(folder, Wanted()).run()
    assert folder.told == [["a.py", "b.py", "c.py"], ["a.py"], ["a.py", "b.py", "c.py"], ["c.py"], ["a.py", "b.py", "c.py"]]
    assert {one.source.path for one in result.files} == {"a.py", "c.py"}


@pytest.mark.parametrize("guilty", ["a", "b", "d"])
def test_a_finding_that_comes_to_another_file_takes_the_fix_back_that_brings_it(tmp_path: Path, guilty: str) -> None:
    folder = folder_of(tmp_path, a="x = bad\n", b="x = bad(bad(1))\n", c="x = 1\n", d="y = bad\n")
    folder.also = lambda texts: {"c.py": "x = bad  # stuck\n"} if "good" in texts[f"{guilty}.py"] else {}
    result = Fixer(folder, Wanted()).run()
    assert {one.source.path for one in result.files} == {"a.py", "b.py", "d.py"} - {f"{guilty}.py"}
    assert {(one.finding.path, one.withheld) for one in result.left} == {(f"{guilty}.py", "HL201 rule-HL201 would come in c.py")}
    assert len(result.mended) == 4 - len(result.left)


def test_a_finding_that_comes_by_no_fix_takes_none_back(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a="x = bad\n", c="x = 1\n")
    folder.also = lambda texts: {"c.py": "x = bad  # stuck\n"} if len(folder.told) > 1 else {}
    result = Fixer(folder, Wanted()).run()
    assert [one.source.path for one in result.files] == ["a.py"]
    assert [one.finding.path for one in result.left] == ["c.py"]


def test_findings_of_files_that_were_not_given_are_no_matter(tmp_path: Path) -> None:
    """A hook is told of them too, where a given file heats them."""

    @dataclass
    class Hook(Folder):
        def __call__(self, texts: Mapping[Path, str], only: Collection[Path] | None = None) -> Outcome:
            outcome = super().__call__(texts, only)
            heated = self._findings("other.py", "x = bad  # stuck\n") if texts and only is None else []
            return replace(outcome, result=ScanResult((*outcome.result.findings, *heated)))

    folder = folder_of(tmp_path, a="x = bad\n", b="y = 1\n")
    result = Fixer(Hook(folder.texts, folder.folder), Wanted()).run()
    assert [one.source.path for one in result.files] == ["a.py"]
    assert [one.finding.path for one in result.left] == ["other.py"]
