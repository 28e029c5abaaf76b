"""Under the stand-in every tensor has a place, which follows it through all that a program does with it."""
from __future__ import annotations

import copy
import io
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn

from hostlint.runtime_checks import simulate_cuda

CUDA = torch.device("cuda", 0)


@pytest.fixture
def cuda() -> Iterator[None]:
    with simulate_cuda():
        yield


def place(tensor: torch.Tensor) -> str:
    return tensor.device.type


@pytest.mark.usefixtures("cuda")
class TestWhereThingsAreMade:
    @pytest.mark.parametrize("device", ["cuda", "cuda:0", torch.device("cuda"), torch.device("cuda", 0), 0])
    def test_a_factory_puts_its_result_where_it_is_told(self, device: Any) -> None:
        made = torch.zeros(3, device=device)
        assert (made.device, made.is_cuda, made.is_cpu, made.get_device()) == (CUDA, True, False, 0)
        assert (torch.zeros(3).is_cuda, torch.zeros(3).is_cpu, torch.zeros(3).get_device()) == (False, True, -1)

    def test_a_second_device_is_not_there(self) -> None:
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            torch.zeros(3, device="cuda:1")

    def test_a_default_device_counts(self) -> None:
        with torch.device("cuda"):
            assert place(torch.zeros(2)) == "cuda"
            assert place(nn.Linear(2, 2).weight) == "cuda"
            assert place(torch.zeros(2, device="cpu")) == "cpu"
        torch.set_default_device("cuda")
        try:
            assert place(torch.arange(3)) == "cuda"
            assert torch.get_default_device().type == "cuda"
        finally:
            torch.set_default_device(None)
        assert place(torch.arange(3)) == "cpu"

    def test_like_factories_follow_their_model(self) -> None:
        x = torch.zeros(3, device="cuda")
        assert {place(torch.ones_like(x)), place(x.new_zeros(2)), place(torch.rand_like(x))} == {"cuda"}
        assert {place(torch.ones_like(x, device="cpu")), place(x.new_zeros(2, device="cpu"))} == {"cpu"}
        assert place(torch.ones_like(torch.zeros(3), device="cuda")) == "cuda"

    def test_a_list_of_device_tensors_becomes_a_host_tensor(self) -> None:
        x = torch.arange(2.0, device="cuda")
        made = [torch.tensor([x[0], x[1]]), torch.as_tensor([x[0], x[1]]), torch.tensor([x[0], x[1]], device="cuda"), torch.as_tensor(x)]
        assert [place(one) for one in made] == ["cpu", "cpu", "cuda", "cuda"]
        assert [one.tolist() for one in made] == [[0.0, 1.0]] * 4

    def test_an_array_keeps_its_memory_to_itself(self) -> None:
        array = np.ones(3, dtype=np.float32)
        on_device = torch.as_tensor(array, device="cuda")
        array[0] = 7.0
        assert (place(on_device), on_device.cpu().tolist()) == ("cuda", [1.0, 1.0, 1.0])

    def test_legacy_constructors(self) -> None:
        kind: Any = torch.cuda.FloatTensor  # type: ignore[attr-defined]  # torch's stubs leave these out
        made = kind([1.0, 2.0])
        assert (place(made), made.type(), isinstance(made, kind)) == ("cuda", "torch.cuda.FloatTensor", True)
        assert not isinstance(torch.zeros(2), kind)
        assert place(cast("torch.Tensor", torch.zeros(2).type(kind))) == "cuda"


@pytest.mark.usefixtures("cuda")
class TestMoves:
    def test_a_move_copies(self) -> None:
        host = torch.zeros(3)
        moved = host.to("cuda")
        moved += 1
        back = moved.cpu()
        back += 1
        assert [place(host), place(moved), place(back)] == ["cpu", "cuda", "cpu"]
        assert [host.tolist(), moved.tolist(), back.tolist()] == [[0.0] * 3, [1.0] * 3, [2.0] * 3]

    def test_a_move_to_where_it_is_does_not_copy(self) -> None:
        x = torch.zeros(3, device="cuda")
        assert x.to("cuda") is x
        assert x.cuda() is x
        assert x.to(torch.float32) is x

    @pytest.mark.parametrize(
        "move",
        [
            lambda t, x: t.to("cuda", torch.float64), lambda t, x: t.to(device="cuda", dtype=torch.float64),
            lambda t, x: t.to(x), lambda t, x: t.type_as(x), lambda t, x: t.to(0, torch.float64, non_blocking=True),
        ],
    )  # fmt: skip
    def test_type_and_place_change_together(self, move: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        moved = move(torch.zeros(2), torch.zeros(1, dtype=torch.float64, device="cuda"))
        assert (place(moved), moved.dtype) == ("cuda", torch.float64)

    def test_pinned_memory(self) -> None:
        host = torch.zeros(3)
        pinned = host.pin_memory()
        assert [host.is_pinned(), pinned.is_pinned(), torch.empty(2, pin_memory=True).is_pinned()] == [False, True, True]
        with pytest.raises(RuntimeError, match="cannot pin"):
            host.cuda().pin_memory()

    def test_numpy_wants_the_host(self) -> None:
        x = torch.ones(2, device="cuda")
        with pytest.raises(TypeError, match="cuda:0"):
            x.numpy()
        with pytest.raises(TypeError, match="cuda:0"):
            np.asarray(x)
        assert x.cpu().numpy().tolist() == x.numpy(force=True).tolist() == [1.0, 1.0]


@pytest.mark.usefixtures("cuda")
class TestWhatFollows:
    def test_views_aliases_and_operations(self) -> None:
        x = torch.ones(4, 4, device="cuda")
        made = [x[1], x.T, x.view(16), x.detach(), x.data, x + 1, 2.0 / x, x.clone(), torch.stack([x, x]), *x.unbind(), *x.max(dim=0)]
        assert {place(one) for one in made} == {"cuda"}
        assert x.shape == (4, 4)

    def test_parameters_and_buffers(self) -> None:
        net = nn.Sequential(nn.Conv1d(2, 2, 1), nn.BatchNorm1d(2)).to("cuda")
        assert {place(one) for one in (*net.parameters(), *net.buffers(), *net.state_dict().values())} == {"cuda"}
        assert place(net(torch.ones(2, 2, 3, device="cuda"))) == "cuda"
        net.cpu()
        assert {place(one) for one in (*net.parameters(), *net.buffers())} == {"cpu"}

    def test_gradients(self) -> None:
        layer = nn.Linear(3, 3).cuda()
        layer(torch.ones(2, 3, device="cuda")).sum().backward()
        weight = layer.weight
        assert weight.grad is not None
        assert place(weight.grad) == "cuda"
        (again,) = torch.autograd.grad(layer(torch.ones(2, 3, device="cuda")).sum(), weight)
        assert place(again) == "cuda"
        with pytest.raises(RuntimeError, match="different device"):
            weight.grad = torch.zeros(3, 3)

    def test_gradients_come_back_to_a_host_leaf(self) -> None:
        leaf = torch.ones(3, requires_grad=True)
        torch.autograd.backward((leaf.cuda() * 3).sum())
        assert leaf.grad is not None
        assert (place(leaf.grad), leaf.grad.tolist()) == ("cpu", [3.0, 3.0, 3.0])

    def test_custom_functions_and_hooks_get_gradients_of_the_device(self) -> None:
        seen: list[str] = []

        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
                x: torch.Tensor = ctx.saved_tensors[0]
                seen.extend((place(grads[0]), place(x)))
                return grads[0] * 2 + 0 * x

        x = torch.ones(3, device="cuda", requires_grad=True)
        y = Double.apply(x)  # type: ignore[no-untyped-call]
        y.register_hook(lambda grad: seen.append(place(grad)))
        torch.autograd.backward((y * y).sum())
        assert seen == ["cuda"] * 3

    def test_optimizers_keep_their_state_there(self) -> None:
        layer = nn.Linear(3, 3).cuda()
        optimizer = torch.optim.AdamW(layer.parameters())
        layer(torch.ones(2, 3, device="cuda")).sum().backward()
        torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        optimizer.step()
        assert {place(state["exp_avg"]) for state in optimizer.state.values()} == {"cuda"}
        again = torch.optim.AdamW(layer.parameters())
        again.load_state_dict(optimizer.state_dict())
        assert {place(state["exp_avg_sq"]) for state in again.state.values()} == {"cuda"}

    def test_copies(self) -> None:
        layer = nn.Linear(2, 2).cuda()
        assert place(copy.deepcopy(layer).weight) == "cuda"
        assert place(copy.copy(layer.weight)) == "cuda"
        assert place(pickle.loads(pickle.dumps(layer.weight))) == "cuda"  # noqa: S301  dumped here

    def test_files(self) -> None:
        def load(**options: Any) -> torch.Tensor:
            buffer.seek(0)
            loaded: torch.Tensor = torch.load(buffer, **options)["x"]
            assert loaded.tolist() == [1.0, 2.0]
            return loaded

        buffer = io.BytesIO()
        torch.save({"x": torch.tensor([1.0, 2.0], device="cuda")}, buffer)
        assert place(load()) == "cuda"
        assert place(load(map_location="cpu")) == "cpu"
        assert place(load(map_location=lambda storage, _: storage)) == "cpu"
        buffer = io.BytesIO()
        torch.save({"x": torch.tensor([1.0, 2.0])}, buffer)
        assert place(load()) == "cpu"
        assert place(load(map_location="cuda")) == "cuda"
        assert place(load(map_location=lambda storage, _: storage.cuda())) == "cuda"

    def test_transforms(self) -> None:
        x = torch.ones(3, 2, device="cuda")
        assert place(torch.vmap(lambda row: row * 2)(x)) == "cuda"
        assert place(torch.func.grad(lambda row: (row**2).sum())(x)) == "cuda"

    def test_sparse_tensors(self) -> None:
        sparse = torch.eye(3, device="cuda").to_sparse()
        assert [place(sparse), place(sparse.to_dense()), place(sparse.values())] == ["cuda"] * 3

    def test_threads_started_inside(self) -> None:
        found: list[str] = []
        thread = threading.Thread(target=lambda: found.append(place(torch.zeros(1, device="cuda") + 1)))
        thread.start()
        thread.join()
        assert found == ["cuda"]


@pytest.mark.usefixtures("cuda")
class TestMixing:
    def test_tensors_of_both_places_are_refused(self) -> None:
        x, h = torch.ones(3, device="cuda"), torch.ones(3)
        calls: list[Callable[[], object]] = [
            lambda: x + h, lambda: h * x, lambda: torch.cat([x, h]), lambda: torch.stack([x.sum(), h.sum()]),
            lambda: nn.functional.linear(x, h[None]), lambda: torch.where(x > 0, x, h), lambda: h.add_(x.sum()), lambda: x.matmul(h),
            lambda: torch.dot(x, h), lambda: h[x > 0], lambda: x.__setitem__(torch.tensor([0, 1]), h[:2]),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(RuntimeError, match=r"same device|indexed tensor"):
                call()

    def test_scalars_and_indices_of_the_host_are_taken(self) -> None:
        x, scalar = torch.arange(3.0, device="cuda"), torch.tensor(2.0)
        assert {place(x * scalar), place(scalar - x), place(x.clamp(min=0.5)), place(x[torch.tensor([2, 0])])} == {"cuda"}
        assert x[torch.tensor([True, False, True])].tolist() == [0.0, 2.0]
        x[0] = scalar
        x[1:] = torch.tensor([5.0, 6.0])
        assert x.tolist() == [2.0, 5.0, 6.0]

    def test_copies_go_both_ways(self) -> None:
        x, h = torch.ones(3, device="cuda"), torch.zeros(3)
        h.copy_(x)
        assert (place(h), h.tolist()) == ("cpu", [1.0] * 3)
        x.copy_(torch.full((3,), 4.0))
        assert (place(x), x.tolist()) == ("cuda", [4.0] * 3)


class TestTheRestOfTorch:
    def test_torch_cuda_answers(self) -> None:
        with simulate_cuda():
            assert (torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.current_device()) == (True, 1, 0)
            assert torch.cuda.get_device_properties(0).total_memory > 0
            assert torch.cuda.get_device_capability() >= (8, 0)
            assert torch.cuda.get_device_name("cuda:0")
            assert torch.cuda.is_bf16_supported()
            assert torch.cuda.memory_allocated() == torch.cuda.max_memory_reserved() == 0
            assert torch.cuda.mem_get_info()[0] <= torch.cuda.mem_get_info()[1]
            assert "allocated" in torch.cuda.memory_summary().lower()
            with torch.cuda.device(0), torch.cuda.nvtx.range("work"):
                torch.cuda.set_device("cuda:0")
            with pytest.raises(RuntimeError, match="invalid device ordinal"):
                torch.cuda.set_device(1)

    def test_streams_and_events(self) -> None:
        with simulate_cuda():
            cuda: Any = torch.cuda
            stream, start, end = cuda.Stream(), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            start.record()
            with torch.cuda.stream(stream):
                assert torch.cuda.current_stream() == stream
                x = torch.ones(3, device="cuda")
                x.record_stream(stream)
            assert torch.cuda.current_stream() == torch.cuda.default_stream() != stream
            stream.wait_stream(torch.cuda.current_stream())
            torch.cuda.current_stream().wait_event(stream.record_event())
            with pytest.raises(ValueError, match="recorded"):
                start.elapsed_time(end)
            end.record()
            assert start.elapsed_time(end) >= 0.0
            assert stream.query()

    def test_generators(self) -> None:
        with simulate_cuda():
            generator = torch.Generator("cuda").manual_seed(3)
            assert generator.device == CUDA
            assert isinstance(generator, torch.Generator)
            assert isinstance(torch.Generator(), torch.Generator)
            assert torch.Generator().device.type == "cpu"
            drawn = torch.randn(4, generator=generator, device="cuda")
            with pytest.raises(RuntimeError, match="generator"):
                torch.randn(4, generator=torch.Generator(), device="cuda")
            with pytest.raises(RuntimeError, match="generator"):
                torch.randn(4, generator=generator)
            assert drawn.cpu().tolist() == torch.randn(4, generator=torch.Generator().manual_seed(3)).tolist()

    def test_compiled_code_runs_as_it_is_written(self, monkeypatch: pytest.MonkeyPatch) -> None:
        validated = torch.distributions.Distribution._validate_args
        monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", validated)  # compiling switches it off for good
        compilations: list[object] = []

        def backend(graph: Any, example: object) -> Any:
            compilations.append(example)
            return graph.forward

        compiled = torch.compile(lambda x: x * 2 + 1, backend=backend)
        with simulate_cuda():
            assert place(compiled(torch.ones(2, device="cuda"))) == "cuda"
            assert place(torch.compile(lambda x: x - 1, backend=backend)(torch.ones(2, device="cuda"))) == "cuda"
        assert compilations == []
        assert compiled(torch.ones(2)).tolist() == [3.0, 3.0]
        assert len(compilations) == 1

    def test_modes(self) -> None:
        with simulate_cuda(), torch.inference_mode():
            assert place(torch.ones(2, device="cuda") * 2) == "cuda"
        with simulate_cuda(), torch.no_grad():
            assert place(nn.Linear(2, 2, device="cuda")(torch.ones(2, device="cuda"))) == "cuda"

    def test_graphs_are_refused(self) -> None:
        with simulate_cuda(), pytest.raises(RuntimeError, match="no CUDA graphs"):
            torch.cuda.CUDAGraph()


class TestLeaving:
    NAMES = ("is_available", "synchronize", "Stream", "device_count", "manual_seed", "FloatTensor", "current_device", "_lazy_init")

    def test_everything_is_put_back_after_an_exception(self) -> None:
        before = [getattr(torch.cuda, name) for name in self.NAMES]
        kept = torch.Generator, torch.Event, torch.autocast.__enter__, torch.UntypedStorage.cuda, set(vars(torch._C))
        with pytest.raises(ZeroDivisionError), simulate_cuda():
            assert torch.Generator is not kept[0]
            raise ZeroDivisionError
        assert [getattr(torch.cuda, name) for name in self.NAMES] == before
        assert (torch.Generator, torch.Event, torch.autocast.__enter__, torch.UntypedStorage.cuda, set(vars(torch._C))) == kept
        assert torch._C._len_torch_function_stack() == 0
        assert not torch.cuda.is_available()

    def test_a_default_device_ends_with_the_body(self) -> None:
        with simulate_cuda():
            torch.set_default_device("cuda")
        assert place(torch.zeros(1)) == "cpu"
        assert torch._C._len_torch_function_stack() == 0

    def test_bodies_nest(self) -> None:
        with simulate_cuda():
            with simulate_cuda():
                x = torch.ones(2, device="cuda")
            assert place(x + 1) == "cuda"
            assert torch.cuda.is_available()
        assert not torch.cuda.is_available()

    def test_threads_outlive_the_body(self) -> None:
        go_on, found = threading.Event(), []

        def work() -> None:
            go_on.wait()
            found.append((torch.ones(2) + 1).tolist())

        thread = threading.Thread(target=work)
        with simulate_cuda():
            thread.start()
        go_on.set()
        thread.join()
        assert found == [[2.0, 2.0]]

    def test_tensors_outlive_the_body(self) -> None:
        with simulate_cuda():
            x = torch.ones(2, device="cuda")
        assert (x.device.type, x.tolist()) == ("cpu", [1.0, 1.0])
        with simulate_cuda():
            assert place(x * 2) == "cuda"
