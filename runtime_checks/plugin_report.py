"""What the plugin says at the end of a run: a section of the terminal's summary, and a file."""
from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hostlint.cli import output
from hostlint.errors import OutputError

PLACES = 10  # shown of each test


class SyncReport:
    """Collects what each test's report carries, in the one process that writes."""

    def __init__(self, file: Path | None) -> None:
        with _usage_errors():
            output.check(file)
        self.file = file
        self.tests: dict[str, list[dict[str, Any]]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        events = getattr(report, "host_events", None)
        if events:
            self.tests.setdefault(report.nodeid, []).extend(events)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.file is not None:
            text = json.dumps({"version": 1, "tests": dict(sorted(self.tests.items()))}, indent=1)
            with _usage_errors():
                output.write(f"{text}\n", self.file)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.tests:
            return
        terminalreporter.section("host waits (hostlint)")
        for test, events in sorted(self.tests.items()):
            terminalreporter.write_line(f"{test}: {sum(event['waits'] for event in events)}")
            for line in _places(events):
                terminalreporter.write_line(f"  {line}")


def _places(events: list[dict[str, Any]]) -> list[str]:
    """One line a place, most frequent first."""
    counts: dict[tuple[str, str, str], int] = {}
    for event in events:
        key = (event["kind"], event["call"], f"{_relative(event['path'])}:{event['line']} in {event['function']}")
        counts[key] = counts.get(key, 0) + event["waits"]
    ranked = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    lines = [f"{count} x {kind} {call} at {place}" for (kind, call, place), count in ranked[:PLACES]]
    return [*lines, f"and {len(ranked) - PLACES} more places"] if len(ranked) > PLACES else lines


def _relative(path: str) -> str:
    relative = os.path.relpath(path) if Path(path).is_absolute() else path
    return path if relative.startswith("..") else relative



@contextmanager
def _usage_errors() -> Iterator[None]:
    try:
        yield
    except OutputError as error:
        raise pytest.UsageError(f"--host-sync-report: {error}") from error
