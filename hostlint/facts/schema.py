"""The facts of one file, as plain tuples that can be cached: the outline (calls, loops, classes) and the value graphs.

A *chain* is a callee or value written as text with its calls and subscripts emptied: `self.blocks[]`, `get_model().forward`,
`torch.zeros`; `?` stands for any other expression. A *node* is an index into a function's value graph.
"""
from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class RegionKind(IntEnum):
    """What a piece of a function's body means for how often it runs."""

    BODY = 0
    LOOP = 1  # a for or while loop, or a comprehension's body
    MEMO = 2  # runs only while a cache or attribute is not filled yet
    EVERY_N = 3  # runs every n-th step (a modulo test)
    DEBUG = 4  # runs behind a debug, verbose, profiling or log-level switch
    ONCE = 5  # runs in the first or last iteration only
    EVALUATION = 6  # validation and evaluation branches
    EXCEPT = 7  # an except handler
    RAISE = 8  # the arguments of a raise or the message of an assert
    EXPORT = 9  # tracing, scripting and export branches
    FALLBACK = 10  # runs only where the caller left an optional argument out
    RARE = 11  # runs only where something unusual holds: a NaN, an error, a tensor on another device
    ROUND = 12  # runs once for a generation of results that several steps use
    OPTION = 13  # runs only where the caller sets an argument that is None or False by default
    TRAINING = 14  # runs only while a model trains
    UNSET = 15  # runs only where the caller leaves a switch off that is False by default


LEFT_OUT = "None"  # among the targets of a FALLBACK, behind the parameter: the test is for None, and for nothing else


class Region(NamedTuple):
    kind: RegionKind
    parent: int  # index into the function's regions; 0 is the body and its own parent
    line: int
    text: str  # LOOP: the chain that is iterated ("range(steps)", "self.blocks"), "while" and its test's names; else the guard in words
    targets: tuple[str, ...]  # LOOP: the names that the loop binds; FALLBACK, OPTION, UNSET: the parameter


class Call(NamedTuple):
    chain: str
    line: int
    region: int
    node: int  # the call's node in the function's value graph, -1 where it was pruned
    passed: tuple[str, ...]  # chains of functions, methods and lambdas among the arguments; a lambda is "<lambda:INDEX>"
    strings: tuple[str, ...]  # string literals among the arguments (registries by name)
    slots: tuple[str, ...] = ()  # where each of `passed` stands: its position as digits, or its keyword
    given: int = -1  # how many positional arguments there are, -1 where a star hides that
    keywords: tuple[str, ...] = ()  # the keyword arguments' names


class Param(NamedTuple):
    name: str
    annotation: str  # source text of the annotation, "" where there is none
    default: int  # node in the *enclosing* function's graph, -1 where there is none
    kind: str  # "positional" | "keyword" | "*" | "**"


class FunctionOutline(NamedTuple):
    """A function, method, lambda or (index 0) the module's body."""

    index: int  # type: ignore[assignment]  # nobody asks a record for tuple.index
    name: str  # "<module>", "<lambda>"
    qualname: str  # "Class.method", "outer.inner"
    line: int
    end_line: int
    owner: int  # index of the class whose body holds it directly, else -1
    parent: int  # index of the enclosing function (0: the module)
    decorators: tuple[str, ...]  # chains
    params: tuple[Param, ...]
    returns: str  # source text of the return annotation, or ""
    regions: tuple[Region, ...]
    region: int  # the region of the parent function in which it is defined
    calls: tuple[Call, ...]
    # local name (or "return") -> chain of what it was bound to (constructor, attribute, loop element); "table[]" -> what was stored as
    # an element; "@decorator()" -> the class that it decorates; "thing.forward" -> what was put in its place
    assigns: tuple[tuple[str, str], ...]
    imports: tuple[tuple[str, str], ...]  # imports inside the function: local name -> absolute dotted target
    reads: tuple[str, ...]  # chains of attributes read without a call, for properties ("self.cache")
    flags: int  # FunctionFlag bits


class FunctionFlag:
    ASYNC = 1
    GENERATOR = 2
    STATIC = 4
    CLASS = 8
    PROPERTY = 16
    HOT = 32  # `# hostlint: hot` on the header
    COLD = 64


class ClassOutline(NamedTuple):
    index: int  # type: ignore[assignment]  # as above
    name: str
    qualname: str
    line: int
    bases: tuple[str, ...]  # chains
    attributes: tuple[tuple[str, int, int, str], ...]  # (name, function index, value node, chain or annotation) for every `self.name = …`
    annotations: tuple[tuple[str, str], ...]  # class-level annotated names (dataclass fields): name -> annotation text
    methods: tuple[tuple[str, int], ...]  # name -> function index


class FileOutline(NamedTuple):
    module: str  # "pkg.sub.mod"; a package's __init__ is "pkg.sub"
    path: str  # relative to the project, with "/"
    lines: int
    imports: tuple[tuple[str, str], ...]  # module level, TYPE_CHECKING included: local name -> absolute dotted target
    stars: tuple[str, ...]  # modules imported with *
    functions: tuple[FunctionOutline, ...]  # 0 is the module's body
    classes: tuple[ClassOutline, ...]
    globals: tuple[tuple[str, int], ...]  # module-level names -> node in function 0's graph
