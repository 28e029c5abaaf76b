"""Edits of a call's parts: an argument more, an argument less, another function's name, something after it."""
from __future__ import annotations

import ast
from itertools import pairwise
from typing import TYPE_CHECKING

from hostlint.model import Edit, Span

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.fix.place import Place


def given(call: cst.Call, *names: str) -> cst.Arg | None:
    """The argument that is given by one of these names."""
    return next((one for one in call.args if one.keyword is not None and one.keyword.value in names), None)


def is_plain(call: cst.Call, keywords: frozenset[str]) -> bool:
    """Whether a call has no starred argument and none by another name than these."""
    return not any(one.star or (one.keyword is not None and one.keyword.value not in keywords) for one in call.args)


def is_handled(place: Place) -> bool:
    """Whether an error that is raised here is caught in the function: then something may depend on a check."""
    return any(isinstance(outer, ast.Try) and outer.handlers and inner in outer.body for outer, inner in pairwise(place.path))


def follow(place: Place, node: cst.CSTNode, text: str) -> Edit:
    """Write something directly after a part of the fact's expression."""
    end = place.span(node)
    return Edit(Span(end.end_line, end.end_column, end.end_line, end.end_column), text)


def with_argument(place: Place, call: cst.Call, argument: str) -> Edit:
    """One more argument at the end of a call's; on a line of its own where each of them has one."""
    if not call.args:
        end = place.span(call)
        return Edit(Span(end.end_line, end.end_column - 1, end.end_line, end.end_column - 1), argument)
    last = call.args[-1]
    own = place.span(last)
    before = place.outline.lines[own.line - 1][: own.column - 1]
    alone = own.line != place.span(call).line and not before.strip()
    return follow(place, last, f",\n{before}{argument}" if alone else f", {argument}")


def without_argument(place: Place, call: cst.Call, argument: cst.Arg) -> Edit:
    """One argument of a call's less, with the comma that goes with it."""
    number = list(call.args).index(argument)
    own = place.span(argument)
    if number:
        before = place.span(call.args[number - 1])
        return Edit(Span(before.end_line, before.end_column, own.end_line, own.end_column), "")
    if len(call.args) > 1:
        after = place.span(call.args[1])
        return Edit(Span(own.line, own.column, after.line, after.column), "")
    return Edit(own, "")
