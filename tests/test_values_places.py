"""Where values live inside one function: constructors, moves, flags, and every way in which control flows."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from textwrap import dedent

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hostlint.model import Confidence
from hostlint.scan import scan_text
from hostlint.values.detail import Detail, Device, Dtype, External, Items, ListOf, Literal
from hostlint.values.lattice import combine, is_constant, is_none, join, join_all
from hostlint.values.value import Place, Value

ValueOf = Callable[..., Value]
# Line 1 of every program: a matrix and a vector on the device (D, V), a mask (M), a matrix on the host (H) and an array (A).
HEAD = """\
import math, torch, numpy as np; import torch.nn.functional as F; from torch import nn; \
D = torch.zeros(4, 4, device="cuda"); V = torch.zeros(4, device="cuda"); \
M = torch.zeros(4, device="cuda", dtype=torch.bool); H = torch.zeros(4, 4); A = np.zeros(4)
"""
PLACES = {
    Place.PYTHON: "python", Place.NUMPY: "numpy", Place.HOST: "host", Place.DEVICE: "device", Place.TENSOR: "tensor",
    Place.UNKNOWN: "unknown",
}  # fmt: skip
FLAGS = ("vector", "pinned", "fresh", "large")


def words(value: Value) -> set[str]:
    """A value in words: its place, how sure that is, and its flags (`rank0` or `ranked`, `integer` or `uninteger` …)."""
    said = {PLACES[value.place], value.confidence.label}
    tristate = ((value.rank0, "rank0", "ranked"), (value.boolean, "boolean", "unboolean"), (value.integer, "integer", "uninteger"))
    said |= {yes if known else no for known, yes, no in tristate if known is not None}
    return said | {flag for flag in FLAGS if getattr(value, flag)}


def check(value: Value, expected: str) -> None:
    """Every expected word holds, and none that has a minus before it."""
    said = words(value)
    wanted = {word for word in expected.split() if not word.startswith("-")}
    unwanted = {word[1:] for word in expected.split() if word.startswith("-")}
    assert wanted <= said, f"{sorted(said)}: {value.why}"
    assert not unwanted & said, f"{sorted(said)}: {value.why}"


EXPRESSIONS = [
    # constructors
    ("torch.zeros(3)", "host certain ranked vector fresh"),
    ("torch.zeros(2, 3)", "host certain ranked fresh -vector"),
    ("torch.zeros((2, 3))", "host ranked -vector"),
    ("torch.zeros(())", "host rank0"),
    ("torch.zeros([])", "host rank0"),
    ("torch.zeros(3, device='cuda')", "device certain ranked vector -fresh"),
    ("torch.zeros(3, device='cuda:1')", "device certain"),
    ("torch.zeros(3, device='cpu')", "host certain fresh"),
    ("torch.zeros(3, device='meta')", "-device -host"),
    ("torch.zeros(3, device=0)", "device certain"),
    ("torch.zeros(3, device=torch.device('cuda'))", "device certain"),
    ("torch.zeros(3, device=torch.device('cuda', 0))", "device certain"),
    ("torch.zeros(3, device=torch.device('cpu'))", "host certain"),
    ("torch.zeros(3, device=torch.device('cuda' if torch.cuda.is_available() else 'cpu'))", "device"),
    ("torch.zeros(3, device=torch.cuda.current_device())", "device certain"),
    ("torch.zeros(3, device=D.device)", "device certain"),
    ("torch.zeros(3, device=H.device)", "host certain"),
    ("torch.zeros(3, device=None)", "-device"),
    ("torch.zeros(3, device=torch.get_default_device())", "possible"),
    ("torch.zeros(3, device=torch.device(torch.get_default_device()))", "possible"),
    ("torch.zeros(3, device=anywhere)", "device likely"),
    ("torch.zeros(3, device=cpu_device)", "host likely"),
    ("torch.zeros(3, dtype=torch.bool)", "host boolean uninteger"),
    ("torch.zeros(3, dtype=torch.long)", "host integer unboolean"),
    ("torch.zeros(3, dtype=torch.float16)", "host uninteger unboolean"),
    ("torch.zeros(3, pin_memory=True)", "host pinned"),
    ("torch.zeros(3, pin_memory=False)", "host -pinned"),
    ("torch.zeros(4096, 4096)", "host large"),
    ("torch.zeros(8)", "host -large"),
    ("torch.tensor(1)", "host rank0 integer fresh"),
    ("torch.tensor(1.5)", "host rank0 -integer"),
    ("torch.tensor(True)", "host rank0 boolean"),
    ("torch.tensor([1, 2])", "host ranked vector integer"),
    ("torch.tensor([1.0, 2.0])", "host ranked vector -integer"),
    ("torch.tensor([[1, 2], [3, 4]])", "host ranked -vector"),
    ("torch.tensor([1, 2], dtype=torch.float32)", "host uninteger"),
    ("torch.tensor(3, device='cuda')", "device certain rank0 integer"),
    ("torch.arange(4)", "host vector integer fresh"),
    ("torch.arange(0.0, 1.0)", "host vector -integer"),
    ("torch.arange(4, device='cuda')", "device vector integer"),
    ("torch.full((), 3.0, device='cuda')", "device rank0"),
    ("torch.full((4,), 3.0)", "host vector"),
    ("torch.zeros_like(D)", "device certain"),
    ("torch.zeros_like(H)", "host"),
    ("torch.zeros_like(D, device='cpu')", "host"),
    ("torch.ones_like(H, device='cuda')", "device"),
    ("torch.zeros_like(D, dtype=torch.bool)", "device boolean"),
    ("D.new_zeros(3)", "device vector"),
    ("H.new_zeros(3)", "host"),
    ("D.new_tensor(3)", "device"),
    ("torch.as_tensor(D)", "device"),
    ("torch.as_tensor(A)", "host"),
    ("torch.from_numpy(A)", "host certain"),
    ("torch.eye(4)", "host -vector"),
    ("nn.Parameter(torch.zeros(3))", "device likely"),
    # moves
    ("H.cuda()", "device certain -fresh"),
    ("H.to('cuda')", "device certain"),
    ("H.to('cuda', non_blocking=True)", "device certain"),
    ("H.to(0)", "device certain"),
    ("H.to(device='cuda')", "device certain"),
    ("H.to(D)", "device"),
    ("D.to(H)", "host"),
    ("H.to(D.device)", "device"),
    ("H.to(D.device, torch.float16)", "device uninteger"),
    ("H.to(dtype=torch.long, device='cuda')", "device integer"),
    ("H.to(torch.float16)", "host certain"),
    ("D.to(torch.float16)", "device certain"),
    ("D.to(torch.bool)", "device boolean"),
    ("D.type(torch.int64)", "device integer"),
    ("D.to('meta')", "-device -host"),
    ("D.cpu()", "host certain -fresh"),
    ("D.to('cpu')", "host certain"),
    ("D.to('cpu', non_blocking=True)", "host"),
    ("D.to(torch.device('cpu'))", "host"),
    ("D.cpu().numpy()", "numpy"),
    ("D.numpy(force=True)", "numpy"),
    ("D.cpu().cuda()", "device certain"),
    ("D.tolist()", "python"),
    ("V.sum().item()", "python"),
    ("D.half()", "device uninteger"),
    ("D.long()", "device integer"),
    ("D.bool()", "device boolean"),
    ("D.detach()", "device certain"),
    ("D.detach().clone()", "device certain"),
    ("D.contiguous()", "device certain"),
    ("D.pin_memory()", "pinned"),
    ("H.pin_memory()", "host pinned"),
    # rank and type
    ("D.sum()", "device rank0"),
    ("D.sum(0)", "device -rank0"),
    ("D.sum(dim=-1)", "device -rank0"),
    ("D.sum(dim=None)", "device rank0"),
    ("torch.sum(D)", "device rank0"),
    ("torch.sum(D, 1)", "device -rank0"),
    ("D.mean()", "device rank0"),
    ("D.norm()", "device rank0"),
    ("D.max()", "device rank0"),
    ("D.argmax()", "device rank0 integer"),
    ("D.argmax(-1)", "device integer -rank0"),
    ("D.max(dim=1)[0]", "device -rank0"),
    ("D.max(dim=1)[1]", "device integer"),
    ("D.topk(2)[1]", "device integer"),
    ("D.sort()[1]", "device integer"),
    ("D > 0", "device boolean -rank0"),
    ("0 < D", "device boolean"),
    ("D == H", "device boolean"),
    ("D.sum() > 0", "device rank0 boolean"),
    ("(D > 0).all()", "device rank0 boolean"),
    ("(D > 0).any(dim=0)", "device boolean -rank0"),
    ("D.isnan()", "device boolean"),
    ("torch.isfinite(D)", "device boolean"),
    ("~M", "device boolean"),
    ("M & M", "device boolean"),
    ("M | (V > 0)", "device boolean"),
    ("M + M", "device -boolean"),
    ("M * 2", "device -boolean"),
    ("torch.logical_not(M)", "device boolean"),
    ("M.sum()", "device rank0 -boolean"),
    ("V.long() / 2", "device uninteger"),
    ("V[0]", "device rank0"),
    ("V[-1]", "device rank0"),
    ("V[1:]", "device ranked vector"),
    ("V[M]", "device ranked"),
    ("V[[0, 2]]", "device -rank0"),
    ("V[torch.arange(2, device='cuda')]", "device ranked"),
    ("V[V.argmax()]", "device rank0"),
    ("V[None]", "device -rank0"),
    ("D[0]", "device -rank0"),
    ("D[0, 0]", "device"),
    ("D[:, 0]", "device"),
    ("D.view(-1)", "device vector"),
    ("D.flatten()[0]", "device rank0"),
    ("D.reshape(2, 8)", "device -vector -rank0"),
    ("D.T", "device"),
    ("D.data", "device"),
    ("D.unbind()[0]", "device"),
    ("D.split(2)[0]", "device"),
    ("list(V)[0]", "device rank0"),
    # metadata and numbers
    ("D.shape", "python"),
    ("D.shape[0]", "python integer"),
    ("D.size()", "python"),
    ("D.size(0)", "python"),
    ("D.dim()", "python"),
    ("D.ndim", "python"),
    ("D.numel()", "python"),
    ("D.dtype", "python"),
    ("D.device", "python"),
    ("D.is_cuda", "python"),
    ("D.requires_grad", "python"),
    ("len(D)", "python"),
    ("D is None", "python boolean"),
    ("D == None", "python"),
    ("'a' in [D]", "python"),
    ("isinstance(D, int)", "python"),
    ("float(V[0])", "python rank0"),
    ("int(V[0])", "python"),
    ("bool(V[0])", "python"),
    ("math.sqrt(V[0])", "python"),
    ("math.pi", "python rank0"),
    ("f'{V[0]}'", "python"),
    ("'%s' % V", "python"),
    ("str(V)", "python"),
    ("not V", "python boolean"),
    ("3 + 4", "python rank0 integer"),
    ("3 / 4", "python rank0 -integer"),
    ("-3", "python rank0 integer"),
    ("range(3)", "python"),
    ("np.asarray(A)", "numpy"),
    ("np.mean(A) + 1", "numpy"),
    ("A[0]", "numpy"),
    ("A.item()", "python"),
    # arithmetic
    ("D + 1", "device certain"),
    ("1 - D", "device certain"),
    ("D @ D", "device certain"),
    ("-D", "device certain"),
    ("D ** 2", "device certain"),
    ("D // 2", "device"),
    ("D % 2", "device"),
    ("D + torch.tensor(1.0)", "device certain"),
    ("D + unknown", "device certain -rank0 -ranked"),
    ("H + H", "host"),
    ("H + 1", "host"),
    ("H + unknown", "tensor"),
    ("V.sum() + V.mean()", "device rank0"),
    ("V.sum() * 2", "device rank0"),
    ("V.sum() + V", "device -rank0"),
    ("abs(D)", "device"),
    ("sum([V, V])", "device"),
    ("max(V[0], V[1])", "device rank0"),
    ("torch.cat([D, D])", "device"),
    ("torch.stack([H, H])", "host"),
    ("torch.where(M, V, 0.0)", "device"),
    ("torch.exp(D)", "device"),
    ("torch.exp(H)", "host"),
    ("F.softmax(D, dim=-1)", "device"),
    ("F.softmax(H, dim=-1)", "host"),
    ("F.cross_entropy(D, V)", "device"),
    ("nn.Linear(4, 4)(D)", "device likely"),
    # unknown stays unknown
    ("unknown", "unknown"),
    ("unknown.thing", "unknown"),
    ("unknown()", "unknown"),
    ("unknown + 1", "unknown"),
    ("unknown[0]", "unknown"),
    ("[1, 2]", "python"),
    ("None", "python"),
    ("lambda: D", "python"),
    ("object.__new__(type)", "-device -host -tensor"),
]


@pytest.mark.parametrize(("expression", "expected"), EXPRESSIONS, ids=[expression for expression, _ in EXPRESSIONS])
def test_expression(value_of: ValueOf, expression: str, expected: str) -> None:
    check(value_of(f"{HEAD}def f(unknown, anywhere, cpu_device):\n    return {expression}\n"), expected)


FLOWS = [
    ("both branches on the device", "device certain", """
        if a:
            x = torch.zeros(2, device="cuda")
        else:
            x = torch.ones(2, device="cuda")
        return x
    """),
    ("one branch each side", "-device", """
        if a:
            x = torch.zeros(2, device="cuda")
        else:
            x = torch.zeros(2)
        return x
    """),
    ("a branch without else", "-device", """
        x = torch.zeros(2)
        if a:
            x = x.cuda()
        return x
    """),
    ("moved on every path", "device certain", """
        x = torch.zeros(2)
        if a:
            x = x.cuda()
        else:
            x = x.to("cuda")
        return x
    """),
    ("a device value or None", "device certain", """
        x = None
        if a:
            x = V
        return x
    """),
    ("a device value or a number to start from", "device likely", """
        x = 0
        if a:
            x = V
        return x
    """),
    ("a number on every path", "python", """
        x = 0
        if a:
            x = V.sum().item()
        return x
    """),
    ("elif chain", "device certain", """
        if a == 1:
            x = V
        elif a == 2:
            x = V + 1
        else:
            x = V * 2
        return x
    """),
    ("a branch that raises says nothing", "device certain", """
        if a:
            x = H
            raise ValueError
        else:
            x = V
        return x
    """),
    ("a branch that returns ends there", "host", """
        x = V
        if a:
            return H
        x = H
        return x
    """),
    ("two returns", "-device", """
        if a:
            return V
        return H
    """),
    ("two returns on the device", "device certain", """
        if a:
            return V
        return V + 1
    """),
    ("nothing after a return counts", "host", """
        x = H
        return x
        x = V
        return x
    """),
    ("an overwritten value is forgotten", "host", """
        x = V
        x = x.cpu()
        return x
    """),
    ("conditional expression", "device certain", "return V if a else V + 1"),
    ("conditional expression, both sides", "-device", "return V if a else H"),
    ("conditional expression with None", "device certain", "return V if a else None"),
    ("or with a default", "device", "return a or V"),
    ("and of two", "device", "return V and V"),
    # loops
    ("sum of device values", "device likely", """
        total = 0
        for x in a:
            total = total + V.sum()
        return total
    """),
    ("augmented sum of device values", "device likely", """
        total = 0.0
        for x in a:
            total += V.sum()
        return total
    """),
    ("sum of host numbers", "python", """
        total = 0.0
        for x in a:
            total += V.sum().item()
        return total
    """),
    ("the value of the round before", "device likely", """
        before = now = 0
        for _ in a:
            before = now
            now = V.sum()
        return before
    """),
    ("only a later round binds it", "device", """
        for i in range(3):
            if i:
                return late
            late = V.sum()
    """),
    ("only a later round of the outer loop binds it", "device", """
        for i in range(3):
            for j in range(3):
                if i:
                    return late
            late = V.sum()
    """),
    ("a module's name is not taken for a loop's", "device certain", """
        for i in range(3):
            x = V
            def inner():
                V = H
        return x
    """),
    ("rows of a matrix", "device", """
        for row in D:
            return row
    """),
    ("elements of a vector", "device rank0", """
        for x in V:
            return x
    """),
    ("the last element stays", "device", """
        for x in V:
            pass
        return x
    """),
    ("break leaves its value", "device", """
        x = None
        for _ in a:
            if a:
                x = V
                break
        return x
    """),
    ("break on both sides", "-device", """
        while True:
            if a:
                x = V
                break
            if a.b:
                x = H
                break
        return x
    """),
    ("continue keeps its value for the next round", "-device -python", """
        x = V
        for _ in a:
            if a:
                x = x.sum().item()
                continue
            return x
        return x
    """),
    ("for … else runs without a break", "device certain", """
        for _ in a:
            pass
        else:
            x = V
        return x
    """),
    ("while", "device certain", """
        x = V
        while a:
            x = x + 1
        return x
    """),
    ("while with a walrus", "device", """
        while (x := V.sum()) is not None:
            return x
    """),
    ("nested loops", "device likely", """
        total = 0
        for i in a:
            for j in i:
                total += V.sum()
        return total
    """),
    ("enumerate", "device rank0", """
        for i, x in enumerate(V):
            return x
    """),
    ("the counter of enumerate", "python integer", """
        for i, x in enumerate(V):
            return i
    """),
    ("zip", "device", """
        for x, y in zip(a, V):
            return y
    """),
    ("zip of both sides", "host", """
        for x, y in zip(V, H):
            return y
    """),
    ("enumerate of zip", "device", """
        for i, (x, y) in enumerate(zip(H, V)):
            return y
    """),
    ("range", "python integer", """
        for i in range(len(V)):
            return i
    """),
    ("reversed", "device", """
        for x in reversed([V, V]):
            return x
    """),
    ("async for", "unknown", """
        async def g():
            async for x in a:
                return x
        x = g
        return a
    """),
    # with
    ("with binds what it enters", "device", """
        with V as x:
            return x
    """),
    ("with does not end a path", "device certain", """
        with torch.no_grad():
            x = V + 1
        return x
    """),
    ("torch.device as a context", "device certain", """
        with torch.device("cuda"):
            x = torch.zeros(2)
        return x
    """),
    ("torch.device as a context, with a device of its own", "host certain", """
        with torch.device("cuda"):
            x = torch.zeros(2, device="cpu")
        return x
    """),
    ("after torch.device as a context", "host certain", """
        with torch.device("cuda"):
            pass
        return torch.zeros(2)
    """),
    # try
    ("try and except agree", "device certain", """
        try:
            x = V
        except ValueError:
            x = V + 1
        return x
    """),
    ("except on the other side", "-device", """
        try:
            x = V
        except ValueError:
            x = H
        return x
    """),
    ("except that raises", "device certain", """
        try:
            x = V
        except ValueError:
            raise
        return x
    """),
    ("a handler may see every value that the body gave", "-host -python", """
        x = 0
        try:
            x = V
            a()
            x = H
        except ValueError:
            return x
        return 1
    """),
    ("else of try", "device certain", """
        try:
            a()
        except ValueError:
            raise
        else:
            x = V
        return x
    """),
    ("finally decides", "host", """
        x = V
        try:
            x = V + 1
        finally:
            x = H
        return x
    """),
    ("the exception itself", "python", """
        try:
            a()
        except ValueError as error:
            return error
        return 1
    """),
    # walrus
    ("walrus in if", "device", """
        if (x := V.sum()) > 0:
            return x
        return None
    """),
    ("walrus after if", "device certain", """
        if (x := V.sum()) > 0:
            pass
        return x
    """),
    ("walrus in the first operand is certain", "device certain", """
        x = 1
        if (x := V.sum()) > 0 and a:
            pass
        return x
    """),
    ("walrus in a later operand is not", "device likely", """
        x = 1
        if a and (x := V.sum()) > 0:
            pass
        return x
    """),
    ("walrus in a call", "device certain", """
        print(x := V)
        return x
    """),
    ("walrus in a comprehension", "device", """
        rows = [(x := V + i) for i in a]
        return x
    """),
    ("a comprehension's own name does not leave it", "host", """
        x = H
        rows = [x for x in V]
        return x
    """),
    # match
    ("match, every case", "device certain", """
        match a:
            case 1:
                x = V
            case "two" | "three":
                x = V + 1
            case _:
                x = V + 2
        return x
    """),
    ("match, every case decides", "device certain", """
        x = H
        match a:
            case 1:
                x = V
            case other:
                x = V + 1
        return x
    """),
    ("match, a guarded last case decides nothing", "-device", """
        x = H
        match a:
            case other if other:
                x = V
        return x
    """),
    ("match, cases on both sides", "-device -host", """
        match a:
            case 1:
                x = H
            case 2:
                x = V
        return x
    """),
    ("match, no case", "device likely", """
        x = 0
        match a:
            case 1:
                x = V
        return x
    """),
    ("match, capture", "device", """
        match V:
            case x:
                return x
    """),
    ("match, class pattern", "device", """
        match V:
            case torch.Tensor() as x:
                return x
        return None
    """),
    ("match, parts", "unknown", """
        match a:
            case [x, *rest]:
                return x
            case {"k": x, **rest}:
                return rest
            case Point(y=x) if x:
                return x
        raise ValueError
    """),
    # unpacking
    ("pair", "host", "x, y = V, H\nreturn y"),
    ("swap", "host", "x, y = V, H\nx, y = y, x\nreturn x"),
    ("nested", "device", "x, (y, z) = 1, (H, V)\nreturn z"),
    ("nested, by value", "device", "pair = (1, (H, V))\nx, (y, z) = pair\nreturn z"),
    ("brackets", "device", "[x, y] = [H, V]\nreturn y"),
    ("from a vector", "device rank0", "x, y = V\nreturn y"),
    ("from a matrix", "device", "x, y = D\nreturn y"),
    ("from a shape", "python integer", "x, y = D.shape\nreturn y"),
    ("starred last", "python integer", "x, *y = 1, V\nreturn x"),
    ("starred rest holds the others", "device", "x, *y = 1, V, V\nreturn y[0]"),
    ("starred rest of one", "device", "x, *y = 1, V\nreturn y[0]"),
    ("starred source does not pair up", "-device", "p = (1, 2)\nx, y = *p, V\nreturn x"),
    ("chained", "device certain", "x = y = V\nreturn y"),
    ("for", "device", "for x, (y, z) in [(1, (2, V))]:\n    return z"),
    # containers
    ("list item", "host", "return [V, H][1]"),
    ("list item from the end", "host", "return [V, H][-1]"),
    ("list slice", "device", "return [V, V, V][1:][0]"),
    ("list of both", "-device -host", "return [V, H][a]"),
    ("append", "device", "x = []\nx.append(V)\nreturn x[0]"),
    ("append in a loop", "device", "x = []\nfor i in a:\n    x.append(V)\nreturn x[0]"),
    ("append of both", "-device -host", "x = [H]\nx.append(V)\nreturn x[a]"),
    ("insert", "device", "x = []\nx.insert(0, V)\nreturn x[0]"),
    ("extend", "device", "x = []\nx.extend([V])\nreturn x[0]"),
    ("appendleft", "device", "x = []\nx.appendleft(V)\nreturn x[0]"),
    ("what a round appends is there in the next", "device", "x = []\nfor i in a:\n    if x:\n        return x[0]\n    x.appendleft(V)"),
    ("augmented list", "device", "x = []\nx += [V]\nreturn x[0]"),
    ("concatenated lists", "device", "return ([H] + [V])[1]"),
    ("repeated list", "device", "return ([V] * 3)[a]"),
    ("dictionary", "host", "return {'x': V, 'y': H}['y']"),
    ("dictionary, get", "host", "return {'x': V, 'y': H}.get('y')"),
    ("dictionary, unknown key", "-device -host", "return {'x': V, 'y': H}[a]"),
    ("dictionary, item set", "host", "x = {'x': V}\nx['x'] = H\nreturn x['x']"),
    ("dictionary, another item set", "device", "x = {'x': V}\nx['y'] = H\nreturn x['x']"),
    ("dictionary, values", "device", "for x in {'x': V, 'y': V}.values():\n    return x"),
    ("dictionary, items", "device", "for k, x in {'x': V, 'y': V}.items():\n    return x"),
    ("dictionary, keys", "python", "for x in {'x': V}:\n    return x"),
    ("dictionary, dict()", "device", "return dict(x=V)['x']"),
    ("list comprehension", "device", "return [x + 1 for x in [V, V]][0]"),
    ("filtered comprehension", "device", "return [x for x in [V, V] if a][0]"),
    ("nested comprehension", "device", "return [y for x in [[V], [V]] for y in x][0]"),
    ("generator", "device", "return next(x for x in [V, V])"),
    ("set comprehension", "device", "for x in {y for y in [V]}:\n    return x"),
    ("dictionary comprehension", "device", "return {k: V for k in a}['x']"),
    ("tqdm, by keyword", "device", "from tqdm.auto import tqdm\nfor x in tqdm(iterable=[V], total=1):\n    return x"),
    ("tqdm, without anything", "unknown", "from tqdm import tqdm\nfor x in tqdm(total=1):\n    return x"),
    ("dictionary comprehension, keys", "python", "for k in {k: V for k in a}:\n    return k"),
    ("dictionary comprehension, keys in a list", "python", "return list({k: V for k in a})[0]"),
    ("dictionary comprehension, keys with numbers", "python", "for i, k in enumerate({k: V for k in a}):\n    return k"),
    ("dictionary comprehension, one of two", "python", "for k in ({k: V for k in a} if a else {k: V for k in b}):\n    return k"),
    ("dictionary comprehension, values", "device", "for x in {k: V for k in a}.values():\n    return x"),
    ("dictionary comprehension, items", "device", "for k, x in {k: V for k in a}.items():\n    return x"),
    ("dictionary comprehension, pop", "device", "return {k: V for k in a}.pop('x')"),
    ("set comprehension", "device", "for x in {V for k in a}:\n    return x"),
    ("item written", "device", "x = [H]\nx[0] = V\nx = [V]\nreturn x[0]"),
    ("element written to a tensor", "device certain", "x = torch.zeros(3, device='cuda')\nx[0] = 1.0\nreturn x"),
    # augmented assignment, del, scopes
    ("augmented name", "device certain", "x = V\nx += 1\nreturn x"),
    ("augmented name of a host tensor", "host", "x = torch.zeros(2)\nx *= 2\nreturn x"),
    ("augmented name in place", "device certain", "x = V\nx -= H\nreturn x"),
    ("deleted name", "unknown", "x = V\ndel x\nreturn x"),
    ("deleted and bound again", "device certain", "x = H\ndel x\nx = V\nreturn x"),
    ("attribute of a local", "device certain", "a.x = V\nreturn a.x"),
    ("attribute after the local was bound anew", "unknown", "a.x = V\na = other()\nreturn a.x"),
    ("augmented attribute", "device certain", "a.x = V\na.x += 1\nreturn a.x"),
    ("deleted attribute", "unknown", "a.x = V\ndel a.x\nreturn a.x"),
    ("lambda", "device certain", "g = lambda: V\nreturn g()"),
    ("lambda that sees a local", "device", "x = V\ng = lambda: x + 1\nreturn g()"),
    ("nested function that sees a local", "device", "x = V\ndef g():\n    return x + 1\nreturn g()"),
    ("two levels up", "device", "x = V\ndef g():\n    def h():\n        return x\n    return h()\nreturn g()"),
    ("a parameter hides the outer name", "unknown", "x = V\ndef g(x):\n    return x\nreturn g(a)"),
    ("assert narrows", "host", "assert not a.is_cuda\nreturn a"),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "body"), [flow[1:] for flow in FLOWS], ids=[flow[0] for flow in FLOWS])
def test_flow(value_of: ValueOf, expected: str, body: str) -> None:
    lines = dedent(body).strip("\n").splitlines()
    check(value_of(f"{HEAD}def f(a):\n" + "".join(f"    {line}\n" for line in lines)), expected)


REFINEMENTS = [
    ("isinstance", "tensor", "if isinstance(a, torch.Tensor):\n    return a"),
    ("isinstance of several", "tensor", "if isinstance(a, (torch.Tensor, nn.Parameter)):\n    return a"),
    ("isinstance of a tensor or more", "unknown", "if isinstance(a, (torch.Tensor, list)):\n    return a"),
    ("isinstance of numbers", "python", "if isinstance(a, (int, float)):\n    return a"),
    ("isinstance of an array", "numpy", "if isinstance(a, np.ndarray):\n    return a"),
    ("isinstance keeps what is known", "device certain", "if isinstance(V, torch.Tensor):\n    return V"),
    ("not isinstance, returned early", "tensor", "if not isinstance(a, torch.Tensor):\n    raise TypeError\nreturn a"),
    ("else of isinstance", "-device", "x = V if a else 1\nif isinstance(x, torch.Tensor):\n    return 1\nreturn x"),
    ("is_tensor", "tensor", "if torch.is_tensor(a):\n    return a"),
    ("is_cuda", "device certain", "if a.is_cuda:\n    return a"),
    ("not is_cuda", "host", "if not a.is_cuda:\n    return a"),
    ("else of is_cuda", "host", "if a.is_cuda:\n    return 1.0\nreturn None if a is None else a"),
    ("is_cpu", "host", "if a.is_cpu:\n    return a"),
    ("device type, equal", "host", "if a.device.type == 'cpu':\n    return a"),
    ("device type, not equal", "device", "if a.device.type != 'cpu':\n    return a"),
    ("device type, cuda", "device", "if a.device.type == 'cuda':\n    return a"),
    ("device type, not cuda", "host", "if a.device.type != 'cuda':\n    return a"),
    ("both of and", "device", "if a is not None and a.is_cuda:\n    return a"),
    ("a false or", "device", "if a is None or not a.is_cuda:\n    return None\nreturn a"),
    ("a true or says nothing", "unknown", "if a is None or a.is_cuda:\n    return a"),
    ("a false and says nothing", "unknown", "if a is not None and a.is_cuda:\n    return None\nreturn a"),
    ("inside and", "python", "return isinstance(a, int) and a > 3"),
    ("only inside the conditional", "-host", "x = a if a.is_cpu else None\nreturn a"),
    ("in the conditional", "host", "return a if a.is_cpu else None"),
    ("in a comprehension's test", "device", "return [x for x in a if x.is_cuda][0]"),
    ("after a comprehension's test", "unknown", "x = [1 for _ in range(3) if a.is_cuda]\nreturn a"),
    ("attribute", "device", "if a.x.is_cuda:\n    return a.x"),
    ("attribute after both paths", "-device -host", "if a.x.is_cuda:\n    pass\nreturn a.x"),
    ("attribute after an operand of or", "unknown", "ok = a.x is not None or a.y\nreturn a.x"),
    ("walrus", "device", "if (x := a).is_cuda:\n    return x"),
    ("none", "python", "if a is None:\n    return a"),
    ("assert", "device", "assert a.is_cuda\nreturn a"),
    ("while", "device", "while a.is_cuda:\n    return a"),
    ("backward", "device likely", "a.backward()\nreturn a"),
    ("backward of a known tensor", "device certain", "x = V.sum()\nx.backward()\nreturn x"),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "body"), [one[1:] for one in REFINEMENTS], ids=[one[0] for one in REFINEMENTS])
def test_refinement(value_of: ValueOf, expected: str, body: str) -> None:
    check(value_of(f"{HEAD}def f(a):\n" + "".join(f"    {line}\n" for line in body.splitlines())), expected)


FLAG = st.sampled_from([None, True, False])


def values(details: st.SearchStrategy[Detail | None]) -> st.SearchStrategy[Value]:
    """Values as the evaluator makes them: tensors and arrays carry no detail, pinned and fresh memory is the host's."""

    plain = st.builds(Value, st.sampled_from(Place), st.just(""), st.sampled_from(Confidence), FLAG, st.booleans(), FLAG, FLAG)
    return st.builds(lambda value, detail: replace(value, detail=detail if value.place is Place.PYTHON else None), plain, details)


LITERALS = st.sampled_from([Literal("NoneType"), Literal("int", 1), Literal("int", 2), Literal("str", "cuda"), Literal("str", "cpu")])
NAMED = st.sampled_from([Device("device"), Device("host"), Device("unknown"), Dtype("bool"), External("torch.zeros")])
SIMPLE = values(st.one_of(st.none(), LITERALS, NAMED))
CONTAINERS = st.one_of(
    st.builds(Items, st.sampled_from(["tuple", "list", "set"]), st.lists(SIMPLE, max_size=3).map(tuple)),
    st.builds(ListOf, SIMPLE),
)
ANY = values(st.one_of(st.none(), LITERALS, NAMED, CONTAINERS))
MANY = settings(max_examples=120, deadline=None, derandomize=True, database=None)


@MANY
@given(ANY, ANY)
def test_join_does_not_depend_on_the_order_of_two(a: Value, b: Value) -> None:
    assert join(a, b) == join(b, a)


@MANY
@given(ANY)
def test_join_with_itself_changes_nothing(a: Value) -> None:
    assert join(a, a) == a
    assert join(a, replace(a)) == a
    assert join_all([a, a, a]) == a


@MANY
@given(ANY, ANY)
def test_two_values_off_the_device_never_join_to_one_on_it(a: Value, b: Value) -> None:
    assume(not a.is_device and not b.is_device)
    assert not join(a, b).is_device
    assert not combine([a, b]).is_device


@MANY
@given(ANY, ANY)
def test_a_join_is_no_surer_than_what_it_joins(a: Value, b: Value) -> None:
    assume(not is_none(a) and not is_none(b))
    joined = join(a, b)
    if joined.place is a.place is b.place:
        assert joined.confidence == min(a.confidence, b.confidence)
    if joined.is_device:
        assert joined.confidence <= min(one.confidence for one in (a, b) if one.is_device)
        assert all(one.is_device or not one.is_host or is_constant(one) for one in (a, b))


@MANY
@given(ANY, ANY)
def test_a_flag_of_a_join_holds_for_both(a: Value, b: Value) -> None:
    assume(not is_none(a) and not is_none(b))
    b = replace(b, place=a.place, detail=a.detail)
    joined = join(a, b)
    for flag in ("rank0", "boolean", "integer"):
        assert getattr(joined, flag) in (None, getattr(a, flag))
        assert getattr(joined, flag) in (None, getattr(b, flag))
    assert not joined.vector or (a.vector and b.vector)


@MANY
@given(st.lists(SIMPLE, min_size=1, max_size=4))
def test_arithmetic_is_on_the_device_where_one_operand_is(operands: list[Value]) -> None:
    result = combine(operands)
    assert result.is_device is any(one.is_device for one in operands)
    if all(one.place is Place.HOST for one in operands):
        assert result.place is Place.HOST


PAIR = """\
import torch


class Buffers:
    def __init__(self, rows, device):
        self.rows = torch.zeros(rows, dtype=torch.int32, device=device)


class Pair:
    def __init__(self, rows, device):
        self.{name} = Buffers(rows, device)

    def forward_step(self, model, timesteps):
        for t in timesteps:
            model(t)
            self.{name}.rows.copy_(torch.tensor([1, 2], dtype=torch.int32))
            self.{name}.rows.max().item()
"""


@pytest.mark.parametrize(("name", "told"), [("host_side", []), ("cpu", []), ("pinned_pair", []), ("side", [16, 17]), ("hosted", [16, 17])])
def test_what_a_thing_holds_that_is_named_as_the_hosts_is_not_sure_to_be_on_the_device(name: str, told: list[int]) -> None:
    findings, errors = scan_text(PAIR.format(name=name), "pair.py")
    assert not errors
    assert sorted({finding.span.line for finding in findings if finding.code in ("HL101", "HL203", "HL201")}) == told


ROWS = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x, layout):
        for {targets} in {source}:
            x = x + {read}
        return x
"""


@pytest.mark.parametrize(
    ("targets", "source", "read", "told"),
    [
        ("start, end, kind", 'layout["spans"]', "x[:, start:end].sum()", False),
        ("start, _", 'layout["spans"]', "torch.arange(start)", False),
        ("start, end", "layout", "x[:, start:end].sum()", True),  # rows of the tensor that it is by convention
        ("row", 'layout["spans"]', "row.max().item()", True),
        ("start, end", 'layout["spans"].cuda()', "x[:, start:end].sum()", True),
    ],
)
def test_rows_of_an_entry_that_are_taken_apart_may_be_tuples(targets: str, source: str, read: str, told: bool) -> None:
    findings, errors = scan_text(ROWS.format(targets=targets, source=source, read=read), "net.py")
    assert not errors
    assert bool([finding for finding in findings if finding.code.startswith("HL1")]) is told
