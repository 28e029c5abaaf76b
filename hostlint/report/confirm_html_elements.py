"""HTML that cannot be broken by a text: elements are functions, and every text that is not markup already is escaped."""
from __future__ import annotations

from collections.abc import Iterable
from html import escape

from hostlint.report.style import visible

VOID = frozenset({"meta", "br", "col"})
Value = str | int | float | bool | None


class Markup(str):
    """Text that is HTML already. Only this module makes it; what is put together from it in other ways is plain text again."""

    __slots__ = ()


def text(content: str) -> Markup:
    """Without anything that could move the cursor, hide, or turn the direction of what follows."""
    return Markup(escape(visible(content)))


def join(parts: Iterable[str], between: str = "") -> Markup:
    """`between` is text."""
    return Markup(str(text(between)).join(map(_marked, parts)))


def tag(name: str, /, *children: str, **attributes: Value) -> Markup:
    """An element. `class_` is `class`, `data_key` is `data-key`; True is an attribute without a value, None and False are none."""
    opened = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Markup(opened) if name in VOID else Markup(f"{opened}{join(children)}</{name}>")


def raw(name: str, content: str, /, **attributes: Value) -> Markup:
    """A `style` or `script` element with hostlint's own content."""
    opened = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Markup(f"{opened}{content}</{name}>")


def document(*children: str) -> str:
    return f"<!DOCTYPE html>\n{join(children)}\n"


def _marked(part: str) -> str:
    return part if isinstance(part, Markup) else text(part)


def _attribute(key: str, value: Value) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{text(str(value))}"'
