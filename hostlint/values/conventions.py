"""Where values live by convention: what the field's code calls device tensors, and what it keeps on the host."""
from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hostlint.facts.calls import UPLOAD_HELPER
from hostlint.model import Confidence
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from collections.abc import Collection

# Names that stand for device tensors in functions on a step's path, whatever the project.
DEVICE_NAMES = re.compile(
    r"^(.*_)?(loss|losses|logits|logit|grad|grads|gradient|gradients|latents?|hidden_states?|noise_pred|model_output|noise|sample|"
    r".*norm|query|key_states|value_states|query_states|input_ids|attention_mask|encoder_hidden_states|grad_norm|log_probs?|logprobs?|"
    r"advantages?|rewards|embeds|embeddings?|activations?|probs|hidden|scores|preds|predictions|log_?softmax|timestep|sigma)$"
)
DEVICE_ATTRIBUTES = frozenset({
    "loss", "logits", "grad", "last_hidden_state", "hidden_states", "latents", "noise_pred", "prompt_embeds", "pooler_output",
    "prev_sample", "pred_original_sample",
})
# `num_embeds`, `output_hidden_states`: numbers and flags, whatever they end in.
NUMBERS_AND_FLAGS = re.compile(
    r"^(return_|use_|output_|is_|do_|has_|with_|num_|n_|max_|min_|enable|disable|skip_|apply_|save_|no_|only_|should_|need_)"
)
# Parameters of a forward that are settings, not tensors.
SETTINGS = re.compile(
    rf"{NUMBERS_AND_FLAGS.pattern}|"
    r"(_kwargs|_config|_cfg|_name|_names|_size|_sizes|_len|_lens|_length|_lengths|_type|_mode|_fn|_func|_idx|_index|_id|_dim|_dims|_scale|_ratio|"
    r"_rate|_prob|_eps|_shape|_shapes|_list|_dict|_cache|_state|_states_list|_device|_dtype|_group|_dropout|_metadata|_params|_args|"
    r"_info|_flag|_factor|_num|_dimensions?|_resolutions?|_lr|_height|_width|_frames|_processor|_callback|_stream|_offset|_start|_end|_layers|_heads|_plan)$|"
    r"^(training|train|mode|lr|name|config|cfg|args|kwargs|device|dtype|scale|eps|dim|layer|layers|layer_id|layer_idx|block|index|idx|i|step|"
    r"height|width|frames|shape|size|resolution|dimensions|length|batch_size|seqlen|seq_len|past_key_values|past_key_value|cache|cache_params|generator|callback|ctx|"
    r"forward_batch|metadata|batch|data|inputs|state|context|info|meta|params|options|req|reqs|request|forward_context|output|outputs|group|causal|"
    r"dropout_p|dropout|p|attn_metadata|pp_proxy_tensors|kv_cache|self|cls|func|fn|module|model|text|texts|prompt|prompts|"
    r"server_args|lora_scale|label|kv_caches|memory_saver|stream|event|op|kernel|position_offset|reduction|training_args)$"
)
ON_HOST = re.compile(r"(^|_)(cpu|host|pinned)(_|$)", re.IGNORECASE)  # in any part of a dotted name
HOST_NAMES = re.compile(r"(^|_)(cpu|host|np|numpy|python|py|list|pinned)(_|$)|_lst$", re.IGNORECASE)
UPLOADERS = re.compile(rf"{UPLOAD_HELPER.pattern}|^_prepare_inputs?$", re.IGNORECASE)
# The sizes of pictures and films, which their processor makes.
SHAPES = re.compile(r"(^|_)grids?(_(thw|hw|sizes?))?s?$|(^|_)t?hws?$|^(image|video|frame|tgt|target|spatial)_(sizes?|shapes?)$")
IDENTIFIERS = re.compile(r"[A-Za-z_]\w*")
MASK_NAMES = re.compile(r"(^|_)(mask|masks|drop|dropped|is_\w+|has_\w+|flags?|invalid)$|(^|_)mask(_|$)", re.IGNORECASE)
MODELS = re.compile(
    r"^(?!(get|named|build|load|create|make|init|from|prepare|set|register|find|resolve|import|wrap|unwrap|new|setup|save|export|compile|is|has|uses?|supports?|needs|should|can)_)[a-z_]*"
    r"(?<![a-z])(model|net|network|transformer|unet|vae|denoiser|policy|critic|actor|encoder|decoder|backbone|generator|discriminator|module|"
    r"text_encoder|controlnet|critic|student|teacher|lm_head|embed_tokens|criterion|loss_fn|loss_func|reward_model|ref_model|predictor)s?(_\d+)?$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Conventions:
    """The conventions, with the configuration's own names: `device-names`, `host-names`, `device-returns`, `upload-helpers`."""

    device_names: Collection[str] = field(default_factory=frozenset)
    host_names: Collection[str] = field(default_factory=frozenset)
    device_returns: Collection[str] = field(default_factory=frozenset)
    upload_helpers: Collection[str] = field(default_factory=frozenset)

    def is_host_name(self, name: str) -> bool:
        return name in self.host_names or bool(HOST_NAMES.search(name))

    def is_device_name(self, name: str) -> bool:
        if name in self.device_names:
            return True
        return bool(DEVICE_NAMES.match(name)) and not self.is_host_name(name) and not NUMBERS_AND_FLAGS.match(name)

    def says_host(self, text: str) -> bool:
        """Whether a part of an expression is named as what lies on the host: `plan.seq_lens_cpu[i]`."""
        return any(name in self.host_names or ON_HOST.search(name) for name in IDENTIFIERS.findall(text))

    def is_setting(self, name: str) -> bool:
        return bool(SETTINGS.search(name))


def conventional(why: str) -> Value:
    """A device tensor by a convention only."""
    return Value(Place.DEVICE, why, Confidence.LIKELY)
