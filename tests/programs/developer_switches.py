"""Reads behind switches that are off unless a developer turned them on."""
import logging
import os

import torch

log = logging.getLogger(__name__)
CHECK_NUMBERS = bool(int(os.environ.get("CHECK_NUMBERS", "0")))  # ok: Python values


class Probe:
    def __init__(self, enabled: bool = False):
        self.enabled = enabled
        self.seen = []

    def look(self, name: str, value):
        if not self.enabled:
            return
        torch.cuda.synchronize()  # ok: only while probing
        self.seen.append((name, value.abs().max().item()))  # ok: only while probing


def train(net, loader, opt, probe: Probe, debug: bool = False, profile: bool = False):
    net.cuda()  # neutral: a module moved
    for step, x in enumerate(loader):
        loss = net(x.cuda(non_blocking=True)).square().mean()
        loss.backward()
        if CHECK_NUMBERS:
            assert torch.isfinite(loss), step  # ok: behind a switch
        if debug and loss.item() > 10.0:  # ok: read only while debugging
            log.warning("loss %s", loss)  # ok: behind a switch
        if step < 2:
            log.info("first losses %.3f", loss.item())  # ok: at most twice
        probe.look("loss", loss)
        opt.step()
        opt.zero_grad()
        if profile:
            torch.cuda.synchronize()  # ok: behind a switch
