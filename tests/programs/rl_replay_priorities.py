"""Prioritised replay: the largest priority is kept as a Python number."""
import torch


class Learner:
    def __init__(self, critic, opt):
        self.critic = critic.cuda()  # neutral: a module moved
        self.opt = opt
        self.highest = 1.0
        self.peak = torch.ones((), device="cuda")

    def learn(self, batch):
        states, target, weight = (part.cuda(non_blocking=True) for part in batch.tensors)
        error = self.critic(states).squeeze(-1) - target
        loss = (error.square() * weight).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        size = error.detach().abs()
        self.highest = max(self.highest, size.max())  # expect: truth-test
        self.peak = torch.maximum(self.peak, size.max())  # ok: compared on the device
        if batch.count > 4:  # ok: a Python number
            batch.note = f"{size.mean():.3f}"  # expect: format-read
        return size


def train(learner: Learner, replay, steps: int):
    for step in range(steps):
        size = learner.learn(replay.draw(step))
        if step % 500 == 0:
            replay.report(size.mean().item())  # ok: every 500 steps
