"""Language models of transformers in generate(), random and small, on the plain CPU and under simulate_cuda(): needs transformers.

    python benchmarks/simulated_generate.py [MODEL…]
"""
from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import simulated_compare
import torch
import transformers

TOKENS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
SMALL = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, **TOKENS,
}  # fmt: skip
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "Llama": ("LlamaForCausalLM", SMALL),
    "Qwen3": ("Qwen3ForCausalLM", {**SMALL, "head_dim": 8}),
    "Gemma2": ("Gemma2ForCausalLM", {**SMALL, "head_dim": 8}),
    "Mixtral": ("MixtralForCausalLM", {**SMALL, "num_local_experts": 4}),
    "Mistral": ("MistralForCausalLM", {**SMALL, "sliding_window": 16}),
    "GPT2": ("GPT2LMHeadModel", {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, **TOKENS}),
    "Mamba": ("MambaForCausalLM", {"vocab_size": 64, "hidden_size": 32, "state_size": 8, "num_hidden_layers": 2, **TOKENS}),
    "T5": (
        "T5ForConditionalGeneration",
        {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0, **TOKENS},
    ),
}
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "sampled": {"do_sample": True, "top_k": 10, "top_p": 0.9, "temperature": 0.8, "repetition_penalty": 1.1},
    "beams": {"num_beams": 3, "do_sample": False},
}
NEW_TOKENS = 8


class Marks(transformers.LogitsProcessor):  # type: ignore[misc]  # untyped where transformers is not installed
    """Called once for each token: where a step ends."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        simulated_compare.current.end_of_step()
        return scores


def main() -> None:
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    names = sys.argv[1:] or list(MODELS)
    equal = [
        simulated_compare.compare(f"{name} {way}", program(*MODELS[name], options), places=way == "greedy")
        for name in names
        for way, options in WAYS.items()
    ]
    print(f"{sum(equal)} of {len(equal)} equal")


def program(kind: str, config: dict[str, Any], options: dict[str, Any]) -> Callable[[str], torch.Tensor]:
    def run(device: str) -> torch.Tensor:
        made = getattr(transformers, kind)
        model = made(made.config_class(**config)).to(device).eval()
        prompt = torch.randint(3, 60, (2, 7)).to(device)
        attended = torch.ones_like(prompt)
        attended[0, :2].zero_()
        marks = transformers.LogitsProcessorList([Marks()])
        found: torch.Tensor = model.generate(
            input_ids=prompt, attention_mask=attended, max_new_tokens=NEW_TOKENS, logits_processor=marks, **options
        )
        return found

    return run


if __name__ == "__main__":
    main()
