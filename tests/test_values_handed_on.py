"""What reaches a place through others: wrappers, base classes that dispatch, a module that serves several calls, a loop over steps."""
from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hostlint.scan import scan_text

if TYPE_CHECKING:
    from hostlint.model import Finding


def told(text: str, code: str) -> list[Finding]:
    findings, errors = scan_text(text, "model.py")
    assert not errors
    return [finding for finding in findings if finding.code == code]


POSITIONS = """\
import torch
from torch import nn


def rotate(q, table, positions=None, offset: int = 0):
    if positions is None:
        positions = torch.arange(offset, offset + q.shape[1], device=q.device)  # here
    return q * table[positions]


def maybe_rotate(q, table, positions=None, offset: int = 0):
    if table is None:
        return q
    return rotate(q, table, {handed})


class Attention(nn.Module):
    def forward(self, x, table, length: int):
        return maybe_rotate(x, table{given})


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Attention() for _ in range(4))

    def forward(self, x, table, length: int):
        for layer in self.layers:
            x = layer(x, table, length)
        return x
"""


@pytest.mark.parametrize("handed", ["positions, offset", "positions=positions, offset=offset", "positions=positions"])
@pytest.mark.parametrize("given", ["", ", None", ", offset=length"])
def test_what_a_wrapper_hands_on_is_left_out_where_its_callers_leave_it_out(handed: str, given: str) -> None:
    found = told(POSITIONS.replace("{handed}", handed).replace("{given}", given), "HL301")
    assert [one.span.line for one in found] == [7]


def test_what_the_callers_of_a_wrapper_give_is_not_made_up_for() -> None:
    text = POSITIONS.replace("{handed}", "positions, offset").replace("{given}", ", table.long()")
    assert told(text, "HL301") == []


DISPATCHED = """\
import torch
from torch import nn


class Op(nn.Module):
    def __init__(self):
        super().__init__()
        self.method = self.forward_cuda

    def forward(self, *args, **kwargs):
        return self.forward_cuda(*args, **kwargs)

    def forward_cuda(self, *args, **kwargs):
        raise NotImplementedError


class Rotary(Op):
    def forward_cuda(self, q, table, positions=None, offset: int = 0):
        if positions is None:
            positions = torch.arange(offset, offset + q.shape[1], device=q.device)  # here
        return q * table[positions]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Rotary()

    def forward(self, x, table, places):
        return self.rotary({given})


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(4))

    def forward(self, x, table, places):
        for layer in self.layers:
            x = layer(x, table, places)
        return x
"""


def test_a_base_class_that_dispatches_hands_on_what_its_callers_leave_out() -> None:
    assert [one.span.line for one in told(DISPATCHED.replace("{given}", "x, table"), "HL301")] == [20]
    assert [one.span.line for one in told(DISPATCHED.replace("{given}", "q=x, table=table, offset=2"), "HL301")] == [20]


@pytest.mark.parametrize("given", ["x, table, places", "x, table, positions=places", "x, table, *places", "**places"])
def test_a_base_class_that_dispatches_hands_on_what_its_callers_give(given: str) -> None:
    assert told(DISPATCHED.replace("{given}", given), "HL301") == []


SHARED = """\
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_q, self.to_k, self.to_v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, context=None):
        source = x if context is None else context
        v = self.to_v(source)
        return self.to_q(x) @ self.to_k(source).mT @ v  # here


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.across, self.sound, self.back = Attention(), Attention(), Attention(), Attention()

    def forward(self, x, y, text, temb):
        x = x + self.own(x)
        x = x + self.across(x, {text})
        y = y + self.sound(y, context=x)
        y = y + self.own(y, context=x * temb)
        return x + self.back(x, context=y), y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(4))

    def forward(self, x, y, timestep, {name}):
        for block in self.blocks:
            x, y = block(x, y, {name}, timestep)
        return x
"""


@pytest.mark.parametrize("name", ["encoder_hidden_states", "audio_encoder_hidden_states", "context"])
def test_keys_of_one_call_that_passes_the_text_are_told(name: str) -> None:
    (one,) = told(SHARED.replace("{text}", "text").replace("{name}", name), "HL306")
    assert one.span.line == 13
    assert [part.line for part in one.parts] == [12]
    assert "at the call in `Block.forward`, line 23" in one.kind_evidence


def test_keys_of_what_the_blocks_change_are_not_told() -> None:
    assert told(SHARED.replace("{text}", "text * temb").replace("{name}", "context"), "HL306") == []
    assert told(SHARED.replace("{text}", "y").replace("{name}", "context"), "HL306") == []


CASTS = """\
import torch
from torch import nn


class Block(nn.Module):
    def forward(self, x, temb, cache=None):
        if temb.ndim == 4:
            scale = temb.float().sum(2)
        else:
            scale = temb.float() * 2.0 + 1.0
        return x * scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(4))

    def other(self, x, temb):
        for block in self.blocks:
            x = block({other})
        return x

    def forward(self, x, temb):
        for block in self.blocks:
            x = block(x, temb)
        return self.other(x, temb)
"""


def test_a_call_that_names_the_argument_otherwise_does_not_count() -> None:
    found = told(CASTS.replace("{other}", "x=x, modulation=temb, cache=x"), "HL303")
    assert [(one.span.line, [part.line for part in one.parts]) for one in found] == [(10, [8])]
    assert "with line 8 in 3 launches" in found[0].message


def test_a_call_that_casts_before_counts() -> None:
    assert told(CASTS.replace("{other}", "x, temb.float()"), "HL303") == []


TABLES = """\
import torch
from torch import nn


def table_of(places, height: int, fps: float, rope):
    rows = torch.arange(height).float()
    turned = torch.outer(torch.tensor(places), rows) * fps * rope.theta
    return torch.cat([turned.cos(), turned.sin()])


class Sampler(nn.Module):
    def __init__(self, rope, net):
        super().__init__()
        self.rope = rope
        self.net = net
        self.index = 0

    def predict(self, x, places, sigma):
        table = table_of({places}, int(x.shape[3]), fps=float(sigma.numel()), rope={rope})
        return self.net(x, table, sigma)

    def sample(self, x, places, sigmas):
        self.index += 1
        for sigma in sigmas:
            x = self.predict(x, places, sigma)
        return x
"""


def test_lists_and_modules_that_a_loop_over_steps_hands_on_are_as_good_as_sizes() -> None:
    text = TABLES.format(places="places", rope="self.rope")
    assert [one.span.line for one in told(text, "HL308")] == [19]
    assert told(text, "HL301") == []  # what the helper does is the same cause
    assert told(text.replace("fps=float(sigma.numel())", "fps=sigma"), "HL301") != []


@pytest.mark.parametrize(("places", "rope"), [("sigma", "self.rope"), ("[self.index]", "self.rope"), ("x[0]", "self.rope")])
def test_what_a_step_changes_makes_another_table(places: str, rope: str) -> None:
    assert told(TABLES.format(places=places, rope=rope), "HL308") == []


ADDRESSES = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers
        self.kept = None

    def rope(self, table):
        cos, sin = table
        key = (cos.data_ptr(), sin.data_ptr())
        if self.kept is not None and self.kept[0] == key:
            return self.kept[1]
        made = torch.cat([cos, sin], -1)
        self.kept = (key, made)
        return made

    def forward(self, x, tables):
        joined = ({joined})
        return self.layers(x, self.rope(joined))
"""


@pytest.mark.parametrize("joined", ["torch.cat([t[0] for t in tables]), torch.cos(x)", "torch.stack(tables), torch.cos(x)"])
def test_what_torch_makes_of_the_unknown_is_a_fresh_tensor(joined: str) -> None:
    assert {one.span.line for one in told(ADDRESSES.replace("{joined}", joined), "HL305")} == {13, 21}


def test_parts_of_what_is_handed_in_may_live_on() -> None:
    assert told(ADDRESSES.replace("{joined}", "tables[0], tables[1]"), "HL305") == []


BUILT = """\
import torch
from kernels import build_inv_indices, make_block_mask, run_kernel
from torch import nn


def meta_of(ranges, max_seqlen: int, rope, device):
    lens = torch.zeros(len(ranges), device=device)
    return lens, {made}


class Model(nn.Module):
    def __init__(self, rope):
        super().__init__()
        self.rope = rope

    def forward(self, x, lens: list[int], image: int):
        a, b = meta_of([(0, int(n)) for n in lens], max_seqlen=image + 8, rope=self.rope, device=x.device)
        return x + a + b
"""


@pytest.mark.parametrize(
    "made",
    ["build_inv_indices(lens, max_seqlen)", "make_block_mask(lens)", "rope.prepare_coords(max_seqlen)", "rope.compute_position_ids(lens)"],
)
def test_what_others_build_by_its_name_is_made(made: str) -> None:
    assert [one.span.line for one in told(BUILT.replace("{made}", made), "HL308")] == [17]


@pytest.mark.parametrize(
    ("gives", "header"),
    [
        ('{"lens": lens, "inv": build_inv_indices(lens, 2)}', "device) -> dict:"),
        ("[build_inv_indices(lens, 2)]", "device, position_mode: str = 'x'):"),
    ],
)
def test_tables_in_a_dictionary_and_modes_by_name(gives: str, header: str) -> None:
    text = BUILT.replace("return lens, {made}", f"return {gives}").replace("device):", header)
    text = text.replace("a, b = meta_of(", "meta = meta_of(").replace("return x + a + b", "return self.rope(x, meta)")
    if "mode" in header:
        text = text.replace("device=x.device)", "device=x.device, position_mode=self.rope.mode)")
    assert [one.span.line for one in told(text, "HL308")] == [17]
    assert told(text.replace("for n in lens]", "for n in lens[: x.sum()]]").replace("image + 8", "x"), "HL308") == []


@pytest.mark.parametrize("made", ["run_kernel(lens)", "rope.advance(lens)", "rope.build(lens)", "make_request_ids(lens), send(lens)"])
def test_what_others_do_may_be_anything(made: str) -> None:
    assert told(BUILT.replace("{made}", made), "HL308") == []


UNSEEN = """\
import torch
from torch import nn


class Attention(nn.Module):
    def forward(self, x, {param}):
        if {test}:
            mask = torch.tril(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)).to(x.device)
        return x * mask
"""


@pytest.mark.parametrize("param", ["mask=None", "mask: torch.Tensor | None = None", "*, mask=None"])
def test_a_module_whose_calls_nobody_sees_runs_as_it_does_by_default(param: str) -> None:
    found = told(UNSEEN.replace("{param}", param).replace("{test}", "mask is None"), "HL202")
    assert [one.span.line for one in found] == [8]


@pytest.mark.parametrize(
    ("param", "test"),
    [
        ("mask", "not isinstance(mask, torch.Tensor)"), ("mask", "mask is None"), ("mask=1.0", "isinstance(mask, float)"),
        ("mask=None", "not torch.is_tensor(mask)"), ("timestep, mask=None", "mask is None"),
        ("mask_cpu=None, mask=None", "mask_cpu is None"),
    ],
)
def test_a_module_is_not_taken_to_be_given_what_is_no_default(param: str, test: str) -> None:
    assert told(UNSEEN.replace("{param}", param).replace("{test}", test), "HL202") == []


GIVEN = """

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()

    def forward(self, x, mask):
        return self.attention(x, {given})
"""


def test_what_a_module_hands_on_is_left_out_by_default() -> None:
    text = UNSEEN.replace("{param}", "mask=None").replace("{test}", "mask is None") + GIVEN.replace("{given}", "mask=mask")
    assert [one.span.line for one in told(text.replace("def forward(self, x, mask)", "def forward(self, x, mask=None)"), "HL202")] == [8]
    assert told(text, "HL202") == []


@pytest.mark.parametrize(("given", "lines"), [("mask", []), ("mask=mask", []), ("None", [8]), ("mask=None", [8])])
def test_a_module_whose_calls_are_seen_runs_as_they_say(given: str, lines: list[int]) -> None:
    text = UNSEEN.replace("{param}", "mask=None").replace("{test}", "mask is None") + GIVEN.replace("{given}", given)
    assert [one.span.line for one in told(text, "HL202")] == lines


@pytest.mark.parametrize(("name", "lines"), [("input_ids", []), ("inputs_embeds", []), ("pixel_values", []), ("positions", [7])])
def test_what_a_model_is_there_for_is_not_left_out(name: str, lines: list[int]) -> None:
    text = f"""\
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, hidden, {name}=None):
        if {name} is None:
            {name} = torch.tensor([1, 2], device=hidden.device)
        return hidden * {name}
"""
    assert [one.span.line for one in told(text, "HL201")] == lines


@pytest.mark.parametrize("param", ["max_text_len: int | None = None", "max_text_len=None", "longest: int | None = None"])
def test_a_number_that_spares_a_wait_is_handed_over(param: str) -> None:
    name = param.split(":")[0].split("=")[0]
    text = f"""\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x, text_mask: torch.Tensor, {param}):
        if {name} is None:
            {name} = int(text_mask.sum(dim=1).max().item())
        return x[:, :{name}]
"""
    assert told(text, "HL101") == []
