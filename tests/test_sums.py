"""What goes wrong over the steps of a loop without a wait: kept graphs, sums in half precision, moves whose result is dropped."""
from __future__ import annotations

from textwrap import dedent

import pytest

from hostlint.scan import scan_text

HEAD = "import torch\n"

PROGRAMS = {
    "graphs": """
        def f(self, model, loader, accelerator, n: int):
            total, rows, seen = 0.0, [], 0
            for x in loader:
                out = model(x.cuda(non_blocking=True))
                loss = out.mean()
                accelerator.backward(loss)
                total += loss  # HL503
                total = total + 1
                self.running += loss / n  # HL503
                rows.append(loss.cpu())  # HL503
                seen += n
        def named(self, model, loader):
            losses = []
            for x in loader:
                outputs = model(x.cuda(non_blocking=True))
                outputs.loss.backward()
                losses.append(outputs.loss)  # HL503
            return losses
    """,
    "no graphs": """
        def f(self, model, loader, n: int):
            total, rows, seen = 0.0, [], 0
            for x in loader:
                out = model(x.cuda(non_blocking=True))
                loss = out.mean()
                (n * loss).backward()
                total += loss.detach()
                seen += n
                rows.append(out)
                rows.append(loss.item())
                last = loss
            loss.backward()
            rows.append(loss)
        def adds_up(model, loader, parts):
            for x in loader:
                loss = 0.0
                for part in parts:
                    loss += part(model(x.cuda(non_blocking=True)))
                loss.backward()
        def lets_go(model, loader):
            rows = []
            for x in loader:
                loss = model(x.cuda(non_blocking=True)).mean()
                loss.backward()
                rows.append(loss)
                rows.clear()
        def no_grad(model, loader):
            total = 0.0
            with torch.no_grad():
                for x in loader:
                    total += model(x.cuda(non_blocking=True)).mean()
    """,
    "low sums": """
        def f(model, loader):
            a = torch.zeros((), dtype=torch.bfloat16, device="cuda")
            b = torch.tensor(0.0, dtype=torch.float16, device="cuda")
            c = torch.zeros((), device="cuda")
            d = torch.zeros(4, dtype=torch.bfloat16, device="cuda")
            for x in loader:
                y = model(x.cuda(non_blocking=True)).mean()
                a += y  # HL504
                b += y  # HL504
                c += y
                d += y
            a += 1
            return a, b, c, d
    """,
    "dropped moves": """
        from torch import nn
        class Net(nn.Module):
            def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None):
                return x
        def f(x: torch.Tensor, batch, device):
            net = Net()
            net.to(device)
            net.cuda()
            batch.to(device)
            layer = nn.Linear(2, 2)
            layer.to(device)
            x.to(device)  # HL505
            y = torch.zeros(4)
            y.cuda()  # HL505
            y = y.to(device)
            return net(x.to(device)), y
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    body = dedent(PROGRAMS[name]).lstrip("\n")
    findings, errors = scan_text(HEAD + body, "program.py")
    assert not errors
    found = {finding.span.line - 1: finding.code for finding in findings if finding.code.startswith("HL5")}
    assert found == {number: line.partition("# ")[2] for number, line in enumerate(body.splitlines(), 1) if "# HL" in line}


def test_half_precision_is_named_and_a_seldom_place_too() -> None:
    findings, _ = scan_text(HEAD + dedent(PROGRAMS["low sums"]).lstrip("\n"), "program.py")
    assert [words in finding.message for finding, words in zip(findings, ("in bf16", "in fp16"), strict=True)] == [True, True]
    findings, _ = scan_text(HEAD + dedent(PROGRAMS["dropped moves"]).lstrip("\n"), "program.py")
    assert {finding.message.partition("makes a copy ")[2].partition(" and")[0] for finding in findings} == {"whenever `f` runs"}
