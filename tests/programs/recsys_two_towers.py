"""Two towers with bags of ids, trained with numbers in every log line."""
import logging

import torch
import torch.nn.functional as F
from torch import nn

log = logging.getLogger(__name__)


class Tower(nn.Module):
    FIXED = [0, 3, 7]

    def __init__(self, rows: int, width: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, width))

    def forward(self, ids, offsets):
        bag = F.embedding_bag(ids, self.table, offsets)  # ok: the offsets are on the device already
        anchors = self.table[self.FIXED]  # expect: host-upload
        plain = F.embedding(ids, self.table)  # ok: no size depends on the data
        return bag @ anchors.mT, plain.mean(0)


def train(user: Tower, item: Tower, loader, opt):
    for batch in loader:
        ids = batch.ids.cuda(non_blocking=True)
        offsets = batch.offsets.cuda(non_blocking=True)
        left, mean = user(ids, offsets)
        right, _ = item(ids, offsets)
        seen = torch.unique(ids)  # expect: data-dep-shape
        loss = F.cross_entropy(left @ right.mT, batch.rows.cuda(non_blocking=True)) + mean.sum()
        loss.backward()
        opt.step()
        opt.zero_grad()
        log.info(f"loss {loss.detach()} rows {left.shape[0]}")  # expect: format-read
        log.debug("seen %d", seen.numel())  # ok: host metadata
