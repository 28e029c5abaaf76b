"""Facts as bytes: what is written comes back equal and of the same types."""
from __future__ import annotations

import marshal
import sysconfig
from pathlib import Path
from textwrap import dedent

import pytest

from hostlint.facts.codec import decode_graphs, decode_outline, encode
from hostlint.facts.graph import FunctionGraph, Op, Site
from hostlint.facts.lower import FileFacts, lower_file
from hostlint.facts.schema import Call, ClassOutline, FileOutline, FunctionOutline, Param, Region
from hostlint.sources import decode

PROGRAM = dedent('''
    """Everything that an outline can hold."""
    import torch, os.path as p
    from lib import *
    from . import near

    LIMIT = 1e400
    SWITCH = os.environ.get("DEBUG")

    @torch.no_grad()
    async def f(a, /, b: "int" = -0.0, *c, d=0xFFFFFFFFFFFFFFFFFFFF, **e) -> Tensor:  # hostlint: device(a)
        """Größe."""
        for i, (x, y) in enumerate(zip(a, b)):
            if i % 100 == 0 and SWITCH:
                yield x.item(), f"{y:>3}"
        x.backward()
        return [lambda k=1: k, "long" * 2, b"bytes", 3j, ..., None, True, "x" * 100]

    class C(nn.Module, Generic[T]):
        size: int = 3
        def __init__(self):
            self.register_buffer("rows", torch.zeros(3))
            self.either = A() if LIMIT else B()
        class Inner:
            pass
''')


def again(facts: FileFacts) -> FileFacts:
    outline, graphs = encode(facts)
    return FileFacts(decode_outline(outline, facts.outline.path), decode_graphs(graphs))


def test_what_is_written_comes_back() -> None:
    facts = lower_file(PROGRAM, "pkg/mod.py", "pkg.mod")
    read = again(facts)
    assert read.outline == facts.outline
    assert read.graphs == facts.graphs
    assert len(facts.graphs) == len(facts.outline.functions) == 4
    assert any(graph.refinements and graph.marks and graph.sites and graph.yields for graph in facts.graphs)


def test_records_come_back_as_what_they_are() -> None:
    read = again(lower_file(PROGRAM, "pkg/mod.py", "pkg.mod"))
    made = read.outline.functions[1]
    assert type(read.outline) is FileOutline
    assert type(made) is FunctionOutline
    assert (type(made.params[0]), type(made.regions[0]), type(made.calls[0])) == (Param, Region, Call)
    assert type(read.outline.classes[0]) is ClassOutline
    assert type(read.graphs[1]) is FunctionGraph
    assert type(read.graphs[1].sites[0]) is Site
    for part in (made.params, made.regions, made.calls, made.decorators, read.outline.classes, read.graphs[1].nodes, read.graphs[1].sites):
        assert type(part) is tuple


def test_the_path_is_the_readers_own() -> None:
    outline, _ = encode(lower_file("x = 1\n", "old/mod.py", "mod"))
    assert b"old/mod.py" not in outline
    assert decode_outline(outline, "new/mod.py").path == "new/mod.py"


def test_the_same_text_gives_the_same_facts() -> None:
    first = again(lower_file(PROGRAM, "a.py", "pkg.mod"))
    assert again(lower_file(PROGRAM, "a.py", "pkg.mod")) == first
    assert again(lower_file(PROGRAM.replace("100", "101"), "a.py", "pkg.mod")).graphs != first.graphs
    assert again(lower_file(PROGRAM.replace("LIMIT", "OTHER"), "a.py", "pkg.mod")).outline != first.outline


@pytest.mark.parametrize(
    ("literal", "kept"),
    [
        ("3", ("int", 3)),
        ("0x3FFFFFFFFFFFFFFF", ("int", 0x3FFFFFFFFFFFFFFF)),
        ("0xFFFFFFFFFFFFFFFFFFFF", ("int", None)),
        ("True", ("bool", True)),
        ("1.5", ("float", 1.5)),
        ("1e400", ("float", float("inf"))),
        ("2j", ("complex", None)),
        ("None", ("NoneType", None)),
        ("...", ("ellipsis", None)),
        ("b'x'", ("bytes", None)),
        ("'é'", ("str", "é")),
        ("'\\ud800'", ("str", "\ud800")),
        ("'" + "x" * 64 + "'", ("str", "x" * 64)),
        ("'" + "x" * 65 + "'", ("str", None)),
    ],
)
def test_literals(literal: str, kept: tuple[str, object]) -> None:
    facts = lower_file(f"x = {literal}\n", "m.py", "m")
    (node,) = [node for node in again(facts).graphs[0].nodes if node[0] == Op.CONST]
    assert node[2:] == kept
    assert type(node[3]) is type(kept[1])


def test_nothing_but_plain_values_is_written() -> None:
    """marshal takes subclasses of tuple and int for what they are derived from only where they are made plain first."""
    for blob in encode(lower_file(PROGRAM, "m.py", "m")):
        check_plain(marshal.loads(blob))  # noqa: S302 - written above


def check_plain(value: object) -> None:
    assert type(value) in {tuple, list, str, int, float, bool, type(None)}
    if isinstance(value, (tuple, list)):
        for part in value:
            check_plain(part)


def test_files_of_the_standard_library_come_back() -> None:
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[::6]
    assert len(files) > 20
    for file in files:
        facts = lower_file(decode(file.read_bytes()), file.name, file.stem)
        assert again(facts) == facts, file


@pytest.mark.parametrize("text", ["", "\n", "# only a comment", "x", "def f(): ...", "class C: ..."])
def test_small_files_come_back(text: str) -> None:
    facts = lower_file(text, "m.py", "m")
    assert again(facts) == facts
