"""The pytest plugin: tests in which the host may not wait for the GPU, fixtures that record, and a report of what waited.

It is loaded in every run of pytest, so it imports torch only when a test asks for it.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hostlint.runtime_checks.plugin_report import SyncReport

if TYPE_CHECKING:
    from hostlint.runtime_checks.events import HostEvent
    from hostlint.runtime_checks.gc_events import Collection
    from hostlint.runtime_checks.host_sync_limit import HostSyncLimit

MARKER = (
    'no_host_sync(allow=(), device="auto", warmup=0, max_syncs=0): the test fails if the host waits for the GPU more than max_syncs times; '
    'allow: entries "end of path:function"; device: auto, cuda or simulated; warmup: runs of the test before the one that counts'
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hostlint", "host waits (hostlint)")
    group.addoption("--host-sync-report", metavar="FILE", type=Path, help="write what made the host wait in each watched test, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    if not hasattr(config, "workerinput"):  # a worker of pytest-xdist sends its reports to the one process that writes
        config.pluginmanager.register(SyncReport(config.getoption("--host-sync-report")), "hostlint-report")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    marker = item.get_closest_marker("no_host_sync")
    if marker is None:
        yield
        return
    limit, warmup = _limit(marker)
    with limit.watching() as events:
        for _ in range(warmup):
            item.runtest()
        events.clear()
        outcome: Any = yield
    _note(item, events)
    if outcome.excinfo is None and (complaint := limit.complaint(events)):
        outcome.force_exception(pytest.fail.Exception(complaint, pytrace=False))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome: Any = yield
    events = item.stash.get(_EVENTS, None)
    if events and call.when == "call":
        outcome.get_result().host_events = [_plain(event) for event in events]


@pytest.fixture
def no_host_sync(request: pytest.FixtureRequest) -> Callable[..., AbstractContextManager[list[HostEvent]]]:
    """`with no_host_sync(allow=(), device="auto", max_syncs=0): ...` inside a test; fails it after the body, as the marker does."""

    def guard(**options: Any) -> AbstractContextManager[list[HostEvent]]:
        return _new_limit(**options).enforced(lambda events: _note(request.node, events))

    return guard


@pytest.fixture
def host_events(request: pytest.FixtureRequest) -> Iterator[list[HostEvent]]:
    """The events of the test so far: waits, uploads, flushes, collections."""
    from hostlint.runtime_checks.recorder import record_host_events

    with record_host_events() as events:
        yield events
    _note(request.node, events)


@pytest.fixture
def simulated_cuda() -> Iterator[None]:
    """The test runs on the stand-in CUDA device."""
    from hostlint.runtime_checks.simulated import simulate_cuda

    with simulate_cuda():
        yield


@pytest.fixture
def gc_events() -> Iterator[list[Collection]]:
    """The collections of the cyclic garbage collector in the test so far."""
    from hostlint.runtime_checks.gc_records import record_gc

    with record_gc() as collections:
        yield collections


_EVENTS = pytest.StashKey["list[HostEvent]"]()


def _limit(marker: pytest.Mark) -> tuple[HostSyncLimit, int]:
    options = dict(marker.kwargs)
    warmup = options.pop("warmup", 0)
    if marker.args or not isinstance(warmup, int) or warmup < 0:
        raise pytest.UsageError(f"no_host_sync takes only keywords, and warmup is a number from 0 on: {marker}")
    return _new_limit(**options), warmup


def _new_limit(**options: Any) -> HostSyncLimit:
    from hostlint.runtime_checks.host_sync_limit import HostSyncLimit, NoDeviceError

    try:
        return HostSyncLimit.of(**options)
    except NoDeviceError as error:
        pytest.skip(str(error))
    except (TypeError, ValueError) as error:
        raise pytest.UsageError(f"no_host_sync: {error}") from error


def _note(item: pytest.Item, events: list[HostEvent]) -> None:
    item.stash.setdefault(_EVENTS, []).extend(event for event in events if event.kind not in ("flush", "collect"))


def _plain(event: HostEvent) -> dict[str, Any]:
    return {
        "kind": str(event.kind), "call": event.call, "path": event.path, "line": event.line, "function": event.function,
        "thread": event.thread, "waits": event.waits, "blocked_s": event.blocked_s, "bytes": event.bytes, "allowed": event.allowed,
    }
