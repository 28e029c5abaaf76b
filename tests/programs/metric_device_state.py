"""Metrics that stay on the device until somebody looks."""
import torch


class Mean:
    def __init__(self):
        self.total = torch.zeros((), dtype=torch.float64, device="cuda")
        self.count = 0

    def update(self, value, rows: int):
        self.total += value.detach().double() * rows  # ok: device
        self.count += rows  # ok: host

    def compute(self) -> float:
        return (self.total / max(self.count, 1)).item()  # ok: where somebody looks


@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    correct = 0
    for x, y in loader:
        guess = net(x.cuda()).argmax(-1)
        correct += (guess.cpu() == y).sum().item()  # ok: evaluation
    return correct


def fit(net, train_loader, valid_loader, opt, epochs: int):
    for epoch in range(epochs):
        mean = Mean()
        net.train()
        for x, y in train_loader:
            loss = torch.nn.functional.cross_entropy(net(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
            loss.backward()
            opt.step()
            opt.zero_grad()
            mean.update(loss, x.shape[0])
        shown = f"epoch {epoch}: {mean.compute():.4f}"  # ok: once per epoch
        right = evaluate(net, valid_loader)
        if right > 100 and shown:  # ok: Python values
            torch.save({k: v.cpu() for k, v in net.state_dict().items()}, "best.pt")  # ok: a checkpoint
