"""Lines made of styled pieces, as plain text or in a terminal's colours."""
from __future__ import annotations

import io
from collections.abc import Iterable

Piece = tuple[str, str]  # text, style as rich names it
Line = list[Piece]

SEVERITY_STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
GUTTER = "blue"


def write(lines: Iterable[Line], coloured: bool) -> str:
    safe = ([("\n".join(map(visible, text.split("\n"))), style) for text, style in line] for line in lines)
    return _coloured(safe) if coloured else "".join("".join(text for text, _ in line) + "\n" for line in safe)


def _coloured(lines: Iterable[Line]) -> str:
    from rich.console import Console  # 35 ms that only a terminal is worth
    from rich.text import Text

    target = io.StringIO()
    # Width and wrapping are the terminal's business; a report's bytes must not depend on its size.
    console = Console(file=target, force_terminal=True, color_system="standard", highlight=False, width=10_000, legacy_windows=False)
    for line in lines:
        console.print(Text.assemble(*line), soft_wrap=True)
    return target.getvalue()


def visible(text: str) -> str:
    """Text that cannot move the cursor: tabs as four blanks, what has no shape as a mark."""
    text = text.replace("\t", "    ")
    return text if text.isprintable() else "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def cells(text: str) -> int:
    """How many columns a terminal gives to it."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)
