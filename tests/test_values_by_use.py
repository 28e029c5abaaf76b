"""Values that no annotation places: parameters used as tensors, data that `torch.tensor` takes, masks kept under a name."""
from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import dedent

import pytest

from hostlint.values.judging import Meeting
from hostlint.values.value import Place, Value

ValueOf = Callable[..., Value]
MeetingsOf = Callable[..., list[Meeting]]
HEAD = 'import torch; import torch.nn.functional as F; from torch import nn; import numpy as np; X = torch.ones(4, 4, device="cuda")\n'
MARK = re.compile(r"#\s*(.*)$")


def places(meetings: list[Meeting]) -> dict[int, str]:
    """The kinds by line."""
    found: dict[int, list[str]] = {}
    for meeting in meetings:
        found.setdefault(meeting.site.line, []).append(meeting.kind.value)
    return {line: ", ".join(sorted(set(kinds))) for line, kinds in found.items()}


def marked(text: str) -> dict[int, str]:
    return {number: mark[1] for number, line in enumerate(text.splitlines(), 1) if (mark := MARK.search(line))}


PARAMETERS = [
    ("a method that only tensors have", Place.DEVICE, "target_len", "target_len.unsqueeze(1)"),
    ("a size that is called", Place.DEVICE, "length", "length.size(0)"),
    ("a function of torch", Place.DEVICE, "length", "torch.min(length)"),
    ("a function of torch.nn.functional", Place.DEVICE, "index", "F.one_hot(index, 4)"),
    ("a copy to the host", Place.DEVICE, "input_len", "input_len.cpu()"),
    ("nothing that only tensors have", Place.UNKNOWN, "length", "length.shape"),
    ("a size that is a number", Place.UNKNOWN, "length", "x.new_zeros(length.size)"),
    ("a number that torch takes", Place.UNKNOWN, "length", "torch.arange(length)"),
    ("a sequence that torch takes", Place.UNKNOWN, "length", "torch.stack(length)"),
    ("a name of the host", Place.TENSOR, "length_cpu", "length_cpu.unsqueeze(0)"),
]


@pytest.mark.parametrize(("place", "name", "use"), [one[1:] for one in PARAMETERS], ids=[one[0] for one in PARAMETERS])
def test_a_forwards_parameter_by_its_use(value_of: ValueOf, place: Place, name: str, use: str) -> None:
    text = f"{HEAD}class C(nn.Module):\n    def forward(self, x, {name}):\n        y = {use}\n        return {name}\n"
    assert value_of(text, "C.forward").place is place


def test_a_helper_of_a_step_is_given_what_it_uses_as_tensors(value_of: ValueOf) -> None:
    text = """
        class C(nn.Module):
            def forward(self, batch):
                return spread(**batch)
        def spread(counts, sizes):
            counts = counts.unsqueeze(1)
            return counts
        def load(counts):
            return counts.unsqueeze(1)
    """
    assert value_of(HEAD + dedent(text), "spread").place is Place.DEVICE
    assert value_of(HEAD + dedent(text), "load").place is not Place.DEVICE


PROGRAMS = {
    "losses of torch's own base": """
        class Bin(nn.modules.loss._Loss):
            def forward(self, hard, soft):
                return soft[hard == 1].sum()  # mask-read
        class Norm(nn.modules.batchnorm._BatchNorm):
            def forward(self, x):
                return x[x > 0]  # mask-read
    """,
    "typed constructors": """
        class C(nn.Module):
            def forward(self, x, ids: list, shapes: tuple):
                x.diagonal().copy_(torch.Tensor([1.0]))  # blocking-upload
                a = torch.Tensor(ids).to(x)  # host-built-move
                b = torch.bernoulli(torch.Tensor(4 * [0.5])).to(x.device)  # host-built-move
                c = torch.as_tensor(shapes, device=x.device)  # upload-constructor
                return isinstance(a, torch.Tensor)
    """,
    "data that nobody knows": """
        def f(d, device):
            a = torch.tensor(d.pop("loss"), device="cuda")  # upload-constructor
            b = torch.as_tensor(d.pop("loss"), device="cuda")
            c = torch.tensor(d.pop("loss"))
            return torch.tensor(d.pop("loss"), device="cpu")
    """,
    "nothing to upload": """
        a = torch.tensor([], device="cuda")
        b = torch.Tensor([]).to("cuda")
        c = torch.tensor([0], device="cuda")  # upload-constructor
        rows = []
        for row in range(3):
            rows.append(row)
        d = torch.tensor(rows, device="cuda")  # upload-constructor
    """,
    "a kept test": """
        class C(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("inited", torch.zeros(1))
            def forward(self, x: torch.Tensor, ids: torch.Tensor, flag: bool):
                if self.inited:  # truth-test
                    return x
                short = flag and ids.sum() < 3
                if short:  # truth-test
                    x = x + 1
                none = ids is not None and flag
                if none:
                    x = x + 1
                done = False
                while not done:  # truth-test
                    done = (x > 3).all()
                return x
    """,
    "what a layer of torch holds": """
        class Norm(nn.BatchNorm2d):
            def forward(self, x):
                return x * (1.0 / float(self.num_batches_tracked))  # scalar-cast
        class Own(nn.Module):
            def forward(self, x):
                return x * float(self.num_batches_tracked)
    """,
    "a counter on the host": """
        class Count(nn.Module):
            def __init__(self):
                super().__init__()
                self.offset = torch.tensor(0)
                self.seen = torch.tensor(0)
                self.total = torch.tensor(0)
            def forward(self, x: torch.Tensor):
                self.offset += 1
                self.seen = self.seen + x.shape[0]
                self.total = self.total + x.sum()
                a = self.offset.item(), self.seen.item()
                return a, self.total.item()  # item
    """,
    "parts of a result": """
        a = X.max(dim=0).values.tolist()  # tolist
        b = X.topk(3).indices.cpu()  # host-copy
        c = X.sort().values.sum().item()  # item
        d = {"values": 1}.values
    """,
    "positions by dimension": """
        rows = (X > 0).nonzero(as_tuple=True)  # nonzero
        y = X[rows]
        X[rows] = y
        z = X[rows[:1]]
        hosts = (torch.ones(4, 4) > 0).nonzero(as_tuple=True)
        y = X[hosts]  # host-index
    """,
    "a list as long as a tensor says": """
        ids = torch.tensor([8] * X.sum(), device="cuda")  # upload-constructor
        ids[ids == 0] = 8
    """,
    "times of a library's helper": """
        from diffusers.pipelines.flux.pipeline_flux import retrieve_timesteps
        def f(scheduler, device):
            times, n = retrieve_timesteps(scheduler, 30, device)
            for t in times:
                t.item()  # item
            times, n = retrieve_timesteps(scheduler, 30)
            return times[0].item()
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(meetings_of: MeetingsOf, name: str) -> None:
    text = HEAD + dedent(PROGRAMS[name])
    assert places(meetings_of(text)) == marked(text)


def test_members_of_an_annotated_dictionary_are_tensors_whatever_calls_pass(meetings_of: MeetingsOf) -> None:
    text = """
        class Fit:
            def training_step(self, batch):
                bad(self.collect())
            def collect(self) -> dict:
                return self.rows.copy()
        def bad(rows: dict[str, torch.Tensor]):
            for name, row in rows.items():
                if torch.isnan(row).any():  # truth-test
                    return True
    """
    program = HEAD + dedent(text)
    assert places(meetings_of(program)) == marked(program)


def test_the_number_of_stored_elements_is_the_hosts(meetings_of: MeetingsOf) -> None:
    text = """
        class C(nn.Module):
            def forward(self, sparse: torch.Tensor):
                if sparse._nnz() == 0:
                    return sparse
                return sparse.sum().item()  # item
    """
    program = HEAD + dedent(text)
    assert places(meetings_of(program)) == marked(program)
