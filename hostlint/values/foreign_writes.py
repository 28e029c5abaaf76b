"""Attributes that are written through another receiver than `self`, anywhere in the project: asked of the text, for few ask."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.facts.spans import Places
    from hostlint.values.evaluator import Evaluator

WRITE = (
    r"(?P<base>[\w\]\)\.]*)\.{name}(\.data)?\s*(\[[^\]\n]*\]\s*)?"
    r"((\+|-|\*|/|//|%|\||&|\^|<<|>>)?=(?!=)|\.(?!requires_grad_|detach_)\w+_\()"
)
SET = r"(setattr|__setattr__)\([^\n]*[\"']{name}[\"']"


class ForeignWrites:
    """Answers by name, kept."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._known: dict[str, bool] = {}

    def writes(self, name: str, places: Places) -> bool:
        """Whether some file of the project writes to an attribute of that name of another object than `self`."""
        files = len(self._evaluator.index.files)
        self._evaluator.files |= (1 << files) - 1
        if name not in self._known:
            write, put = re.compile(WRITE.format(name=re.escape(name))), re.compile(SET.format(name=re.escape(name)))
            texts = (text for file in range(files) if name in (text := places.text_of(file)))
            self._known[name] = any(put.search(text) or any(_is_foreign(found) for found in write.finditer(text)) for text in texts)
        return self._known[name]


def _is_foreign(found: re.Match[str]) -> bool:
    return found["base"] not in ("self", "cls")
