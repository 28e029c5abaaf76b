"""A multistep solver whose coefficients take the way over the host."""
import torch


class Multistep:
    def __init__(self, count: int):
        self.sigmas = torch.linspace(1.0, 0.002, count + 1, device="cuda")
        self.index = torch.zeros((), dtype=torch.long, device="cuda")
        self.count = count

    def step(self, noise, x):
        sigma, following = self.sigmas[self.index], self.sigmas[self.index + 1]  # expect: index-read
        lam, lam_next = -sigma.log(), -following.log()
        h = lam_next - lam
        ratios = torch.tensor([h, h * 0.5], device=x.device)  # expect: tensor-of-tensors
        powers = torch.stack([ratios, ratios**2])  # ok: stays on the device
        weights = torch.linalg.inv(powers) @ ratios  # expect: hidden-sync
        basis, _ = torch.linalg.qr(powers)  # ok: not checked on the host
        batch_sigma = torch.full((x.shape[0],), sigma, device=x.device)  # expect: scalar-arg
        self.index += 1  # neutral: the launch that counts, told where it is asked for
        return x - noise * batch_sigma[:, None] * weights[0] + basis[0, 0] * 0  # ok: host integers


def sample(unet, x):
    solver = Multistep(20)
    x = x.to("cuda")  # neutral: fresh input
    for _ in range(solver.count):
        x = solver.step(unet(x), x)
    return x
