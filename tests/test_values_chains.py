"""One thing that is built again is one finding, and a few launches on a few elements are told to those alone who ask for all."""
from __future__ import annotations

from pathlib import Path

import pytest

from hostlint.engine import ScanRequest, raw_scan
from hostlint.model import Confidence, Finding, HeatLevel
from hostlint.project import SourceFile
from hostlint.scan import scan_text

MODEL = """\
import torch
from torch import nn


def joined(one, other):
    print("joined")
    return torch.outer(one, other)


class Rope(nn.Module):
    def __init__(self, width: int, pairs, longest: int):
        super().__init__()
        self.width = width
        self.pairs = pairs
        self.longest = longest
        self.mix = nn.Linear(width, width)
        self.register_buffer("powers", torch.ones(width), persistent=False)

    def forward(self, x, seen):
        rows, columns = x.shape[1], x.shape[2]
        {body}
        return self.mix(x) * out
"""


def found(text: str, code: str = "HL301") -> list[Finding]:
    """At any confidence."""
    raw = raw_scan(ScanRequest(Path(), (SourceFile("model.py", Path("model.py"), True, "model", text),)))
    assert not raw.errors
    return sorted((one for one in raw.findings if one.code == code), key=lambda one: one.sort_key)


def in_forward(*lines: str) -> list[Finding]:
    return found(MODEL.replace("{body}", "\n        ".join(lines)))


def lines_of(findings: list[Finding]) -> list[tuple[int, list[int]]]:
    return [(one.span.line - 21, [part.line - 21 for part in one.parts]) for one in findings]


ONE_THING = {
    "outer": [
        "a = torch.arange(rows, device=x.device).float()", "b = torch.arange(columns, device=x.device).float()", "out = torch.outer(a, b)",
    ],
    "grid": ["a = torch.linspace(0, 1, rows) * 2", "b = torch.linspace(0, 1, columns) * 2", "out = torch.stack(torch.meshgrid(a, b), 0)"],
    "joined after turning": [
        "a = torch.arange(rows, device=x.device)[:, None].cos()", "b = torch.arange(columns, device=x.device)[None].sin()",
        "both = [a.expand(rows, columns), b.expand(rows, columns)]", "out = torch.cat(both, dim=-1)",
    ],
    "through a buffer": ["a = torch.arange(rows, device=x.device) * 1.5", "b = torch.arange(columns) ** 2", "out = (a + self.powers) * b"],
    "written into one": [
        "out = torch.zeros(rows, 2, device=x.device)", "out[:, 0] = torch.arange(rows, device=x.device) + 1",
        "out[:, 1] = torch.arange(rows, device=x.device) + 2",
    ],
    "through a helper": ["a = torch.arange(rows) * 2.0", "b = torch.arange(columns) * 0.5", "out = joined(a, b)"],
    "one branch or the other": [
        "if self.longest > 4:", "    out = torch.arange(rows, device=x.device).cos()", "else:",
        "    out = torch.arange(rows, device=x.device).sin()",
    ],
}  # fmt: skip


@pytest.mark.parametrize("body", ONE_THING.values(), ids=ONE_THING)
def test_what_goes_into_one_thing_is_told_once(body: list[str]) -> None:
    makers = [number for number, line in enumerate(body) if "arange" in line or "linspace" in line]
    assert lines_of(in_forward(*body)) == [(makers[0], makers[1:])]


TWO_THINGS = {
    "two tables": ["a = torch.arange(rows).cos()", "b = torch.arange(columns).sin()", "out = x * a[:, None] * b"],
    "joined by the activations": ["a = torch.arange(rows).exp()", "b = torch.arange(columns).exp() + seen", "out = torch.outer(a, b)"],
    "handed to a module": ["a = torch.arange(rows).exp()", "b = torch.arange(columns).exp()", "out = self.mix(a) + b"],
}  # fmt: skip


@pytest.mark.parametrize("body", TWO_THINGS.values(), ids=TWO_THINGS)
def test_what_the_activations_join_are_two_things(body: list[str]) -> None:
    assert lines_of(in_forward(*body)) == [(0, []), (1, [])]


def test_the_message_says_how_much_and_where() -> None:
    (one,) = in_forward(*ONE_THING["outer"])
    assert "builds the same values again, with line 22 in 5 launches, on every call" in one.message
    (host,) = in_forward(*ONE_THING["grid"])
    assert "with line 22 in 5 operations of the host" in host.message


SMALL = {
    "frequencies of a time step": ["f = torch.exp(torch.arange(self.width // 2, device=x.device) * -0.1)", "out = seen[:, None] * f"],
    "one number for each sample": ["out = torch.arange(x.shape[0], device=x.device) * rows"],
    "a few elements": ["out = torch.linspace(0, 1, 8, device=x.device) ** 2"],
    "the batch, unpacked": ["many, _, _, _ = x.shape", "out = torch.arange(many, device=x.device) * rows"],
    "features": ["out = torch.exp(torch.arange(x.shape[-1], device=x.device) * 0.5)"],
    "pairs of features": ["out = torch.arange(x.size(-1) // 2, device=x.device).exp() * 0.5"],
}
WORTH = {
    "tokens": ["out = torch.exp(torch.arange(rows, device=x.device) * 0.5)"],
    "tokens, unpacked": ["tokens, _ = x[0].shape", "out = torch.arange(tokens, device=x.device) * 0.5"],
    "tokens by size()": ["out = torch.arange(x.size(1), device=x.device).cos()"],
    "a square": ["out = torch.tril(torch.ones(self.longest, self.longest, device=x.device))"],
    "many elements": ["out = torch.linspace(0, 1, 65536, device=x.device) ** 2"],
    "many launches": ["out = torch.exp(torch.arange(self.width, device=x.device).float() * -0.1 / self.width).cos() + 1"],
}


@pytest.mark.parametrize("body", SMALL.values(), ids=SMALL)
def test_a_few_launches_on_a_few_elements_are_possible(body: list[str]) -> None:
    assert [one.confidence for one in in_forward(*body)] == [Confidence.POSSIBLE]


@pytest.mark.parametrize("body", WORTH.values(), ids=WORTH)
def test_what_grows_or_takes_many_launches_is_likely(body: list[str]) -> None:
    assert [one.confidence for one in in_forward(*body)] == [Confidence.LIKELY]


@pytest.mark.parametrize("name", ["BlockScheduler", "LayerwiseTrainer", "AttentionModel"])
def test_what_only_has_a_blocks_name_runs_once_a_step(name: str) -> None:
    text = MODEL.replace("Rope", name).replace("{body}", "\n        ".join(SMALL["frequencies of a time step"]))
    assert [one.confidence for one in found(text)] == [Confidence.POSSIBLE]


@pytest.mark.parametrize("name", ["CrossAttention", "DecoderLayer", "AttnProcessor"])
def test_what_every_block_repeats_is_likely(name: str) -> None:
    text = MODEL.replace("Rope", name).replace("{body}", "\n        ".join(SMALL["frequencies of a time step"]))
    assert [one.confidence for one in found(text)] == [Confidence.LIKELY]


LOOP = """\
import torch

net = torch.nn.Linear(8, 8).cuda()


def sample(x, image, time_ids, guided: bool, steps: int):
    image, time_ids = image.cuda(), time_ids.cuda()
    for step in range(steps):
        {body}
        x = net(x * step)
    return x
"""


def in_loop(*lines: str) -> list[tuple[int, list[int], Confidence]]:
    findings = found(LOOP.replace("{body}", "\n        ".join(lines)), "HL302")
    return [(one.span.line - 9, [part.line - 9 for part in one.parts], one.confidence) for one in findings]


def test_work_that_goes_into_one_thing_is_told_once() -> None:
    assert in_loop("half = image.half()", "warm = half.exp()", "x = x + torch.softmax(warm, -1)") == [(0, [1, 2], Confidence.LIKELY)]
    assert in_loop("half = image.half()", "x = x + half", "x = x + torch.softmax(image, -1)") == [
        (0, [], Confidence.LIKELY), (2, [], Confidence.LIKELY),
    ]  # fmt: skip
    branches = ["if guided:", "    both = torch.cat([image] * 2)", "else:", "    both = torch.cat([image, image, image])", "x = x + both"]
    assert in_loop(*branches) == [(1, [3], Confidence.LIKELY)]


def test_one_launch_on_a_number_for_each_sample_is_possible() -> None:
    assert in_loop("x = x + torch.cat([time_ids] * 2)") == [(0, [], Confidence.POSSIBLE)]
    assert in_loop("x = x + torch.cat([time_ids] * 2)", "x = x + torch.cat([image, time_ids])")[1][2] is Confidence.LIKELY
    assert in_loop("both = torch.cat([time_ids] * 2)", "x = x + both.half()") == [(0, [1], Confidence.LIKELY)]


def test_both_keys_and_values_of_a_text_are_one_finding() -> None:
    text = """\
import torch
from torch import nn


class Cross(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_q, self.to_k, self.to_v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, context, other):
        v = self.to_v(context)
        k = self.to_k(context)
        return self.to_q(x) @ k.mT @ v


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Cross() for _ in range(4))

    def forward(self, x, t, context):
        for block in self.blocks:
            x = block(x * t, context, x)
        return x
"""
    assert [(one.span.line, [part.line for part in one.parts]) for one in found(text, "HL306")] == [(12, [11])]
    assert "gives the same result, with line 11 in each block, on" in scan_text(text)[0][0].message


MASK = """\
import torch


def mask_of{name}(x, gamma: float):
    powers = torch.arange(x.shape[1], device=x.device).float() * gamma
    return powers.exp().clamp(max=1.0).cumsum(0) * 0.5


class {owner}:
    def {method}(self, model, x):
        return model(x, mask_of{name}(x, 0.5))

    def run(self, model, inputs, timesteps):
        for t in timesteps:
            inputs = self.{method}(model, inputs)
        return inputs
"""


@pytest.mark.parametrize(("name", "owner", "method"), [("", "Pipeline", "step"), ("_all", "Sampler", "denoise")])
def test_shapes_stay_over_the_steps_of_a_request(name: str, owner: str, method: str) -> None:
    assert [one.confidence for one in found(MASK.format(name=name, owner=owner, method=method))] == [Confidence.LIKELY]


@pytest.mark.parametrize(
    ("name", "owner", "method"),
    [("", "DPOTrainer", "step"), ("", "Runner", "training_step"), ("", "Runner", "compute_loss"), ("_loss", "Runner", "step"),
     ("_if_needed", "Pipeline", "step"), ("_ensure_size", "Pipeline", "ensure_cache")],
)  # fmt: skip
def test_batches_differ_and_what_is_done_when_needed_is_seldom_done(name: str, owner: str, method: str) -> None:
    assert [one.confidence for one in found(MASK.format(name=name, owner=owner, method=method))] in ([Confidence.POSSIBLE], [])


KINDS = """\
import torch

criterion = torch.nn.CrossEntropyLoss().cuda()


def total(logits, labels, weights, kinds):
    logits = logits.cuda()
    loss = 0.0
    for {target} in {walked}:
        if {test}:
            part = criterion(logits, labels)
        else:
            part = criterion(labels, logits)
        loss = loss + part * torch.logsumexp(logits, -1).mean()
    return loss
"""


def test_a_loop_over_kinds_of_work_has_one_pass_most_often() -> None:
    assert found(KINDS.format(walked="kinds", target="kind", test="kind == 'hard'"), "HL302") == []
    assert found(KINDS.format(walked="zip(kinds, weights)", target="kind, weight", test="'soft' != kind"), "HL302") == []
    assert len(found(KINDS.format(walked="kinds", target="kind", test="kind > 2"), "HL302")) == 1


def test_the_same_expression_twice_is_one_finding() -> None:
    assert in_loop("x = x + image.half()", "x = x * image.half()") == [(0, [1], Confidence.LIKELY)]
    tested = ["x = x + (image.half() if image is not None else x)", "x = x * (image.half() if image is not None else x)"]
    assert in_loop(*tested) == [(0, [1], Confidence.LIKELY)]
    assert in_loop("x = x + torch.cat([image, image])", "x = x * image.half()") == [(0, [], Confidence.LIKELY), (1, [], Confidence.LIKELY)]


def test_a_cast_to_the_type_of_another_tensor_may_be_free() -> None:
    for cast in ("image.to(time_ids.dtype)", "image.to(dtype=time_ids.dtype)"):
        assert in_loop(f"x = x + {cast}") == [(0, [], Confidence.POSSIBLE)], cast
    masked = LOOP.replace("image, time_ids = image.cuda()", "image, time_ids = (with_mask(image) if guided else with_mask(x))")
    masked = masked.replace("{body}", "x = x + image.to(time_ids.dtype)") + "\n\ndef with_mask(one):\n    return one.cuda() * 2\n"
    assert [one.confidence for one in found(masked, "HL302")] == [Confidence.POSSIBLE]
    assert in_loop("x = x + image.to(torch.float16)") == [(0, [], Confidence.LIKELY)]
    assert in_loop("x = x + image.to(time_ids.dtype).exp()") == [(0, [], Confidence.LIKELY)]


TILED = """\
import torch


class AutoencoderKL:
    def {blend}(self, a, b, extent: int):
        for y in range(extent):
            b[:, y] = a[:, -extent + y] * (1 - y / extent) + b[:, y] * (y / extent)
        return b

    def {decode}(self, z, rows):
        z = z.cuda()
        for row in rows:
            z = self.{blend}(z, self.decoder(z), row)
        return z
"""


@pytest.mark.parametrize(("blend", "decode"), [("blend_v", "run"), ("mixed", "tiled_decode"), ("blend_h", "spatial_tiled_encode")])
def test_rows_of_tiles_are_written_once_a_request(blend: str, decode: str) -> None:
    assert [one.heat.level for one in found(TILED.format(blend=blend, decode=decode), "HL309")] == [HeatLevel.REQUEST]


def test_what_a_layer_does_in_each_tile_is_as_hot_as_the_layer() -> None:
    text = """\
import torch


def mask_of(frames: int, x):
    mask = torch.full((frames, frames), -1.0, device=x.device)
    for frame in range(frames):
        mask[frame, : frame + 1] = 0
    return mask


class Middle:
    def forward(self, x):
        return x + mask_of(x.shape[1], x)


class Decoder:
    def __init__(self):
        self.middle = Middle()

    def run_layers(self, x):
        return self.middle.forward(x)

    def tiled_decode(self, z, rows):
        for row in rows:
            z = self.run_layers(z)
        return z
"""
    assert [one.heat.level for one in found(text, "HL309")] == [HeatLevel.LOOP]


def test_rows_in_a_step_are_written_at_each_step() -> None:
    assert [one.heat.level for one in found(TILED.format(blend="blended", decode="step"), "HL309")] == [HeatLevel.LOOP]


HANDFUL = MODEL.replace("Rope", "Attention")


def test_a_handful_of_elements_is_a_trifle_in_a_block_too() -> None:
    few = HANDFUL.replace("{body}", "out = torch.arange(4, device=x.device).exp()")
    assert [one.confidence for one in found(few)] == [Confidence.POSSIBLE]
    rows = HANDFUL.replace("{body}", "out = torch.exp(torch.arange(rows, device=x.device))")
    assert [one.confidence for one in found(rows)] == [Confidence.LIKELY]


def test_a_loop_over_axes_is_no_loop_over_blocks() -> None:
    axes = MODEL.replace("{body}", "for axis in range(2):\n            out = torch.arange(0, self.width, 2, device=x.device) / self.width")
    assert [one.confidence for one in found(axes)] in ([Confidence.POSSIBLE], [])
    blocks = axes.replace("for axis in range(2)", "for block in self.blocks")
    assert [one.confidence for one in found(blocks)] == [Confidence.LIKELY]


@pytest.mark.parametrize("loop", [
    "for chunk in x.chunk(4)", "for tile in self.tiles", "for microbatches in self.microbatch_groups", "for row in rows_of(x)",
])  # fmt: skip
def test_pieces_of_the_data_are_no_blocks(loop: str) -> None:
    pieces = MODEL.replace("{body}", f"{loop}:\n            out = torch.arange(0, self.width, 2, device=x.device) / self.width")
    assert [one.confidence for one in found(pieces)] in ([Confidence.POSSIBLE], [])
    blocks = pieces.replace(loop, "for block in self.blocks")
    assert [one.confidence for one in found(blocks)] == [Confidence.LIKELY]


def test_what_is_asked_for_by_two_names_is_asked_once() -> None:
    text = """\
import os

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def is_fast(self):
        if os.getenv("NET_FAST") is None:
            return os.getenv("NET_QUICK") == "1"
        return os.environ.get("NET_FAST") == "1"

    def forward(self, x):
        for layer in self.layers:
            x = layer(x) if self.is_fast() else layer(x).float()
        return x
"""
    assert [(one.span.line, [part.line for part in one.parts]) for one in found(text, "HL310")] == [(13, [14, 15])]


ROTARY = """\
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.width = width
        self.mix = nn.Linear(width, width)

    def forward(self, x, positions):
        powers = torch.arange(0, self.width, 2, device=x.device) / self.width
        turned = positions.float()[:, None] * powers
        table = {table}
        return self.mix(x) * table


class Net(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(Attention(width) for _ in range(depth))

    def forward(self, x, positions):
        for layer in self.layers:
            x = layer(x, positions)
        return x
"""


def test_what_a_block_makes_of_constants_and_what_all_blocks_share_is_one_finding() -> None:
    findings, _ = scan_text(ROTARY.replace("{table}", "torch.cat((turned, turned), -1)"), "model.py")
    told = [one for one in findings if one.code[:3] == "HL3"]
    assert [(one.code, one.span.line, [part.line for part in one.parts]) for one in told] == [("HL301", 12, [13, 14])]
    findings, _ = scan_text(ROTARY.replace("{table}", "torch.cat((turned, x), -1)"), "model.py")
    assert {one.code for one in findings} >= {"HL301", "HL303"}


def test_a_table_of_a_handful_of_places_is_possible() -> None:
    text = """\
import torch
from torch import nn


def grid(size, start, device):
    rows = torch.arange(start[0], start[0] + size[0], device=device)
    columns = torch.arange(start[1], start[1] + size[1], device=device)
    return torch.stack(torch.meshgrid(rows, columns))


class Model(nn.Module):
    def forward(self, x):
        return x + grid({size}, (0, 0), device=x.device)
"""
    assert [one.confidence for one in found(text.replace("{size}", "(1, 1)"), "HL308")] == [Confidence.POSSIBLE]
    assert [one.confidence for one in found(text.replace("{size}", "(x.shape[1], 1)"), "HL308")] == [Confidence.LIKELY]
    assert [one.confidence for one in found(text.replace("{size}", "(64, 64)"), "HL308")] == [Confidence.LIKELY]


CALLED = """\
import torch


def scattered(x: torch.Tensor, mask):
    rows = torch.arange(x.shape[1], device=x.device)
    return x * rows.masked_select(mask)


def sample(model, x: torch.Tensor, mask, {walked}):
    for {target} in {walked}:
        x = model(x)
        x = x + scattered(x, mask)
    return x
"""


@pytest.mark.parametrize(("walked", "target", "confidence"), [
    ("timesteps", "t", [Confidence.LIKELY]), ("steps", "step", [Confidence.LIKELY]),
    ("batches", "batch", []), ("microbatches", "x", []), ("new_tokens", "token", []), ("steps", "token", []),
])  # fmt: skip
def test_the_steps_of_a_request_share_what_grows_with_its_tokens(walked: str, target: str, confidence: list[Confidence]) -> None:
    text = CALLED.replace("{walked}", walked).replace("{target}", target)
    assert [one.confidence for one in found(text)] == confidence
    assert not found(text.replace("x.shape[1]", "x.shape[0]"))  # a number for each sample
