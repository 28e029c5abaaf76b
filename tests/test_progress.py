"""Progress shows after a second, and never before."""
from __future__ import annotations

import io
from typing import TYPE_CHECKING

from hostlint.cli import progress

if TYPE_CHECKING:
    import pytest


def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Standard error as a terminal; not a fixture, for pytest puts its own stream there when the test begins."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    return stream


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = terminal(monkeypatch)
    shown = progress.for_terminal()
    assert shown is not None
    for done in range(10):
        shown("reading", done, 10)
    shown.close()
    assert stream.getvalue() == ""


def test_long_work_shows_its_phase_and_cleans_up(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = terminal(monkeypatch)
    shown = progress.for_terminal()
    assert shown is not None
    shown.started -= 1.0  # as if begun a second earlier
    shown("reading", 3, 10)
    shown("reading", 7, 10)
    shown("judging", 1, 2)
    shown.close()
    text = stream.getvalue()
    assert "reading" in text
    assert "7/10" in text
    assert "judging" in text
    assert text.endswith("\x1b[2K")  # the line is erased: the report starts on a clean one


def test_nothing_to_show_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert progress.for_terminal() is None
    monkeypatch.setattr("sys.stderr", None)
    assert progress.for_terminal() is None
