"""A diffusers pipeline with a callback that looks at every step, for `hostlint confirm`: needs diffusers, downloads nothing."""
from __future__ import annotations

import sys

import torch
from diffusers import AutoencoderKL, DDIMScheduler, DiTPipeline, DiTTransformer2DModel


def pipeline() -> DiTPipeline:
    torch.manual_seed(0)
    transformer = DiTTransformer2DModel(
        sample_size=8, num_layers=2, patch_size=2, attention_head_dim=8, num_attention_heads=2, in_channels=4, out_channels=8,
        attention_bias=True, activation_fn="gelu-approximate", num_embeds_ada_norm=1000, norm_type="ada_norm_zero",
        norm_elementwise_affine=False,
    )  # fmt: skip
    vae = AutoencoderKL(
        block_out_channels=(8, 8),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=4,
    )
    return DiTPipeline(transformer=transformer.eval(), vae=vae.eval(), scheduler=DDIMScheduler()).to("cuda")


class Guided:
    """Walks the schedule itself, as people do who add guidance of their own."""

    def __init__(self, pipe: DiTPipeline) -> None:
        self.pipe = pipe

    @torch.no_grad()
    def __call__(self, steps: int, limit: float) -> torch.Tensor:
        scheduler, model = self.pipe.scheduler, self.pipe.transformer
        scheduler.set_timesteps(steps, device="cuda")
        latents = torch.randn(1, 4, 8, 8, device="cuda")
        labels = torch.tensor([1], device="cuda")
        for timestep in scheduler.timesteps:
            strength = torch.tensor(0.75, device="cuda")
            noise = model(latents, timestep.expand(1), class_labels=labels).sample[:, :4]
            if noise.abs().max() > limit:
                noise = noise.clamp(-limit, limit) * strength
            latents = scheduler.step(noise, timestep, latents).prev_sample
            print(f"{int(timestep)}: {latents.std():.3f}", file=sys.stderr)
        return latents


if __name__ == "__main__":
    pipe = pipeline()
    pipe.set_progress_bar_config(disable=True)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    result = pipe(class_labels=[1], num_inference_steps=count, output_type="pt")
    print(tuple(result.images.shape), tuple(Guided(pipe)(count, 4.0).shape))
