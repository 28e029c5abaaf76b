"""All schedulers of diffusers, five steps each, on the plain CPU and under simulate_cuda(): needs diffusers, scipy, torchsde.

    python benchmarks/simulated_schedulers.py [NAME…]
"""
from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from typing import Any

import diffusers
import simulated_compare
import torch

STEPS, MANY = 5, 40
# What constructors ask for, and what `set_timesteps` has to be given.
CONSTRUCTED: dict[str, dict[str, Any]] = {
    "AmusedScheduler": {"mask_token_id": 15}, "VQDiffusionScheduler": {"num_vec_classes": 16},
    "RFD4ProteinaScheduler": {"schedule_mode": "log", "noise_mode": "1/t", "tsr_k": 1.0, "tsr_sigma": 1.0},
    "HeliosScheduler": {"stages": 1, "stage_range": [0, 1]}, "HeliosDMDScheduler": {"stages": 1, "stage_range": [0, 1]},
}  # fmt: skip
TIMED: dict[str, dict[str, Any]] = {
    "SCMScheduler": {"intermediate_timesteps": None}, "RePaintScheduler": {"jump_length": 2, "jump_n_sample": 2},
}  # fmt: skip
TOKENS = ("AmusedScheduler", "BlockRefinementScheduler", "DiscreteDDIMScheduler", "EntropyBoundScheduler")


def main() -> None:
    warnings.simplefilter("ignore")
    diffusers.utils.logging.set_verbosity_error()
    names = sys.argv[1:] or sorted(name for name in dir(diffusers) if name.endswith("Scheduler") and not name.startswith("Flax"))
    equal = [simulated_compare.compare(name, program(name), places=False) for name in names]
    print(f"{sum(equal)} of {len(equal)} equal")


def program(name: str) -> Callable[[str], torch.Tensor]:
    run = SPECIAL.get(name, tokens if name in TOKENS else images)

    def steps(device: str) -> torch.Tensor:
        scheduler = getattr(diffusers, name)(**CONSTRUCTED.get(name, {}))
        options = TIMED.get(name, {})
        if "device" in inspect.signature(scheduler.set_timesteps).parameters:
            options = {**options, "device": device}
        scheduler.set_timesteps(MANY if run is protein else STEPS, **options)
        return run(scheduler, device)

    return steps


def generator_for(scheduler: Any, device: str) -> dict[str, Any]:
    takes = "generator" in inspect.signature(scheduler.step).parameters
    return {"generator": torch.Generator(device).manual_seed(0)} if takes else {}


def images(scheduler: Any, device: str) -> torch.Tensor:
    """Denoises with a model that is a tanh."""
    sample = torch.randn(1, 4, 8, 8).to(device) * getattr(scheduler, "init_noise_sigma", 1.0)
    options = generator_for(scheduler, device)
    for timestep in scheduler.timesteps:
        given = scheduler.scale_model_input(sample, timestep) if hasattr(scheduler, "scale_model_input") else sample
        sample = scheduler.step(torch.tanh(given * 0.9), timestep, sample, **options)[0]
        simulated_compare.current.end_of_step()
    return sample


def tokens(scheduler: Any, device: str) -> torch.Tensor:
    """Unmasks tokens by random logits."""
    amused = type(scheduler).__name__ == "AmusedScheduler"
    size = (1, 4, 4) if amused else (1, 32)
    sample = torch.full(size, 15, device=device)
    options = generator_for(scheduler, device)
    if "mask_token_id" in inspect.signature(scheduler.step).parameters:
        options["mask_token_id"] = 15
    for timestep in scheduler.timesteps:
        logits = torch.randn(1, 15, 4, 4).to(device) if amused else torch.randn(1, 32, 16).to(device)
        sample = scheduler.step(logits, timestep, sample, **options)[0]
        simulated_compare.current.end_of_step()
    return sample


def dpm_cogvideo(scheduler: Any, device: str) -> torch.Tensor:
    sample, before, last = torch.randn(1, 4, 8, 8).to(device), None, None
    for timestep in scheduler.timesteps:
        sample, before = scheduler.step(torch.tanh(sample), before, timestep, last, sample, **generator_for(scheduler, device))
        last = timestep
    return sample


def karras(scheduler: Any, device: str) -> torch.Tensor:
    sample = torch.randn(1, 4, 8, 8).to(device) * scheduler.init_noise_sigma
    for timestep in scheduler.timesteps:
        sigma = scheduler.schedule[timestep]
        before = scheduler.schedule[timestep - 1] if timestep > 0 else 0
        noisy, sigma_hat = scheduler.add_noise_to_input(sample, sigma, generator=torch.Generator().manual_seed(0))
        sample = scheduler.step(torch.tanh(noisy), sigma_hat, before, noisy)[0]
    return sample


def repaint(scheduler: Any, device: str) -> torch.Tensor:
    original, mask = torch.rand(1, 3, 8, 8).to(device), (torch.rand(1, 1, 8, 8) > 0.5).float().to(device)
    sample, generator, last = torch.randn(1, 3, 8, 8).to(device), torch.Generator(device).manual_seed(0), scheduler.timesteps[0] + 1
    for timestep in scheduler.timesteps:
        if timestep < last:
            sample = scheduler.step(torch.tanh(sample), timestep, sample, original, mask, generator)[0]
        else:
            sample = scheduler.undo_step(sample, last, generator)
        last = timestep
    return sample


def score_sde(scheduler: Any, device: str) -> torch.Tensor:
    scheduler.set_sigmas(STEPS)
    sample, generator = torch.randn(1, 3, 8, 8).to(device), torch.Generator().manual_seed(0)
    for timestep in scheduler.timesteps:
        sample = scheduler.step_correct(torch.tanh(sample), sample, generator=generator)[0]
        sample = scheduler.step_pred(torch.tanh(sample), timestep, sample, generator=generator)[0]
    return sample


def vector_quantised(scheduler: Any, device: str) -> torch.Tensor:
    sample = torch.full((1, 8), 15, device=device)
    for timestep in scheduler.timesteps:
        scores = torch.randn(1, 15, 8).to(device).log_softmax(dim=1)
        sample = scheduler.step(scores, timestep, sample, generator=torch.Generator(device).manual_seed(0))[0]
    return sample


def wuerstchen(scheduler: Any, device: str) -> torch.Tensor:
    sample = torch.randn(2, 4, 8, 8).to(device)
    for timestep in scheduler.timesteps[:-1]:
        ratio = timestep.expand(2)
        sample = scheduler.step(torch.tanh(sample), ratio, sample, generator=torch.Generator(device).manual_seed(0))[0]
    return sample


def consistency(scheduler: Any, device: str) -> torch.Tensor:
    sample = torch.randn(1, 4, 8, 8).to(device)
    for timestep in scheduler.timesteps[:-1]:
        sample = scheduler.step(torch.tanh(sample), timestep, sample, generator=torch.Generator(device).manual_seed(0))[0]
    return sample


def distilled(scheduler: Any, device: str) -> torch.Tensor:
    sample = noisy = torch.randn(1, 4, 2, 8, 8).to(device)
    for index, timestep in enumerate(scheduler.timesteps):
        sample = scheduler.step(
            torch.tanh(sample), timestep, sample, torch.Generator(device).manual_seed(0), cur_sampling_step=index, dmd_noisy_tensor=noisy,
            dmd_sigmas=scheduler.sigmas, dmd_timesteps=scheduler.timesteps, all_timesteps=scheduler.timesteps,
        )[0]  # fmt: skip
    return sample


def policy(scheduler: Any, device: str) -> torch.Tensor:
    """A policy of ten grid points."""
    sample = torch.randn(1, 16, 4).to(device)
    for timestep in scheduler.timesteps:
        sample = scheduler.step(torch.randn(1, 16, 40).to(device), timestep, sample)[0]
    return sample


def protein(scheduler: Any, device: str) -> torch.Tensor:
    sample = torch.randn(1, 6, 3).to(device)
    for timestep in scheduler.timesteps[:STEPS]:  # the others are alike
        mask = torch.ones(1, 6, dtype=torch.bool, device=device)
        sample = scheduler.step(torch.tanh(sample), timestep, sample, mask, torch.Generator(device).manual_seed(0))[0]
    return sample


SPECIAL: dict[str, Callable[[Any, str], torch.Tensor]] = {
    "CogVideoXDPMScheduler": dpm_cogvideo, "KarrasVeScheduler": karras, "RePaintScheduler": repaint, "ScoreSdeVeScheduler": score_sde,
    "VQDiffusionScheduler": vector_quantised, "DDPMWuerstchenScheduler": wuerstchen, "PiflowScheduler": policy,
    "RFD4ProteinaScheduler": protein, "SCMScheduler": consistency, "HeliosDMDScheduler": distilled,
}  # fmt: skip


if __name__ == "__main__":
    main()
