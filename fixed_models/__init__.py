"""Corrected models, each what `hostlint fix` made of the faulty one of the same name in tests/faulty_models; see docs/fixed-models.md.

Importing this package does not import torch: a model is loaded when it is first asked for.
"""
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.fixed_models import flow_match_stage as flow_match_stage
    from hostlint.fixed_models import flow_unipc as flow_unipc
    from hostlint.fixed_models import flux3_action as flux3_action
    from hostlint.fixed_models import glm_image as glm_image
    from hostlint.fixed_models import h3_vdn as h3_vdn
    from hostlint.fixed_models import helios_dmd as helios_dmd
    from hostlint.fixed_models import helios_unipc as helios_unipc
    from hostlint.fixed_models import qwen_image_vae as qwen_image_vae
    from hostlint.fixed_models import ring_attention as ring_attention
    from hostlint.fixed_models import sampled_decoding as sampled_decoding
    from hostlint.fixed_models import sensenova_u1 as sensenova_u1
    from hostlint.fixed_models import supervised_training as supervised_training
    from hostlint.fixed_models import wan_dmd as wan_dmd

__all__ = [
    "flow_match_stage",
    "flow_unipc",
    "flux3_action",
    "glm_image",
    "h3_vdn",
    "helios_dmd",
    "helios_unipc",
    "qwen_image_vae",
    "ring_attention",
    "sampled_decoding",
    "sensenova_u1",
    "supervised_training",
    "wan_dmd",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
