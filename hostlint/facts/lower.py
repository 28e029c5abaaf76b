"""From the text of one file to its facts: the outline that the whole project sees, and a value graph for each function."""
from __future__ import annotations

import ast
import functools
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import hostlint.facts.calls
import hostlint.facts.expressions  # noqa: F401 - registers the lowerings
from hostlint.facts.bindings import hand_out
from hostlint.facts.builder import ClassBuilder, FileBuilder, FunctionBuilder
from hostlint.facts.functions import enter, read_hints
from hostlint.facts.graph import FunctionGraph, Op, Refinement
from hostlint.facts.positions import Positions
from hostlint.facts.schema import ClassOutline, FileOutline, FunctionFlag, FunctionOutline
from hostlint.facts.statements import lower_block

DEPTH = 12_000


class FileFacts(NamedTuple):
    outline: FileOutline
    graphs: tuple[FunctionGraph, ...]  # one a function, in the outline's order


def lower_file(text: str, path: str, module: str, is_package: bool = False) -> FileFacts:
    """The facts of a file. Raises SyntaxError (or RecursionError, MemoryError, ValueError) where `ast` cannot parse it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    hints, flags = _comments(text)
    file = FileBuilder(module, path, is_package, Positions(text), interesting_names(), hints, flags)
    top = FunctionBuilder(file, 0, "<module>", "<module>", 1, file.positions.count, -1, 0, 0)
    file.functions.append(top)
    with _depth():
        lower_block(top, tree.body)
        for child, _, body in file.pending:  # grows while nested functions are met
            enter(child)
            read_hints(child, body)
            lower_block(child, body)
    for function in file.functions[1:]:
        hand_out(function)
    graphs = tuple(_graph(function) for function in file.functions)
    return FileFacts(_outline(file, file.positions.count, graphs), graphs)


@contextmanager
def _depth() -> Iterator[None]:
    """What `ast` could parse is lowered by recursion: a long chain of `elif`s or `+` takes some frames for each link."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEPTH))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _comments(text: str) -> tuple[dict[int, tuple[tuple[str, int], ...]], dict[int, int]]:
    if "hostlint:" not in text:
        return {}, {}
    from hostlint.comments import HeatHint, parse

    hints: dict[int, tuple[tuple[str, int], ...]] = {}
    flags: dict[int, int] = {}
    for line, hint in parse(text).hints.items():
        named = ((Refinement.SAID_DEVICE, hint.device), (Refinement.SAID_HOST, hint.host), (Refinement.CONSTANT, hint.constant))
        hints[line] = tuple((name, int(what)) for what, names in named for name in names)
        if hint.heat is not None:
            flags[line] = FunctionFlag.HOT if hint.heat is HeatHint.HOT else FunctionFlag.COLD
    return hints, flags


@functools.cache
def interesting_names() -> frozenset[str]:
    """The last parts of the names of every call that the table of torch says may wait."""
    from hostlint.torch_ops import pauses, waiting_names
    from hostlint.torch_ops.copies import REWRITERS

    # record: an event's wait is judged by where it was recorded; synchronize and format: judged on receivers of unknown class too
    return waiting_names() | pauses.NAMES | REWRITERS | {"record", "synchronize", "format"}


def _graph(b: FunctionBuilder) -> FunctionGraph:
    cells = tuple((name, _cell(b, nodes)) for name, nodes in b.bindings.items() if "." not in name)
    return FunctionGraph(
        tuple(b.nodes), tuple(b.returns), tuple(b.yields), tuple(b.sites), cells, tuple(b.refinements), tuple(b.marks)
    )


def _cell(b: FunctionBuilder, nodes: list[int]) -> int:
    distinct = tuple(dict.fromkeys(nodes))
    return distinct[0] if len(distinct) == 1 else b.add(Op.PHI, 0, distinct)


def _outline(file: FileBuilder, lines: int, graphs: tuple[FunctionGraph, ...]) -> FileOutline:
    top = file.functions[0]
    return FileOutline(
        module=file.module,
        path=file.path,
        lines=lines,
        imports=tuple(top.imports),
        stars=tuple(dict.fromkeys(file.stars)),
        functions=tuple(_function_outline(function) for function in file.functions),
        classes=tuple(_class_outline(made) for made in file.classes),
        globals=graphs[0].cells,
    )


def _function_outline(b: FunctionBuilder) -> FunctionOutline:
    return FunctionOutline(
        index=b.index,
        name=b.name,
        qualname=b.qualname,
        line=b.line,
        end_line=b.end_line,
        owner=b.owner,
        parent=b.parent,
        decorators=b.decorators,
        params=b.params,
        returns=b.returns_text,
        regions=tuple(b.regions),
        region=b.parent_region,
        calls=tuple(b.calls),
        assigns=tuple(b.assigns),
        imports=tuple(b.imports) if b.index else (),
        reads=tuple(b.reads),
        flags=b.flags | (FunctionFlag.GENERATOR if b.yields else 0),
    )


def _class_outline(made: ClassBuilder) -> ClassOutline:
    return ClassOutline(
        made.index, made.name, made.qualname, made.line, made.bases, tuple(made.attributes), tuple(made.annotations), tuple(made.methods)
    )
