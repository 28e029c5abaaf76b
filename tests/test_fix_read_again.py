"""A number that is read twice is read once, where it cannot have changed between."""
from __future__ import annotations

import pytest

from hostlint.fix.once import fix_text
from hostlint.model import Applicability

READS = frozenset({"HL101", "HL102"})
HEAD = """\
import torch

net = torch.nn.Linear(4, 4).cuda()


class Talker:
    def __init__(self):
        self.last = torch.zeros((), device="cuda")

"""
LOOP = """\
    def talk(self, x, end: int, image: int, limit: int, log):
        told = []
        while limit > 0:
            limit -= 1
            token = {token}
            {body}
        return x, told
"""
CHOSEN = "torch.argmax(net(x), dim=-1)"


def program(body: str, token: str = CHOSEN) -> str:
    return HEAD + LOOP.format(body=body.replace("\n", "\n            "), token=token)


def fixed(text: str) -> tuple[str, set[Applicability]]:
    result = fix_text(text, "talk.py", READS, review=True)
    return result.files[0].text if result.files else text, {one.fix.applicability for one in result.mended if one.fix is not None}


READ = [
    (
        "if token.item() == end:\n    break\nif token.item() == image:\n    x = x + 1",
        "token_item = token.item()\nif token_item == end:\n    break\nif token_item == image:\n    x = x + 1",
    ),
    (
        "if token.item() > 3 and token.item() < limit:\n    x = x + 1",
        "token_item = token.item()\nif token_item > 3 and token_item < limit:\n    x = x + 1",
    ),
    (
        "if int(token) == end or limit == 1:\n    log(x)\n    continue\nx = x * int(token)",
        "token_int = int(token)\nif token_int == end or limit == 1:\n    log(x)\n    continue\nx = x * token_int",
    ),
    (
        "number = token.item()\ntold = [*told, number]\nif token.item() == end:\n    break",
        "number = token.item()\ntold = [*told, number]\nif number == end:\n    break",
    ),
    (
        "if token.item() == end:\n    token = net(x)\n    break\nx = x * token.item()",
        "token_item = token.item()\nif token_item == end:\n    token = net(x)\n    break\nx = x * token_item",
    ),
    (
        "x = x + self.last.item()\nlog(self.last.item())",
        "self_last_item = self.last.item()\nx = x + self_last_item\nlog(self_last_item)",
    ),
]


@pytest.mark.parametrize(("before", "after"), READ, ids=[one[0].partition("\n")[0] for one in READ])
def test_the_second_read_takes_the_number_of_the_first(before: str, after: str) -> None:
    text, kinds = fixed(program(before))
    assert text == program(after)
    assert kinds == {Applicability.REVIEW}


LEFT = [
    "if token.item() == end:\n    break\ntoken = torch.argmax(net(x), dim=-1)\nif token.item() == image:\n    x = x + 1",
    "if token.item() == end:\n    token = token + 1\nif token.item() == image:\n    x = x + 1",
    "if token.item() == end:\n    break\ntoken += 1\nx = x * token.item()",
    "same = token.view(-1)\nif token.item() == end:\n    break\nsame[0] = 5\nx = x * token.item()",
    "if limit > 2 and token.item() == end:\n    break\nx = x * token.item()",
    "for _ in range(limit):\n    x = x * token.item()\nx = x * token.item()",
    "if token.item() == end:\n    break\nx = x * float(token)",
    "if limit > 2:\n    x = x * token.item()\nelse:\n    x = x - token.item()",
]


@pytest.mark.parametrize("body", LEFT)
def test_reads_stay_where_the_number_may_be_another(body: str) -> None:
    assert fixed(program(body))[0] == program(body)


def test_it_is_exact_where_nothing_but_tests_runs_between() -> None:
    body = "if token.item() == end:\n    break\nif token.item() == image or limit == 0:\n    x = x + 1\nx = net(x)"
    known = "torch.zeros((), device='cuda') + 1"
    assert fixed(program(body, known))[1] == {Applicability.EXACT}
    assert fixed(program(body.replace("limit == 0", "log(token)"), known))[1] == {Applicability.REVIEW}
    assert fixed(program(body.replace("    break", "    log(token)"), known))[1] == {Applicability.REVIEW}
