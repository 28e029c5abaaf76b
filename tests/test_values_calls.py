"""Values across functions, classes and files: what a call returns, what attributes hold, what parameters are given."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from textwrap import dedent

import pytest

from hostlint.values.value import Place, Value

ValueOf = Callable[..., Value]
# Line 1 of every program: a vector on the device (V) and one on the host (H).
HEAD = 'import torch; from torch import nn, Tensor; V = torch.zeros(4, device="cuda"); H = torch.zeros(4)\n'
PLACES = {
    "python": Place.PYTHON, "numpy": Place.NUMPY, "host": Place.HOST, "device": Place.DEVICE, "tensor": Place.TENSOR,
    "unknown": Place.UNKNOWN,
}  # fmt: skip


def check(value: Value, expected: str) -> None:
    """`device certain`: that place and confidence; `-device -host`: none of those places."""
    words = expected.split()
    place = next((PLACES[word] for word in words if word in PLACES), None)
    assert place in (None, value.place), f"{value.place} {value.confidence.label}: {value.why}"
    assert value.place not in {PLACES[word[1:]] for word in words if word.startswith("-")}, value.why
    sure = {word for word in words if word in ("certain", "likely", "possible")}
    assert not sure or value.confidence.label in sure, f"{value.confidence.label}: {value.why}"


FUNCTIONS = [
    ("what it is given", "device certain", """
        def g(x):
            return x + 1
        def f():
            return g(V)
    """),
    ("what this call gives, not what another does", "host", """
        def g(x):
            return x + 1
        def other():
            return g(V)
        def f():
            return g(H)
    """),
    ("by keyword", "host", """
        def g(x, y):
            return y
        def f():
            return g(y=H, x=V)
    """),
    ("keyword only", "device", """
        def g(x, *, y):
            return y
        def f():
            return g(1, y=V)
    """),
    ("positional only", "device", """
        def g(x, y, /):
            return y
        def f():
            return g(H, V)
    """),
    ("a default that stays", "device certain", """
        def g(n, device="cuda"):
            return torch.zeros(n, device=device)
        def f():
            return g(4)
    """),
    ("a default that is replaced", "host", """
        def g(n, device="cuda"):
            return torch.zeros(n, device=device)
        def f():
            return g(4, device="cpu")
    """),
    ("a default that is replaced by position", "host", """
        def g(n, device="cuda"):
            return torch.zeros(n, device=device)
        def f():
            return g(4, "cpu")
    """),
    ("a default that is passed on", "device", """
        def g(n, device="cpu"):
            return torch.zeros(n, device=device)
        def h(n, device="cuda"):
            return g(n, device=device)
        def f():
            return h(4)
    """),
    ("no device is passed on", "-device", """
        def g(n, device=None):
            return torch.zeros(n, device=device)
        def f():
            return g(4)
    """),
    ("a device is passed down", "device", """
        def g(n, device):
            return torch.zeros(n, device=device)
        def h(n, device):
            return g(n, device)
        def f():
            return h(4, torch.device("cuda"))
    """),
    ("starred arguments say nothing of one parameter", "-host", """
        def g(x, y):
            return x
        def f(rest):
            return g(*rest)
    """),
    ("the rest of the arguments", "unknown", """
        def g(*rest, **named):
            return rest[0]
        def f():
            return g(V)
    """),
    ("a pair", "host", """
        def g():
            return V, H
        def f():
            x, y = g()
            return y
    """),
    ("an item of a dictionary", "device", """
        def g():
            return {"x": V, "y": H}
        def f():
            return g()["x"]
    """),
    ("a list that it fills", "device", """
        def g():
            rows = []
            for _ in range(3):
                rows.append(V)
            return rows
        def f():
            return torch.stack(g())
    """),
    ("nothing", "python", """
        def g():
            pass
        def f():
            return g() is None
    """),
    ("both sides", "-device -host", """
        def g(a):
            if a:
                return V
            return H
        def f(a):
            return g(a)
    """),
    ("host numbers", "python", """
        def g(x):
            return x.item()
        def f():
            return g(V[0])
    """),
    ("a generator hands out something unknown", "unknown", """
        def g():
            yield V
        def f():
            for x in g():
                return x
    """),
    ("annotated with a tensor", "tensor", """
        def g(x) -> Tensor:
            return load(x)
        def f():
            return g(1)
    """),
    ("annotated in quotes", "tensor", """
        def g(x) -> "torch.Tensor":
            return load(x)
        def f():
            return g(1)
    """),
    ("annotated with a tensor or None", "tensor", """
        def g(x) -> Tensor | None:
            return load(x)
        def f():
            return g(1)
    """),
    ("annotated with a number", "python", """
        def g(x) -> float:
            return load(x)
        def f():
            return g(1)
    """),
    ("annotated with a tensor or a number", "unknown", """
        def g(x) -> "Tensor | float":
            return load(x)
        def f():
            return g(1)
    """),
    ("annotated with a pair", "python", """
        def g(x) -> tuple[Tensor, int]:
            return load(x)
        def f():
            return g(1)[1]
    """),
    ("annotated with a list", "tensor", """
        def g(x) -> list[Tensor]:
            return load(x)
        def f():
            return g(1)[0]
    """),
    ("the body knows more than the annotation", "device certain", """
        def g(x) -> Tensor:
            return V
        def f():
            return g(1)
    """),
    ("async, awaited", "tensor", """
        async def g(x) -> Tensor:
            return load(x)
        async def f():
            return await g(1)
    """),
    ("decorated", "device", """
        @torch.no_grad()
        def g(x):
            return x + 1
        def f():
            return g(V)
    """),
    ("two calls deep", "device", """
        def g(x):
            return x * 2
        def h(x):
            return g(x) + 1
        def f():
            return h(V)
    """),
    ("a function in a variable", "device", """
        def g(x):
            return x
        def f(a):
            h = g
            return h(V)
    """),
    ("a function that is an argument", "device", """
        def g(x):
            return x
        def h(function, x):
            return function(x)
        def f():
            return h(g, V)
    """),
    ("a parameter hides a function", "unknown", """
        def g(x):
            return V
        def f(g):
            return g(1)
    """),
    ("a nested function hides another", "host", """
        def g():
            return V
        def f():
            def g():
                return H
            return g()
    """),
    ("a project's function that is named like torch's", "host", """
        def zeros(n, device):
            return H
        def f():
            return zeros(3, device="cuda")
    """),
    ("recursion", "device", """
        def f(n=3):
            if n == 0:
                return V
            return f(n - 1)
    """),
    ("recursion without an end", "unknown", """
        def f(n):
            return f(n)
    """),
    ("functions that call one another", "device", """
        def g(n):
            return V if n else f(n)
        def f(n):
            return g(n)
    """),
    ("a module's name", "device certain", """
        LIMIT = V + 1
        def f():
            return LIMIT
    """),
    ("a module's name that is bound twice", "-device -host", """
        LIMIT = V
        LIMIT = H
        def f():
            return LIMIT
    """),
    ("a module's name that is bound later", "device", """
        def f():
            return LATE
        LATE = V
    """),
    ("global that is bound here", "device certain", """
        LIMIT = None
        def f():
            global LIMIT
            LIMIT = V
            return LIMIT
    """),
    ("global that another function binds", "device certain", """
        LIMIT = None
        def set():
            global LIMIT
            LIMIT = V
        def f():
            return LIMIT
    """),
    ("global that only another function binds", "device certain", """
        def set():
            global LIMIT
            LIMIT = V
        def f():
            return LIMIT
    """),
    ("global that another function counts", "python certain", """
        COUNT = 0
        def count():
            global COUNT
            COUNT += 1
        def f():
            return COUNT
    """),
    ("nonlocal that a nested function binds", "device", """
        def f():
            last = None
            def keep():
                nonlocal last
                last = V
            def get():
                return last
            return get()
    """),
    ("nonlocal of the function that binds it", "host", """
        def f():
            x = H
            def outer():
                x = V
                def inner():
                    nonlocal x
                    x = V + 1
            return (lambda: x)()
    """),
    ("nonlocal two functions down", "-device -host", """
        def f():
            x = H
            def outer():
                def inner():
                    nonlocal x
                    x = V + 1
            return (lambda: x)()
    """),
    ("global that an earlier round bound", "-python", """
        LIMIT = 1
        def f():
            global LIMIT
            for _ in range(3):
                if LIMIT is None:
                    return LIMIT
                LIMIT = V
            return V
    """),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "text"), [one[1:] for one in FUNCTIONS], ids=[one[0] for one in FUNCTIONS])
def test_function(value_of: ValueOf, expected: str, text: str) -> None:
    check(value_of(HEAD + dedent(text)), expected)


CLASSES = [
    ("set in __init__", "device certain", """
        class C:
            def __init__(self):
                self.x = torch.zeros(2, device="cuda")
            def f(self):
                return self.x
    """),
    ("set in another method", "device certain", """
        class C:
            def set(self):
                self.x = V
            def f(self):
                return self.x
    """),
    ("set to None first", "device", """
        class C:
            def __init__(self):
                self.x = None
            def set(self):
                self.x = V
            def f(self):
                return self.x
    """),
    ("set on both sides by other methods", "-device -host", """
        class C:
            def reset(self):
                self.x = H
            def set(self):
                self.x = V
            def f(self):
                return self.x
    """),
    ("set from a parameter that calls fill", "device", """
        class C:
            def __init__(self, x):
                self.x = x
            def f(self):
                return self.x
        made = C(V)
    """),
    ("set and read again", "host", """
        class C:
            def __init__(self):
                self.x = V
            def f(self):
                self.x = H
                return self.x
    """),
    ("set on one path", "-host", """
        class C:
            def __init__(self):
                self.x = V
            def f(self, a):
                if a:
                    self.x = V + 1
                return self.x
    """),
    ("set by a nested function", "device certain", """
        class C:
            def __init__(self):
                def hook(module, given, made):
                    self.x = V
                self.hook = hook
            def f(self):
                return self.x
    """),
    ("another object's attribute of that name", "unknown", """
        class C:
            def set(self, other):
                other.x = V
            def f(self):
                return self.x
    """),
    ("in the class's body", "device", """
        class C:
            x = V
            def f(self):
                return self.x
    """),
    ("annotated in the class's body", "tensor", """
        class C:
            x: Tensor
            def f(self):
                return self.x
    """),
    ("annotated with a number", "python", """
        class C:
            x: int
            def f(self):
                return self.x
    """),
    ("annotated where it is set", "tensor", """
        class C:
            def __init__(self, x):
                self.x: Tensor = x
            def f(self):
                return self.x
    """),
    ("a base's", "device", """
        class B:
            def __init__(self):
                self.x = V
        class C(B):
            def f(self):
                return self.x
    """),
    ("a base's base's", "device", """
        class A:
            def __init__(self):
                self.x = V
        class B(A):
            pass
        class C(B):
            def f(self):
                return self.x
    """),
    ("a method's result", "device", """
        class C:
            def g(self, x):
                return x + 1
            def f(self):
                return self.g(V)
    """),
    ("an inherited method's result", "device", """
        class B:
            def g(self, x):
                return x + 1
        class C(B):
            def f(self):
                return self.g(V)
    """),
    ("an overridden method's result", "host", """
        class B:
            def g(self):
                return V
        class C(B):
            def g(self):
                return H
            def f(self):
                return self.g()
    """),
    ("super()", "device", """
        class B:
            def g(self):
                return V
        class C(B):
            def g(self):
                return H
            def f(self):
                return super().g()
    """),
    ("super() with arguments", "device", """
        class B:
            def g(self, x):
                return x
        class C(B):
            def f(self):
                return super(C, self).g(V)
    """),
    ("property", "device", """
        class C:
            @property
            def x(self):
                return V
            def f(self):
                return self.x
    """),
    ("cached property of another object", "device", """
        import functools
        class B:
            @functools.cached_property
            def x(self):
                return V
        class C:
            def f(self):
                return B().x
    """),
    ("static method", "device", """
        class C:
            @staticmethod
            def g(x):
                return x
            def f(self):
                return self.g(V)
    """),
    ("static method of the class", "device", """
        class C:
            @staticmethod
            def g(x):
                return x
            def f(self):
                return C.g(V)
    """),
    ("class method", "device", """
        class C:
            @classmethod
            def g(cls, x):
                return x
            def f(self):
                return C.g(V)
    """),
    ("class attribute through cls", "device", """
        class C:
            x = V
            @classmethod
            def f(cls):
                return cls.x
    """),
    ("an object made here", "device", """
        class B:
            def __init__(self):
                self.x = V
        class C:
            def f(self):
                return B().x
    """),
    ("an object that is kept", "device", """
        class B:
            def __init__(self):
                self.x = V
        class C:
            def __init__(self):
                self.b = B()
            def f(self):
                return self.b.x
    """),
    ("an annotated object", "device", """
        class B:
            def __init__(self):
                self.x = V
        class C:
            def f(self, b: B):
                return b.x
    """),
    ("the keys of an annotated dictionary", "python", """
        class C:
            def f(self, states: dict[str, Tensor]):
                for key in states:
                    return key
    """),
    ("the values of an annotated dictionary", "tensor", """
        class C:
            def f(self, states: "dict[str, Tensor]"):
                for state in states.values():
                    return state
    """),
    ("an attribute by its name", "device", """
        class C:
            def __init__(self):
                self.x = V
            def f(self):
                return getattr(self, "x")
    """),
    ("an attribute by its name, where it may be missing", "device", """
        class B:
            def __init__(self):
                self.x = V
        class C:
            def f(self, b: B):
                return getattr(b, "x", None)
    """),
    ("an attribute by its name, with a default on the host", "-device", """
        class C:
            def __init__(self):
                self.x = V
            def f(self):
                return getattr(self, "x", H)
    """),
    ("a mark that code hangs on a tensor, by its name", "unknown", """
        class C:
            def f(self, weight: Tensor):
                return getattr(weight, "is_packed", False)
    """),
    ("an attribute by a name that nobody knows", "unknown", """
        class C:
            def __init__(self):
                self.x = V
            def f(self, name):
                return getattr(self, name, None)
    """),
    ("an attribute by its name, of an object that nobody declared", "unknown", """
        class C:
            def f(self, batch):
                return getattr(batch, "timesteps", None)
    """),
    ("an annotated object, in quotes and optional", "device", """
        class C:
            def f(self, b: "B | None"):
                return b.x
        class B:
            def __init__(self):
                self.x = V
    """),
    ("__call__", "device", """
        class B:
            def __call__(self, x):
                return x
        class C:
            def f(self):
                return B()(V)
    """),
    ("a class that names itself as its base", "unknown", """
        class C(C):
            def f(self):
                return self.nowhere
    """),
    ("a nested class", "device", """
        class C:
            class D:
                x = V
            def f(self):
                return self.D.x if False else C.D.x
    """),
    ("a class inside a function", "device", """
        class C:
            def f(self):
                class D:
                    def __init__(self):
                        self.x = V
                return D().x
    """),
    # modules
    ("a buffer", "device likely", """
        class C(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("x", torch.zeros(2))
            def f(self):
                return self.x
    """),
    ("a parameter", "device likely", """
        class C(nn.Module):
            def __init__(self):
                super().__init__()
                self.x = nn.Parameter(torch.zeros(2))
            def f(self):
                return self.x
    """),
    ("a host tensor of a module is no buffer", "host", """
        class C(nn.Module):
            def __init__(self):
                super().__init__()
                self.x = torch.zeros(2)
            def f(self):
                return self.x
    """),
    ("a module's weight", "device likely", """
        class C(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(2, 2)
            def f(self):
                return self.linear.weight
    """),
    ("a layer's result", "device likely", """
        class C(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(2, 2)
            def f(self):
                return self.linear(V)
    """),
    ("a layer of a list", "device likely", """
        class C(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
            def f(self):
                x = V
                for layer in self.layers:
                    x = layer(x)
                return x
    """),
    ("a project's module", "host", """
        class B(nn.Module):
            def forward(self, x):
                return x.cpu()
        class C(nn.Module):
            def __init__(self):
                super().__init__()
                self.b = B().cuda()
            def f(self):
                return self.b(V)
    """),
    ("parameters()", "device likely", """
        class C(nn.Module):
            def f(self):
                for p in self.parameters():
                    return p
    """),
    ("named_parameters()", "device likely", """
        class C(nn.Module):
            def f(self):
                for name, p in self.named_parameters():
                    return p
    """),
    ("a module moved", "device likely", """
        class C(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(2, 2).to("cuda")
            def f(self):
                return self.linear(V)
    """),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "text"), [one[1:] for one in CLASSES], ids=[one[0] for one in CLASSES])
def test_class(value_of: ValueOf, expected: str, text: str) -> None:
    check(value_of(HEAD + dedent(text), "C.f"), expected)


PARAMETERS = [
    ("nobody calls it", "unknown", """
        def f(x):
            return x
    """),
    ("one call", "device certain", """
        def f(x):
            return x
        def g():
            f(V)
    """),
    ("calls that agree", "device", """
        def f(x):
            return x
        def g():
            f(V)
            f(x=V + 1)
    """),
    ("calls that do not agree", "-device -host", """
        def f(x):
            return x
        def g():
            f(V)
            f(H)
    """),
    ("one call that nothing is known of", "device likely", """
        def f(x):
            return x
        def g(y):
            f(V)
            f(y)
    """),
    ("a host call and one that nothing is known of", "unknown", """
        def f(x):
            return x
        def g(y):
            f(H)
            f(y)
    """),
    ("a call that leaves the default None", "device", """
        def f(x=None):
            return x
        def g():
            f()
            f(V)
    """),
    ("a call that leaves a number", "-host -python", """
        def f(x=1.0):
            return x
        def g():
            f()
            f(V)
    """),
    ("through two functions", "device", """
        def f(x):
            return x
        def g(x):
            f(x)
        def h():
            g(V)
    """),
    ("through a method", "device", """
        class C:
            def g(self, x):
                f(x)
            def h(self):
                self.g(V)
        def f(x):
            return x
    """),
    ("from a loop", "device", """
        def f(x):
            return x
        def g():
            for row in [V, V]:
                f(row)
    """),
    ("what it calls itself with does not count", "device", """
        def f(x):
            f(x.cpu())
            return x
        def g():
            f(V)
    """),
    ("a starred call says nothing", "unknown", """
        def f(x):
            return x
        def g(rest):
            f(*rest)
    """),
    ("an annotated number", "python", """
        def f(x: int):
            return x
        def g():
            f(V)
    """),
    ("an annotated tensor", "tensor", """
        def f(x: Tensor):
            return x
    """),
    ("an annotated tensor that calls place", "device certain", """
        def f(x: Tensor):
            return x
        def g():
            f(V)
    """),
    ("an annotated device tensor that a call has on the host", "host", """
        def f(x: Tensor):
            return x
        def g():
            f(H)
    """),
    ("an annotated array", "numpy", """
        import numpy as np
        def f(x: np.ndarray):
            return x
    """),
    ("an annotated list of tensors", "tensor", """
        def f(x: list[Tensor]):
            return x[0]
    """),
    ("an annotated dictionary of tensors", "tensor", """
        def f(x: dict[str, Tensor]):
            return x["a"]
    """),
    ("an annotated pair", "tensor", """
        def f(x: tuple[int, Tensor]):
            return x[1]
    """),
    ("an annotated literal", "python", """
        from typing import Literal
        def f(x: Literal["a", "b"]):
            return x
    """),
    ("an annotation that is no expression", "unknown", """
        def f(x: "a tensor (b, c)"):
            return x
    """),
    ("an annotated device", "python", """
        def f(x: torch.device):
            return x
    """),
    ("a parameter of the rest", "python", """
        def f(*x):
            return x
    """),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "text"), [one[1:] for one in PARAMETERS], ids=[one[0] for one in PARAMETERS])
def test_parameter(value_of: ValueOf, expected: str, text: str) -> None:
    check(value_of(HEAD + dedent(text)), expected)


CONVENTIONS = [
    ("an input of forward", "device likely", "x", ""),
    ("an annotated input of forward", "device likely", "x: Tensor", ""),
    ("a setting of forward", "unknown", "height", ""),
    ("a flag of forward", "unknown", "return_dict", ""),
    ("a number of forward", "python", "x: float", ""),
    ("an input with a number by default", "-device", "x=1.0", ""),
    ("an input that is left out by default", "device likely", "x=None", ""),
    ("an input that each step has on the host", "host", "x", "\ndef g(timesteps):\n    for t in timesteps:\n        C()(H)\n"),
    ("an input that a trial has on the host", "device likely", "x", "\ndef g():\n    C()(H)\n"),
]


@pytest.mark.parametrize(("expected", "parameter", "more"), [one[1:] for one in CONVENTIONS], ids=[one[0] for one in CONVENTIONS])
def test_convention(value_of: ValueOf, expected: str, parameter: str, more: str) -> None:
    name = parameter.partition(":")[0].partition("=")[0]
    text = f"{HEAD}class C(nn.Module):\n    def forward(self, {parameter}):\n        return {name}\n{more}"
    check(value_of(text, "C.forward"), expected)


def test_forward_of_a_class_that_is_no_module_has_no_convention(value_of: ValueOf) -> None:
    check(value_of(f"{HEAD}class C:\n    def forward(self, x):\n        return x\n", "C.forward"), "unknown")


def test_names_of_device_tensors_count_on_a_steps_path_only(value_of: ValueOf) -> None:
    text = """
        class Trainer:
            def training_step(self, batch):
                return shrink(batch)
        def shrink(logits):
            return logits
        def load(logits):
            return logits
    """
    check(value_of(HEAD + dedent(text), "shrink"), "device likely")
    check(value_of(HEAD + dedent(text), "load"), "unknown")


PROJECTS: list[tuple[str, str, Mapping[str, str]]] = [
    ("import", "device", {
        "main.py": "import lib\ndef f():\n    return lib.g()\n",
        "lib.py": "import torch\ndef g():\n    return torch.zeros(2, device='cuda')\n",
    }),
    ("import as", "device", {
        "main.py": "import pkg.lib as tools\ndef f():\n    return tools.g()\n",
        "pkg/__init__.py": "",
        "pkg/lib.py": "import torch\ndef g():\n    return torch.zeros(2, device='cuda')\n",
    }),
    ("from import as", "device", {
        "main.py": "from pkg.lib import g as make\ndef f():\n    return make()\n",
        "pkg/__init__.py": "",
        "pkg/lib.py": "import torch\ndef g():\n    return torch.zeros(2, device='cuda')\n",
    }),
    ("star import", "device", {
        "main.py": "from lib import *\ndef f():\n    return g()\n",
        "lib.py": "import torch\ndef g():\n    return torch.zeros(2, device='cuda')\n",
    }),
    ("re-export", "device", {
        "main.py": "from pkg import g\ndef f():\n    return g()\n",
        "pkg/__init__.py": "from .lib import g\n",
        "pkg/lib.py": "import torch\ndef g():\n    return torch.zeros(2, device='cuda')\n",
    }),
    ("relative imports", "device", {
        "main.py": "from pkg.sub.here import f\n",
        "pkg/__init__.py": "",
        "pkg/base.py": "import torch\nV = torch.zeros(2, device='cuda')\n",
        "pkg/sub/__init__.py": "",
        "pkg/sub/near.py": "from ..base import V\n",
        "pkg/sub/here.py": "from . import near\nfrom .near import V as W\ndef f():\n    return near.V + W\n",
    }),
    ("import inside the function", "device", {
        "main.py": "def f():\n    from lib import g\n    return g()\n",
        "lib.py": "import torch\ndef g():\n    return torch.zeros(2, device='cuda')\n",
    }),
    ("import under TYPE_CHECKING", "device", {
        "main.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lib import B\ndef f(b: 'B'):\n    return b.x\n",
        "lib.py": "import torch\nclass B:\n    def __init__(self):\n        self.x = torch.zeros(2, device='cuda')\n",
    }),
    ("import in try", "device", {
        "main.py": "try:\n    from lib import g\nexcept ImportError:\n    g = None\ndef f():\n    return g()\n",
        "lib.py": "import torch\ndef g():\n    return torch.zeros(2, device='cuda')\n",
    }),
    ("a module's name", "device", {
        "main.py": "import lib\ndef f():\n    return lib.V\n",
        "lib.py": "import torch\nV = torch.zeros(2, device='cuda')\n",
    }),
    ("an argument that another file passes", "device", {
        "main.py": "def f(x):\n    return x\n",
        "lib.py": "import torch\nfrom main import f\ndef g():\n    f(torch.zeros(2, device='cuda'))\n",
    }),
    ("an argument that only a test passes on the host", "device", {
        "main.py": "def f(x):\n    return x\n",
        "lib.py": "import torch\nfrom main import f\ndef g():\n    f(torch.zeros(2, device='cuda'))\n",
        "tests/test_main.py": "import torch\nfrom main import f\ndef test_f():\n    f(torch.zeros(2))\n",
    }),
    ("functions of one name in two files", "host", {
        "main.py": "import torch\nimport lib\ndef g():\n    return torch.zeros(2)\ndef f():\n    return g()\n",
        "lib.py": "import torch\ndef g():\n    return torch.zeros(2, device='cuda')\n",
    }),
    ("a base in another file", "device", {
        "main.py": "from lib import B\nclass C(B):\n    def get(self):\n        return self.x\ndef f():\n    return C().get()\n",
        "lib.py": "import torch\nfrom deep import A\nclass B(A):\n    pass\n",
        "deep.py": "import torch\nclass A:\n    def __init__(self):\n        self.x = torch.zeros(2, device='cuda')\n",
    }),
    ("an instance in another file", "device", {
        "main.py": "from lib import keeper\ndef f():\n    return keeper.x\n",
        "lib.py": "import torch\nclass B:\n    def __init__(self):\n        self.x = torch.zeros(2, device='cuda')\nkeeper = B()\n",
    }),
    ("an import cycle", "device", {
        "main.py": "import lib\ndef f():\n    return lib.h()\ndef g():\n    return lib.V\n",
        "lib.py": "import torch\nimport main\nV = torch.zeros(2, device='cuda')\ndef h():\n    return main.g()\n",
    }),
    ("a cycle of names that leads nowhere", "unknown", {
        "main.py": "from lib import g\ndef f():\n    return g()\n",
        "lib.py": "from main import g\n",
    }),
    ("star imports in a circle", "unknown", {
        "main.py": "from lib import *\ndef f():\n    return nowhere()\n",
        "lib.py": "from main import *\n",
    }),
    ("a file that is not there", "unknown", {"main.py": "from .lib import g\ndef f():\n    return g()\n"}),
    ("a library that nothing is known of", "unknown", {"main.py": "import jax.numpy as jnp\ndef f():\n    return jnp.zeros(3)\n"}),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "files"), [one[1:] for one in PROJECTS], ids=[one[0] for one in PROJECTS])
def test_project(value_of: ValueOf, expected: str, files: Mapping[str, str]) -> None:
    path = "main.py" if "def f" in files["main.py"] else "pkg/sub/here.py"
    check(value_of(files, "f", path), expected)


EVIDENCE = [
    ("`torch.zeros` at line 3 makes it on the device", "def f():\n    return torch.zeros(2, device='cuda') + 1"),
    ("`torch.zeros` at line 3 makes it on `place`", "def f(place):\n    return torch.zeros(2, device=place)"),
    ("`torch.zeros` at line 3 has no `device=`, so it is made on the host", "def f():\n    return torch.zeros(2)"),
    ("`cuda()` at line 4", "def f(x):\n    y = x * 2\n    return y.cuda()"),
    ("moved to `place.device` at line 3", "def f(x, place):\n    return x.to(place.device)"),
    ("`cpu` at line 3 gives a host tensor", "def f(x):\n    return x.cpu()"),
    ("backward() is called on it", "def f(x):\n    x.backward()\n    return x"),
    ("a comment on line 2 says so", "def f(x):  # hostlint: device(x)\n    return x"),
    ("it is a module's parameter", "def f(model):\n    return next(model.parameters())"),
    ("`self.x`: `torch.zeros` at line 4 makes it on the device", (
        "class C:\n    def __init__(self):\n        self.x = torch.zeros(2, device='cuda')\n    def f(self):\n        return self.x\n"
        "def f():\n    return C().f()"
    )),
    ("`self.x` is a buffer or parameter, which moves with its module", (
        "class C(torch.nn.Module):\n    def __init__(self):\n        self.register_buffer('x', torch.zeros(2))\n"
        "def f():\n    return C().x"
    )),
    ("`x` is an input of C.forward, which lives on the device by convention", (
        "class C(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
    )),
]  # fmt: skip


@pytest.mark.parametrize(("why", "text"), EVIDENCE, ids=[why for why, _ in EVIDENCE])
def test_evidence(value_of: ValueOf, why: str, text: str) -> None:
    assert value_of(f"import torch\n{text}\n", "f" if "def f(" in text else "C.forward").why == why


def test_comments_on_assignments_and_headers(value_of: ValueOf) -> None:
    text = """
        import torch
        def f(a, b):  # hostlint: host(a)
            x, y = b  # hostlint: device(y)
            z = (
                b
            )  # hostlint: device(z)
            b.w = 1  # hostlint: device(b.w)
            return a, x, y, z, b.w
    """
    detail = value_of(dedent(text)).detail
    places = [item.place for item in getattr(detail, "items", ())]
    assert places == [Place.HOST, Place.UNKNOWN, Place.DEVICE, Place.DEVICE, Place.DEVICE]


def test_the_parts_of_a_models_output_live_where_its_inputs_do(value_of: ValueOf) -> None:
    source = """
        import torch
        def f(model):
            latents = torch.randn(1, 4, device="cuda")
            return model(latents).sample
        def g():
            latents = torch.randn(1, 4, device="cuda")
            return latents.sample
    """
    assert value_of(dedent(source)).is_device
    assert not value_of(dedent(source), "g").is_device
