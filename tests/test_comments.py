"""What a `# hostlint:` comment is taken to say."""
from __future__ import annotations

from datetime import date
from textwrap import dedent

import pytest

from hostlint.comments import EMPTY, Comments, HeatHint, Scope, parse
from hostlint.model import Span


def read(text: str) -> Comments:
    return parse(dedent(text).lstrip("\n"))


def test_a_suppression_at_the_end_of_a_line() -> None:
    (found,) = read("x = loss.item()  # hostlint: ignore[device-item, HL2] read once per epoch\n").suppressions
    assert found.selectors == ("device-item", "HL2")
    assert found.reason == "read once per epoch"
    assert found.until is None
    assert found.scope is Scope.STATEMENT
    assert found.lines == (1, 1)
    assert found.span == Span(1, 18, 1, 74)


@pytest.mark.parametrize(
    ("text", "reason", "until"),
    [
        ("ignore[HL101]", "", None),
        ("ignore[HL101]: for the log", "for the log", None),
        ("ignore[HL101] -- see issue #12, later", "see issue #12, later", None),
        ("ignore[HL101] until=2027-03-01", "", date(2027, 3, 1)),
        ("ignore[HL101] vendor driver until=2027-03-01", "vendor driver", date(2027, 3, 1)),
        ("ignore[HL101]  # noqa: E501", "", None),
        ("ignore[HL101] why  # type: ignore[misc]", "why", None),
    ],
)
def test_reason_and_expiry(text: str, reason: str, until: date | None) -> None:
    (found,) = read(f"x.item()  # hostlint: {text}\n").suppressions
    assert (found.reason, found.until) == (reason, until)


def test_alone_on_its_line_it_is_about_the_code_below() -> None:
    comments = read(
        """
        def f(x):
            # hostlint: ignore[HL101] first
            # more words
            # hostlint: ignore[HL102] second
            y = (
                x.item()
            )
            # hostlint: ignore[HL103] too far away

            return y
        """
    )
    assert [found.lines for found in comments.suppressions] == [(2, 5), (4, 5), (8, 8)]


def test_other_tools_comments_may_stand_before() -> None:
    (found,) = read("x.item()  # type: ignore  # hostlint: ignore[HL101] why\n").suppressions
    assert found.selectors == ("HL101",)
    assert found.span.column == 27


def test_several_directives_end_where_the_next_comment_begins() -> None:
    comments = read("x.item()  # hostlint: ignore[HL101] one  # hostlint: ignore[HL102] two  # noqa: E1\n")
    assert [(found.selectors, found.reason) for found in comments.suppressions] == [(("HL101",), "one"), (("HL102",), "two")]
    assert [(found.span.column, found.span.end_column) for found in comments.suppressions] == [(11, 40), (42, 71)]


def test_two_in_one_line() -> None:
    comments = read("def f(x):  # hostlint: hot  # hostlint: device(x)\n    pass\n")
    hint = comments.hints[1]
    assert hint.heat is HeatHint.HOT
    assert hint.device == ("x",)


def test_ignore_file_at_the_top_only() -> None:
    comments = read(
        '''
        #!/usr/bin/env python
        """What this is."""
        # hostlint: ignore-file[HL2] a converter, never hot
        import torch
        # hostlint: ignore-file[HL1] too late
        '''
    )
    (found,) = comments.suppressions
    assert (found.scope, found.selectors, found.reason) == (Scope.FILE, ("HL2",), "a converter, never hot")
    (late,) = comments.malformed
    assert late.span.line == 5
    assert "top of the file" in late.message


def test_header_hints() -> None:
    comments = read(
        """
        def f(  # hostlint: cold only while loading
            x,  # hostlint: device(x, self.y) host(n)
        ):
            scale = g()  # hostlint: constant(scale)
        """
    )
    header = comments.hint(1, 3)
    assert header is not None
    assert (header.heat, header.reason) == (HeatHint.COLD, "only while loading")
    assert (header.device, header.host) == (("x", "self.y"), ("n",))
    inner = comments.hint(4, 4)
    assert inner is not None
    assert inner.constant == ("scale",)
    assert comments.hint(5, 9) is None
    assert comments.hint(3, 3) is None


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("ignore", "brackets"),
        ("ignore all of it", "brackets"),
        ("ignore-file", "brackets"),
        ("ignore[]", "missing"),
        ("ignore[HL101,]", "missing"),
        ("ignore[HL 101]", "HL 101"),
        ("ignore[HL101] until=soon", "soon"),
        ("ignore[HL101] until=2027-02-30", "until="),
        ("ignore[HL101] until=20270301", "20270301"),
        ("device()", "missing"),
        ("device(x, 3)", "`3`"),
        ("device(x) elsewhere", "elsewhere"),
        ("hotter", "`hotter`"),
        ("", "nothing follows"),
    ],
)
def test_malformed(text: str, word: str) -> None:
    comments = read(f"x.item()  # hostlint: {text}\n")
    assert not comments.suppressions
    assert not comments.hints
    (found,) = comments.malformed
    assert word in found.message
    assert found.span.line == 1
    assert found.span.column == 11


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n",
        'x = "# hostlint: ignore[HL101] a string"\n',
        '"""\n# hostlint: ignore[HL101] a docstring\n"""\n',
        "x = 1  # as in `# hostlint: hot`\n",
        "x = 1  # see hostlint: the manual\n",
    ],
)
def test_nothing_is_said(text: str) -> None:
    assert parse(text) == EMPTY


def test_broken_source_yields_what_came_before() -> None:
    comments = parse("x.item()  # hostlint: ignore[HL101] why\ny = (\n")
    assert [found.selectors for found in comments.suppressions] == [("HL101",)]


def test_line_ends_of_every_kind_keep_their_numbers() -> None:
    comments = parse("a = 1\r\nb.item()  # hostlint: ignore[HL101] why\r\nc = 1\n")
    assert [found.lines for found in comments.suppressions] == [(2, 2)]
    assert comments.suppressions[0].reason == "why"


def test_columns_count_characters() -> None:
    (found,) = parse('é = "ü"  # hostlint: ignore[HL101] why\n').suppressions
    assert found.span == Span(1, 10, 1, 39)
