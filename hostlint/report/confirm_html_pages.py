"""The pages of the rules that a report speaks of, as HTML: titles, paragraphs, lists, code."""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from hostlint import registry
from hostlint.report.confirm_html_elements import Markup, join, tag

if TYPE_CHECKING:
    from hostlint.rule import Rule

_FENCE, _ITEM = "```", re.compile(r"[-*] ")


def rules_of(codes: Iterable[str]) -> list[Rule]:
    """Those that have a page here; a record can come from a project with rules of its own."""
    wanted = set(codes)
    return [rule for rule in registry.rules() if rule.code in wanted]


def page(rule: Rule) -> Markup:
    title = tag("summary", tag("b", f"{rule.code} {rule.name}"), " ", inline(rule.summary))
    return tag("details", title, *_blocks(rule.page), id=f"rule-{rule.code}")


def _blocks(text: str) -> Iterator[Markup]:
    for block in re.split(r"\n\s*\n", text.strip()):
        yield from _block(block.strip("\n"))


def _block(block: str) -> Iterator[Markup]:
    """One block of a page, which is written in a small part of Markdown."""
    first, _, rest = block.partition("\n")
    if first.startswith("#"):
        yield tag("h4", first.lstrip("# "))
        if rest.strip():
            yield from _block(rest)
    elif first.startswith(_FENCE):
        yield tag("pre", tag("code", rest.rpartition(_FENCE)[0].rstrip()))
    elif _ITEM.match(first):
        items = re.split(r"\n(?=[-*] )", block)
        yield tag("ul", *(tag("li", inline(_ITEM.sub("", item, count=1))) for item in items))
    else:
        yield tag("p", inline(block))


def inline(text: str) -> Markup:
    """A text in which backquotes stand around code."""
    pieces = re.split(r"`([^`]+)`", " ".join(text.split()))
    return join(tag("code", piece) if number % 2 else piece for number, piece in enumerate(pieces))
