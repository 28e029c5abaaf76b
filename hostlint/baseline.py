"""Known findings: a sorted file of JSON lines, each a fingerprint with its count, that a scan subtracts."""
from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hostlint.errors import ConfigError
from hostlint.fingerprint import Fingerprint, Fingerprints

if TYPE_CHECKING:
    from hostlint.model import Finding

_TEXTS = ("code", "path", "function", "statement")


def load(file: Path) -> Counter[Fingerprint]:
    """Read a baseline; ConfigError where there is none or a line does not hold an entry."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigError(f"{file}: the baseline cannot be read: {(error.strerror or str(error)).lower()}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: the baseline is not UTF-8 text") from error
    known: Counter[Fingerprint] = Counter()
    for number, line in enumerate(lines, start=1):
        if line.strip():
            fingerprint, count = _entry(file, number, line)
            known[fingerprint] += count
    return known


def _entry(file: Path, number: int, line: str) -> tuple[Fingerprint, int]:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise ConfigError(f"{file}:{number}: not a line of JSON: {error}") from error
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in _TEXTS):
        raise ConfigError(f"{file}:{number}: an entry has the strings {', '.join(_TEXTS)} and a count")
    count = entry.get("count", 1)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ConfigError(f"{file}:{number}: `count` must be a number above 0, not {count!r}")
    return Fingerprint(entry["path"], entry["function"], entry["code"], entry["statement"]), count


def dump(known: Mapping[Fingerprint, int]) -> str:
    """The file's text: the same findings give the same bytes."""
    return "".join(
        json.dumps({"code": f.code, "path": f.path, "function": f.function, "statement": f.statement, "count": count}) + "\n"
        for f, count in sorted(known.items())
        if count > 0
    )


def subtract(
    findings: Iterable[Finding], known: Mapping[Fingerprint, int], fingerprints: Fingerprints
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Part findings, in their order, into those that are new and those that the baseline knows."""
    left = Counter(known)
    new: list[Finding] = []
    old: list[Finding] = []
    for finding in findings:
        fingerprint = fingerprints.of(finding)
        (old if left[fingerprint] > 0 else new).append(finding)
        left[fingerprint] -= 1
    return tuple(new), tuple(old)
