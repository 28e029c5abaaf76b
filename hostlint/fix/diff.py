"""A unified diff of what `fix` would do, as `git apply` and `patch -p1` read it."""
from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_QUOTED = re.compile(r'[\\"\x00-\x1f\x7f]')


def unified(path: str, before: str, after: str) -> str:
    """The hunks that turn `before` into `after`, with `a/` and `b/` paths; "" where they are the same."""
    return "".join(_lines(path, before, after))


def _lines(path: str, before: str, after: str) -> Iterator[str]:
    names = (_quoted(f"a/{path}"), _quoted(f"b/{path}"))
    for line in difflib.unified_diff(_LINES.findall(before), _LINES.findall(after), *names):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _quoted(name: str) -> str:
    """A file name as git writes it: in quotes where it holds quotes, backslashes or control characters."""
    if not _QUOTED.search(name):
        return f"{name}\t" if " " in name else name  # the tab ends a name that holds spaces
    return '"' + _QUOTED.sub(lambda found: f"\\{ord(found[0]):03o}" if found[0] not in '\\"' else f"\\{found[0]}", name) + '"'
