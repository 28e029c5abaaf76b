"""Rollouts in a CPU simulator: the copy of the action is the algorithm, the rest is NumPy."""
import numpy as np
import torch


@torch.no_grad()
def rollout(actor, env, horizon: int):
    actor.cuda()  # neutral: a module moved
    obs = env.reset()
    returns = np.zeros(env.count)
    for step in range(horizon):
        x = torch.from_numpy(obs).float()
        action = actor(x.cuda(non_blocking=True)).argmax(-1).cpu().numpy()  # neutral: feeds an opaque host call
        obs, reward, done = env.step(action)
        returns[~done] += reward[~done]  # ok: NumPy masks
        if done.all():  # ok: NumPy
            break
        env.note(float(reward.mean()), int(done.sum()), step)  # ok: NumPy
    best = returns.argmax().item()  # ok: NumPy
    return returns.tolist(), best  # ok: NumPy
