"""What would have made the host wait becomes an event: one for each call, at the place in the user's code that made it."""
from __future__ import annotations

import asyncio
import heapq
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the name that everybody gives it
from torch import nn

from hostlint.facts.kinds import FactKind
from hostlint.runtime_checks import HostEvent, allow, record_host_events, simulate_cuda
from hostlint.runtime_checks.sinks import listening


class Events(list[HostEvent]):
    def add(self, event: HostEvent) -> None:
        self.append(event)

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(str(event.kind), event.call) for event in self]


def events_of(body: Callable[[], object]) -> Events:
    events = Events()
    with simulate_cuda(), listening(events):
        body()
    return events


def on_device(*size: int) -> torch.Tensor:
    """Made without an event."""
    return torch.arange(float(torch.Size(size).numel()), device="cuda").reshape(size)


def normal(validate_args: bool) -> object:
    return torch.distributions.Normal(on_device(3), on_device(3) + 1, validate_args=validate_args)


def here() -> int:
    return sys._getframe(1).f_lineno


class TestPlaces:
    def test_an_event_names_the_line_the_function_and_the_bytes(self) -> None:
        lines: list[int] = []

        def reads_a_sum() -> float:
            lines.append(here() + 1)
            return float(on_device(4).sum())

        (event,) = events_of(reads_a_sum)
        assert (str(event.kind), event.call, event.fact) == ("read", "Tensor.__float__", FactKind.SCALAR_CAST)
        assert (event.path, event.line, event.bytes, event.blocked_s) == (__file__, lines[0], 4, None)
        assert event.function.endswith("reads_a_sum")
        assert event.thread == threading.current_thread().name
        assert "hostlint" not in "".join(frame.path for frame in event.stack[:3] if "runtime_checks/simulated" in frame.path)

    def test_the_innermost_function_of_the_user_is_named(self) -> None:
        class Reads(nn.Module):
            def forward(self, x: torch.Tensor) -> float:
                return x.max().item()

        (event,) = events_of(lambda: nn.Sequential(Reads())(on_device(3)))
        assert event.function.endswith("forward")
        assert [frame.function for frame in event.stack if frame.path == __file__][1].endswith("<lambda>")


class TestOneForEachCall:
    @pytest.mark.parametrize(
        ("call", "told"),
        [
            (lambda: F.one_hot(torch.arange(3, device="cuda")), [("data-dependent-size", "torch.nn.functional.one_hot")]),
            (lambda: F.one_hot(torch.arange(3, device="cuda"), 3), []),
            (lambda: str(on_device(3)), [("read", "Tensor.__repr__")]),
            (lambda: f"{on_device(1).sum()}", [("read", "Tensor.__format__")]),
            (lambda: normal(validate_args=True), [("hidden-wait", "torch.distributions.Normal")]),
            (lambda: normal(validate_args=False), []),
            (lambda: F.batch_norm(on_device(4, 2), on_device(2), on_device(2), training=True), []),
            (lambda: F.cross_entropy(on_device(2, 3), torch.zeros(2, dtype=torch.long, device="cuda")), []),
            (torch.cuda.synchronize, [("explicit-sync", "torch.cuda.synchronize")]),
            (lambda: torch.cuda.current_stream().synchronize(), [("explicit-sync", "torch.cuda.Stream.synchronize")]),
            (torch.cuda.empty_cache, [("flush", "torch.cuda.empty_cache")]),
            (lambda: torch.zeros(3).cuda(non_blocking=True), []),
            (lambda: torch.tensor([1.0, 2.0], device="cuda"), [("upload", "torch.tensor")]),
            (lambda: torch.tensor([], device="cuda"), []),
            (lambda: torch.tensor([]).to("cuda"), []),
            (lambda: torch.full((2,), 1.0, device="cuda"), []),
            (lambda: torch.cat([on_device(2), torch.ones(1, device="cuda")]), []),
        ],
    )  # fmt: skip
    def test_calls(self, call: Callable[[], object], told: list[tuple[str, str]]) -> None:
        assert events_of(call).told == told

    def test_the_same_line_in_a_loop_is_told_each_time(self) -> None:
        def loop() -> None:
            for _ in range(3):
                normal(validate_args=True)

        assert events_of(loop).told == [("hidden-wait", "torch.distributions.Normal")] * 3

    def test_each_round_of_a_generator_is_told(self) -> None:
        comparisons: list[float] = []

        class Counting(float):
            def __lt__(self, other: float) -> bool:
                comparisons.append(other)
                return float(self) < float(other)

            def __eq__(self, other: object) -> bool:
                comparisons.append(0.0)
                return float.__eq__(self, other)

            __hash__ = float.__hash__

        rows = [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]
        assert [float(one) for one in heapq.merge(*(map(Counting, row) for row in rows))] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        events = events_of(lambda: list(heapq.merge(*([torch.full((), one, device="cuda") for one in row] for row in rows))))
        assert len(comparisons) > 2
        assert events.told == [("read", "Tensor.__bool__")] * len(comparisons)

    def test_a_model_is_moved_in_one_call(self) -> None:
        def move() -> None:
            nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).to("cuda")

        assert events_of(move).told == [("upload", "Module.to")]

    def test_clipping_waits_only_when_it_is_strict(self) -> None:
        def clip(**options: Any) -> Callable[[], object]:
            weight = nn.Parameter(torch.ones(3))

            def body() -> None:
                with torch.device("cuda"):
                    weight.data = torch.ones(3)
                weight.grad = torch.ones(3, device="cuda")
                torch.nn.utils.clip_grad_norm_([weight], 1.0, **options)

            return body

        assert events_of(clip()).told == []
        assert events_of(clip(error_if_nonfinite=True)).told == [("hidden-wait", "torch.nn.utils.clip_grad_norm_")]

    def test_a_read_inside_torch_goes_by_the_name_of_the_function(self) -> None:
        def body() -> None:
            torch.nn.utils.parameters_to_vector([on_device(2)])
            nn.utils.rnn.pad_sequence([on_device(2), on_device(3)])
            torch.testing.assert_close(on_device(2), on_device(2))
            torch.optim.lr_scheduler.ReduceLROnPlateau(torch.optim.SGD([on_device(2)], 0.1)).step(on_device(1).sum())

        assert [(str(event.kind), event.call.rpartition(".")[2]) for event in events_of(body)] == [
            ("read", "assert_close"),
            ("hidden-wait", "step"),
        ]

    def test_a_module_of_torch_is_named(self) -> None:
        norm = nn.BatchNorm1d(2, momentum=None)
        told = events_of(lambda: norm.to("cuda")(on_device(4, 2))).told
        assert told == [("upload", "Module.to"), ("hidden-wait", "torch.nn.BatchNorm.forward")]

    def test_a_module_that_waits_below_python_is_judged_whole(self) -> None:
        layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=8, batch_first=True)
        encoder = nn.TransformerEncoder(layer, 2).eval()

        def encode() -> None:
            hidden = torch.zeros(2, 4, dtype=torch.bool, device="cuda")
            encoder.to("cuda")(on_device(2, 4, 8), src_key_padding_mask=hidden)
            encoder(on_device(2, 4, 8))

        with torch.no_grad():
            assert events_of(encode).told == [("upload", "Module.to"), ("hidden-wait", "torch.nn.TransformerEncoder.forward")]

    def test_a_tracer_changes_nothing(self) -> None:
        def trace(frame: FrameType, event: str, argument: object) -> Any:
            return trace

        def body() -> None:
            sys.settrace(trace)
            try:
                normal(validate_args=True)
                str(on_device(3))
            finally:
                sys.settrace(before)

        before = sys.gettrace()
        assert events_of(body).told == [("hidden-wait", "torch.distributions.Normal"), ("read", "Tensor.__repr__")]

    def test_an_indexed_update_is_a_read_and_a_write(self) -> None:
        def update() -> None:
            x = on_device(4)
            x[x > 1] *= 0.0

        assert events_of(update).told == [("data-dependent-size", "Tensor.__getitem__"), ("data-dependent-size", "Tensor.__setitem__")]

    def test_amp_reads_once_a_step(self) -> None:
        layer = nn.Linear(2, 2)
        scaler = torch.amp.GradScaler("cpu")

        def step() -> None:
            moved = layer.to("cuda")
            scaler = torch.amp.GradScaler("cuda")
            optimizer = torch.optim.SGD(moved.parameters(), 0.1)
            for _ in range(2):
                scaler.scale(moved(on_device(1, 2)).sum()).backward()
                scaler.step(optimizer)
                scaler.update()

        assert scaler.is_enabled()
        assert events_of(step).told == [("upload", "Module.to"), *[("hidden-wait", "torch.amp.GradScaler.step")] * 2]


class TestFunctionsOfTorchInPython:
    def test_what_a_program_puts_in_torchs_place_is_called(self, monkeypatch: pytest.MonkeyPatch) -> None:
        called: list[str] = []

        def reading(x: torch.Tensor, weight: torch.Tensor, bias: object = None) -> torch.Tensor:
            called.append(place := x.device.type)
            assert place == "cuda"
            return x @ weight.T * x.sum().item()

        def body() -> None:
            x, weight = on_device(2, 4), on_device(12, 4)
            F.multi_head_attention_forward(
                x, x, x, 4, 1, weight, None, None, None, False, 0.0, on_device(4, 4), None, need_weights=False
            )  # fmt: skip

        assert events_of(body).told == []
        monkeypatch.setattr(F, "linear", reading)
        assert {call for _, call in events_of(body).told} == {"Tensor.item"}
        assert called


class TestBackward:
    def test_hooks_and_custom_functions_are_seen(self) -> None:
        class Reading(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                return x * 2

            @staticmethod
            def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
                return grads[0] * grads[0].sum().item()

        def body() -> None:
            x = on_device(3).requires_grad_()
            y: torch.Tensor = Reading.apply(x)  # type: ignore[no-untyped-call]
            y.register_hook(lambda grad: grad * bool(grad.sum() > 0))  # type: ignore[no-untyped-call]
            torch.autograd.backward(y.sum())

        assert [(event.call, event.function.rpartition(".")[2]) for event in events_of(body)] == [
            ("Tensor.__bool__", "<lambda>"),
            ("Tensor.item", "backward"),
        ]

    def test_what_the_engine_does_is_judged(self) -> None:
        def body() -> None:
            x = on_device(4).requires_grad_()
            mask = torch.arange(4, device="cuda") > 1
            torch.autograd.backward(x[mask].sum())

        (forward, backward) = events_of(body)
        assert (forward.call, str(backward.kind), backward.line) == ("Tensor.__getitem__", "data-dependent-size", forward.line + 0)

    def test_a_plain_backward_is_silent(self) -> None:
        def body() -> None:
            layer = nn.Linear(3, 3, device="cuda")
            torch.autograd.backward(F.gelu(layer(on_device(2, 3))).pow(2).mean())

        assert events_of(body).told == []


class TestWhoListens:
    def test_allow_gives_a_reason(self) -> None:
        def body() -> None:
            with allow("the loop must end", rules=["device-item"]):
                on_device(2).sum().item()
                bool(on_device(2).sum())

        assert [event.allowed for event in events_of(body)] == ["the loop must end", None]

    def test_the_recorder(self) -> None:
        with record_host_events(device="simulated") as events:
            on_device(2).tolist()
            torch.cuda.empty_cache()
        assert [str(event.kind) for event in events if str(event.kind) != "collect"] == ["read", "flush"]

    def test_threads_started_inside_report_under_their_name(self) -> None:
        def body() -> None:
            thread = threading.Thread(target=lambda: on_device(2).sum().item(), name="worker")
            thread.start()
            thread.join()

        assert [(event.call, event.thread) for event in events_of(body)] == [("Tensor.item", "worker")]

    def test_tasks(self) -> None:
        async def read() -> None:
            on_device(2).sum().item()

        async def both() -> None:
            await asyncio.gather(read(), read())

        assert events_of(lambda: asyncio.run(both())).told == [("read", "Tensor.item")] * 2

    def test_an_exception_of_the_body_goes_through(self) -> None:
        events = Events()
        with pytest.raises(ZeroDivisionError), simulate_cuda(), listening(events):
            on_device(2).sum().item()
            raise ZeroDivisionError
        assert events.told == [("read", "Tensor.item")]

    def test_nothing_is_told_of_the_host(self) -> None:
        def body() -> None:
            x = torch.arange(4.0)
            x[x > 1] = torch.tensor(2.0)
            torch.linalg.inv(torch.eye(3))
            assert x.sum().item() == 5.0
            assert torch.tensor([x[0], x[1]]).tolist() == [0.0, 1.0]

        assert events_of(body).told == []
