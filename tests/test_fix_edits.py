"""Text edits: line ends, insertions, overlaps, and where places go."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlint.fix.edits import Change, Patch, Text, joined, overlap
from hostlint.model import Edit, Span


def edit(line: int, column: int, end_line: int, end_column: int, text: str) -> Edit:
    return Edit(Span(line, column, end_line, end_column), text)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_new_lines_end_as_the_line_that_they_change(newline: str) -> None:
    text = Text(newline.join(["a = 1", "b = 2", ""]))
    patch, numbers = joined(text, [[edit(2, 1, 2, 1, "x = 0\n")], [edit(1, 5, 1, 6, "(\n1)")]])
    assert numbers == [0, 1]
    assert patch.after == newline.join(["a = (", "1)", "x = 0", "b = 2", ""])


def test_mixed_line_ends_stay_mixed() -> None:
    patch, _ = joined(Text("a\r\nb\nc\rd"), [[edit(1, 1, 1, 2, "A\nA")], [edit(2, 1, 2, 2, "B\nB")], [edit(3, 1, 3, 2, "C\nC")]])
    assert patch.after == "A\r\nA\r\nB\nB\nC\rC\rd"


@pytest.mark.parametrize(("before", "after"), [("a", "a\nb"), ("a\n", "a\nb\n"), ("", "b\n"), ("x\r\na", "x\r\na\r\nb")])
def test_a_line_after_the_last_one(before: str, after: str) -> None:
    last = before.count("\n") + 1 if before.endswith("\n") or not before else before.count("\n") + 2
    assert joined(Text(before), [[edit(last, 1, last, 1, "b\n")]])[0].after == after


def test_overlapping_groups_wait_as_a_whole() -> None:
    text = Text("f(g(h))\nk\n")
    outer, inner = [edit(1, 1, 1, 8, "F")], [edit(1, 3, 1, 7, "G"), edit(2, 1, 2, 2, "K")]
    assert joined(text, [outer, inner])[1] == [0]
    assert joined(text, [outer, inner])[0].after == "F\nk\n"
    assert joined(text, [inner, outer])[0].after == "f(G)\nK\n"


def test_the_same_insertion_goes_in_once_and_others_at_its_place_in_order() -> None:
    text = Text("x\ny\n")
    first = [edit(1, 1, 1, 1, "import b\n"), edit(1, 1, 1, 2, "X")]
    second = [edit(1, 1, 1, 1, "import b\n"), edit(1, 1, 1, 1, "import c\n"), edit(2, 1, 2, 2, "Y")]
    patch, numbers = joined(text, [first, second])
    assert numbers == [0, 1]
    assert patch.after == "import b\nimport c\nX\nY\n"


def test_groups_that_mean_different_things_by_a_new_name_do_not_go_together() -> None:
    text = Text("for t in ticks:\n    if t >= low and t <= high:\n        pass\n")

    def group(line: str, column: int) -> list[Edit]:
        return [Edit(Span(1, 1, 1, 1), f"inside = {line}\n"), Edit(Span(2, column, 2, column + 1), "inside")]

    low, high, low_again = group("ticks >= low", 8), group("ticks <= high", 21), group("ticks >= low", 21)
    assert joined(text, [low, high])[1] == [0]
    patch, numbers = joined(text, [low, low_again])
    assert numbers == [0, 1]
    assert patch.after.startswith("inside = ticks >= low\nfor t in ticks:\n    if inside >= low and inside <= high:")


def test_the_same_replacement_twice_is_a_clash() -> None:
    assert joined(Text("x\n"), [[edit(1, 1, 1, 2, "y")], [edit(1, 1, 1, 2, "y")]])[1] == [0]


def test_an_edit_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(ValueError, match="ends before it begins"):
        Text("abc\n").change(edit(1, 3, 1, 1, ""))


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        ((0, 3), (3, 5), False),
        ((0, 3), (2, 5), True),
        ((1, 1), (0, 3), True),
        ((0, 0), (0, 3), False),
        ((3, 3), (0, 3), False),
        ((2, 2), (2, 2), False),
    ],
)
def test_overlap(one: tuple[int, int], other: tuple[int, int], clash: bool) -> None:
    assert overlap(Change(*one, ""), Change(*other, "")) is clash
    assert overlap(Change(*other, ""), Change(*one, "")) is clash


# No line is empty, so that a `\r` and the `\n` after it never become one line end.
LINE = st.text(alphabet="ab\u00e9\U0001f600", min_size=1, max_size=5)


@given(st.lists(st.tuples(LINE, st.sampled_from(["\n", "\r\n", "\r"])), min_size=1, max_size=6), st.data())
def test_what_no_edit_touches_stays_and_is_found_again(lines: list[tuple[str, str]], data: st.DataObject) -> None:
    text = Text("".join(line + end for line, end in lines))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text.text)), max_size=6, unique=True)))
    pieces = [(start, end) for start, end in zip(cuts[::2], cuts[1::2], strict=False)]
    changes = tuple(Change(start, end, data.draw(st.text("xyz\n", max_size=4))) for start, end in pieces)
    patch = Patch(text, changes)
    assert len(patch.after) == len(text.text) + sum(len(new) - (end - start) for start, end, new in changes)
    kept = [offset for offset in range(len(text.text)) if not any(start <= offset < end for start, end in pieces)]
    assert "".join(patch.after[patch.moved(offset)] for offset in kept) == "".join(text.text[offset] for offset in kept)
    places = [patch.moved(offset) for offset in kept]
    assert places == sorted(places)


@given(st.lists(st.tuples(LINE, st.sampled_from(["\n", "\r\n", "\r"])), min_size=1, max_size=6))
def test_offsets_and_places_are_inverse(lines: list[tuple[str, str]]) -> None:
    text = Text("".join(line + end for line, end in lines))
    for number, (line, _) in enumerate(lines, 1):
        for column in range(1, len(line) + 2):
            offset = text.offset(number, column)
            if text.text[offset - 1 : offset + 1] != "\r\n":
                assert text.place(offset) == (number, column)
            assert text.text[offset : offset + len(line) - column + 1] == line[column - 1 :]
