"""The call forms and the names that they use, read from the text files beside this module; needs no torch."""
from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "forms"
NAMES_FILE = "names"
LABEL = "  #= "  # after a form: the text under which it is listed, where that is not its source
MODULES = {
    "torch": "torch",
    "F": "torch.nn.functional",
    "np": "numpy",
    "gc": "gc",
    "copy": "copy",
    "io": "io",
    "math": "math",
    "pickle": "pickle",
}
# In the order in which they run: what may end the process comes last.
GROUPS = (
    "read", "format", "create", "move", "copy", "index", "write", "sizes", "scalars", "compare", "elementwise", "reduce", "sort", "linalg",
    "fft", "sparse", "nested", "functional", "module", "loss", "rnn", "optimizer", "distribution", "random", "amp", "autograd", "foreach",
    "serialize", "stream", "allocator", "graph", "collective",
)


@dataclass(frozen=True, slots=True)
class Form:
    """One way to call something. Sizes and kinds of arguments that may matter are told apart by the names."""

    group: str
    call: str  # how the table of torch and the rules' pages quote it
    source: str  # the statement that is measured
    needs: tuple[str, ...]  # the names to build first


@cache
def names() -> dict[str, str]:
    """Each name that forms use and the expression that builds it."""
    found: dict[str, str] = {}
    for line in _lines(NAMES_FILE):
        name, _, expression = line.partition(" = ")
        found[name] = expression
    return found


def forms() -> Iterator[Form]:
    """Every form, group by group in the order of `GROUPS`."""
    for group in GROUPS:
        for line in _lines(group):
            source, _, label = line.partition(LABEL.strip())
            source = source.strip()
            yield Form(group, label.strip() or source, source, needed(source))


def needed(source: str) -> tuple[str, ...]:
    """The names of the names file that a statement uses, those that others are built from first."""
    order: dict[str, None] = {}
    for name in _free(source):
        for before in needed(names()[name]):
            order.setdefault(before)
        order.setdefault(name)
    return tuple(order)


def unknown(source: str) -> set[str]:
    """Names that nothing defines: a slip of the pen in a text file."""
    own = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in ast.walk(ast.parse(source)) if isinstance(node, ast.arg)}
    read = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    return read - own - set(names()) - set(MODULES) - set(dir(builtins)) - {"makers"}


def _free(source: str) -> list[str]:
    used = (node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return [name for name in dict.fromkeys(used) if name in names()]


def _lines(file: str) -> Iterator[str]:
    for line in (FOLDER / f"{file}.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line
