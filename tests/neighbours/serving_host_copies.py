"""A batch that keeps a copy of its lengths on the host: what reads the copy is free, what reads the tensor beside it waits."""
from dataclasses import dataclass
from types import ModuleType

import torch
import torch.distributed as dist


BATCHES: list["Batch"] = []


@dataclass
class Batch:
    lens: torch.Tensor
    lens_cpu: torch.Tensor
    ready: object
    group: object
    cpu_group: object
    mlx: ModuleType


def held() -> Batch:
    return BATCHES[-1]


def longest(lens: torch.Tensor) -> int:
    return int(lens.max())  # ok: the only caller hands it the host's copy


def shortest(lens: torch.Tensor) -> int:
    return int(lens.min())  # expect: HL102


def first(lens: torch.Tensor, mask: torch.Tensor) -> int:
    if mask[0] > 0:  # ok: made on the host, by whatever the grammar is
        return 0
    return int(lens[0])  # ok: a row of the host's copy


def last(lens: torch.Tensor, mask: torch.Tensor) -> int:
    if mask[0] > 0:  # expect: HL103
        return 0
    return int(lens[-1])  # expect: HL102


def agree(device: torch.device, group, cpu_group):
    dist.barrier(group=cpu_group)  # ok: between the hosts
    dist.barrier(group=group)  # expect: HL117


def copied(batch: Batch, lens: torch.Tensor, long: bool):
    kept = batch.lens_cpu
    lens_cpu = kept
    if lens_cpu is None:
        lens_cpu = lens.cpu()  # ok: for callers that keep no copy
    rest = lens.cpu() if long else lens  # expect: HL104
    is_capturing = long
    return (lens.cpu() if is_capturing else lens_cpu), rest  # ok: once for every graph


def finish_step(result, batch: Batch, force_cpu: bool):
    early = result.next_logprobs.tolist()  # expect: HL105
    num_pages, pages = held().lens.sum(), held().lens.sum()
    if num_pages > result.available():  # ok: a number by its name
        early = []
    if pages > result.available():  # expect: HL103
        early = []
    place = "cuda" if torch.cuda.is_available() and not force_cpu else "cpu"
    size = torch.zeros(1, device=place)
    size.item()  # ok: on the host by default
    result.copy_done.synchronize()  # ok: an event of the step before
    return early, result.next_logprobs.tolist()  # ok: it has been copied


def decode_step(model, batch: Batch, x: torch.Tensor, plan: dict[str, torch.Tensor], grammar):
    longest(batch.lens_cpu)
    shortest(batch.lens)
    first(batch.lens_cpu[0], grammar.allocate(3, device="cpu"))
    last(batch.lens[0], grammar.allocate(3, device=x.device))
    agree(x.device, batch.group, batch.cpu_group)
    batch.lens_cpu.max().item()  # ok: the host's copy
    batch.lens.max().item()  # expect: HL101
    plan["lens_cpu"].max().item()  # ok: the host's copy, by its key
    batch.ready.synchronize()  # ok: an event of the step before
    batch.copy_stream.synchronize()  # expect: HL117
    batch.corpus.synchronize()  # ok: nobody says that the device is behind it
    finish_step(batch.result, batch, force_cpu=True)
    copied(batch, batch.lens, long=False)
    return model(x)


class Decoder:
    def run(self, model, batch: Batch, tokens, plan: dict[str, torch.Tensor]):
        for token in tokens:
            decode_step(model, batch, token, plan, self.grammar)
