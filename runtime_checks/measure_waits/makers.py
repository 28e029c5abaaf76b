"""What the names file builds in more than one expression: trained modules, optimizers, a process group of one, a captured graph."""
from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any  # options of torch's own constructors

import torch


def logger() -> logging.Logger:
    """Formats what is logged from INFO on and throws the text away."""
    found = logging.getLogger(f"{__name__}.sink")
    found.handlers[:] = [logging.StreamHandler(Path("/dev/null").open("w", encoding="utf-8"))]  # noqa: SIM115 - lives as long as it
    found.propagate = False
    found.setLevel(logging.INFO)
    return found


def trained(device: str) -> torch.nn.Linear:
    """A layer whose parameters have gradients."""
    layer = torch.nn.Linear(8, 8).to(device)
    layer(torch.ones(2, 8, device=device)).sum().backward()
    return layer


def optimizer(name: str, device: str, **options: Any) -> torch.optim.Optimizer:
    """Over the parameters of `trained`, at its second step."""
    made: torch.optim.Optimizer = getattr(torch.optim, name)(trained(device).parameters(), **{"lr": 0.1, **options})
    return made


def on_matrices(name: str, device: str, **options: Any) -> torch.optim.Optimizer:
    """Over a matrix alone, for optimizers that take no vectors."""
    layer = trained(device)
    made: torch.optim.Optimizer = getattr(torch.optim, name)([layer.weight], **{"lr": 0.1, **options})
    return made


def sparse_adam(device: str) -> torch.optim.Optimizer:
    table = torch.nn.Embedding(20, 8, sparse=True).to(device)
    table(torch.arange(4, device=device)).sum().backward()
    return torch.optim.SparseAdam(table.parameters(), lr=0.1)


def lbfgs(device: str) -> torch.optim.Optimizer:
    return torch.optim.LBFGS(trained(device).parameters(), lr=0.1, max_iter=2)


def closure_of(optimizer: torch.optim.Optimizer, device: str) -> Any:
    """The closure that LBFGS asks for."""
    parameters = optimizer.param_groups[0]["params"]

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = sum(parameter.square().sum() for parameter in parameters)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    return closure


def hooked(device: str) -> torch.nn.Linear:
    """A layer with a hook on its output and on its weight that reads nothing."""
    layer = trained(device)
    layer.register_forward_hook(lambda module, given, result: result * 2)
    layer.weight.register_hook(lambda gradient: gradient * 2)  # type: ignore[no-untyped-call]
    return layer


def reading_hook(device: str) -> torch.nn.Linear:
    """A layer whose weight's hook reads the norm of the gradient."""
    layer = trained(device)

    def read(gradient: torch.Tensor) -> None:
        gradient.norm().item()

    layer.weight.register_hook(read)  # type: ignore[no-untyped-call]
    return layer


def sequence_of(*modules: torch.nn.Module, device: str) -> torch.nn.Sequential:
    return torch.nn.Sequential(*modules).to(device)


def graph(device: str) -> torch.cuda.CUDAGraph:
    """A captured multiplication."""
    data = torch.ones(16, device=device)
    made = torch.cuda.CUDAGraph()
    with torch.cuda.graph(made):
        data.mul_(1.0)
    return made


def one_rank(device: str) -> ModuleType:
    """torch.distributed with a process group of this process alone."""
    import torch.distributed as dist

    if not dist.is_initialized():
        store = Path(tempfile.mkdtemp()) / "store"
        backend = "nccl" if device == "cuda" else "gloo"
        dist.init_process_group(backend, init_method=f"file://{store}", rank=0, world_size=1)
    return dist


def on_host(dist: ModuleType) -> Any:
    """A group of this process alone for host tensors."""
    return dist.new_group(backend="gloo")


def garbage(size: int) -> list[list[object]]:
    """Many small containers for the collector to look through."""
    return [[number, ()] for number in range(size)]


def saved(value: object) -> Any:
    """A file in memory that torch.load reads."""
    import io

    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return buffer


def used_scaler(device: str) -> torch.amp.GradScaler:
    """A scaler that has scaled a loss, so that its scale lives on the device."""
    made = torch.amp.GradScaler(device)
    made.scale(torch.ones((), device=device))
    return made
