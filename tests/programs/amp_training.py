"""Mixed precision with the strict options of the library."""
import torch


def train(net, loader, opt):
    net.cuda()  # neutral: a module moved
    scaler = torch.amp.GradScaler("cuda")
    counted = torch.zeros((), device="cuda")
    for step, (x, y) in enumerate(loader):
        with torch.autocast("cuda"):
            loss = (net(x.cuda(non_blocking=True)) - y.cuda(non_blocking=True)).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)  # expect: hidden-sync
        plain = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # ok: no host read
        scaler.step(opt)  # neutral: one read is the scaler's design
        scaler.update()
        opt.zero_grad(set_to_none=True)
        counted += torch.isfinite(norm) & torch.isfinite(plain)  # ok: counted on the device
        assert torch.isfinite(loss), "loss"  # expect: truth-test
        if step and step % 200 == 0:
            counted.zero_()
