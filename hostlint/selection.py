"""Which rules are enabled: selectors (names, codes, code prefixes, ALL) applied as ruff does, the more specific one winning."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hostlint.ignores import Globs

Expand = Callable[[str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class Layer:
    """What one source says; a later source (the command line) overrules an earlier one (the configuration)."""

    select: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    extend_select: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class FileIgnores:
    """Codes that are off in the files of one pattern; with a leading `!`, in all others."""

    globs: Globs
    inverted: bool
    codes: frozenset[str]

    def cover(self, code: str, file: Path) -> bool:
        return code in self.codes and self.globs.match(file) != self.inverted


def enabled(layers: Iterable[Layer], expand: Expand, off: frozenset[str] = frozenset()) -> frozenset[str]:
    """The codes that are on; without any `select` every rule is, save those that are `off` by themselves."""
    on = expand("ALL") - off
    for layer in layers:
        if layer.select is not None:
            on = frozenset()
        chosen = [(expand(name), True) for name in (*(layer.select or ()), *layer.extend_select)]
        dropped = [(expand(name), False) for name in layer.ignore]
        # A wide selector speaks first, so that a narrow one has the last word; at the same width the ignoring one has it.
        for codes, wanted in sorted([*chosen, *dropped], key=lambda pair: (-len(pair[0]), not pair[1])):
            on = on | codes if wanted else on - codes
    return on


def file_ignores(pairs: Iterable[tuple[str, Iterable[str]]], base: Path, expand: Expand) -> tuple[FileIgnores, ...]:
    return tuple(
        FileIgnores(
            Globs(base, (pattern.removeprefix("!"),)),
            pattern.startswith("!"),
            frozenset().union(*(expand(name) for name in names)),
        )
        for pattern, names in pairs
    )
