"""Reads of a loop that go before it, after it or under a guard: what is written, and what keeps a read where it is."""
from __future__ import annotations

import pytest

from hostlint.fix.once import fix_text
from hostlint.model import Applicability

HEAD = """\
import math

import torch
from tqdm import tqdm

net = torch.nn.Linear(4, 4).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def fit(batches, log, names, n: int):
"""
READS = frozenset({"HL101", "HL102", "HL103"})


def program(body: str) -> str:
    return HEAD + "".join(f"    {line}\n" if line else "\n" for line in body.splitlines())


def fixed(body: str) -> tuple[str, set[Applicability]]:
    """The body after all fixes of reads, and of which kind they were."""
    result = fix_text(program(body), "fit.py", READS, review=True)
    text = result.files[0].text if result.files else program(body)
    assert text.startswith(HEAD)
    kinds = {one.fix.applicability for one in result.mended if one.fix is not None}
    return "\n".join(line.removeprefix("    ") for line in text.removeprefix(HEAD).splitlines()), kinds


TRAIN = """\
{start}
for step, x in enumerate(batches):
    loss = net(x.cuda()).square().mean()
    loss.backward()
    opt.step()
    {inside}
{after}"""


def trained(start: str, inside: str, after: str = "return total") -> str:
    return TRAIN.format(start=start, inside=inside.replace("\n", "\n    "), after=after)


SUMS = [
    ("total = 0.0", "total += loss.item()", "total += loss.detach().double()", "float"),
    ("total = 0.0", "total = total + loss.item()", "total = total + loss.detach().double()", "float"),
    ("total = 0.0", "total += float(loss)", "total += loss.detach().double()", "float"),
    ("total = 0.0", "total += loss.detach().item()", "total += loss.detach().double()", "float"),
    ("total = 0.0", "total += loss.item() * x.size(0)", "total += loss.detach().double() * x.size(0)", "float"),
    ("total = 0.0", "total += x.shape[0] * loss.item()", "total += x.shape[0] * loss.detach().double()", "float"),
    ("total = 0.0", "total += loss.item() / n", "total += loss.detach().double() / n", "float"),
    ("total = 0", "total += (loss > 1).sum().item()", "total += (loss > 1).sum()", "int"),
    ("total = 0", "total += x.cuda().eq(1).sum().item()", "total += x.cuda().eq(1).sum()", "int"),
    ("total = 0", "total += loss.item()", "total += loss.detach().double()", "float"),
    ("total = 0.0", "total += (x.cuda() > 1).sum().item() * 2", "total += (x.cuda() > 1).sum().double() * 2", "float"),
    ("total: float = 0.0", "total += loss.item()  # why", "total += loss.detach().double()  # why", "float"),
    ("seen, total = 0, 0.0", "total += loss.item()", "total += loss.detach().double()", "float"),
    ("total = seen = 0.0", "total += (loss + 1).item()", "total += (loss + 1).detach().double()", "float"),
]


@pytest.mark.parametrize(("start", "inside", "after", "how"), SUMS, ids=[one[1] for one in SUMS])
def test_a_sum_is_read_after_the_loop(start: str, inside: str, after: str, how: str) -> None:
    wanted = trained(start, after, f"total = {how}(total)\nreturn total")
    assert fixed(trained(start, inside)) == (wanted, {Applicability.REVIEW})


def test_looks_at_the_sum_in_the_loop_read_it() -> None:
    looks = "if step % 50 == 0:\n    log(total / 2, total)\n    print(f'{total / 2:.3f}')"
    seen = looks.replace("log(total / 2, total)", "log(float(total) / 2, float(total))")
    wanted = trained("total = 0.0", f"total += loss.detach().double()\n{seen}", "total = float(total)\nreturn total")
    assert fixed(trained("total = 0.0", f"total += loss.item()\n{looks}"))[0] == wanted


SUMS_LEFT = {
    "a parameter": trained("", "n += loss.item()"),
    "an attribute": trained("", "log.total += loss.item()"),
    "an entry": trained("total = {}", "total['loss'] += loss.item()"),
    "not a number": trained("total = log()", "total += loss.item()"),
    "perhaps not a number": trained("total = 0.0\nif n:\n    total = log()", "total += loss.item()"),
    "bound around the loop": trained("total = 0.0\nfor name in names:\n    total = name", "total += loss.item()"),
    "bound twice in the loop": trained("total = 0.0", "total += loss.item()\nif n:\n    total = 0.0"),
    "looked at in every pass": trained("total = 0.0", "total += loss.item()\nlog(total)"),
    "looked at in its own way": trained("total = 0.0", "total += loss.item()\nif step % 50 == 0:\n    log(f'{total!r}')"),
    "handed to a function in a text": trained("total = 0.0", "total += loss.item()\nif step % 50 == 0:\n    log(f'{log(total)}')"),
    "seen by a nested function": trained("total = 0.0\ndef peek():\n    return total", "total += loss.item()"),
    "seen by a lambda": trained("total = 0.0\npeek = lambda: total", "total += loss.item()"),
    "global": trained("global total\ntotal = 0.0", "total += loss.item()"),
    "more than a product": trained("total = 0.0", "total += loss.item() ** 2"),
    "perhaps of whole numbers": trained("total = 0", "total += x.cuda().sum().item()"),
    "of whole numbers times a number": trained("total = 0", "total += (x.cuda() > 1).sum().item() * n"),
    "subtracted": trained("total = 0.0", "total -= loss.item()"),
    "seen after an error": (
        "total = 0.0\ntry:\n    for x in batches:\n        loss = net(x.cuda()).mean()\n        loss.backward()\n        opt.step()\n"
        "        total += loss.item()\nexcept KeyboardInterrupt:\n    pass\nreturn total"
    ),
    "in a nested function": trained("total = 0.0", "def add():\n    nonlocal total\n    total += loss.item()\nadd()"),
}


@pytest.mark.parametrize("body", SUMS_LEFT.values(), ids=SUMS_LEFT)
def test_a_sum_that_others_see_is_left(body: str) -> None:
    assert fixed(body) == (body.rstrip("\n"), set())


LISTS = [
    ("rows.append(loss.item())", "rows.append(loss.detach().clone())"),
    ("rows.append(float(loss))", "rows.append(loss.detach().to(torch.float64, copy=True))"),
    ("rows.append(loss.mean().item())", "rows.append(loss.mean().detach())"),
    ("rows.append(loss.item())\nlog(len(rows))", "rows.append(loss.detach().clone())\nlog(len(rows))"),
]


@pytest.mark.parametrize(("inside", "after"), LISTS, ids=[one for one, _ in LISTS])
def test_a_list_is_read_after_the_loop(inside: str, after: str) -> None:
    wanted = trained("rows = []", after, "rows[:] = torch.stack(rows).tolist() if rows else []\nreturn rows")
    assert fixed(trained("rows = []", inside, "return rows")) == (wanted, {Applicability.REVIEW})


LISTS_LEFT = {
    "not empty": trained("rows = [1.0]", "rows.append(loss.item())"),
    "read in the loop": trained("rows = []", "rows.append(loss.item())\nif step % 50 == 0:\n    log(rows[-1])"),
    "of pairs": trained("rows = []", "rows.append((step, loss.item()))"),
    "known by another name": trained("rows = []\nlog(rows)", "rows.append(loss.item())"),
    "an attribute": trained("log.rows = []", "log.rows.append(loss.item())"),
    "of whole numbers": trained("rows = []", "rows.append(int(loss))"),
}


@pytest.mark.parametrize("body", LISTS_LEFT.values(), ids=LISTS_LEFT)
def test_a_list_that_others_see_is_left(body: str) -> None:
    assert fixed(body) == (body.rstrip("\n"), set())


WALK = """\
ticks = torch.linspace(1.0, 0.0, n, device="cuda")
x = batches.cuda()
for {head}:
    {inside}
    x = net(x + t)
return x"""


def walked(head: str, inside: str) -> str:
    return WALK.format(head=head, inside=inside.replace("\n", "\n    "))


TICKS = [
    ("t in ticks", "s = t.item()", "t, t_value in zip(ticks, ticks.tolist())", "s = t_value", ""),
    ("t in ticks", "s = float(t)", "t, t_value in zip(ticks, ticks.tolist())", "s = float(t_value)", ""),
    ("t in ticks", "s = int(t) + t.item()", "t, t_value in zip(ticks, ticks.tolist())", "s = int(t_value) + t_value", ""),
    ("t in ticks", "if t > 0.5:\n    x = x + 1", "t, t_inside in zip(ticks, (ticks > 0.5).tolist())", "if t_inside:\n    x = x + 1", ""),
    ("t in ticks", "s = bool(0 < t <= 1 and n)", "t, t_inside in zip(ticks, ((0 < ticks) & (ticks <= 1)).tolist())",
     "s = bool(t_inside and n)", ""),
    ("i, t in enumerate(ticks)", "s = t.item()", "i, t in enumerate(ticks)", "s = ticks_values[i]", "ticks_values = ticks.tolist()\n"),
    ("i, t in enumerate(ticks)", "if t != 1:\n    x = x + 1", "i, t in enumerate(ticks)", "if ticks_inside[i]:\n    x = x + 1",
     "ticks_inside = (ticks != 1).tolist()\n"),
]  # fmt: skip


@pytest.mark.parametrize(("head", "inside", "new_head", "new", "before"), TICKS, ids=[f"{one[0]}: {one[1]}" for one in TICKS])
def test_steps_of_a_schedule_are_read_before_the_loop(head: str, inside: str, new_head: str, new: str, before: str) -> None:
    wanted = walked(new_head, new).replace("for ", f"{before}for ")
    assert fixed(walked(head, inside)) == (wanted, {Applicability.EXACT})


REVIEWED_TICKS = [
    ("t in tqdm(ticks)", "s = t.item()", "t, t_value in zip(tqdm(ticks), ticks.tolist())", "s = t_value"),
    ("t, name in zip(ticks, names)", "s = t.item()", "t, name, t_value in zip(ticks, names, ticks.tolist())", "s = t_value"),
    ("t in ticks", "log(t)\ns = t.item()", "t, t_value in zip(ticks, ticks.tolist())", "log(t)\ns = t_value"),
    ("t in ticks", "s = log(t) + t.item()", "t, t_value in zip(ticks, ticks.tolist())", "s = log(t) + t_value"),
    ("t in ticks", "if t > n:\n    x = x + 1", "t, t_inside in zip(ticks, (ticks > n).tolist())", "if t_inside:\n    x = x + 1"),
    ("t in ticks", "s = t.item()\nlog.ticks = ticks", "t, t_value in zip(ticks, ticks.tolist())", "s = t_value\nlog.ticks = ticks"),
    ("t in ticks", "s = t.item()\nlog(ticks)", "t, t_value in zip(ticks, ticks.tolist())", "s = t_value\nlog(ticks)"),
]


@pytest.mark.parametrize(("head", "inside", "new_head", "new"), REVIEWED_TICKS, ids=[f"{one[0]}: {one[1]}" for one in REVIEWED_TICKS])
def test_steps_that_others_see_are_for_review(head: str, inside: str, new_head: str, new: str) -> None:
    assert fixed(walked(head, inside)) == (walked(new_head, new), {Applicability.REVIEW})


def test_a_bound_that_may_be_none_is_not_compared_then() -> None:
    counted = walked("i, t in enumerate(ticks)", "if n is None or t > n:\n    x = x + 1")
    wanted = walked("i, t in enumerate(ticks)", "if n is None or ticks_inside[i]:\n    x = x + 1")
    made = "ticks_inside = (ticks > n).tolist() if n is not None else []"
    assert fixed(counted)[0] == wanted.replace("for ", f"{made}\nfor ")
    plain = walked("t in ticks", "if n is None or t > n:\n    x = x + 1")
    assert fixed(plain)[0] == plain
    unset = "low = None\nif n:\n    low = n\n" + walked("t in ticks", "if n and t > low:\n    x = x + 1")
    assert fixed(unset)[0] == unset


TICKS_LEFT = {
    "bound anew": ("t in ticks", "t = t * 2\ns = t.item()"),
    "written to": ("t in ticks", "t += 1\ns = t.item()"),
    "schedule written to": ("t in ticks", "ticks[0] = 2\ns = t.item()"),
    "schedule written through a method": ("t in ticks", "ticks.mul_(2)\ns = t.item()"),
    "in a nested function": ("t in ticks", "s = lambda: t.item()"),
    "a bound that changes": ("t in ticks", "n = n - 1\nif t > n:\n    x = x + 1"),
    "a bound that is computed": ("t in ticks", "if t > x.mean():\n    x = x + 1"),
    "the tensor is used": ("t in ticks", "s = t > 0 and n"),
    "the tensor of a chain is used": ("t in ticks", "s = 0 < t < 1"),
    "perhaps no tensor": ("t in ticks", "s = t.item() if torch.is_tensor(t) else t"),
    "perhaps a list": ("t in ticks", "s = t.item()\ny = ticks if isinstance(ticks, list) else None"),
    "a slice": ("t in ticks[1:]", "s = t.item()"),
    "a made list": ("t in list(ticks)", "s = t.item()"),
}


@pytest.mark.parametrize(("head", "inside"), TICKS_LEFT.values(), ids=TICKS_LEFT)
def test_steps_that_may_change_are_left(head: str, inside: str) -> None:
    assert fixed(walked(head, inside)) == (walked(head, inside), set())


TABLES = [
    ("ticks[i].item()", "ticks_values[i]", Applicability.EXACT),
    ("float(ticks[i + 1])", "float(ticks_values[i + 1])", Applicability.EXACT),
    ("ticks[-1 - i].item()", "ticks_values[-1 - i]", Applicability.REVIEW),
    ("ticks[i].item() + log(ticks)", "ticks_values[i] + log(ticks)", Applicability.REVIEW),
    ("ticks[i].item() + log(ticks[i])", "ticks_values[i] + log(ticks[i])", Applicability.REVIEW),
]


@pytest.mark.parametrize(("read", "after", "kind"), TABLES, ids=[one for one, *_ in TABLES])
def test_a_table_is_read_before_the_loop(read: str, after: str, kind: Applicability) -> None:
    body = walked("i in range(n - 1)", f"t = {read}")
    wanted = walked("i in range(n - 1)", f"t = {after}").replace("for ", "ticks_values = ticks.tolist()\nfor ")
    assert fixed(body) == (wanted, {kind})


def test_a_list_that_is_there_is_used_unless_the_table_changed_since() -> None:
    body = walked("i in range(n - 1)", "t = ticks[i].item()")
    there = body.replace("for ", "known = ticks.tolist()\ny = 1\nfor ")
    assert fixed(there)[0] == there.replace("ticks[i].item()", "known[i]")
    for change in ("ticks = ticks * 2", "ticks[0] = 2", "log(1)"):
        changed = there.replace("y = 1", change)
        assert "t = ticks_values[i]\n" in fixed(changed)[0], change


TABLES_LEFT = {
    "written to": "t = ticks[i].item()\nticks[i] = 0",
    "written by another name": "other = ticks\nt = ticks[i].item()\nother[i] = 0",
    "bound anew": "t = ticks[i].item()\nticks = ticks * 2",
    "perhaps None": "t = ticks[i].item() if ticks is not None else 0",
    "a part": "t = ticks[i:].item()",
    "picked by a mask": "t = ticks[ticks == i].item()",
    "picked by a mask's opposite": "t = ticks[~(ticks < i)].item()",
    "picked by places": "t = ticks[(ticks > i).nonzero()].item()",
    "a truth value": "t = ticks[not i].item()",
}


@pytest.mark.parametrize("inside", TABLES_LEFT.values(), ids=TABLES_LEFT)
def test_a_table_that_may_change_is_left(inside: str) -> None:
    assert fixed(walked("i in range(n)", inside)) == (walked("i in range(n)", inside), set())


CHECKS = [
    ("assert not torch.isnan(loss).any()", "has_nan |= torch.isnan(loss).any()", "has_nan", "assert not has_nan"),
    ("assert torch.isfinite(loss), 'bad'", "not_finite |= ~torch.isfinite(loss)", "not_finite", "assert not not_finite, 'bad'"),
    ("if torch.isnan(loss) or loss.isinf().any():\n    raise ValueError('bad')", "has_nan |= (torch.isnan(loss) | loss.isinf().any())",
     "has_nan", "if has_nan:\n    raise ValueError('bad')"),
    ("if not math.isfinite(loss):\n    raise ValueError", "not_finite |= ~torch.isfinite(loss)", "not_finite",
     "if not_finite:\n    raise ValueError"),
    ("if torch.isnan(loss).any().item():\n    raise ValueError(\n        'bad'\n    )", "has_nan |= torch.isnan(loss).any()", "has_nan",
     "if has_nan:\n    raise ValueError(\n        'bad'\n    )"),
]  # fmt: skip


@pytest.mark.parametrize(("inside", "flag", "name", "check"), CHECKS, ids=[one for one, *_ in CHECKS])
def test_a_check_comes_after_the_loop(inside: str, flag: str, name: str, check: str) -> None:
    wanted = trained(f"{name} = False", flag, f"{check}\nreturn loss")
    body = trained("", inside, "return loss").lstrip("\n")
    assert fixed(body) == (wanted, {Applicability.REVIEW})


CHECKS_LEFT = {
    "names the pass": "if torch.isnan(loss):\n    raise ValueError(f'step {step}')",
    "goes on": "if torch.isnan(loss):\n    continue",
    "does more": "if torch.isnan(loss):\n    log(1)\n    raise ValueError",
    "has another branch": "if torch.isnan(loss):\n    raise ValueError\nelse:\n    log(1)",
    "leaves the function": "assert not torch.isnan(loss)\nif n:\n    return loss",
    "yields": "assert not torch.isnan(loss)\nyield loss",
    "is one of several": "if n:\n    assert not torch.isnan(loss)",
    "is no test for bad numbers": "assert loss > 0",
}


@pytest.mark.parametrize("inside", CHECKS_LEFT.values(), ids=CHECKS_LEFT)
def test_a_check_that_must_come_at_once_is_left(inside: str) -> None:
    body = trained("y = 1", inside, "return loss")
    assert fixed(body) == (body, set())


GUARD = "if step % 50 == 0:\n    log(shown)"
GUARDED = [
    (f"shown = loss.item()\n{GUARD}", "if step % 50 == 0:\n    shown = loss.item()\n    log(shown)"),
    (f"# shown\nshown = float(loss)  # why\n{GUARD}", "if step % 50 == 0:\n    # shown\n    shown = float(loss)  # why\n    log(shown)"),
    (f"shown = {{'loss': loss.item(), 'step': step}}\n{GUARD}",
     "if step % 50 == 0:\n    shown = {'loss': loss.item(), 'step': step}\n    log(shown)"),
    (f"shown = loss.item()\nopt.zero_grad()\n{GUARD}", "opt.zero_grad()\nif step % 50 == 0:\n    shown = loss.item()\n    log(shown)"),
]  # fmt: skip


@pytest.mark.parametrize(("inside", "after"), GUARDED, ids=[one for one, _ in GUARDED])
def test_a_read_goes_under_its_guard(inside: str, after: str) -> None:
    assert fixed(trained("y = 1", inside, "return y")) == (trained("y = 1", after, "return y"), {Applicability.REVIEW})


GUARDED_LEFT = {
    "used besides": f"shown = loss.item()\n{GUARD}\nlog(shown)",
    "used in the other branch": f"shown = loss.item()\n{GUARD}\nelse:\n    log(shown)",
    "used in the test": "shown = loss.item()\nif step % 50 == 0 and shown > 1:\n    log(shown)",
    "changed between": f"shown = loss.item()\nloss /= 2\n{GUARD}",
    "bound anew between": f"shown = loss.item()\nloss = net(x)\n{GUARD}",
    "written through a view": f"shown = loss.item()\nloss.view(1)[0] = 2\n{GUARD}",
    "seen by a nested function": f"shown = loss.item()\npeek = lambda: shown\n{GUARD}",
    "does more than read": f"shown = log(loss.item())\n{GUARD}",
    "bound twice": f"shown = 1\nshown = loss.item()\n{GUARD}",
}


@pytest.mark.parametrize("inside", GUARDED_LEFT.values(), ids=GUARDED_LEFT)
def test_a_read_that_others_use_is_left(inside: str) -> None:
    body = trained("y = 1", inside, "return y")
    assert fixed(body) == (body, set())
