"""From source to facts: the outline of a file, the places where a value is read, and where they stand in the text."""
from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostlint.facts.graph import FunctionGraph, Op, Refinement, Site, SiteKind, operands
from hostlint.facts.lower import FileFacts, lower_file
from hostlint.facts.schema import ClassOutline, FileOutline, FunctionFlag, FunctionOutline, RegionKind
from hostlint.sources import decode


def lowered(text: str, module: str = "pkg.mod", *, is_package: bool = False) -> FileFacts:
    return lower_file(dedent(text), "pkg/mod.py", module, is_package)


def outline(text: str, module: str = "pkg.mod", *, is_package: bool = False) -> FileOutline:
    return lowered(text, module, is_package=is_package).outline


def function(file: FileOutline, qualname: str) -> FunctionOutline:
    return next(one for one in file.functions if one.qualname == qualname)


def klass(file: FileOutline, qualname: str) -> ClassOutline:
    return next(one for one in file.classes if one.qualname == qualname)


# functions and classes


def test_functions_with_their_places() -> None:
    file = outline("""
        import torch
        def plain(a): return a

        class Outer:
            async def method(self):
                def inner():
                    class Local:
                        def deep(self):
                            pass
                return inner
            class Nested:
                def method(self):
                    pass
        make = lambda x, y=1: x + y
    """)
    names = [(one.qualname, one.line, one.end_line, one.owner, one.parent) for one in file.functions]
    assert names == [
        ("<module>", 1, 15, -1, 0),
        ("plain", 3, 3, -1, 0),
        ("Outer.method", 6, 11, 0, 0),
        ("Outer.Nested.method", 13, 14, 1, 0),
        ("<lambda>", 15, 15, -1, 0),
        ("Outer.method.inner", 7, 10, -1, 2),
        ("Outer.method.inner.Local.deep", 9, 10, 2, 5),
    ]
    assert [one.index for one in file.functions] == list(range(7))
    assert [one.name for one in file.functions][-3:] == ["<lambda>", "inner", "deep"]
    assert [(one.qualname, one.line, one.bases, one.methods) for one in file.classes] == [
        ("Outer", 5, (), (("method", 2),)),
        ("Outer.Nested", 12, (), (("method", 3),)),
        ("Outer.method.inner.Local", 8, (), (("deep", 6),)),
    ]


def test_parameters() -> None:
    made = outline("def f(a, b: int = 1, /, c='x', *rest: Tensor, d, e: list[\n    int] = None, **more): pass\n").functions[1]
    assert [(param.name, param.annotation, param.kind, param.default >= 0) for param in made.params] == [
        ("a", "", "positional", False),
        ("b", "int", "positional", True),
        ("c", "", "positional", True),
        ("rest", "Tensor", "*", False),
        ("d", "", "keyword", False),
        ("e", "list[ int]", "keyword", True),
        ("more", "", "**", False),
    ]


def test_defaults_are_nodes_of_the_scope_that_holds_the_function() -> None:
    facts = lowered("""
        def outer(n):
            def inner(a=n, b=3.5):
                return a
            return inner
    """)
    inner = function(facts.outline, "outer.inner")
    nodes = facts.graphs[inner.parent].nodes
    assert [nodes[param.default][0] for param in inner.params] == [Op.PARAM, Op.CONST]
    assert nodes[inner.params[1].default][2:] == ("float", 3.5)


def test_flags_and_decorators() -> None:
    file = outline("""
        class C:
            @staticmethod
            def a(x): pass
            @classmethod
            def b(cls): pass
            @property
            def c(self): pass
            @functools.cached_property
            def d(self): pass
            @torch.no_grad()
            async def e(self): pass
            def f(self):
                yield 1
            def g(self):
                yield from self.f()
            def __init_subclass__(cls): pass
    """)
    flags = {one.name: one.flags for one in file.functions}
    assert flags["a"] == FunctionFlag.STATIC
    assert flags["b"] == flags["__init_subclass__"] == FunctionFlag.CLASS
    assert flags["c"] == flags["d"] == FunctionFlag.PROPERTY
    assert flags["e"] == FunctionFlag.ASYNC
    assert flags["f"] == flags["g"] == FunctionFlag.GENERATOR
    assert function(file, "C.e").decorators == ("torch.no_grad()",)


def test_classes_with_bases_attributes_and_annotations() -> None:
    file = outline("""
        class C(Base, nn.Module, Generic[T], metaclass=Meta):
            size: int = 3
            rows: "list[Tensor]"
            scale = 1.0
            def __init__(self, x):
                self.x = x
                self.y: Tensor = None
                self.layers = nn.ModuleList([Block(), Block()])
                self.either = A() if x else B()
                other.z = x
            def later(self):
                self.x = nn.Linear(2, 2)
                def hook():
                    self.seen = 1
            @staticmethod
            def apart(this):
                this.w = 1
    """)
    made = klass(file, "C")
    assert made.bases == ("Base", "nn.Module", "Generic[]")
    assert made.annotations == (("size", "int"), ("rows", '"list[Tensor]"'))
    stored = [(name, file.functions[index].name, text) for name, index, _, text in made.attributes]
    assert stored == [
        ("size", "<module>", ""),
        ("scale", "<module>", ""),
        ("x", "__init__", "x"),
        ("y", "__init__", "Tensor"),
        ("layers", "__init__", "[]Block()"),
        ("layers", "__init__", "[]Block()"),
        ("either", "__init__", "A()"),
        ("either", "__init__", "B()"),
        ("x", "later", "nn.Linear()"),
        ("seen", "hook", ""),
    ]


def test_an_attribute_of_a_name_that_hides_self_is_no_attribute_of_the_class() -> None:
    file = outline("""
        class C:
            def f(self):
                def g(self):
                    self.x = 1
                def h():
                    self = 1
                    self.y = 1
    """)
    assert klass(file, "C").attributes == ()


# imports


def test_imports() -> None:
    file = outline("""
        import torch
        import torch.nn.functional as F
        import os.path
        from torch import nn, Tensor as T
        from . import sibling
        from .near import thing as renamed
        from ..up import high
        from ... import beyond
        from ..... import too_far
        from lib import *
        from .near import *
        if TYPE_CHECKING:
            from types import Config
        try:
            import fast
        except ImportError:
            fast = None
        def f():
            import inner.part
            from .near import late
    """)
    assert file.imports == (
        ("torch", "torch"),
        ("F", "torch.nn.functional"),
        ("os", "os"),
        ("nn", "torch.nn"),
        ("T", "torch.Tensor"),
        ("sibling", "pkg.sibling"),
        ("renamed", "pkg.near.thing"),
        ("high", "up.high"),
        ("beyond", "beyond"),
        ("too_far", "too_far"),
        ("Config", "types.Config"),
        ("fast", "fast"),
    )
    assert file.stars == ("lib", "pkg.near")
    assert function(file, "f").imports == (("inner", "inner"), ("late", "pkg.near.late"))


def test_a_package_imports_from_itself() -> None:
    text = "from . import a\nfrom .b import c\nfrom .. import d\n"
    assert outline(text, "top.pkg", is_package=True).imports == (("a", "top.pkg.a"), ("c", "top.pkg.b.c"), ("d", "top.d"))
    assert outline(text, "top.pkg.mod").imports == (("a", "top.pkg.a"), ("c", "top.pkg.b.c"), ("d", "top.d"))
    assert outline("from ....x import y\n", "a.b.c").imports == (("y", "x.y"),)


# loops, calls, names


def regions(text: str, qualname: str = "f") -> list[tuple[str, int, int, str, tuple[str, ...]]]:
    made = function(outline(text), qualname)
    return [(RegionKind(kind).name, parent, line, words, targets) for kind, parent, line, words, targets in made.regions]


def test_loops() -> None:
    assert regions("""
        def f(self, n, rows):
            for i in range(n):
                for j, (a, b) in enumerate(zip(self.xs, self.ys)):
                    pass
            while self.running and n > 3:
                x = [y for row in rows if row for y in row]
            for block in tqdm(self.blocks):
                pass
            for k in range(0, n, 2):
                pass
            async_free = {k: v for k, v in self.table.items()}
    """) == [
        ("BODY", 0, 2, "", ()),
        ("LOOP", 0, 3, "range(n)", ("i",)),
        ("LOOP", 1, 4, "zip()", ("j", "a", "b")),
        ("LOOP", 0, 6, "while running self n", ()),
        ("LOOP", 3, 7, "rows", ("row",)),
        ("LOOP", 4, 7, "row", ("y",)),
        ("LOOP", 0, 8, "self.blocks", ("block",)),
        ("LOOP", 0, 10, "range(n)", ("k",)),
        ("LOOP", 0, 12, "self.table.items()", ("v",)),
    ]


def test_calls() -> None:
    made = function(outline("""
        def f(self, fn):
            self.blocks[0].run(fn, self.hook, key="name", other=3)
            get()(1).go(partial(work, 2), lambda: fn)
            for x in fn:
                x()
            super().f("text")
            (a or b)(fn)
            print(y := fn())
    """), "f")
    found = [(call.chain, call.line, call.region, call.passed, call.strings, call.slots) for call in made.calls]
    assert found == [
        ("self.blocks[].run", 3, 0, ("fn", "self.hook"), ("name",), ("0", "1")),
        ("get", 4, 0, (), (), ()),
        ("get()", 4, 0, (), (), ()),
        ("partial", 4, 0, ("work",), (), ("0",)),
        ("get()().go", 4, 0, ("work", "<lambda:2>"), (), ("0", "1")),
        ("x", 6, 1, (), (), ()),
        ("super().f", 7, 0, (), ("text",), ()),
        ("?", 8, 0, ("fn",), (), ("0",)),
        ("fn", 9, 0, (), (), ()),
        ("print", 9, 0, (), (), ()),
    ]


def test_elements_that_are_stored_by_name() -> None:
    file = outline("""
        TABLE["a"] = first
        TABLE.setdefault("b", second)
        TABLE.update({"c": third, "d": make()}, e=fourth)
        TABLE["f"]["g"], other = fifth, 1
        TABLE["h"] = 1
        @mark(1)
        class Klass:
            pass
        thing.block.forward = types.MethodType(sixth, thing)
    """)
    assert file.functions[0].assigns == (
        ("TABLE[]", "first"),
        ("TABLE[]", "second"),
        ("TABLE[]", "fourth"),
        ("TABLE[]", "third"),
        ("TABLE[][]", "fifth"),
        ("@mark()", "Klass"),
        ("thing.block.forward", "types.MethodType()"),
        ("thing.block.forward", "sixth"),
    )


def test_what_names_are_bound_to() -> None:
    made = function(outline("""
        def f(self, a):
            x = self.make()
            y = x if a else Other()
            z: Kind = load()
            for i, block in enumerate(self.blocks):
                pass
            for k, v in self.table.items():
                pass
            w = torch.compile(self.model)
            p, q = A(), B()
            with open(a) as file:
                pass
            return x or y
    """), "f")
    assert dict.fromkeys(made.assigns) == dict.fromkeys([
        ("x", "self.make()"),
        ("y", "x"),
        ("y", "Other()"),
        ("z", "load()"),
        ("z", ":Kind"),
        ("i", "range()"),
        ("block", "self.blocks[]"),
        ("v", "self.table[]"),
        ("w", "torch.compile()"),
        ("w", "self.model"),
        ("p", "A()"),
        ("q", "B()"),
        ("file", "open()"),
        ("return", "x"),
        ("return", "y"),
    ])


def test_what_a_function_binds_to_a_global_name_belongs_to_the_module() -> None:
    file = outline("""
        model = None
        def load():
            global model, count
            model = Model()
            count = 1
        def other():
            model = Other()
    """)
    assert ("model", "Model()") in file.functions[0].assigns
    assert ("model", "Other()") not in file.functions[0].assigns
    assert [name for name, _ in file.globals] == ["model", "load", "other", "count"]


def test_attributes_that_are_read() -> None:
    made = function(outline("def f(self, a):\n    self.x = 1\n    return self.x + self.y + a.b.c + self.z()\n"), "f")
    assert made.reads == ("self.y", "a.b", "a.b.c", "self.z")


def test_header_comments() -> None:
    facts = lowered("""
        def f(x, y,  # hostlint: device(x)
              z):  # hostlint: hot
            return x
        def g():  # hostlint: cold it is rare
            pass
        def h(x): return x  # hostlint: host(x)
    """)
    assert [one.flags for one in facts.outline.functions[1:]] == [FunctionFlag.HOT, FunctionFlag.COLD, 0]
    assert facts.graphs[1].refinements == (("x", int(Refinement.SAID_DEVICE)),)
    assert facts.graphs[3].refinements == (("x", int(Refinement.SAID_HOST)),)


# sites


def sites(text: str) -> list[Site]:
    return [site for graph in lowered(text).graphs for site in graph.sites]


@pytest.mark.parametrize(
    ("line", "kind", "detail", "subject"),
    [
        ("x.item()", SiteKind.CALL, "x.item", "x"),
        ("float(x + 1)", SiteKind.CALL, "float", "x + 1"),
        ("torch.unique(input=x)", SiteKind.CALL, "torch.unique", "x"),
        ("torch.cuda.synchronize()", SiteKind.CALL, "torch.cuda.synchronize", "torch.cuda.synchronize"),
        ("assert x > 0", SiteKind.TRUTH, "assert", "x > 0"),
        ("y = not x", SiteKind.TRUTH, "not", "x"),
        ("y = x and 1", SiteKind.TRUTH, "and", "x"),
        ("y = x or 1", SiteKind.TRUTH, "or", "x"),
        ("y = 1 if x else 2", SiteKind.TRUTH, "if", "x"),
        ("y = [1 for _ in (1, 2) if x]", SiteKind.TRUTH, "comprehension if", "x"),
        ("y = 0 < x < 1", SiteKind.TRUTH, "chained comparison", "0 < x < 1"),
        ("y = x in (1, 2)", SiteKind.MEMBER, "", "x"),
        ("y = f'a {x:>3}'", SiteKind.FORMAT, "f-string", "x"),
        ("y = '%d' % x", SiteKind.PERCENT, "", "x"),
        ("y = x[i]", SiteKind.LOAD, "", "x"),
        ("y = x[1:i]", SiteKind.LOAD, "", "x"),
        ("x[0] = 1", SiteKind.WRITE, "", "x"),
        ("x[i] += 1", SiteKind.AUGMENTED, "", "x"),
    ],
)
def test_a_site(line: str, kind: SiteKind, detail: str, subject: str) -> None:
    found = sites(f"import torch\ndef f(x, i):\n    {line}\n")
    assert [(SiteKind(one.kind), one.detail, one.subject, one.line) for one in found] == [(kind, detail, subject, 3)]


@pytest.mark.parametrize(
    "line",
    [
        "y = x[0]", "y = x[1:2, -1, None]", "y = x is None", "if x is not None: pass", "if isinstance(x, int): pass", "if x == 'a': pass",
        "while True: break", "y = f'plain'", "y = 3 % x", "x.other()", "y = x + 1", "del x[0]", "import x.y", "y = x < 1", "x = 1",
    ],
)  # fmt: skip
def test_no_site(line: str) -> None:
    assert sites(f"import torch\ndef f(x, i):\n    {line}\n") == []


def test_the_leaves_of_a_test_are_the_places() -> None:
    found = sites("def f(a, b, c):\n    if a and (b or not c):\n        pass\n    while not (a and b): pass\n")
    assert [(one.detail, one.subject, one.line) for one in found] == [
        ("and", "a", 2), ("or", "b", 2), ("not", "c", 2), ("and", "a", 4), ("not", "b", 4),
    ]  # fmt: skip


def test_dead_code_has_no_sites_and_no_calls() -> None:
    facts = lowered("""
        def f(x):
            return x.item()
            y = x.cuda()
            if y.item(): print(y.item())
        def g(x):
            if x.a: raise ValueError
            else: return
            for i in x: i.item()
        def h(x):
            for i in x:
                continue
                i.item()
            while x.b:
                break
                x.item()
    """)
    assert [one.line for graph in facts.graphs for one in graph.sites if one.kind == SiteKind.CALL] == [3]
    assert [call.chain for one in facts.outline.functions for call in one.calls] == ["x.item"]


def test_sites_know_their_statement() -> None:
    found = sites(dedent("""\
        def f(x):
            y = (x
                 .item())
            if (x.a
                    or x.item()):
                x.item()
            for i in x[
                    x.b]: pass
            with open(
                x.item()
            ) as file:
                pass
    """))
    calls = [(one.line, one.end_line, one.first_line, one.last_line) for one in found if one.kind == SiteKind.CALL]
    assert calls == [(2, 3, 2, 3), (5, 5, 4, 5), (6, 6, 6, 6), (10, 10, 9, 11)]


def test_calls_inside_a_device_context_are_given_that_device() -> None:
    facts = lowered("""
        import torch
        def f():
            with torch.device("cuda"), open("x"):
                a = torch.zeros(2)
                b = torch.zeros(2, device="cpu")
                c = other.zeros(2)
            return torch.zeros(2)
    """)
    keywords = [[name for name, _ in node[4]] for node in facts.graphs[1].nodes if node[0] == Op.CALL and isinstance(node[4], tuple)]
    assert keywords == [[], [], ["device"], ["device"], [], []]


# positions


def spans(text: str) -> list[str]:
    """What the text holds at the span of each site."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    found = []
    for site in (site for graph in lower_file(text, "m.py", "m").graphs for site in graph.sites):
        part = lines[site.line - 1 : site.end_line]
        part[-1] = part[-1][: site.end_column - 1]
        part[0] = part[0][site.column - 1 :]
        found.append("\n".join(part))
    return found


POSITIONS = {
    "ascii": ("y = x.item()\n", ["x.item()"]),
    "other alphabets": ("größe = 'ü' + 名前.item() + 'é' + x.item()\n", ["名前.item()", "x.item()"]),
    "beyond the basic plane": ("y = '🎉🎉' + x.item()\n", ["x.item()"]),
    "combined characters": ("y = 'e\u0301' + x.item()\n", ["x.item()"]),
    "tabs": ("if 1:\n\ty = 'a\tb' + x.item()\n", ["x.item()"]),
    "form feed": ("\fy = 1\n\f\nz = x.item()\n", ["x.item()"]),
    "form feed in a line": ("y = 1\f + x.item()\n", ["x.item()"]),
    "separators that end no line": ("y = '\u2028\x85\x0b\x1c' + x.item()\nz = x.tolist()\n", ["x.item()", "x.tolist()"]),
    "crlf": ("y = 1\r\nz = (x\r\n  .item())\r\n", ["x\n  .item()"]),
    "cr": ("y = 1\rz = x.item()\r", ["x.item()"]),
    "mixed line ends": ("y = 1\r\nz = 2\nw = 3\rv = x.item()", ["x.item()"]),
    "several lines": ("y = (x\n     .abs()  # é\n     .item())\n", ["x\n     .abs()  # é\n     .item()"]),
    "backslash": ("y = x \\\n    .item()\n", ["x \\\n    .item()"]),
    "parentheses stay outside": ("y = ((x.item()))\n", ["x.item()"]),
    "string over several lines": ("y = '''é\n''' + x.item()\n", ["x.item()"]),
    "semicolons": ("a = 'é'; b = x.item(); c = x.tolist()\n", ["x.item()", "x.tolist()"]),
    "no line end": ("x.item()", ["x.item()"]),
    "subscripts": ("x[é, i] = y[j]\n", ["y[j]", "x[é, i]"]),
    "f-string": ("y = f'é {x.sum()} {x!r:>{n}}'\n", ["x.sum()", "x", "n"]),
    "f-string over several lines": ("y = f'''é\n  ü {x.sum()} {(x,\n   y)}\n'''\n", ["x.sum()", "(x,\n   y)"]),
    "joined f-strings": ("y = ('é' f'{x}'\n     f'é{y}' 'z')\n", ["x", "y"]),
    "f-string in an f-string": ("y = f'é{f\"ü{x}\"}'\n", ["x"]),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_positions(name: str) -> None:
    text, expected = POSITIONS[name]
    assert spans(text) == expected


def test_a_byte_order_mark_is_no_character() -> None:
    text = decode(b"\xef\xbb\xbfy = x.item()\r\n")
    assert spans(text) == ["x.item()"]
    assert [site.column for graph in lower_file(text, "m.py", "m").graphs for site in graph.sites] == [5]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8", "cp1252"])
def test_a_coding_line_is_followed(encoding: str) -> None:
    text = decode(f"# coding: {encoding}\ny = 'é' + x.item()\n".encode(encoding))
    assert spans(text) == ["x.item()"]


COUNTED = [("", 0), ("x", 1), ("x\n", 1), ("x\ny", 2), ("\n\n", 2), ("x\r\ny\r\n", 2), ("x\ry\r", 2), ("x\f\n", 1)]


@pytest.mark.parametrize(("text", "lines"), COUNTED)
def test_lines_are_counted_as_python_does(text: str, lines: int) -> None:
    assert lower_file(text, "m.py", "m").outline.lines == lines


def test_long_source_words_are_cut_and_put_on_one_line() -> None:
    (site,) = sites("y = (first_rather_long_name +\n     second_rather_long_name + third_rather_long_name).item()\n")
    assert site.subject == "first_rather_long_name + second_rather_long_name + third_ra…"
    (site,) = sites("y = (a +\n     b).item()\n")
    assert site.subject == "a + b"


# every file of the standard library


def corpus() -> Iterator[Path]:
    root = Path(sysconfig.get_path("stdlib"))
    files = (file for file in sorted(root.glob("**/*.py")) if not {"site-packages", "lib2to3"} & set(file.parts))
    return islice(files, 0, None, 9)


FILES = list(islice(corpus(), 150))


@pytest.mark.parametrize("part", range(5))
def test_whatever_python_can_parse_is_lowered(part: int) -> None:
    assert len(FILES) == 150
    for file in FILES[part::5]:
        try:
            text = decode(file.read_bytes())
            ast.parse(text)
        except (SyntaxError, UnicodeDecodeError, ValueError):
            continue
        facts = lower_file(text, str(file), file.stem)
        assert len(facts.graphs) == len(facts.outline.functions)
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for made, graph in zip(facts.outline.functions, facts.graphs, strict=True):
            check_graph(graph)
            check_outline(made, len(graph.nodes), len(lines))
            for site in graph.sites:
                check_site(site, made, lines)


def check_graph(graph: FunctionGraph) -> None:
    count = len(graph.nodes)
    for number, node in enumerate(graph.nodes):
        parts = operands(node)
        assert all(0 <= part < count for part in parts)
        assert node[0] == Op.PHI or all(part < number for part in parts), node
    assert all(0 <= node < count for node in (*graph.returns, *graph.yields, *(node for _, node in graph.cells)))


def check_outline(made: FunctionOutline, nodes: int, lines: int) -> None:
    assert 1 <= made.line <= max(made.end_line, 1) <= lines
    assert made.regions[0].kind == RegionKind.BODY
    for number, region in enumerate(made.regions[1:], 1):
        assert 0 <= region.parent < number
    for call in made.calls:
        assert 0 <= call.region < len(made.regions)
        assert -1 <= call.node < nodes
        assert made.line <= call.line <= made.end_line or made.name == "<module>"


def check_site(site: Site, made: FunctionOutline, lines: list[str]) -> None:
    """A site's span is an expression again when it is cut out of the text: rules are given its concrete syntax."""
    assert 0 <= site.region < len(made.regions)
    assert (site.line, site.column) < (site.end_line, site.end_column)
    part = lines[site.line - 1 : site.end_line]
    part[-1] = part[-1][: site.end_column - 1]
    part[0] = part[0][site.column - 1 :]
    ast.parse("(" + "\n".join(part) + "\n)", mode="eval")


# what is hard


def test_long_functions_and_deep_nesting_are_lowered() -> None:
    programs = {
        "statements": "def f(x):\n" + "".join(f"    v{i} = x + v{i - 1}\n" if i else "    v0 = x\n" for i in range(3000)),
        "branches": "def f(x):\n    y = x\n" + "".join(f"    if x == {i}:\n        y = y + {i}\n" for i in range(1500)),
        "elif": "def f(x):\n    if x == 0: y = 0\n" + "".join(f"    elif x == {i}: y = {i}\n" for i in range(1, 700)),
        "sum": "y = " + " + ".join(["x"] * 900) + "\n",
        "chain": "y = x" + ".abs()" * 200 + "\n",
        "calls": "y = " + "abs(" * 90 + "x" + ")" * 90 + "\n",
        "lists": "y = " + "[" * 90 + "x" + "]" * 90 + "\n",
        "ifs": "".join("  " * i + "if x:\n" for i in range(90)) + "  " * 90 + "y = x\n",
        "functions": "".join("  " * i + f"def f{i}(x):\n" for i in range(90)) + "  " * 90 + "return x\n",
        "loops": "".join("  " * i + f"for i{i} in x:\n" for i in range(18)) + "  " * 18 + "y = x\n",
        "operators": "y = " + "-" * 200 + "x\n",
        "lambdas": "y = " + "lambda: " * 200 + "x\n",
    }
    depth = sys.getrecursionlimit()
    for name, text in programs.items():
        facts = lower_file(text, "m.py", "m")
        for graph in facts.graphs:
            check_graph(graph)
        assert len(facts.graphs[0].nodes) + sum(len(graph.nodes) for graph in facts.graphs) > 40, name
    assert sys.getrecursionlimit() == depth


NAMES = st.sampled_from(["a", "b", "c", "self.x"])
SIMPLE = st.one_of(
    st.builds("{} = {}.f({})".format, NAMES, NAMES, NAMES),
    st.builds("{} = [{} for a in {}]".format, NAMES, NAMES, NAMES),
    st.builds("{} += {}[{}]".format, NAMES, NAMES, NAMES),
    st.builds("(a, *b), c = {}, {}".format, NAMES, NAMES),
    st.builds("del {}".format, NAMES),
    st.builds("if (b := {}) and not {}: return {}".format, NAMES, NAMES, NAMES),
    st.builds("g = lambda a={}: {}".format, NAMES, NAMES),
    st.sampled_from(["return a", "raise a", "global c", "import a.b", "from . import c", "assert a, b", "yield a", "pass", "{a: b, **c}"]),
)
HEADERS = st.sampled_from([
    "if a:", "for b in a:", "while (a := b):", "with a as b, c:", "def f(a, *b, c=a):", "class c(a):", "try:", "match a:",
    "async def g(a=b):",
])  # fmt: skip


@st.composite
def blocks(draw: st.DrawFn, depth: int = 3) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        if depth and draw(st.booleans()):
            header = draw(HEADERS)
            body = ["    " + line for line in draw(blocks(depth - 1))]
            if header == "match a:":
                lines += [header, "    case [b, *c] if a:", *("    " + line for line in body), "    case _: pass"]
            else:
                lines += [header, *body]
                if header == "try:":
                    lines += ["except ValueError as a:", *body] if draw(st.booleans()) else ["finally:", *body]
                elif header.startswith(("if", "for", "while")) and draw(st.booleans()):
                    lines += ["else:", *body, *(["    break"] if depth < 3 else [])]
        else:
            lines.append(draw(SIMPLE))
    return lines


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(blocks())
def test_programs_of_every_statement_are_lowered(lines: list[str]) -> None:
    text = "def f(a, b, c, self):\n" + "".join(f"    {line}\n" for line in lines)
    facts = lower_file(text, "m.py", "m")
    for made, graph in zip(facts.outline.functions, facts.graphs, strict=True):
        check_graph(graph)
        check_outline(made, len(graph.nodes), text.count("\n") + 1)
        for site in graph.sites:
            check_site(site, made, text.split("\n"))
