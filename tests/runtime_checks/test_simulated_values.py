"""The numbers under the stand-in are those of the same program on the host, bit for bit."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the name that everybody gives it
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from hostlint.runtime_checks import simulate_cuda

Program = Callable[[str], dict[str, torch.Tensor]]


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """NaN equals NaN, and -0.0 is not 0.0."""
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    sizes = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    views = [tensor.contiguous().view(sizes[tensor.element_size()]) for tensor in (one, other)]
    return torch.equal(*views)


def check(program: Program) -> None:
    expected = program("cpu")
    with simulate_cuda():
        found = program("cuda")
        assert {value.device.type for value in found.values()} == {"cuda"}
        found = {name: value.cpu() for name, value in found.items()}
    assert found.keys() == expected.keys()
    differing = [name for name, value in expected.items() if not same_bits(value, found[name])]
    assert differing == []


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.dropout(F.max_pool2d(F.relu(self.norm(self.conv(x))), 2), 0.2, self.training)
        tokens = x.flatten(2).transpose(1, 2)
        tokens = tokens + self.attention(tokens, tokens, tokens, need_weights=False)[0]
        logits: torch.Tensor = self.head(F.layer_norm(tokens, (8,)).mean(dim=1))
        return logits


def training(optimizer: str, amp: bool, **options: Any) -> Program:
    def program(device: str) -> dict[str, torch.Tensor]:
        torch.manual_seed(0)
        net = Net().to(device)
        stepper: torch.optim.Optimizer = getattr(torch.optim, optimizer)(net.parameters(), lr=1e-2, **options)
        scaler = torch.amp.GradScaler(device, enabled=amp)
        data = TensorDataset(torch.randn(12, 3, 8, 8), torch.randint(0, 5, (12,)))
        total = torch.zeros((), device=device)
        for images, labels in DataLoader(data, batch_size=4, shuffle=True):
            with torch.autocast(device, dtype=torch.bfloat16, enabled=amp):
                loss = F.cross_entropy(net(images.to(device)), labels.to(device))
            stepper.zero_grad()
            torch.autograd.backward(scaler.scale(loss))
            scaler.unscale_(stepper)
            norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(stepper)
            scaler.update()
            total += loss.detach()
        state = {f"{index}.{key}": value for index, one in enumerate(stepper.state.values()) for key, value in one.items() if key != "step"}
        return {**net.state_dict(), **state, "total": total, "norm": norm}

    return program


@pytest.mark.parametrize("amp", [False, True])
@pytest.mark.parametrize(
    ("optimizer", "options"), [("AdamW", {}), ("AdamW", {"foreach": False}), ("AdamW", {"fused": True}), ("SGD", {"momentum": 0.9})]
)
def test_a_training_loop(optimizer: str, options: dict[str, Any], amp: bool) -> None:
    check(training(optimizer, amp, **options))


def random_numbers(device: str) -> dict[str, torch.Tensor]:
    torch.manual_seed(3)
    generator = torch.Generator(device).manual_seed(5)
    made = {
        "randn": torch.randn(7, device=device), "like": torch.randn_like(torch.zeros(3, device=device)),
        "own": torch.rand(4, device=device, generator=generator), "int": torch.randint(0, 9, (5,), device=device),
        "perm": torch.randperm(6, device=device), "normal": torch.zeros(4, device=device).normal_(generator=generator),
        "dropout": F.dropout(torch.ones(32, device=device)), "multinomial": torch.multinomial(torch.ones(6, device=device), 3),
        "bernoulli": torch.bernoulli(torch.full((9,), 0.5, device=device)),
    }  # fmt: skip
    with torch.random.fork_rng():
        made["forked"] = torch.rand(2, device=device)
    return {**made, "after": torch.rand(2, device=device)}


def indexing(device: str) -> dict[str, torch.Tensor]:
    x = torch.linspace(-2, 2, 24).reshape(4, 6).to(device)
    mask, rows = x > 0, torch.tensor([2, 0])
    written = x.clone()
    written[mask] *= -0.0
    written[rows] = 7.0
    written[1, 2] = 5
    return {"masked": x[mask], "rows": x[rows], "written": written, "where": torch.where(mask, x, 0.0), "less": x[x < -1]}


def linear_algebra(device: str) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    a = torch.randn(5, 5, dtype=torch.float64, device=device)
    spd = a @ a.T + torch.eye(5, device=device)
    return {"solve": torch.linalg.solve(spd, a), "cholesky": torch.linalg.cholesky(spd), "svd": torch.linalg.svd(a, driver=None)[1]}


def recurrent(device: str) -> dict[str, torch.Tensor]:
    torch.manual_seed(2)
    lstm = nn.LSTM(3, 4, batch_first=True).to(device)
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(2, 5, 3).to(device), torch.tensor([5, 3]), batch_first=True)
    out, lengths = nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)
    assert lengths.device.type == "cpu"
    return {"out": out}


def checkpointed(device: str) -> dict[str, torch.Tensor]:
    torch.manual_seed(4)
    block = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 4)).to(device)
    x = torch.ones(2, 4, device=device, requires_grad=True)
    for reentrant in (False, True):
        torch.autograd.backward(torch.utils.checkpoint.checkpoint(block, x, use_reentrant=reentrant).sum())
    assert x.grad is not None
    return {"grad": x.grad, **{name: value.grad for name, value in block.named_parameters() if value.grad is not None}}


def amp_without_a_type(device: str) -> dict[str, torch.Tensor]:
    """CUDA's own default is float16, which the host has to be asked for."""
    torch.manual_seed(6)
    layer = nn.Linear(8, 8).to(device)
    dtype = None if device == "cuda" else torch.float16
    with torch.autocast(device, dtype=dtype):
        half = layer(torch.ones(2, 8, device=device))
        with torch.autocast(device, enabled=False):
            full = layer(torch.ones(2, 8, device=device))
    assert (half.dtype, full.dtype) == (torch.float16, torch.float32)
    return {"half": half.detach(), "full": full.detach()}


def offloaded(device: str) -> dict[str, torch.Tensor]:
    """What autograd saves goes to the host and comes back."""
    x = torch.linspace(0, 1, 5).to(device).requires_grad_()
    with torch.autograd.graph.save_on_cpu(pin_memory=device == "cuda"):
        y = (x.exp() * x).sum()
    torch.autograd.backward(y)
    assert x.grad is not None
    return {"grad": x.grad}


def transformed(device: str) -> dict[str, torch.Tensor]:
    x = torch.linspace(0, 1, 4).to(device)
    return {"jacobian": torch.func.jacrev(lambda v: v.tanh())(x), "mapped": torch.func.vmap(lambda v: v * 2 + x.sum())(x)}


def hooked(device: str) -> dict[str, torch.Tensor]:
    torch.manual_seed(7)
    layer: Any = nn.Sequential(nn.LazyLinear(3), nn.Softplus()).to(device)
    seen: list[str] = []
    layer[0].register_full_backward_hook(lambda module, into, out: seen.extend(one.device.type for one in out))
    layer.register_forward_hook(lambda module, given, result: seen.append(result.device.type))
    torch.autograd.backward(layer(torch.ones(2, 4, device=device, requires_grad=True)).sum())
    assert seen == [device] * 2
    return {name: value.grad for name, value in layer.named_parameters() if value.grad is not None}


def autocast_functions(device: str) -> dict[str, torch.Tensor]:
    class Square(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type=device, cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.amp.custom_bwd(device_type=device)  # type: ignore[untyped-decorator]
        def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
            kept: torch.Tensor = ctx.saved_tensors[0]
            return 2 * kept * grads[0]

    x = torch.linspace(0, 1, 4).to(device).requires_grad_()
    with torch.autocast(device, dtype=torch.bfloat16):
        y = Square.apply(x.bfloat16())  # type: ignore[no-untyped-call]
    torch.autograd.backward(y.sum())
    assert x.grad is not None
    return {"y": y.detach(), "grad": x.grad}


def without_memory(device: str) -> dict[str, torch.Tensor]:
    with torch.device("meta"):
        layer = nn.Linear(3, 2)
    layer = layer.to_empty(device=device)
    nn.init.constant_(layer.weight, 0.3)
    nn.init.zeros_(layer.bias)
    return {"y": layer(torch.ones(1, 3, device=device)).detach(), **layer.state_dict()}


PROGRAMS: list[Program] = [
    random_numbers, indexing, linear_algebra, recurrent, checkpointed, amp_without_a_type, offloaded, transformed, hooked,
    autocast_functions, without_memory,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program(program: Program) -> None:
    check(program)
