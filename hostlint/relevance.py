"""Which files can hold tensors at all: those that import torch or a library on top of it, or use what only tensors have."""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.scopes import SymbolKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.facts.schema import FileOutline
    from hostlint.index import ProjectIndex

ROOTS = frozenset({
    "torch", "torchvision", "torchaudio", "torchmetrics", "torchtext", "torchtune", "torchtitan", "torchrl", "tensordict",
    "torch_geometric", "torch_npu", "lightning", "pytorch_lightning", "transformers", "diffusers", "accelerate", "deepspeed", "einops",
    "peft", "trl", "timm", "vllm", "sglang", "megatron", "flash_attn", "xformers", "kornia", "monai", "botorch", "gpytorch", "pyro",
    "sentence_transformers",
})


# Methods that say so where a program is handed its model and tensors and imports nothing itself.
TELLTALES = frozenset({"backward", "cuda", "zero_grad", "unsqueeze", "masked_fill", "requires_grad_", "no_grad", "pin_memory"})


def relevant_files(index: ProjectIndex) -> list[bool]:
    """For each file of the project, whether its values can be tensors: so it says itself, or a file that it imports, or that imports it."""
    direct = [_imports_torch(outline) or _uses_tensors(outline) for outline in index.files]
    relevant = list(direct)
    for file, found in enumerate(direct):
        for other in _imported(index, file):
            relevant[other] = relevant[other] or found
            relevant[file] = relevant[file] or direct[other]
    return relevant


def _uses_tensors(outline: FileOutline) -> bool:
    chains = (call.chain for function in outline.functions for call in function.calls)
    return any("." in chain and chain.rpartition(".")[2] in TELLTALES for chain in chains)


def _imports_torch(outline: FileOutline) -> bool:
    return any(target.partition(".")[0] in ROOTS for target in _targets(outline))


def _targets(outline: FileOutline) -> Iterator[str]:
    yield from (target for _, target in outline.imports)
    yield from outline.stars
    for function in outline.functions:
        yield from (target for _, target in function.imports)


def _imported(index: ProjectIndex, file: int) -> Iterator[int]:
    for target in _targets(index.files[file]):
        symbol = index.absolute(target)
        if symbol is not None and symbol.kind is not SymbolKind.EXTERNAL:
            yield symbol.file
