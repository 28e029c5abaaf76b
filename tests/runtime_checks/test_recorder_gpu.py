"""On a real GPU: the recorder reports an event exactly where the measured table says that a call blocks, and adds no wait of its own."""
from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

import hostlint.torch_ops
from hostlint.runtime_checks import allow, assert_no_cuda_sync, no_cuda_sync, record_host_events
from hostlint.runtime_checks.measure_waits.catalogue import Form, forms
from hostlint.runtime_checks.measure_waits.program import Program

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
MEASURED = json.loads((Path(hostlint.torch_ops.__file__).parent / "waits_h200.json").read_text(encoding="utf-8"))
ENTRIES = {entry["call"]: entry for entry in MEASURED["calls"]}
PAUSES = {"flush", "collect"}
# Calls on which the recorder and the table differ, each for a reason of its own.
UNSEEN = {
    "huge_alloc_free()": "the driver waits before it gives memory back, below everything that can be watched from Python",
    "256 MiB: torch.empty(...); empty_cache()": "reported as a flush",
    "2 MiB: torch.empty(...); empty_cache()": "reported as a flush",
    "ev.record(side); ev.synchronize()": "waits for another stream than the measured one",
    "side.synchronize()": "waits for another stream than the measured one",
    "with torch.cuda.stream(side): x.cpu()": "waits for another stream than the measured one",
    "sp.coalesce()": "it has been coalesced already, which is known only inside",
    "torch.sparse.sum(sp, 0)": "what it calls inside, on which the debug mode is silent, is torch's own and not in the table",
    "dist.all_reduce(x, group=gloo)": "the collective copies to the host by itself, and the debug mode is silent",
}


def waits(form: Form) -> int:
    """How many events a run of the form gives once it is warm."""
    program = Program(form, "cuda")
    for _ in range(2):
        program.run()
    torch.cuda.synchronize()
    with record_host_events("cuda") as events:
        program.run()
    torch.cuda.synchronize()
    return len([event for event in events if event.kind not in PAUSES])


def test_events_are_where_the_table_says_that_the_call_blocks() -> None:
    wrong: dict[str, str] = {}
    looked_at = 0
    for form in forms():
        entry = ENTRIES.get(form.call)
        if entry is None or entry["blocks"] is None:
            continue
        try:
            found = waits(form)
        except Exception as error:  # noqa: BLE001  a form that this torch or this GPU lacks is no verdict on the recorder
            print(f"not run: {form.call}: {type(error).__name__}: {error}")  # noqa: T201
            continue
        looked_at += 1
        if (found > 0) != entry["blocks"] and form.call not in UNSEEN:
            wrong[form.call] = f"blocks: {entry['blocks']}, debug mode warns: {entry['debug_mode_warns']}, events: {found}"
    text = "\n".join(f"{call}: {what}" for call, what in wrong.items())
    print(f"{looked_at} forms, {len(wrong)} differ\n{text}")  # noqa: T201
    assert looked_at >= 700
    assert len(wrong) <= looked_at // 100, text


def spin(milliseconds: float) -> None:
    torch.cuda._sleep(int(milliseconds * 1.5e6))  # type: ignore[no-untyped-call]


@pytest.fixture(autouse=True)
def _warm() -> Iterator[None]:
    torch.ones(4, device="cuda").sum().item()
    yield
    torch.cuda.synchronize()


def test_a_read_tells_its_place_its_call_and_how_long_the_host_stood() -> None:
    x = torch.ones(1024, device="cuda")
    spin(20)
    with record_host_events("cuda") as events:
        x.sum().item()
    (event,) = [event for event in events if event.kind not in PAUSES]
    assert (event.kind, event.call, event.path, event.bytes) == ("read", "Tensor.item", __file__, 4)
    assert event.function.endswith("test_a_read_tells_its_place_its_call_and_how_long_the_host_stood")
    assert event.blocked_s is not None
    assert event.blocked_s > 0.004


def test_work_that_does_not_wait_gives_no_event_and_the_host_runs_ahead() -> None:
    x = torch.ones(1024, device="cuda")
    spin(50)
    done = torch.cuda.Event()  # type: ignore[no-untyped-call]
    done.record()
    with record_host_events("cuda") as events:
        for _ in range(50):
            x = x * 1.0 + 0.0
    assert not done.query(), "the recorder waited for the device"  # type: ignore[no-untyped-call]
    assert [event for event in events if event.kind not in PAUSES] == []


@pytest.mark.parametrize(
    ("kind", "act"),
    [
        ("read", lambda x: bool(x.sum() > 0)),
        ("read", lambda x: x.tolist()),
        ("read", lambda x: x.cpu()),
        ("upload", lambda x: torch.tensor([1.0, 2.0], device="cuda")),
        ("upload", lambda x: torch.ones(3 << 20).to("cuda", non_blocking=True)),
        ("data-dependent-size", lambda x: x.nonzero()),
        ("data-dependent-size", lambda x: x[x > 0]),
        ("hidden-wait", lambda x: torch.linalg.inv(torch.eye(3, device="cuda"))),
        ("hidden-wait", lambda x: torch.distributions.Normal(x, x)),
        ("explicit-sync", lambda x: torch.cuda.synchronize()),
        ("explicit-sync", lambda x: torch.cuda.current_stream().synchronize()),
        ("explicit-sync", lambda x: torch.cuda.current_stream().record_event().synchronize()),
    ],
)
def test_kinds(kind: str, act: Callable[[torch.Tensor], object]) -> None:
    x = torch.ones(16, device="cuda")
    act(x)
    torch.cuda.synchronize()
    with record_host_events("cuda") as events:
        act(x)
    assert {str(event.kind) for event in events if event.kind not in PAUSES} == {kind}


def test_a_silent_copy_is_caught_by_the_guard() -> None:
    host = torch.empty(1 << 20)
    x = torch.ones(1 << 20, device="cuda")
    with pytest.raises(AssertionError, match="1 host-device sync"), no_cuda_sync():
        host.copy_(x, non_blocking=True)
    pinned = torch.empty(1 << 20, pin_memory=True)
    with no_cuda_sync():
        pinned.copy_(x, non_blocking=True)
        x.copy_(pinned, non_blocking=True)


def test_the_mode_is_put_back_and_the_guard_counts_every_read() -> None:
    torch.cuda.set_sync_debug_mode("error")
    try:
        with pytest.raises(AssertionError, match="3 host-device sync"), no_cuda_sync():
            for value in torch.ones(3, device="cuda"):
                value.item()
        assert torch.cuda.get_sync_debug_mode() == 2
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_allowed_reads_pass_and_the_rest_of_a_function_does_not() -> None:
    x = torch.ones(3, device="cuda")

    def step() -> float:
        with allow("the product is this number"):
            return float(x.sum())

    assert assert_no_cuda_sync(step) == 3.0
    assert_no_cuda_sync(lambda: x * 2 + 1)


def test_reads_of_other_threads_are_not_counted_and_those_of_threads_started_inside_are() -> None:
    x = torch.ones(3, device="cuda")
    go, done = threading.Event(), threading.Event()

    def read() -> None:
        go.wait()
        x.sum().item()
        done.set()

    before = threading.Thread(target=read)
    before.start()
    with no_cuda_sync():
        go.set()
        done.wait()
    before.join()
    inside = threading.Thread(target=read)
    with pytest.raises(AssertionError, match="1 host-device sync"), no_cuda_sync():
        inside.start()
        inside.join()


def test_hooks_on_autograds_own_thread_count() -> None:
    x = torch.ones(3, device="cuda", requires_grad=True)
    y = (x * 2).sum()

    def hook(grad: torch.Tensor) -> None:
        grad.sum().item()

    x.register_hook(hook)  # type: ignore[no-untyped-call]
    with pytest.raises(AssertionError, match="1 host-device sync"), no_cuda_sync():
        y.backward()  # type: ignore[no-untyped-call]


def test_a_captured_graph_is_replayed_under_the_guard() -> None:
    x = torch.ones(16, device="cuda")
    with record_host_events("cuda") as events:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x * 2 + 1
    assert "explicit-sync" in {str(event.kind) for event in events}
    with no_cuda_sync():
        graph.replay()
    assert y.tolist() == [3.0] * 16


def test_a_guard_that_is_entered_inside_a_capture_lets_the_capture_live() -> None:
    x = torch.ones(16, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), no_cuda_sync():
        y = x * 2 + 1
    x.fill_(2.0)
    graph.replay()
    assert y.tolist() == [5.0] * 16


def test_a_compiled_layer_runs_under_the_guard_and_its_read_is_seen() -> None:
    layer = torch.compile(torch.nn.Linear(8, 8).cuda())
    x = torch.ones(4, 8, device="cuda")
    expected = layer(x)
    with no_cuda_sync():
        got = layer(x)
    assert torch.equal(got, expected)
    with pytest.raises(AssertionError, match="1 host-device sync"), no_cuda_sync():
        layer(x).sum().item()


def test_the_cost_of_recording_is_printed() -> None:
    x = torch.ones(16, device="cuda")

    def loop() -> float:
        began = time.perf_counter()
        for _ in range(10_000):
            x.add_(1.0)
        spent = time.perf_counter() - began
        torch.cuda.synchronize()
        return spent

    plain = statistics.median(loop() for _ in range(5))
    with record_host_events("cuda"):
        watched = statistics.median(loop() for _ in range(5))
    print(f"10,000 small calls: {plain * 1e3:.1f} ms, recorded {watched * 1e3:.1f} ms, {watched / plain:.2f} times")  # noqa: T201
    assert watched > 0
