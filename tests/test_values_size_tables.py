"""Helpers that make tensors of sizes alone, called at every step, and helpers that must be called."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

MODEL = """\
from functools import lru_cache

import torch
from torch import nn

SEEN = []
TABLES = {}


def check(n: int):
    if n < 0:
        raise ValueError(n)


def mask(batch: int, text_len: int, image_len: int, device):
    check(text_len)
    made = torch.zeros(batch, text_len + image_len, device=device)
    made[:, text_len:] = 1
    return torch.cat([made, made], -1)


@lru_cache(maxsize=4)
def kept(text_len: int, device):
    return torch.cat([torch.zeros(text_len, device=device), torch.ones(1, device=device)])


def through(text_len: int, device):
    return mask(1, text_len, text_len, device)


def noisy(text_len: int, device):
    return torch.cat([torch.randn(text_len, device=device), torch.zeros(1, device=device)])


def remembered(text_len: int, device):
    SEEN.append(text_len)
    record(text_len)
    return torch.cat([torch.zeros(text_len, device=device), torch.ones(1, device=device)])


def window(start: int, length: int, device):
    return torch.cat([torch.zeros(start, device=device), torch.ones(length, device=device)])


def metadata(ranges, device):
    rows = [end - start for start, end in ranges]
    ends = torch.as_tensor(rows, device=device).cumsum(0)
    return {"ends": ends, "longest": max(rows)}


def scratch(size: int, device):
    key = (size, device)
    if key not in TABLES:
        TABLES[key] = torch.cat([torch.zeros(size, device=device), torch.ones(1, device=device)])
    return TABLES[key]


def built(size: int, device):
    found = built.kept.get(size)
    made = torch.cat([torch.zeros(size, device=device), torch.ones(1, device=device)])
    return made if found is None else found


def packed(forward_batch, device):
    return torch.cat([torch.zeros(forward_batch, device=device), torch.ones(1, device=device)])


def dequantized(w_q, w_s, dtype):
    return torch.cat([w_q.to(dtype), torch.zeros_like(w_s)]) * w_s


def declared(size: torch.Tensor, width: int):
    return torch.cat([torch.zeros(width, device=size.device), size])


def single(text_len: int, device):
    return torch.zeros(text_len, device=device)


def lengths(text_len: int, image_len: int):
    return [text_len, text_len + image_len]


def padded(x, text_len: int):
    return torch.cat([x, torch.zeros(text_len, device=x.device)])


def buffer(shape: tuple, device, zeros: bool):
    if zeros:
        return torch.zeros(shape, device=device)
    return torch.empty(shape, device=device)


def workspace(text_len: int, device):
    ends = torch.arange(text_len, device=device)
    out = torch.empty(text_len, 8, device=device).view(-1)
    return ends, out


def planes(text_len: int, device):
    return {"left": buffer((text_len, 8), device, True), "right": torch.zeros(text_len, device=device)}


def filled(text_len: int, device):
    made = torch.empty(text_len, device=device)
    torch.arange(text_len, out=made, device=device)
    return made


def parts(text_lens: list, device):
    ends = torch.zeros(len(text_lens) + 1, device=device)
    ends[1:] = torch.as_tensor(text_lens, device=device)
    rows = [torch.arange(n, device=device) for n in text_lens if n]
    if rows:
        places = torch.cat(rows)
    else:
        places = torch.empty((0,), device=device)
    return ends, places


class Model(nn.Module):
    def forward(self, x, text_len: int, image_len: int, offset: int{more}):
        {line}
        return x
"""
HERE = 1 + MODEL.splitlines().index("        {line}")


def told(line: str, more: str = "") -> list[int]:
    findings, errors = scan_text(MODEL.replace("{line}", line).replace("{more}", more), "model.py")
    assert not errors
    return [finding.span.line for finding in findings if finding.code == "HL308"]


@pytest.mark.parametrize(
    "line",
    [
        "x = x * mask(x.shape[0], text_len, image_len, x.device)",
        "x = x * mask(batch=1, text_len=text_len, image_len=64, device=x.device)",
        "x = x * through(text_len, x.device)",
        "x = x * window(0, text_len, x.device)",
        "x = x * filled(text_len, x.device)",
        "x = x * parts([text_len, image_len], x.device)[1]",
        "made = mask(1, text_len, image_len, x.device); made[:, text_len:] = False; x = x * made",
        'x = x[metadata([(0, n) for n in (text_len, image_len)], x.device)["ends"]]',
    ],
)
def test_a_pure_helper_is_asked_again(line: str) -> None:
    assert told(line) == [HERE]


@pytest.mark.parametrize(
    "line",
    [
        "x = x * kept(text_len, x.device)[:1]",
        "x = x * noisy(text_len, x.device)[:1]",
        "x = x * remembered(text_len, x.device)[:1]",
        "x = x * window(offset, text_len, x.device)",  # where it starts may change
        "x = x * single(text_len, x.device)",
        "x = x * lengths(text_len, image_len)[0]",
        "x = padded(x, text_len)",
        "x = x * scratch(text_len, x.device)[:1]",
        "x = x * built(text_len, x.device)[:1]",
        "x = x * packed(self.batch, x.device)[:1]",
        "x = x * dequantized(self.w_q, self.w_s, x.dtype)",
        "x = x * declared(self.size, text_len)",
        "x = launch(x, buffer((text_len, 8), x.device, zeros=False))",
        "x = launch(x, *workspace(text_len, x.device))",
        "x = launch(x, **planes(text_len, x.device))",
        "made = mask(1, text_len, image_len, x.device); made[:, 0] = x; x = made",
        "made = mask(1, text_len, image_len, x.device); made.view(-1)[:4].copy_(x); x = made",
        "made = mask(1, text_len, image_len, x.device); torch.mul(x, 2, out=made); x = made",
        "made = mask(1, text_len, image_len, x.device); made *= x; x = made",
    ],
)
def test_a_helper_that_is_kept_or_must_run_is_silent(line: str) -> None:
    assert told(line) == []


def test_where_a_cache_grows_the_sizes_do_too() -> None:
    line = "x = x * mask(x.shape[0], text_len, image_len, x.device)"
    assert told(line, ", past_key_values=None") == []
    assert told(line, ", forward_batch=None") == []
    assert told(line, ", extra=None") == [HERE]
