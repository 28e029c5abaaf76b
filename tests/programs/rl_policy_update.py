"""Policy updates over minibatches: the stop test and the statistics are read for each of them."""
import torch
from torch import nn
from torch.distributions import Categorical

actor = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 4)).to("cuda")  # neutral: a module moved
optim = torch.optim.Adam(actor.parameters(), lr=3e-4)


def surrogate(old, new, gain, width: float):
    ratio = (new - old).exp()
    cut = ratio.clamp(1 - width, 1 + width)  # ok: Python bounds
    return ratio, torch.min(ratio * gain, cut * gain).mean().neg()  # ok: torch.min keeps tensors


def update(minibatches, width: float = 0.2, target: float | None = 0.01):
    shares = []
    for obs, act, old, gain in minibatches:
        scores = actor(obs.cuda(non_blocking=True)).log_softmax(-1)
        new = scores.gather(1, act.cuda(non_blocking=True))  # ok: gather stays on the device
        spread = Categorical(logits=scores).entropy().mean()  # expect: validate-args
        calm = Categorical(logits=scores, validate_args=False).entropy().mean()  # ok: checks are off
        ratio, loss = surrogate(old.cuda(non_blocking=True), new, gain.cuda(non_blocking=True), width)
        shares.append(((ratio - 1).abs() > width).float().mean().item())  # expect: item
        kl = ((ratio - 1) - ratio.log()).mean()
        if target is not None and kl > 1.5 * target:  # expect: truth-test
            break
        optim.zero_grad()
        (loss - 0.01 * spread - 0.01 * calm).backward()
        optim.step()
    return sum(shares) / max(len(shares), 1)  # ok: Python floats
