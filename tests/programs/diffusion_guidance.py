"""Guidance whose window and strength are asked from the device in each step."""
import torch


def guide(cond, free, strength):
    if strength > 1.0:  # expect: truth-test
        return free + strength * (cond - free)
    return cond


def sample(dit, x, prompt, steps: int, low: float, high: float):
    x, prompt = x.cuda(), prompt.cuda()  # neutral: fresh input
    times = torch.linspace(1.0, 0.0, steps + 1, device="cuda")
    strengths = torch.linspace(7.5, 1.0, steps, device="cuda")
    skipped = [0.25, 0.75]
    for i, t in enumerate(times[:-1]):  # ok: views
        if i in skipped or i == steps - 1:  # ok: Python numbers
            continue
        if t in skipped:  # expect: truth-test
            continue
        cond = dit(x, t, prompt)
        free = dit(x, t, torch.zeros_like(prompt))
        v = guide(cond, free, strengths[i])
        if (t > low) and (t < high):  # expect: truth-test
            v = v - v.mean()
        x = x + v * (times[i + 1] - t)
    return x
