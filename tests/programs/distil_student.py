"""Distillation: learned temperature and weights are device scalars in places that want numbers."""
import torch
import torch.nn.functional as F
from torch import nn


class Blend(nn.Module):
    def __init__(self):
        super().__init__()
        self.heat = nn.Parameter(torch.ones(()))
        self.mix = nn.Parameter(torch.zeros(()))

    def forward(self, student, teacher):
        soft = F.kl_div((student / self.heat).log_softmax(-1), (teacher / self.heat).softmax(-1), reduction="none").sum(-1)
        sure = teacher.softmax(-1).amax(-1) > 0.5
        kept = torch.where(sure, soft, torch.tensor(0.0))  # expect: host-upload
        hard = F.cross_entropy(student, teacher.argmax(-1), reduction="none")
        total = torch.add(hard, kept, alpha=self.mix.sigmoid())  # expect: scalar-arg
        return torch.lerp(total, kept, self.mix.sigmoid()).mean()  # ok: lerp takes a tensor


def fit(student, teacher, loader, opt, bar):
    blend = Blend().cuda()  # neutral: a module moved
    for x in loader:
        x = x.cuda(non_blocking=True)
        with torch.no_grad():
            logits = teacher(x)
        loss = blend(student(x), logits)
        loss.backward()
        opt.step()
        opt.zero_grad()
        bar.set_postfix(loss=loss.item())  # expect: item
        bar.set_description("distil" if loss.requires_grad else "frozen")  # ok: no value is read
