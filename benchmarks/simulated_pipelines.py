"""Pipelines of diffusers from small random models, on the plain CPU and under simulate_cuda(): needs diffusers and transformers.

    python benchmarks/simulated_pipelines.py [NAME…]
"""
from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import diffusers
import simulated_compare
import torch

Build = Callable[[Callable[..., torch.Tensor]], tuple[Any, dict[str, Any]]]  # the pipeline, and what it is called with
NO_TEXT = ("text_encoder", "tokenizer", "text_encoder_2", "tokenizer_2", "text_encoder_3", "tokenizer_3")
STEPS = 5


def main() -> None:
    warnings.simplefilter("ignore")
    diffusers.utils.logging.set_verbosity_error()
    names = sys.argv[1:] or list(PIPELINES)
    equal = [simulated_compare.compare(name, program(PIPELINES[name])) for name in names]
    print(f"{sum(equal)} of {len(equal)} equal")


def program(build: Build) -> Callable[[str], torch.Tensor]:
    def run(device: str) -> torch.Tensor:
        pipeline, call = build(lambda *size: torch.randn(*size).to(device))
        pipeline.set_progress_bar_config(disable=True)
        generator = torch.Generator(device).manual_seed(0)
        call = {name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in call.items()}
        result = pipeline.to(device)(generator=generator, num_inference_steps=STEPS, output_type="pt", callback_on_step_end=ended, **call)
        found: torch.Tensor = result[0]
        return found

    return run


def ended(pipeline: object, step: int, timestep: object, kept: dict[str, Any]) -> dict[str, Any]:
    simulated_compare.current.end_of_step()
    return kept


def assembled(name: str, **parts: Any) -> Any:
    """The pipeline with its parts, and with nothing where text would be encoded: the embeddings are given."""
    kind = getattr(diffusers, name)
    wanted = kind.__init__.__annotations__
    return kind(**parts, **{part: None for part in NO_TEXT if part in wanted})


def flow(**options: Any) -> Any:
    return diffusers.FlowMatchEulerDiscreteScheduler(**options)


def image_vae(channels: int, blocks: int = 1) -> Any:
    widths = [8 * 2**index for index in range(blocks)]
    return diffusers.AutoencoderKL(
        block_out_channels=widths, in_channels=3, out_channels=3, latent_channels=channels, norm_num_groups=4, layers_per_block=1,
        down_block_types=["DownEncoderBlock2D"] * blocks, up_block_types=["UpDecoderBlock2D"] * blocks, shift_factor=0.1,
        use_quant_conv=False, use_post_quant_conv=False,
    )  # fmt: skip


def flux(text: Callable[..., torch.Tensor]) -> tuple[Any, dict[str, Any]]:
    model = diffusers.FluxTransformer2DModel(
        patch_size=1, in_channels=4, num_layers=2, num_single_layers=2, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=24, pooled_projection_dim=20, axes_dims_rope=[4, 4, 8],
    )  # fmt: skip
    pipeline = assembled("FluxPipeline", scheduler=flow(), transformer=model, vae=image_vae(1))
    return pipeline, {"prompt_embeds": text(1, 6, 24), "pooled_prompt_embeds": text(1, 20), "height": 16, "width": 16}


def stable_diffusion_3(text: Callable[..., torch.Tensor]) -> tuple[Any, dict[str, Any]]:
    model = diffusers.SD3Transformer2DModel(
        sample_size=32, patch_size=1, in_channels=4, out_channels=4, num_layers=2, attention_head_dim=8, num_attention_heads=3,
        joint_attention_dim=24, caption_projection_dim=24, pooled_projection_dim=40,
    )  # fmt: skip
    pipeline = assembled("StableDiffusion3Pipeline", scheduler=flow(), transformer=model, vae=image_vae(4))
    return pipeline, {**both(text, 1, 6, 24), **both(text, 1, 40, name="pooled_prompt_embeds"), "height": 16, "width": 16}


def stable_diffusion_xl(text: Callable[..., torch.Tensor]) -> tuple[Any, dict[str, Any]]:
    model = diffusers.UNet2DConditionModel(
        block_out_channels=(8, 16), layers_per_block=1, sample_size=16, in_channels=4, out_channels=4, norm_num_groups=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=(2, 4), use_linear_projection=True, addition_embed_type="text_time", addition_time_embed_dim=6,
        transformer_layers_per_block=(1, 1), projection_class_embeddings_input_dim=6 * 6 + 20, cross_attention_dim=24,
    )  # fmt: skip
    scheduler = diffusers.EulerDiscreteScheduler(beta_schedule="scaled_linear")
    pipeline = assembled("StableDiffusionXLPipeline", scheduler=scheduler, unet=model, vae=image_vae(4, blocks=2))
    return pipeline, {**both(text, 1, 7, 24), **both(text, 1, 20, name="pooled_prompt_embeds"), "height": 32, "width": 32}


def qwen_image(text: Callable[..., torch.Tensor]) -> tuple[Any, dict[str, Any]]:
    model = diffusers.QwenImageTransformer2DModel(
        patch_size=2, in_channels=16, out_channels=4, num_layers=2, attention_head_dim=16, num_attention_heads=2, joint_attention_dim=24,
        axes_dims_rope=(8, 4, 4),
    )  # fmt: skip
    vae = diffusers.AutoencoderKLQwenImage(
        base_dim=12, z_dim=4, dim_mult=[1, 2, 4], num_res_blocks=1, temperal_downsample=[False, True], latents_mean=[0.0] * 4,
        latents_std=[1.0] * 4,
    )  # fmt: skip
    pipeline = assembled("QwenImagePipeline", scheduler=flow(), transformer=model, vae=vae)
    kept = {name: torch.ones(1, 6, dtype=torch.long) for name in ("prompt_embeds_mask", "negative_prompt_embeds_mask")}
    return pipeline, {**both(text, 1, 6, 24), **kept, "true_cfg_scale": 2.0, "height": 32, "width": 32}


def sana(text: Callable[..., torch.Tensor]) -> tuple[Any, dict[str, Any]]:
    model = diffusers.SanaTransformer2DModel(
        patch_size=1, in_channels=4, out_channels=4, num_layers=2, num_attention_heads=2, attention_head_dim=4, sample_size=32,
        num_cross_attention_heads=2, cross_attention_head_dim=4, cross_attention_dim=8, caption_channels=12,
    )  # fmt: skip
    kinds = ("ResBlock", "EfficientViTBlock")
    vae = diffusers.AutoencoderDC(
        in_channels=3, latent_channels=4, attention_head_dim=2, encoder_block_types=kinds, decoder_block_types=kinds,
        encoder_block_out_channels=(8, 8), decoder_block_out_channels=(8, 8), encoder_qkv_multiscales=((), (5,)),
        decoder_qkv_multiscales=((), (5,)), encoder_layers_per_block=(1, 1), decoder_layers_per_block=(1, 1),
        downsample_block_type="conv", upsample_block_type="interpolate", decoder_norm_types="rms_norm", decoder_act_fns="silu",
    )  # fmt: skip
    pipeline = assembled("SanaPipeline", scheduler=flow(shift=7.0), transformer=model, vae=vae)
    return pipeline, {**both(text, 1, 6, 12), **masks(), "negative_prompt": None, **square(32), "use_resolution_binning": False}


def ltx(text: Callable[..., torch.Tensor]) -> tuple[Any, dict[str, Any]]:
    model = diffusers.LTXVideoTransformer3DModel(
        in_channels=8, out_channels=8, num_attention_heads=2, attention_head_dim=8, cross_attention_dim=16, num_layers=2,
        caption_channels=24,
    )  # fmt: skip
    vae = diffusers.AutoencoderKLLTXVideo(
        latent_channels=8, block_out_channels=(8,) * 4, decoder_block_out_channels=(8,) * 4, layers_per_block=(1,) * 5,
        decoder_layers_per_block=(1,) * 5, spatio_temporal_scaling=(True, True, False, False), upsample_residual=(False,) * 4,
        decoder_spatio_temporal_scaling=(True, True, False, False), decoder_inject_noise=(False,) * 5, upsample_factor=(1,) * 4,
        patch_size=1, patch_size_t=1,
    )  # fmt: skip
    pipeline = assembled("LTXPipeline", scheduler=flow(), transformer=model, vae=vae)
    return pipeline, {**both(text, 1, 6, 24), **masks(), **square(32), "num_frames": 9}


def wan(text: Callable[..., torch.Tensor]) -> tuple[Any, dict[str, Any]]:
    model = diffusers.WanTransformer3DModel(
        num_attention_heads=2, attention_head_dim=12, in_channels=16, out_channels=16, text_dim=24, freq_dim=64, ffn_dim=32, num_layers=2,
        rope_max_seq_len=32,
    )  # fmt: skip
    vae = diffusers.AutoencoderKLWan(base_dim=4, dim_mult=[1, 1, 1, 1], num_res_blocks=1)
    scheduler = diffusers.UniPCMultistepScheduler(prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=3.0)
    pipeline = assembled("WanPipeline", scheduler=scheduler, transformer=model, vae=vae)
    return pipeline, {**both(text, 1, 6, 24), **square(16), "num_frames": 9}


def hunyuan_video(text: Callable[..., torch.Tensor]) -> tuple[Any, dict[str, Any]]:
    model = diffusers.HunyuanVideoTransformer3DModel(
        in_channels=4, out_channels=4, num_attention_heads=2, attention_head_dim=10, num_layers=1, num_single_layers=1,
        num_refiner_layers=1, patch_size=1, text_embed_dim=24, pooled_projection_dim=20, rope_axes_dim=(2, 4, 4),
    )  # fmt: skip
    vae = diffusers.AutoencoderKLHunyuanVideo(
        latent_channels=4, block_out_channels=(8,) * 4, layers_per_block=1, norm_num_groups=4,
    )  # fmt: skip
    pipeline = assembled("HunyuanVideoPipeline", scheduler=flow(shift=7.0), transformer=model, vae=vae)
    given = {"prompt_embeds": text(1, 6, 24), "pooled_prompt_embeds": text(1, 20), "prompt_attention_mask": torch.ones(1, 6)}
    return pipeline, {**given, **square(16), "num_frames": 9}


def cogvideo_x(text: Callable[..., torch.Tensor]) -> tuple[Any, dict[str, Any]]:
    model = diffusers.CogVideoXTransformer3DModel(
        num_attention_heads=2, attention_head_dim=8, in_channels=4, out_channels=4, time_embed_dim=4, text_embed_dim=24, num_layers=2,
        sample_width=2, sample_height=2, sample_frames=9, max_text_seq_length=16,
    )  # fmt: skip
    vae = diffusers.AutoencoderKLCogVideoX(block_out_channels=(8,) * 4, latent_channels=4, layers_per_block=1, norm_num_groups=2)
    pipeline = assembled("CogVideoXPipeline", scheduler=diffusers.CogVideoXDDIMScheduler(), transformer=model, vae=vae)
    return pipeline, {**both(text, 1, 16, 24), **square(16), "num_frames": 8}


def lumina_2(text: Callable[..., torch.Tensor]) -> tuple[Any, dict[str, Any]]:
    model = diffusers.Lumina2Transformer2DModel(
        sample_size=4, in_channels=4, hidden_size=24, num_layers=2, num_refiner_layers=1, num_attention_heads=3, num_kv_heads=1,
        multiple_of=2, axes_dim_rope=(4, 2, 2), cap_feat_dim=12,
    )  # fmt: skip
    pipeline = assembled("Lumina2Pipeline", scheduler=flow(), transformer=model, vae=image_vae(4))
    return pipeline, {**both(text, 1, 6, 12), **masks(), **square(32)}


def pixart_sigma(text: Callable[..., torch.Tensor]) -> tuple[Any, dict[str, Any]]:
    model = diffusers.PixArtTransformer2DModel(
        sample_size=8, num_layers=2, attention_head_dim=8, num_attention_heads=3, caption_channels=12, cross_attention_dim=24,
        use_additional_conditions=False,
    )  # fmt: skip
    scheduler = diffusers.DPMSolverMultistepScheduler()
    pipeline = assembled("PixArtSigmaPipeline", scheduler=scheduler, transformer=model, vae=image_vae(4, blocks=2))
    given = {**both(text, 1, 6, 12), **masks(), "negative_prompt": None, **square(16), "use_resolution_binning": False}
    return pipeline, given


def both(text: Callable[..., torch.Tensor], *size: int, name: str = "prompt_embeds") -> dict[str, Any]:
    """Embeddings of the prompt and of the negative one."""
    return {name: text(*size), f"negative_{name}": text(*size)}


def masks() -> dict[str, Any]:
    return {name: torch.ones(1, 6, dtype=torch.bool) for name in ("prompt_attention_mask", "negative_prompt_attention_mask")}


def square(size: int) -> dict[str, Any]:
    return {"height": size, "width": size}


PIPELINES: dict[str, Build] = {
    "Flux": flux, "StableDiffusion3": stable_diffusion_3, "StableDiffusionXL": stable_diffusion_xl, "QwenImage": qwen_image, "Sana": sana,
    "LTX": ltx, "Wan": wan, "HunyuanVideo": hunyuan_video, "CogVideoX": cogvideo_x, "Lumina2": lumina_2, "PixArtSigma": pixart_sigma,
}  # fmt: skip


if __name__ == "__main__":
    main()
