"""CountedUploads counts each copy of a host tensor to the device, and nothing else."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from hostlint.runtime_checks import CountedUploads, SyncOnRead

Form = Callable[[torch.Tensor], object]
PLAIN = torch.ones(4)
COUNTED: dict[str, tuple[Form, int]] = {
    "to a device": (lambda host: host.to("cpu"), 1),
    "to a dtype": (lambda host: host.to(torch.float64), 1),
    "to what it is": (lambda host: host.to(host.dtype), 1),
    "to as a function": (lambda host: torch.Tensor.to(host, "cpu"), 1),
    "to without blocking": (lambda host: host.to("cpu", non_blocking=True), 1),
    "twice": (lambda host: (host.to("cpu"), host.to("cpu")), 2),
    "the copy again": (lambda host: host.to("cpu").to("cpu").to(torch.float64), 1),
    "of a slice": (lambda host: host[1:].to("cpu"), 1),
    "of a view": (lambda host: host.view(2, 2).T.to("cpu"), 1),
    "of a stack": (lambda host: torch.stack([host, host]).to("cpu"), 1),
    "of a result": (lambda host: (host * 2 + PLAIN).to("cpu"), 1),
    "of the parts of a split": (lambda host: [part.to("cpu") for part in host.chunk(2)], 2),
    "of a complex view": (lambda host: torch.view_as_complex(host.view(2, 2)).to("cpu"), 1),
    "copied into another": (lambda host: torch.empty(4).copy_(host), 1),
    "copied into another by keyword": (lambda host: torch.empty(4).copy_(other=host), 1),
    "assigned to another": (lambda host: torch.empty(4).__setitem__(slice(None), host), 1),
    "another device by type_as": (lambda host: host.type_as(torch.empty(4, device="meta")), 1),
    "of the elements": (lambda host: [element.to("cpu") for element in host], 4),
    # these stay on the host
    "cpu": (lambda host: host.cpu(), 0),
    "float and double": (lambda host: host.float().double(), 0),
    "type_as of the host": (lambda host: host.type_as(PLAIN.double()), 0),
    "reads": (lambda host: (host[0].item(), host.tolist(), float(host.sum())), 0),
    "copied from another": (lambda host: host.copy_(PLAIN), 0),
    "copied between two": (lambda host: host.clone().copy_(host), 0),
    "one element assigned": (lambda host: torch.empty(4).__setitem__(0, host[0]), 0),
    "a new tensor like it": (lambda host: torch.zeros_like(host, device="meta"), 0),
}


def counted(tensor: torch.Tensor) -> torch.Tensor:
    CountedUploads.uploads = 0
    return tensor.as_subclass(CountedUploads)


@pytest.mark.parametrize("form", COUNTED)
def test_uploads_are_counted_and_nothing_else(form: str) -> None:
    upload, expected = COUNTED[form]
    upload(counted(torch.arange(4.0)))
    assert CountedUploads.uploads == expected


def test_the_copy_is_plain_with_the_same_bits_and_what_stays_is_not() -> None:
    host = counted(torch.randn(2, 3, dtype=torch.complex128))
    moved = host.to("cpu")
    target = torch.empty(2, 3, dtype=torch.complex128)
    assert type(moved) is torch.Tensor
    assert torch.equal(torch.view_as_real(moved), torch.view_as_real(host).as_subclass(torch.Tensor))
    assert target.copy_(host) is target
    assert type(host.cpu()) is type(host.real) is type(host[0]) is CountedUploads


def test_a_subclass_counts_in_the_base_once_and_may_return_what_it_likes() -> None:
    class Schedule(CountedUploads):
        def to(self, *args: Any, **kwargs: Any) -> Any:  # as a test's own host schedule does
            return super().to(*args, **kwargs).as_subclass(SyncOnRead)

    CountedUploads.uploads = 0
    moved = torch.tensor([1.0, 0.5]).as_subclass(Schedule).to("cpu")
    assert type(moved) is SyncOnRead
    assert CountedUploads.uploads == 1
    assert "uploads" not in vars(Schedule)
    with pytest.raises(AssertionError):
        moved[0].item()


def test_it_meets_a_device_tensor() -> None:
    host, device = counted(torch.ones(4)), torch.ones(4).as_subclass(SyncOnRead)
    assert type(host[0] * device) is type(device * host[0]) is SyncOnRead
    assert CountedUploads.uploads == 0
    device.copy_(host)
    device[1:] = host[1:]
    host.to(device)
    assert CountedUploads.uploads == 3


def test_uploads_of_several_threads_all_count() -> None:
    host = counted(torch.ones(4))
    threads = [threading.Thread(target=lambda: [host.to("cpu") for _ in range(100)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert CountedUploads.uploads == 400


def test_a_compiled_layer_passes() -> None:
    host = counted(torch.ones(4))
    compiled = torch.compile(lambda x: (x * 2).sin(), backend="eager")
    assert torch.equal(compiled(host).as_subclass(torch.Tensor), (torch.ones(4) * 2).sin())
    torch._dynamo.reset()
