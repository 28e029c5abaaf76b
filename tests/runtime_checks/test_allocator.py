"""`record_allocator` and `forbid_cache_flush`: flushes under every name, what they gave back, what the allocator counted."""
from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
import torch
from torch.cuda import empty_cache as bound_early

from hostlint.runtime_checks import allow, forbid_cache_flush, record_allocator
from hostlint.runtime_checks.flush_events import flushing

on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
off_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="describes a machine without CUDA")
MIB = 1 << 20


def here() -> int:
    return sys._getframe(1).f_lineno


OWNERS = {
    "torch.cuda.empty_cache": torch.cuda,
    "torch.xpu.empty_cache": torch.xpu,
    "torch.mps.empty_cache": torch.mps,
    "torch.accelerator.empty_cache": getattr(torch, "accelerator", None),
}


@off_cuda
@pytest.mark.parametrize("call", [call for call, owner in OWNERS.items() if hasattr(owner, "empty_cache")])
def test_every_spelling_is_seen_on_a_machine_without_the_device(call: str) -> None:
    flush_now = getattr(OWNERS[call], "empty_cache")  # noqa: B009  not every torch has an owner of it for each device
    with record_allocator() as record, suppress(RuntimeError):  # some say that there is no such device
        line = here() + 1
        flush_now()
    (flush,) = record.flushes
    assert (str(flush.kind), flush.call, flush.path, flush.line) == ("flush", call, __file__, line)
    assert flush.bytes is None
    assert record.bytes_given_back is None
    assert (record.counts.retries, record.counts.device_allocations) == (None, None)


@off_cuda
def test_place_of_a_name_that_was_bound_early() -> None:
    with record_allocator() as record:
        line = here() + 1
        bound_early()
    (flush,) = record.flushes
    assert (flush.path, flush.line, flush.blocked_s) == (__file__, line, None)
    assert flush.function.rpartition(".")[2] == "test_place_of_a_name_that_was_bound_early"


def test_asking_whether_a_device_is_in_use_is_no_flush() -> None:
    with record_allocator() as record:
        torch.cuda.memory_allocated()
        torch.cuda.memory_stats()
    assert record.flushes == []


class Device:
    """Two CUDA devices' worth of memory: what is cached, and what the driver was asked for."""

    def __init__(self) -> None:
        self.cached = [48 * MIB, 16 * MIB]
        self.allocations = [7, 2]
        self.flush_s = 0.0

    def empty(self) -> None:
        began = time.perf_counter()
        self.cached = [8 * MIB, 0]
        self.allocations[1] += 3
        self.flush_s = time.perf_counter() - began

    def stats(self, device: int) -> dict[str, int]:
        return {"num_alloc_retries": 0, "num_device_alloc": self.allocations[device], "segment.all.allocated": 5}


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    """Where there is no GPU, the functions below torch's Python answer for two."""
    device = Device()
    monkeypatch.setattr(torch._C, "_cuda_emptyCache", device.empty, raising=False)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda.memory, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda index: device.cached[index])
    monkeypatch.setattr(torch.cuda, "memory_stats", device.stats)
    return device


def test_bytes_are_what_all_devices_gave_back(device: Device) -> None:
    began = time.perf_counter()
    with record_allocator() as record:
        line = here() + 1
        bound_early()
        torch.cuda.empty_cache()
    took = time.perf_counter() - began
    assert [flush.bytes for flush in record.flushes] == [56 * MIB, 0]
    assert record.flushes[0].line == line
    assert record.bytes_given_back == 56 * MIB
    assert device.flush_s <= record.seconds < took


def test_counts_are_differences_over_all_devices(device: Device) -> None:
    with record_allocator() as record:
        torch.cuda.empty_cache()
        device.allocations[0] += 4
    counts = record.counts
    assert (counts.device_allocations, counts.retries, counts.segments) == (7, 0, 0)
    assert (counts.out_of_memory, counts.device_frees) == (None, None)  # which this device does not count


def test_counts_that_the_body_resets_are_of_what_came_after(device: Device) -> None:
    with record_allocator() as record:
        device.allocations = [1, 2]
    assert record.counts.device_allocations == 3


def test_counts_are_there_after_an_exception(device: Device) -> None:
    with pytest.raises(ZeroDivisionError), record_allocator() as record:
        device.allocations[0] += 1
        raise ZeroDivisionError
    assert record.counts.device_allocations == 1


@on_cuda
def test_a_real_flush_gives_its_segments_back() -> None:
    torch.cuda.empty_cache()
    with record_allocator() as record:
        block = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
        del block
        bound_early()
    (flush,) = record.flushes
    assert flush.bytes is not None
    assert flush.bytes >= 64 * MIB
    assert record.seconds > 0
    assert record.counts.device_allocations
    assert record.counts.device_frees


PLACES = [
    (torch._C, "_cuda_emptyCache"),
    (torch._C, "_accelerator_emptyCache"),
    (torch._C, "_accelerator_isAllocatorInitialized"),
    (torch._C, "_mps_emptyCache"),
    (torch.cuda.memory, "is_initialized"),
    (torch.xpu.memory, "is_initialized"),
]


def test_everything_is_put_back_also_after_an_exception() -> None:
    before = [getattr(owner, name, None) for owner, name in PLACES]
    with pytest.raises(ZeroDivisionError), flushing():
        with flushing():
            pass
        assert [getattr(owner, name, None) for owner, name in PLACES] != before
        raise ZeroDivisionError
    assert [getattr(owner, name, None) for owner, name in PLACES] == before


def run_in_thread(body: Callable[[], object]) -> None:
    thread = threading.Thread(target=body, name="worker")
    thread.start()
    thread.join()


def test_records_nest_and_follow_threads() -> None:
    with record_allocator() as outer:
        torch.cuda.empty_cache()
        with record_allocator() as inner:
            run_in_thread(torch.cuda.empty_cache)
        torch.cuda.empty_cache()
    assert [flush.thread for flush in inner.flushes] == ["worker"]
    assert [flush.thread for flush in outer.flushes] == ["MainThread", "worker", "MainThread"]


def test_threads_from_before_are_listed_only_on_demand() -> None:
    steps = [threading.Barrier(2) for _ in range(4)]

    def elsewhere() -> None:
        for start, end in (steps[:2], steps[2:]):
            start.wait()
            torch.cuda.empty_cache()
            end.wait()

    thread = threading.Thread(target=elsewhere)
    thread.start()
    with record_allocator() as own:
        steps[0].wait()
        steps[1].wait()
    with record_allocator(every_thread=True) as all_of_them:
        steps[2].wait()
        steps[3].wait()
    thread.join()
    assert (len(own.flushes), len(all_of_them.flushes)) == (0, 1)


def test_forbidden_flushes_are_all_named_after_the_body() -> None:
    ran = []
    with pytest.raises(AssertionError) as caught, forbid_cache_flush():
        line = here() + 1
        torch.cuda.empty_cache()
        with allow("the text encoder has left the device", rules=["HL4"]):
            torch.cuda.empty_cache()
        run_in_thread(bound_early)
        ran.append("to the end")
    head, first, second = str(caught.value).splitlines()
    assert ran == ["to the end"]
    assert head.startswith("2 flush")
    assert f"torch.cuda.empty_cache at {__file__}:{line} in " in first
    assert "threading.py" not in second


def test_forbid_cache_flush_is_silent_where_none_is_and_lets_exceptions_out() -> None:
    with forbid_cache_flush():
        torch.ones(3).sum()
    with pytest.raises(ZeroDivisionError), forbid_cache_flush():
        torch.cuda.empty_cache()
        raise ZeroDivisionError
