"""The fixer: rounds of scan, edit and check until no fix is left to apply. Nothing is written here."""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from hostlint import baseline
from hostlint.cache import digest
from hostlint.confirm.grade import urgency
from hostlint.fix.checks import Comments, Entry, compare, trouble_of
from hostlint.fix.edits import Patch, Text, joined
from hostlint.fix.elsewhere import Elsewhere, Since, place_of
from hostlint.fix.files import Original, UnfixableError, decoded
from hostlint.model import Applicability, Edit, FileError, Finding

if TYPE_CHECKING:
    from hostlint.fingerprint import Fingerprint
    from hostlint.project import SourceFile
    from hostlint.scan import Outcome

MOST_ROUNDS = 50
_Key = tuple[str, str, str, str]


class Scan(Protocol):
    """A scan with fixes, nothing subtracted, `texts` in the place of the files'; of `only` these files, where that is said."""

    def __call__(self, texts: Mapping[Path, str], only: Collection[Path] | None = None, /) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which fixes are to be applied: `review`, also those that rest on a stated assumption; `baselined`, also those of known findings."""

    review: bool = False
    baselined: bool = False

    def covers(self, entry: Entry) -> bool:
        fix = entry.finding.fix
        if fix is None or (entry.known and not self.baselined):
            return False
        return self.review or fix.applicability is Applicability.EXACT


@dataclass(frozen=True, slots=True)
class Left:
    """A finding that remains, and why a fix of it was not applied ("" where there is none, or it was not asked for)."""

    finding: Finding
    withheld: str = ""


@dataclass(frozen=True, slots=True)
class FixedFile:
    """A file as it is and as it would be."""

    source: SourceFile
    before: Original
    text: str

    @property
    def after(self) -> bytes:
        return self.before.encoded(self.text)


@dataclass(frozen=True, slots=True)
class Result:
    """What the rounds came to. A mended finding stands where it stood in the text of its round."""

    files: tuple[FixedFile, ...]
    mended: tuple[Finding, ...]
    left: tuple[Left, ...]
    errors: tuple[FileError, ...]
    outcome: Outcome  # the scan of the texts as they came out
    baselined: int = 0


@dataclass
class _Files:
    """The texts of the files that have fixes: as read, and as they are by now."""

    given: Mapping[str, SourceFile]
    digests: Mapping[str, bytes]
    standard: bytes | None
    originals: dict[str, Original] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    barred: dict[str, str] = field(default_factory=dict)  # path -> why it is left alone

    def text(self, path: str) -> str | None:
        """The text of now; None for a file that is to be left alone."""
        if path in self.barred or path not in self.given:
            return None
        if path not in self.originals:
            try:
                self.originals[path] = self._read(path)
            except UnfixableError as trouble:
                self.barred[path] = str(trouble)
                return None
            self.texts[path] = self.originals[path].text
        return self.texts[path]

    def overlay(self) -> dict[Path, str]:
        return {self.given[path].file: text for path, text in self.texts.items() if text != self.originals[path].text}

    def _read(self, path: str) -> Original:
        source = self.given[path]
        if source.text is not None:
            return decoded(self.standard or b"")
        try:
            data = source.file.read_bytes()
        except OSError as error:
            raise UnfixableError(f"cannot be read: {(error.strerror or str(error)).lower()}") from error
        if digest(data) != self.digests.get(path):
            raise UnfixableError("changed while it was being scanned; it is left as it is")
        return decoded(data)


@dataclass
class Fixer:
    """One run of the fixer. `standard` is what came on standard input, if that is scanned."""

    scan: Scan
    wanted: Wanted
    standard: bytes | None = None
    _withheld: dict[_Key, str] = field(default_factory=dict)
    _mended: dict[str, list[Finding]] = field(default_factory=dict)
    _known_errors: set[tuple[str, str]] = field(default_factory=set)
    _stale: bool = False  # whether texts changed since all files were scanned
    _elsewhere: Elsewhere = field(init=False)

    def __post_init__(self) -> None:
        self._elsewhere = Elsewhere(self.scan)

    def run(self) -> Result:
        outcome = self.scan({})
        given = {source.path: source for source in outcome.given}
        files = _Files(given, outcome.digests, self.standard)
        entries = _entries(outcome)
        first = entries
        self._known_errors = {(error.path, error.message) for error in outcome.result.errors}
        for _ in range(MOST_ROUNDS):
            patches = self._patches(files, entries)
            if not patches and not self._stale:
                break
            before = entries
            outcome, entries = self._tried(files, patches, entries)
            if not patches:
                entries = self._taken_back(files, before, outcome, entries)
        else:
            outcome, entries = self._given_up(files, entries, first)
        return self._result(files, outcome, entries)

    def _patches(self, files: _Files, entries: Mapping[str, Sequence[Entry]]) -> dict[str, tuple[Patch, list[Entry]]]:
        """For each file with something to apply: the patch, and the findings that it mends."""
        patches = {}
        for path, here in entries.items():
            chosen = [one for one in here if self.wanted.covers(one) and _key(one.finding) not in self._withheld]
            chosen.sort(key=lambda one: urgency(one.finding))  # of two fixes that overlap the first goes in
            text = files.text(path) if chosen else None
            if text is not None:
                patch, mended = self._patch(Text(text), chosen)
                if mended:
                    patches[path] = (patch, mended)
        return patches

    def _patch(self, text: Text, chosen: Sequence[Entry]) -> tuple[Patch, list[Entry]]:
        comments = Comments(text)
        sound = [one for one in chosen if not self._refuses(one, "a comment would be lost" if comments.lost(_edits(one)) else "")]
        patch, numbers = joined(text, [_edits(one) for one in sound])
        taken = [sound[number] for number in numbers]
        if not trouble_of(patch.after):
            return patch, taken
        kept: list[Entry] = []
        for one in taken:
            trouble = trouble_of(joined(text, [_edits(entry) for entry in (*kept, one)])[0].after)
            if not self._refuses(one, f"the result would not compile: {trouble}" if trouble else ""):
                kept.append(one)
        return joined(text, [_edits(one) for one in kept])[0], kept

    def _refuses(self, entry: Entry, reason: str) -> bool:
        if reason:
            self._withheld[_key(entry.finding)] = reason
        return bool(reason)

    def _tried(
        self, files: _Files, patches: Mapping[str, tuple[Patch, list[Entry]]], entries: Mapping[str, Sequence[Entry]]
    ) -> tuple[Outcome, dict[str, list[Entry]]]:
        """Apply the patches, scan those files, and take back the patches of those in which a finding stays or comes.

        What was found in such a file before is what is found in it again. All files are scanned once nothing is left to apply: what the
        patches change elsewhere (and most of a large project rests on one of them) is looked at once, not in every round."""
        for path, (patch, _) in patches.items():
            files.texts[path] = patch.after
        whole = not patches or patches.keys() == files.given.keys()
        outcome = self.scan(files.overlay()) if whole else self.scan(files.overlay(), {files.given[path].file for path in patches})
        refused = self._refused(patches, entries, outcome)
        for path in refused:
            files.texts[path] = patches[path][0].before.text
        self._stale = bool(refused) or not whole
        kept = {path: pair for path, pair in patches.items() if path not in refused}
        for path, (patch, mended) in kept.items():
            self._mended.setdefault(path, []).extend(one.finding for one in mended)
            since = Since(files.given[path].file, patch.before.text, list(entries[path]))
            self._elsewhere.since.setdefault(path, since).mended.extend(mended)
        carried = _carried(files, kept, entries, outcome)
        others = {path: list(here) for path, here in entries.items() if path in refused or not (whole or path in patches)}
        return outcome, {**carried, **others}

    def _taken_back(
        self, files: _Files, before: Mapping[str, Sequence[Entry]], outcome: Outcome, entries: dict[str, list[Entry]]
    ) -> dict[str, list[Entry]]:
        """What is found now; where a finding came to a file by a fix in another one, without that file's fixes."""
        known = {(path, place_of(one.finding)) for path, here in before.items() for one in here}
        fresh = (one for one in outcome.result.findings if one.path in files.given and (one.path, place_of(one)) not in known)
        came = next((one for one in fresh if not self.wanted.covers(Entry(one)) or _key(one) in self._withheld), None)
        culprit = self._elsewhere.culprit(files.overlay(), came, files.given[came.path].file) if came is not None else None
        if came is None or culprit is None:
            self._elsewhere.since.clear()
            return entries
        since = self._elsewhere.since.pop(culprit)
        files.texts[culprit] = since.text
        for one in since.mended:
            self._withheld[_key(one.finding)] = f"{came.code} {came.name} would come in {came.path}"
            self._mended[culprit].remove(one.finding)
        self._stale = True
        return {**{path: list(here) for path, here in before.items()}, culprit: since.entries}

    def _refused(
        self, patches: Mapping[str, tuple[Patch, list[Entry]]], entries: Mapping[str, Sequence[Entry]], outcome: Outcome
    ) -> set[str]:
        """The files whose patch must not be; the fixes that are to blame are withheld from now on."""
        now = _by_path(outcome.result.findings)
        errors = outcome.result.errors
        broken = {error.path: error.message for error in errors if (error.path, error.message) not in self._known_errors}
        refused = set()
        for path, (patch, mended) in patches.items():
            verdict = compare(patch, mended, [one for one in entries[path] if one not in mended], now.get(path, ()))
            blamed = verdict.refused or [(one, broken[path]) for one in mended if path in broken]
            for entry, reason in blamed:
                self._withheld[_key(entry.finding)] = reason
                refused.add(path)
        return refused

    def _given_up(
        self, files: _Files, entries: Mapping[str, Sequence[Entry]], first: Mapping[str, Sequence[Entry]]
    ) -> tuple[Outcome, dict[str, list[Entry]]]:
        """Files whose fixes do not come to an end go back to what they were, and the rules are named."""
        for path, (_, mended) in self._patches(files, entries).items():
            names = ", ".join(sorted({one.finding.name for one in mended}))
            files.barred[path] = f"the fixes of {names} do not come to an end in {MOST_ROUNDS} rounds; the file is left as it is"
            files.texts[path] = files.originals[path].text
            self._mended.pop(path, None)
        outcome = self.scan(files.overlay())
        back = {path: first.get(path, ()) if path in files.barred else here for path, here in entries.items()}
        return outcome, _carried(files, {}, back, outcome)

    def _result(self, files: _Files, outcome: Outcome, entries: Mapping[str, Sequence[Entry]]) -> Result:
        barred = tuple(FileError(path, 1, reason) for path, reason in files.barred.items())
        flat = [entry for path in sorted(entries) for entry in entries[path]]
        left = [Left(one.finding, self._withheld.get(_key(one.finding), "")) for one in flat if not one.known]
        changed = [path for path, text in files.texts.items() if text != files.originals[path].text]
        return Result(
            files=tuple(FixedFile(files.given[path], files.originals[path], files.texts[path]) for path in sorted(changed)),
            mended=tuple(finding for path in sorted(self._mended) for finding in self._mended[path]),
            left=tuple(sorted(left, key=lambda one: one.finding.sort_key)),
            errors=(*outcome.result.errors, *barred),
            outcome=outcome,
            baselined=sum(one.known for one in flat),
        )


def _entries(outcome: Outcome) -> dict[str, list[Entry]]:
    """The findings of the first scan by path, with what the baseline knows of them."""
    settings = outcome.settings
    known: Mapping[Fingerprint, int] = baseline.load(settings.baseline) if settings.baseline else {}
    _, old = baseline.subtract(outcome.result.findings, known, outcome.fingerprints) if known else ((), ())
    marked = {id(finding) for finding in old}
    return {path: [Entry(one, id(one) in marked) for one in here] for path, here in _by_path(outcome.result.findings).items()}


def _carried(
    files: _Files, patches: Mapping[str, tuple[Patch, list[Entry]]], entries: Mapping[str, Sequence[Entry]], outcome: Outcome
) -> dict[str, list[Entry]]:
    """The findings of now, each with what was known of it before."""
    carried: dict[str, list[Entry]] = {}
    for path, now in _by_path(outcome.result.findings).items():
        old = entries.get(path, ())
        known = [one for one in old if one.known]
        if not known:
            carried[path] = [Entry(one) for one in now]
            continue
        text = files.text(path)
        patch, mended = patches.get(path, (Patch(Text(text or ""), ()), []))
        verdict = compare(patch, mended, [one for one in old if one not in mended], now)
        told = {id(one.finding) for one in verdict.left}
        carried[path] = [*verdict.left, *(Entry(one) for one in now if id(one) not in told)]
    return carried


def _by_path(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.path, []).append(finding)
    return found


def _edits(entry: Entry) -> Sequence[Edit]:
    return entry.finding.fix.edits if entry.finding.fix is not None else ()


def _key(finding: Finding) -> _Key:
    """What a finding is called over the rounds: a fix that was refused is not tried again, wherever its lines have gone."""
    edits = finding.fix.edits if finding.fix is not None else ()
    return finding.path, finding.code, finding.function, "\0".join(edit.text for edit in edits)
