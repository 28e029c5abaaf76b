"""Where the host waits or uploads: every kind of fact where it holds, and the look-alikes beside it, which stay silent."""
from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import dedent

import pytest

from hostlint.facts.kinds import FactKind
from hostlint.model import Confidence
from hostlint.values.judging import Meeting
from hostlint.values.redone import KINDS

MeetingsOf = Callable[..., list[Meeting]]
# Line 1 of every program, on the device: a matrix, a vector, a mask, an index and a scalar (D, V, M, I, S); on the host: a matrix, a vector
# and an array (H, W, A).
HEAD = """\
import math, torch, numpy as np; import torch.nn.functional as F; from torch import nn; import torch.distributed as dist; \
D = torch.zeros(4, 4, device="cuda"); V = torch.zeros(4, device="cuda"); M = torch.zeros(4, device="cuda", dtype=torch.bool); \
I = torch.arange(4, device="cuda"); S = torch.zeros((), device="cuda"); H = torch.zeros(4, 4); W = torch.zeros(4); A = np.zeros(4)
"""
MARK = re.compile(r"#\s*(.*)$")


def told(meetings: list[Meeting]) -> dict[int, str]:
    lines: dict[int, str] = {}
    for meeting in meetings:
        kind = meeting.kind.value
        lines[meeting.site.line] = f"{lines[meeting.site.line]}, {kind}" if meeting.site.line in lines else kind
    return lines


def marked(text: str) -> dict[int, str]:
    return {number: mark[1] for number, line in enumerate(text.splitlines(), 1) if (mark := MARK.search(line))}


PROGRAMS = {
    "item": """
        S.item()  # item
        V[0].item()  # item
        (V > 0).all().item()  # item
        H.sum().item()
        A.item()
        unknown.item()
        (D @ D).sum().item()  # item
        V.cpu()[0].item()  # host-copy
        y = S.item  # nothing is called
    """,
    "a loop of launches": """
        def f(n: int):
            mask = torch.zeros(4, 4, device="cuda")
            for i in range(n):
                mask[i, : i + 1] = 1  # launch-loop
            for i in range(n):
                mask[i, : i + 1] = mask[i - 1].sum()
            return mask
    """,
    "a buffer that is pinned": """
        def f(pin=True):
            p = torch.empty(4, device="cpu", pin_memory=True)  # pin-per-call
            p.copy_(V, non_blocking=True)
            q = torch.empty(4, device="cpu", pin_memory=pin)
            q.copy_(V, non_blocking=True)
            r = torch.empty(4, device="cpu", pin_memory=False)
            r.copy_(V, non_blocking=True)  # host-copy
            s = torch.empty(4, device="cpu")
            s.copy_(V, non_blocking=True)  # host-copy
    """,
    "filter": """
        list(filter(lambda v: v > 0.5, V))  # truth-test
        list(filter(lambda v: v > 0.5, W))
        list(filter(lambda v: v is None, V))
    """,
    "scalar cast": """
        float(S)  # scalar-cast
        int(V.argmax())  # scalar-cast
        complex(S)  # scalar-cast
        math.sqrt(S)  # scalar-cast
        math.isfinite(V.sum())  # scalar-cast
        "%d" % S  # scalar-cast
        float(H.sum())
        float(unknown)
        float("1.5")
        int(D.shape[0])
        math.sqrt(len(V))
        round(1.5)
        10 % S
    """,
    "truth": """
        if S: pass  # truth-test
        if V.any(): pass  # truth-test
        while S > 0: break  # truth-test
        assert S < 1  # truth-test
        y = not S  # truth-test
        y = S and 1  # truth-test
        y = 1 if S else 2  # truth-test
        y = [1 for _ in unknown if S > 0]  # truth-test
        y = 0 < S < 1  # truth-test
        bool(S)  # truth-test
        y = max(V[0], V[1])  # truth-test
        y = S in [V[0], V[1]]  # truth-test
        S.is_nonzero()  # truth-test
        if H.any(): pass
        if S is None: pass
        if S is not None and unknown: pass
        if unknown: pass
        if D.shape[0] > 3: pass
        if V.numel() and len(V): pass
        if D.is_cuda: pass
        if isinstance(S, int): pass
        if S.dtype == torch.float32: pass
        if S.device == V.device: pass
        y = [V, V] or None
        if [S]: pass
        y = unknown or S
    """,
    "copy to the host": """
        V.cpu()  # host-copy
        V.to("cpu")  # host-copy
        V.to(torch.device("cpu"))  # host-copy
        V.cpu().numpy()  # host-copy
        V.detach().cpu()  # host-copy
        V.numpy(force=True)  # host-copy
        V.to(H)  # host-copy
        H.cpu()
        H.numpy()
        np.asarray(H)
        V.to("cuda")
        V.to(torch.float16)
        unknown.cpu()
    """,
    "tolist": """
        V.tolist()  # tolist
        D.argmax(-1).tolist()  # tolist
        H.tolist()
        A.tolist()
        unknown.tolist()
        V.shape.tolist()
    """,
    "format": """
        print(S)  # format
        print("loss", S)  # format
        y = f"{S}"  # format
        y = f"{1} {S:.3f} {H}"  # format
        y = "{}".format(S)  # format
        y = "%s" % S  # format
        y = "%s %s" % (1, S)  # format
        str(S)  # format
        repr(S)  # format
        print(H, D.shape, "text")
        y = f"{D.shape} {D.dtype} {V.device} {len(V)}"
        y = "{}".format(3)
        print(unknown)
        logger.info("loss %s", S)  # format
        logger.debug("loss %s", S)
        logger.info("loss %s", H)
        logger.info("no argument")
    """,
    "index": """
        V[V.argmax()]  # index
        D[S.long()]  # index
        D[:S.long()]  # index
        D[S.long():]  # index
        D[0, 1:S.long()]  # index
        [1, 2][S.long()]  # index
        range(S.long())  # index
        torch.zeros(S.long())  # index
        V[0]
        V[1:3]
        V[I]
        D[:, I]
        D[None]
        D[unknown]
        D[D.shape[0] - 1]
        D[..., 0]
        H[0]
        [1, 2][unknown]
    """,
    "scalar arguments": """
        torch.add(V, V, alpha=S)  # scalar-argument
        torch.full((3,), S)  # scalar-argument
        torch.arange(S)  # scalar-argument
        V.masked_fill(M, S)  # scalar-argument
        torch.add(V, V, alpha=2)
        torch.full((3,), 2.0)
        torch.arange(3)
        V.clamp(0, 1)
        V + S
    """,
    "tensor of tensors": """
        torch.tensor([S, S])  # tensor-of-tensors
        torch.tensor([V[0], V[1]])  # tensor-of-tensors
        torch.tensor([1, 2])
        torch.stack([S, S])
    """,
    "nonzero": """
        torch.nonzero(M)  # nonzero
        M.nonzero()  # nonzero
        M.nonzero(as_tuple=True)  # nonzero
        torch.argwhere(M)  # nonzero
        torch.where(M)  # nonzero
        torch.where(M, V, V)
        torch.where(M, V, 0.0)
        torch.nonzero(H)
        H.nonzero()
        unknown.nonzero()
    """,
    "masks": """
        V[M]  # mask-read
        D[M]  # mask-read
        D[V > 0]  # mask-read
        V.masked_select(M)  # mask-read
        torch.masked_select(V, M)  # mask-read
        V[M] = V  # mask-write
        V[M] *= 2  # mask-write
        V[M] = 0.0
        V[~M] = 1
        V.masked_fill(M, 0.0)
        H[H > 0]
        V[:]
        unknown[M]  # mask-read
    """,
    "sizes": """
        torch.unique(I)  # data-dependent-size
        I.unique()  # data-dependent-size
        torch.bincount(I)  # data-dependent-size
        F.one_hot(I)  # data-dependent-size
        torch.repeat_interleave(V, I)  # data-dependent-size
        V.repeat_interleave(I)  # data-dependent-size
        F.one_hot(I, 8)
        F.one_hot(I, num_classes=8)
        V.repeat_interleave(2)
        V.repeat_interleave(I, output_size=8)
        torch.unique(H)
        V.topk(2)
        V.sort()
    """,
    "linear algebra": """
        torch.linalg.solve(D, V)  # checked-linalg
        torch.linalg.inv(D)  # checked-linalg
        torch.linalg.cholesky(D)  # checked-linalg
        D.inverse()  # checked-linalg
        torch.linalg.solve_ex(D, V)
        torch.linalg.cholesky_ex(D)
        torch.linalg.norm(D)
        torch.linalg.inv(H)
        torch.linalg.cholesky(unknown)
    """,
    "distributions": """
        torch.distributions.Normal(V, V)  # validated-distribution
        torch.distributions.Categorical(logits=V)  # validated-distribution
        torch.distributions.Normal(V, V, validate_args=False)
        torch.distributions.Categorical(logits=V, validate_args=False)
        torch.distributions.Normal(W, W)
    """,
    "hidden": """
        nn.utils.clip_grad_norm_([V], 1.0, error_if_nonfinite=True)  # hidden-wait
        nn.utils.clip_grad_norm_([V], 1.0)
    """,
    "synchronize": """
        torch.cuda.synchronize()  # explicit-synchronize
        torch.cuda.current_stream().synchronize()  # explicit-synchronize
        dist.barrier()  # explicit-synchronize
        torch.cuda.current_stream().wait_stream(torch.cuda.Stream())
        torch.cuda.Event()
        torch.cuda.is_available()
    """,
    "events": """
        event = torch.cuda.Event(enable_timing=True)
        event.synchronize()
        event.record()
        event.synchronize()  # explicit-synchronize
    """,
    "equality": """
        torch.equal(V, V)  # equality
        torch.allclose(V, V)  # equality
        V.equal(V)  # equality
        torch.equal(H, H)
        torch.isclose(V, V)
        torch.eq(V, V)
    """,
    "constructors": """
        torch.tensor([1.0, 2.0], device="cuda")  # upload-constructor
        torch.tensor(1.0, device=V.device)  # upload-constructor
        torch.tensor(unknown, device="cuda")  # upload-constructor
        torch.as_tensor([1, 2], device="cuda")  # upload-constructor
        V.new_tensor([1.0])  # upload-constructor
        torch.tensor([1.0, 2.0])
        torch.tensor([1.0], device="cpu")
        torch.zeros(3, device="cuda")
        torch.full((3,), 1.0, device="cuda")
        torch.arange(3, device="cuda")
        V.new_zeros(3)
        H.new_tensor([1.0])
    """,
    "moves": """
        torch.arange(4).to("cuda")  # host-built-move
        torch.tensor([1.0]).cuda()  # host-built-move
        torch.zeros(3).to(V.device)  # host-built-move
        torch.from_numpy(A).to("cuda")  # host-built-move
        H.to("cuda")  # blocking-upload
        H.cuda()  # blocking-upload
        V.copy_(W)  # blocking-upload
        H.to("cuda", non_blocking=True)
        H.pin_memory().to("cuda", non_blocking=True)  # pin-per-call
        V.to("cuda")
        V.copy_(V)
        H.to("cpu")
        H.to(torch.float16)
        unknown.to("cuda")
    """,
    "host index": """
        V[[0, 2]]  # host-index
        V[W.long()]  # host-index
        D[:, [0, 2]]  # host-index
        V[A]  # host-index
        V[0, 1]
        V[(0, 1)]
        H[[0, 2]]
        A[[0, 2]]
        [1, 2][0]
    """,
    "element": """
        V[0] = 1.0  # element-write
        V[I] = 1.0  # element-write
        V[0:1] = 1.0
        D[0] = 1.0
        V[:] = 0
        H[0, 0] = 1.0
        V[0] = S
        unknown[0] = 1.0
    """,
    "host operand": """
        torch.where(M, V, torch.tensor(0.0))  # host-operand
        torch.where(M, V, 0.0)
        V + torch.tensor(1.0)
        torch.where(W > 0, W, torch.tensor(0.0))
    """,
    "pinning": """
        H.pin_memory()  # pin-per-call
        torch.zeros(3, pin_memory=True)  # pin-per-call
        torch.zeros(3, pin_memory=False)
        H.is_pinned()
    """,
    "large copies": """
        torch.zeros(4096, 4096).to("cuda", non_blocking=True)  # pageable-non-blocking
        torch.zeros(8, 8).to("cuda", non_blocking=True)
        H.to("cuda", non_blocking=True)
    """,
    "pauses": """
        import gc
        torch.cuda.empty_cache()  # flush
        gc.collect()  # collection
        gc.collect(1)
        unknown.collect()
        def log_memory():
            gc.collect()  # observer-pause
    """,
    "over the steps": """
        W.to(torch.half)  # dropped-move
        total = torch.zeros((), dtype=torch.bfloat16)
        rows = []
        for x in D:
            loss = x.mean()
            loss.backward()
            total += loss.detach()  # low-precision-sum
            rows.append(loss)  # graph-kept
    """,
    "collector off": """
        import gc
        gc.disable()  # collector-off
        gc.set_threshold(0)  # collector-off
        gc.set_threshold(700)
        unknown.disable()
    """,
    "copies in flight": """
        c = D.to("cpu", non_blocking=True)
        c.tolist()  # unfinished-copy
        p = torch.empty(4, pin_memory=True)  # pin-per-call
        for row in A:
            p.fill_(row)  # pinned-rewrite
            V.copy_(p, non_blocking=True)
    """,
}


SILENT = """
    # what a tensor tells without being read
    if V.shape[0] == 0 or V.numel() == 0 or len(V) > 3: pass
    if D.dim() == 2 and D.ndim > 1 and D.size(0) == D.size()[1]: pass
    if D.shape == H.shape and D.size() == H.size(): pass
    if V.dtype == torch.float32 or V.dtype in (torch.half, torch.bfloat16): pass
    if V.device == W.device or V.device.type == "cuda" or V.is_cuda: pass
    if V.requires_grad and V.is_leaf and V.grad_fn is None: pass
    if V.is_contiguous() or V.is_floating_point() or V.is_complex() or torch.is_floating_point(V): pass
    if V.grad is None or V.grad is not None: pass
    if V is W or id(V) == id(W) or type(V) is int or isinstance(V, torch.Tensor): pass
    if hasattr(V, "grad") or callable(V) or torch.is_tensor(V): pass
    if V.stride(0) == 1 or V.element_size() > 2 or V.data_ptr() == 0 or V.get_device() == 0: pass
    if torch.cuda.is_available() and torch.is_grad_enabled(): pass
    y = int(D.shape[0]) + math.sqrt(D.shape[-1]) + float(D.numel()) + max(D.shape) + min(D.size(0), 4)
    y = [D.view(D.shape[0], -1) for _ in range(D.size(0))]
    y = D[: D.shape[0] // 2, D.size(1) - 1]
    y = torch.zeros(D.shape[0], device="cuda") + torch.zeros_like(D) + torch.ones(len(V), device="cuda")
    y = f"{D.shape} {tuple(D.shape)} {V.dtype} {V.device} {len(V)} {D.size(0):>3}"
    print(D.shape, len(V), V.dtype)
    # what has been read already
    loss = S.item()  # item
    y = float(loss) + int(loss) + math.sqrt(loss)
    if loss > 3 or not loss: pass
    print(f"{loss:.3f}", loss)
    rows = V.tolist()  # tolist
    y = [float(row) for row in rows if row > 0] + [max(rows), rows[0], rows[int(rows[1])]]
    table = {key: value.item() for key, value in {"a": S}.items()}  # item
    y = sum(table.values()) + float(table["a"])
    host = V.cpu()  # host-copy
    y = host.tolist() + [host.sum().item(), float(host[0])]
    if host.any() and (host > 0).all(): pass
    array = host.numpy()
    y = float(array[0]) + array.sum().item() + array.tolist()[0]
    y = loss.item() if isinstance(loss, torch.Tensor) else loss
    y = float(y)
    # work that stays on the device
    V.add_(1).mul_(2).clamp_(min=0.0, max=1.0)
    y = torch.where(M, V, torch.zeros_like(V)).masked_fill(M, 0.0)
    y = V.index_select(0, I).gather(0, I).scatter_add(0, I, V)
    y = torch.cat([V, V]).chunk(2)[0] + torch.stack([S, S]).sum()
    y = F.cross_entropy(D, I) + F.dropout(V, p=0.1, training=True).mean()
    y = D @ D.T + torch.einsum("ij,jk->ik", D, D) + D.softmax(-1)
    y = V.topk(2).values + V.sort()[0] + V.max(dim=0).values + torch.linalg.norm(V)
    S.backward()
    # plain Python
    if unknown and not unknown.ready or unknown in (1, 2): pass
    y = unknown.count + len(unknown) + unknown[0] + max(unknown, 3)
    print(unknown, f"{unknown} {unknown.x!r:>{unknown.y}}")
    for i in range(len(unknown)): print(i, unknown[i])
    y = str(unknown) + "%s %d" % (unknown, 3) + "{}".format(unknown)
    y = np.array([1, 2]).tolist() + np.random.rand(3).sum().item()
    y = math.sqrt(2) + float("3") + int(unknown) + bool(unknown) + complex(1, 2)
"""


def test_what_is_free_stays_silent(meetings_of: MeetingsOf) -> None:
    lines = dedent(SILENT).strip("\n").splitlines()
    text = f"{HEAD}def f(unknown):\n" + "".join(f"    {line}\n" for line in lines)
    wanted = {number: words for number, words in marked(text).items() if words in {kind.value for kind in FactKind}}
    assert told(meetings_of(text)) == wanted


@pytest.mark.parametrize("name", PROGRAMS)
def test_kind(meetings_of: MeetingsOf, name: str) -> None:
    lines = dedent(PROGRAMS[name]).strip("\n").splitlines()
    text = f"{HEAD}def f(unknown, logger):\n" + "".join(f"    {line}\n" for line in lines)
    wanted = {number: words for number, words in marked(text).items() if words in {kind.value for kind in FactKind}}
    found = [each for each in meetings_of(text) if each.kind is not FactKind.DROPPED_MOVE or name == "over the steps"]
    assert told(found) == wanted  # the other programs leave the results of their moves alone to be short


def test_every_kind_is_met() -> None:
    assert {words for program in PROGRAMS.values() for words in marked(program).values()} >= {kind.value for kind in set(FactKind) - KINDS}


PLACES = {
    "module level": """
        S.item()  # item
        for x in V:
            x.item()  # item
        class C:
            y = S.item()  # item
    """,
    "parts of a function": """
        def f(x, a=S.item(), *, b=float(S)):  # item, scalar-cast
            g = lambda y=S.item(): S.tolist()  # item, tolist
            rows = [y.item() for y in V if y > 0]  # truth-test, item
            table = {S.item(): x}  # item
            total = sum(y.item() for y in V)  # item
            @deco(S.item())  # item
            def inner():
                return S.item()  # item
            class C(Base[S.item()]):  # item
                pass
            with open(S.item()):  # item
                pass
            return S.item()  # item
        async def g(x):
            await x.send(S.item())  # item
            async for y in x.rows(S.item()):  # item
                yield S.item()  # item
        raise ValueError(S.item())  # item
    """,
    "several on one line": """
        y = S.item() + float(S)  # item, scalar-cast
        y = float(S.item())  # item
        y = (S.item(), S.tolist())  # item, tolist
        print(S, S)  # format
    """,
    "flow": """
        def f(a):
            x = S
            x.item()  # item
            x = x.cpu()  # host-copy
            x.item()
            if a:
                x = S
            x.item()
            for _ in range(3):
                x = S
                x.item()  # item
            try:
                a()
            except ValueError:
                return x
            finally:
                S.item()  # item
            while True:
                S.item()  # item
                if a: break
                continue
                S.item()
            return
            S.item()
    """,
    "calls": """
        def read(x):
            return x.item()  # item
        def quiet(x):
            return x.item()
        def f():
            read(S)
            quiet(H)
    """,
    "names that hide torch's": """
        def f(float, range, torch):
            float(S)
            range(S)
            torch.unique(V)
            torch.cuda.synchronize()  # explicit-synchronize
    """,
}


@pytest.mark.parametrize("name", PLACES)
def test_place(meetings_of: MeetingsOf, name: str) -> None:
    text = HEAD + dedent(PLACES[name]).lstrip("\n")
    found = {line: sorted(words.split(", ")) for line, words in told(meetings_of(text)).items()}
    assert found == {line: sorted(words.split(", ")) for line, words in marked(text).items()}


def test_the_expression_that_waits_and_its_statement(meetings_of: MeetingsOf) -> None:
    text = HEAD + dedent("""\
        y = (
            S
            .item()
        )
        if (unknown
                and V.any()): pass
        x = torch.tensor(
            [S, S]
        )
    """)
    spans = [(one.site.line, one.site.column, one.site.end_line, one.site.end_column) for one in meetings_of(text)]
    assert spans == [(3, 5, 4, 12), (7, 13, 7, 20), (8, 5, 10, 2)]
    assert [(one.site.first_line, one.site.last_line) for one in meetings_of(text)] == [(2, 5), (6, 7), (8, 10)]


JUDGED = [
    ("S.item()", "item()", "S", Confidence.CERTAIN, "`torch.zeros` at line 1 makes it on the device"),
    ("float(x.cuda().sum())", "float", "x.cuda().sum()", Confidence.LIKELY, "`cuda()` at line 3"),
    ("torch.zeros(3, device=place).tolist()", "tolist()", "torch.zeros(3, device=place)", Confidence.LIKELY,
     "`torch.zeros` at line 3 makes it on `place`"),
    ("bool(S)", "bool", "S", Confidence.CERTAIN, "`torch.zeros` at line 1 makes it on the device"),
    ("1 if S > 0 else 2", "if", "S > 0", Confidence.CERTAIN, "`torch.zeros` at line 1 makes it on the device"),
    ("f'{S:.2f}'", "f-string", "S", Confidence.CERTAIN, "`torch.zeros` at line 1 makes it on the device"),
    ("'%s' % S", "%", "S", Confidence.CERTAIN, "`torch.zeros` at line 1 makes it on the device"),
    ("V[S.long()]", "[]", "V", Confidence.CERTAIN, "`torch.zeros` at line 1 makes it on the device"),
    ("D[: S.long()]", "slice", "D", Confidence.CERTAIN, "`torch.zeros` at line 1 makes it on the device"),
    ("torch.unique(I)", "torch.unique", "I", Confidence.CERTAIN, "`torch.arange` at line 1 makes it on the device"),
    ("H.to('cuda')", "to()", "H", Confidence.CERTAIN, "`torch.zeros` at line 1 has no `device=`, so it is made on the host"),
    ("H.to(place.device)", "to()", "H", Confidence.LIKELY, "`torch.zeros` at line 1 has no `device=`, so it is made on the host"),
    ("torch.tensor([1, 2], device='cuda')", "torch.tensor", "[1, 2]", Confidence.CERTAIN,
     "the data are Python numbers, which lie in pageable host memory"),
    ("torch.tensor(x, device='cuda')", "torch.tensor", "x", Confidence.LIKELY, "`torch.tensor` is written for Python data"),
    ("torch.cuda.synchronize()", "torch.cuda.synchronize", "torch.cuda.synchronize", Confidence.CERTAIN, "the call says so"),
    ("logger.info('%s', S)", "info()", "logger", Confidence.CERTAIN, "`torch.zeros` at line 1 makes it on the device"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "call", "subject", "confidence", "evidence"), JUDGED, ids=[one[0] for one in JUDGED])
def test_evidence(meetings_of: MeetingsOf, expression: str, call: str, subject: str, confidence: Confidence, evidence: str) -> None:
    (met,) = meetings_of(f"{HEAD}def f(x, place, logger):\n    return {expression}\n")
    assert (met.call, met.site.subject, met.confidence, met.evidence) == (call, subject, confidence, evidence)
    assert met.measured.startswith(("measured on an H200 with torch ", "not measured: "))


def test_a_finding_is_as_sure_as_its_weakest_evidence(meetings_of: MeetingsOf) -> None:
    program = """
        class C(nn.Module):
            def forward(self, x, start):
                y = V if start > 0 else 0
                return x.item() + y.item() + V.sum().item() + V[x.long()]
    """
    found = sorted(meetings_of(HEAD + dedent(program)), key=lambda one: (one.site.line, one.site.column))
    assert [(one.kind.value, one.confidence) for one in found] == [
        ("truth-test", Confidence.LIKELY),
        ("item", Confidence.LIKELY),
        ("item", Confidence.LIKELY),
        ("item", Confidence.CERTAIN),
    ]


def test_what_is_on_either_side_is_at_most_possible(meetings_of: MeetingsOf) -> None:
    program = """
        def f(a):
            x = V if a else H
            y = x.sum().item()
            z = H
            if a:
                z = z.cuda()
            return y + float(z.sum())
    """
    met = meetings_of(HEAD + dedent(program))
    assert {one.kind for one in met if one.confidence > Confidence.POSSIBLE} == {FactKind.BLOCKING_UPLOAD}


def test_an_object_that_waits_each_time_it_is_used_is_marked_so(meetings_of: MeetingsOf) -> None:
    program = """
        class C(nn.Module):
            def __init__(self):
                self.norm = nn.BatchNorm2d(8, momentum=None)
                self.plain = nn.BatchNorm2d(8)
    """
    found = meetings_of(HEAD + dedent(program))
    assert [(one.kind, one.site.line, one.at_use) for one in found] == [(FactKind.HIDDEN_WAIT, 5, True)]
