"""A read of what the code beside it has on the host says so: `batch.seq_lens_cpu` for `batch.seq_lens`."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

BACKEND = """\
import torch


class Backend:
    def plan(self, batch):
        {other}
        return total

    def forward_step(self, model, timesteps, batch, lengths: torch.Tensor{given}):
        for t in timesteps:
            batch.seq_lens = torch.ones(3, device="cuda") * model(t)
            {read}
"""


def note(read: str, other: str = "total = batch.seq_lens_cpu", given: str = "") -> str:
    findings, errors = scan_text(BACKEND.format(read=read, other=other, given=given), "backend.py")
    assert not errors
    told = [finding.message for finding in findings if finding.span.line == 12 and finding.code.startswith("HL1")]
    assert told
    name, found, rest = told[0].rpartition("; `")[2].partition("` may hold the same on the host")
    assert not rest
    return name if found else ""


@pytest.mark.parametrize(
    ("read", "other", "given", "expected"),
    [
        ("batch.seq_lens.sum().item()", "total = batch.seq_lens_cpu", "", "batch.seq_lens_cpu"),
        ("int(batch.seq_lens.max())", "total = batch.seq_lens_cpu", "", "batch.seq_lens_cpu"),
        ("batch.seq_lens[0].item()", "total = use(batch.seq_lens_list)", "", "batch.seq_lens_list"),
        ("rows = batch.seq_lens.tolist()", "self.seq_lens_host = total = batch", "", "batch.seq_lens_host"),
        ("torch.sum(batch.seq_lens).item()", "total = batch.host_seq_lens", "", "batch.host_seq_lens"),
        ("lengths.sum().item()", "total = 1", ", lengths_cpu=None", "lengths_cpu"),
        ("lengths.sum().item()", "total = batch.lengths_cpu", "", ""),  # of something else
        ("batch.seq_lens.sum().item()", "total = batch.other_cpu", "", ""),
        ("batch.seq_lens.sum().item()", "total = batch.old_seq_lens_cpu", "", ""),
        ("batch.seq_lens_cpu = batch.seq_lens.cpu()", "total = 1", "", ""),  # the read that makes it
        ("batch.seq_lens_cpu = batch.seq_lens.cpu()", "total = batch.seq_lens_cpu", "", ""),
    ],
)
def test_the_copy_is_named_where_the_file_shows_one(read: str, other: str, given: str, expected: str) -> None:
    assert note(read, other, given) == expected
