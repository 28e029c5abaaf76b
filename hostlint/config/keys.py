"""The keys of a configuration: what each holds, how a value is checked, and the message where it does not fit."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NoReturn, TypeVar

from hostlint.errors import ConfigError
from hostlint.model import Confidence, HeatLevel, Severity

E = TypeVar("E")
HEATS: Mapping[str, HeatLevel] = {**{level.label: level for level in HeatLevel if level is not HeatLevel.COLD}, "any": HeatLevel.COLD}
CONFIDENCES: Mapping[str, Confidence] = {level.label: level for level in Confidence}
SEVERITIES: Mapping[str, Severity] = {level.value: level for level in Severity}


class Form(Enum):
    TEXT = "a string"
    TEXTS = "a list of strings"
    TEXTS_BY_PATTERN = "a table of lists of strings"
    HEAT = "one of " + ", ".join(HEATS)
    CONFIDENCE = "one of " + ", ".join(CONFIDENCES)
    SEVERITY = "one of " + ", ".join(SEVERITIES)


KEYS: Mapping[str, Form] = {
    "select": Form.TEXTS,
    "ignore": Form.TEXTS,
    "extend-select": Form.TEXTS,
    "per-file-ignores": Form.TEXTS_BY_PATTERN,
    "exclude": Form.TEXTS,
    "extend-exclude": Form.TEXTS,
    "min-heat": Form.HEAT,
    "min-confidence": Form.CONFIDENCE,
    "fail-on": Form.SEVERITY,
    "hot": Form.TEXTS,
    "cold": Form.TEXTS,
    "device-names": Form.TEXTS,
    "host-names": Form.TEXTS,
    "device-returns": Form.TEXTS,
    "upload-helpers": Form.TEXTS,
    "rule-modules": Form.TEXTS,
    "baseline": Form.TEXT,
    "cache-dir": Form.TEXT,
}


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads checked values out of one file's table; `file` opens every message."""

    file: Path
    table: Mapping[str, object]

    def check_keys(self) -> None:
        for key in self.table:
            if key not in KEYS:
                raise ConfigError(f"{self.file}: unknown key `{key}`{did_you_mean(key.replace('_', '-'), KEYS)}")

    def text(self, key: str) -> str | None:
        value = self.table.get(key)
        return value if value is None or isinstance(value, str) else self._refuse(key, value)

    def texts(self, key: str) -> tuple[str, ...] | None:
        value = self.table.get(key)
        return None if value is None else self._strings(key, value)

    def texts_by_pattern(self, key: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        value = self.table.get(key, {})
        if not isinstance(value, dict):
            self._refuse(key, value)
        return tuple((pattern, self._strings(key, inner)) for pattern, inner in value.items())

    def choice(self, key: str, choices: Mapping[str, E]) -> E | None:
        value = self.table.get(key)
        if value is None:
            return None
        found = choices.get(value) if isinstance(value, str) else None
        return self._refuse(key, value, choices) if found is None else found

    def _strings(self, key: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list):
            self._refuse(key, value)
        return tuple(item if isinstance(item, str) else self._refuse(key, item) for item in value)

    def _refuse(self, key: str, value: object, choices: Mapping[str, E] | None = None) -> NoReturn:
        hint = did_you_mean(value, choices) if choices and isinstance(value, str) else ""
        raise ConfigError(f"{self.file}: `{key}` must be {KEYS[key].value}, not {_described(value)}{hint}")


def _described(value: object) -> str:
    return repr(value) if isinstance(value, (str, int, float, bool)) else f"a {type(value).__name__}"


def did_you_mean(word: str, known: Mapping[str, object]) -> str:
    import difflib  # only a mistake pays for it

    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean `{near[0]}`?" if near else ""
