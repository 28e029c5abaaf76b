"""Which files can hold tensors at all: those that import torch or a library on top of it, or a file of the project that does."""
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


def relevant_files(index: ProjectIndex) -> list[bool]:
    """For each file of the project, whether its values can be tensors."""
    direct = [_imports_torch(outline) for outline in index.files]
    return [found or any(direct[other] for other in _imported(index, file)) for file, found in enumerate(direct)]


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
