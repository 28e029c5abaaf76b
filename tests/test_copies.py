"""Copies that do not block: results read too early, pinned sources filled too early, and the right forms beside them."""
from __future__ import annotations

from textwrap import dedent

import pytest

from hostlint.scan import scan_text

HEAD = "import torch\n"

PROGRAMS = {
    "reads": """
        def f(model, x):
            x = model(x.cuda(non_blocking=True))
            a = x.to("cpu", non_blocking=True)
            print(float(a.sum()))  # HL501
            b = x.to(device="cpu", non_blocking=True)
            n = b[0].item()  # HL501
            c = x.mean().to("cpu", non_blocking=True)
            text = f"{c}"  # HL501
            d = [t.to("cpu", non_blocking=True) for t in x]
            return [use(e.numpy()) for e in d]  # HL501
    """,
    "waits": """
        def f(model, x, stream, event):
            x = model(x.cuda(non_blocking=True))
            a = x.to("cpu", non_blocking=True)
            event.synchronize()
            print(a.item())
            b = x.to("cpu", non_blocking=True)
            stream.wait()
            print(b.tolist())
            c = x.to("cpu", non_blocking=True)
            n = x.sum().item()
            print(c.tolist())
            d = x.to("cpu", non_blocking=True)
            settle()
            print(d.tolist())
            e = x.to("cpu", non_blocking=True).numpy()
            torch.cuda.synchronize()
            return e
        def settle():
            torch.cuda.synchronize()
    """,
    "no read": """
        def f(model, x, network):
            x = model(x.cuda(non_blocking=True))
            a = x.to("cpu", non_blocking=True)
            print(a.shape, a.dtype, a.numel())
            if a is None or a.dim() == 2:
                return None
            h = torch.zeros(4)
            g = h.to("cpu", non_blocking=True)
            print(g.item())
            network.to("cpu", non_blocking=True)
            k = x.to("cpu")
            print(k.item())
            return a
    """,
    "slots": """
        def f(model, x, steps: int):
            host = torch.empty(2, 4, pin_memory=True)
            for i in range(steps):
                x = model(x.cuda(non_blocking=True))
                host[i % 2].copy_(x, non_blocking=True)
                print(host[1 - i % 2].tolist())
        def g(model, x, steps: int):
            host = torch.empty(2, 4, pin_memory=True)
            for i in range(steps):
                x = model(x.cuda(non_blocking=True))
                host[i % 2].copy_(x, non_blocking=True)
                print(host[i % 2].tolist())  # HL501
    """,
    "rewritten sources": """
        def f(model, rows):
            a = torch.empty(4, pin_memory=True)
            b = torch.empty(4).pin_memory()
            there = torch.zeros(4, device="cuda")
            for row in rows:
                a.fill_(row)  # HL502
                b[:2] = row  # HL502
                there.copy_(b, non_blocking=True)
                model(a.cuda(non_blocking=True), there)
        def fresh(model, rows):
            for row in rows:
                a = torch.empty(4, pin_memory=True)
                a.fill_(row)
                model(a.cuda(non_blocking=True))
        def waits(model, rows):
            a = torch.empty(4, pin_memory=True)
            for row in rows:
                a.fill_(row)
                print(model(a.cuda(non_blocking=True)).item())
        def pageable(model, rows):
            a = torch.empty(4)
            for row in rows:
                a.fill_(row)
                model(a.cuda(non_blocking=True))
        def once(model, row):
            a = torch.empty(4, pin_memory=True)
            a.fill_(row)
            return model(a.cuda(non_blocking=True))
        def before(model, rows):
            a = torch.empty(4, pin_memory=True)
            for row in rows:
                a.fill_(row)
            for row in rows:
                model(a.cuda(non_blocking=True))
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    body = dedent(PROGRAMS[name]).lstrip("\n")
    findings, errors = scan_text(HEAD + body, "program.py")
    assert not errors
    found = {finding.span.line - 1: finding.code for finding in findings if finding.code.startswith("HL5")}
    assert found == {number: line.partition("# ")[2] for number, line in enumerate(body.splitlines(), 1) if "# HL" in line}


FREED = """\
import torch


def swap(pages, cache, cudart, event, stream):
    {copy}
    {between}
    {free}
    cache.copy_(pages, non_blocking=True)
"""


def freed(copy: str, between: str = "total = 1", free: str = "cudart.cudaHostUnregister(pages.data_ptr())") -> list[int]:
    text = FREED.replace("{copy}", copy).replace("{between}", between).replace("{free}", free)
    return [finding.span.line for finding in scan_text(text, "swap.py")[0] if finding.code == "HL506"]


def test_registered_memory_is_freed_while_its_copy_may_run() -> None:
    assert freed("cache.copy_(pages, non_blocking=True)") == [7]
    assert freed('x = pages.to("cuda", non_blocking=True)', free="cudart.cudaFreeHost(pages.data_ptr())") == [7]


def test_memory_that_is_waited_for_or_that_torch_owns_is_silent() -> None:
    assert freed("cache.copy_(pages)") == []
    assert freed("cache.copy_(pages, non_blocking=True)", "event.synchronize()") == []
    assert freed("cache.copy_(pages, non_blocking=True)", "stream.wait_event(event)") == []
    assert freed('x = cache.to("cpu", non_blocking=True)') == []
    assert freed("cache.copy_(pages, non_blocking=True)", free="del pages") == []
    assert freed("cache.copy_(pages, non_blocking=True)", free="cudart.cudaHostRegister(pages.data_ptr(), 8, 0)") == []


def test_a_view_that_is_returned_is_for_the_caller_to_read() -> None:
    head = "import torch\n\n\ndef moved(x: torch.Tensor, numpy: bool):\n    y = x.cuda().to('cpu', non_blocking=True)\n"

    def told(line: str, result: str) -> bool:
        text = f"{head}    {line}\n    return {result}\n"
        return "HL501" in [finding.code for finding in scan_text(text, "moved.py")[0]]

    assert not told("if numpy:\n        y = y.numpy()", "y")
    assert not told("pass", "y.numpy()")
    assert told("z = y.numpy()", "z.sum()")
    assert told("print(y.numpy())", "y")
