"""File facts as bytes: two blobs a file, so that the outlines of a whole project load fast and graphs only where they are asked for."""
from __future__ import annotations

import marshal
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import FunctionGraph, Site
from hostlint.facts.schema import Call, ClassOutline, FileOutline, FunctionOutline, Param, Region

if TYPE_CHECKING:
    from hostlint.facts.lower import FileFacts

# marshal only knows plain tuples; it is four times as fast as pickle, and the cache's keys hold the interpreter's version.
_RECORDS = {"params": Param._make, "regions": Region._make, "calls": Call._make}
_POSITIONS = {name: FunctionOutline._fields.index(name) for name in _RECORDS}


def encode(facts: FileFacts) -> tuple[bytes, bytes]:
    """(outline, graphs)"""
    outline = facts.outline
    functions = [_plain_function(function) for function in outline.functions]
    classes = [tuple(made) for made in outline.classes]
    head = (outline.module, outline.lines, outline.imports, outline.stars, functions, classes, outline.globals)
    graphs = [(*graph[:3], [tuple(site) for site in graph.sites], *graph[4:]) for graph in facts.graphs]
    return marshal.dumps(head), marshal.dumps(graphs)


def _plain_function(function: FunctionOutline) -> tuple[object, ...]:
    plain = list(function)
    for name, position in _POSITIONS.items():
        plain[position] = [tuple(record) for record in getattr(function, name)]
    return tuple(plain)


def decode_outline(blob: bytes, path: str) -> FileOutline:
    """The outline that `encode` made, for a file that now has this path."""
    module, lines, imports, stars, functions, classes, names = marshal.loads(blob)  # noqa: S302 - our own cache
    made = tuple(_function(plain) for plain in functions)
    return FileOutline(module, path, lines, imports, stars, made, tuple(map(ClassOutline._make, classes)), names)


def _function(plain: Any) -> FunctionOutline:
    fields = list(plain)
    for name, make in _RECORDS.items():
        fields[_POSITIONS[name]] = tuple(map(make, fields[_POSITIONS[name]]))
    return FunctionOutline._make(fields)


def decode_graphs(blob: bytes) -> tuple[FunctionGraph, ...]:
    """The graphs that `encode` made, in the outline's order."""
    graphs = marshal.loads(blob)  # noqa: S302 - our own cache
    return tuple(
        FunctionGraph(nodes, returns, yields, tuple(map(Site._make, sites)), *rest) for nodes, returns, yields, sites, *rest in graphs
    )
