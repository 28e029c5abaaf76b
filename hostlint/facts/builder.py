"""The state of lowering one function: its graph so far, the environment of local names, and the region it is in."""
from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from hostlint.facts.graph import Node, Op, Site, SiteKind
from hostlint.facts.schema import Call, Param, Region, RegionKind

if TYPE_CHECKING:
    from hostlint.facts.positions import Positions

Environment = dict[str, int]


@dataclass(slots=True)
class ClassBuilder:
    index: int
    name: str
    qualname: str
    line: int
    bases: tuple[str, ...]
    attributes: list[tuple[str, int, int, str]] = field(default_factory=list)
    annotations: list[tuple[str, str]] = field(default_factory=list)
    methods: list[tuple[str, int]] = field(default_factory=list)
    made: dict[str, ast.expr] = field(default_factory=dict)  # attribute -> the test under which `__init__` sets it to something


@dataclass(slots=True)
class Loop:
    """An open loop: the names that its body binds, the PHI nodes at its head, and the environments that leave its rounds early."""

    line: int
    binds: frozenset[str]
    phis: Environment = field(default_factory=dict)
    exits: list[Environment] = field(default_factory=list)  # at `break`
    repeats: list[Environment] = field(default_factory=list)  # at `continue`


@dataclass(slots=True)
class FileBuilder:
    """What the functions of one file share."""

    module: str
    path: str
    is_package: bool
    positions: Positions
    interesting: frozenset[str]
    hints: dict[int, tuple[tuple[str, int], ...]]  # line -> (name, Refinement): `# hostlint: device(x)` and its kin
    header_flags: dict[int, int]  # line -> FunctionFlag bits: `# hostlint: hot` and `cold`
    functions: list[FunctionBuilder] = field(default_factory=list)
    classes: list[ClassBuilder] = field(default_factory=list)
    stars: list[str] = field(default_factory=list)
    pending: list[tuple[FunctionBuilder, ast.arguments, list[ast.stmt]]] = field(default_factory=list)  # bodies to lower
    switches: set[str] = field(default_factory=set)  # module constants read from environment variables that are off by default
    imported: set[str] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)  # imported name -> last part of what it stands for, where they differ


@dataclass(slots=True)
class FunctionBuilder:
    file: FileBuilder
    index: int
    name: str
    qualname: str
    line: int
    end_line: int
    owner: int
    parent: int
    parent_region: int
    flags: int = 0
    decorators: tuple[str, ...] = ()
    params: tuple[Param, ...] = ()
    returns_text: str = ""
    self_name: str = ""
    inside: int = -1  # the class whose body is being lowered
    nodes: list[Node] = field(default_factory=list)
    env: Environment | None = field(default_factory=dict)  # None: this point is never reached
    regions: list[Region] = field(default_factory=list)
    region: int = 0
    calls: list[Call] = field(default_factory=list)
    assigns: dict[tuple[str, str], None] = field(default_factory=dict)
    imports: list[tuple[str, str]] = field(default_factory=list)
    reads: dict[str, None] = field(default_factory=dict)
    returns: list[int] = field(default_factory=list)
    yields: list[int] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    bindings: dict[str, list[int]] = field(default_factory=dict)
    bound: list[tuple[str, int]] = field(default_factory=list)  # every binding in the order in which it was lowered
    refinements: list[tuple[str, int]] = field(default_factory=list)
    marks: list[tuple[int, int]] = field(default_factory=list)  # node -> Refinement that holds wherever the node is used
    off_attributes: frozenset[str] | None = None  # of `self`: see statements
    tests: dict[int, ast.expr] = field(default_factory=dict)  # node -> the test that it is the outcome of, where a name was bound to it
    outer_names: dict[str, bool] = field(default_factory=dict)  # declared global (True) or nonlocal
    statement: tuple[int, int] = (0, 0)
    loops: list[Loop] = field(default_factory=list)
    default_devices: list[int] = field(default_factory=list)  # open `with torch.device(…)` blocks

    def __post_init__(self) -> None:
        self.regions.append(Region(int(RegionKind.BODY), 0, self.line, "", ()))  # type: ignore[arg-type]  # plain numbers, for marshal

    def add(self, op: Op, line: int, *operands: object) -> int:
        return self.keep((int(op), line, *operands))

    def keep(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def unknown(self, line: int = 0) -> int:
        return self.add(Op.UNKNOWN, line)

    def bind(self, name: str, node: int) -> None:
        """A local name (or `self.attribute`) now stands for the node; in code that is never reached it is merely local."""
        self.bindings.setdefault(name, []).append(node)
        self.bound.append((name, node))
        if self.env is not None:
            self.env[name] = node

    def held(self, name: str) -> ast.expr | None:
        """The test whose outcome a name holds here, or under which construction makes an attribute of the method's object."""
        if self.owner >= 0 and "." in name:
            receiver, _, attribute = name.partition(".")
            return self.file.classes[self.owner].made.get(attribute) if receiver == self.self_name else None
        return self.tests.get(self.env.get(name, -1)) if self.env is not None else None

    def holds_element(self, name: str) -> bool:
        """Whether a local name holds an element of something, as `batch["scale"]`: no argument that a caller may have left out."""
        found = (self.env or {}).get(name, -1)
        while found >= 0 and self.nodes[found][0] in (Op.REFINE, Op.PHI):
            of = self.nodes[found][2]
            parts = of if isinstance(of, tuple) else (of,)
            sources = {cast("int", self.nodes[part][2]) if self.nodes[part][0] == Op.REFINE else part for part in parts}
            found = min(sources) if len(sources) == 1 and min(sources) < found else -1
        return found >= 0 and self.nodes[found][0] == Op.INDEX

    def forget_attributes(self, name: str) -> None:
        """After `name` was bound anew, what was known of `name.attribute` no longer holds."""
        if self.env:
            prefix = name + "."
            for key in [key for key in self.env if key.startswith(prefix)]:
                del self.env[key]

    def open_region(self, kind: RegionKind, line: int, text: str = "", targets: Sequence[str] = ()) -> int:
        """Enter a region; returns the one to go back to."""
        before = self.region
        self.regions.append(Region(int(kind), before, line, text, tuple(targets)))  # type: ignore[arg-type]  # as above
        self.region = len(self.regions) - 1
        return before

    def site(self, kind: SiteKind, node: int, expression: ast.expr, detail: str = "", subject: ast.expr | None = None) -> None:
        """Remember a place where the node may make the host wait; dead code has none."""
        if self.env is None:
            return
        positions = self.file.positions
        span = positions.span(expression)
        words = positions.source(subject or expression)
        first, last = min(self.statement[0], span[0]), max(self.statement[1], span[2])  # the body may begin on the header's last line
        self.sites.append(Site(int(kind), node, detail, self.region, *span, first, last, words))

    def join(self, line: int, environments: Sequence[Environment | None]) -> Environment | None:
        """The environment after several paths met: names that differ become PHI nodes."""
        live = [env for env in environments if env is not None]
        if len(live) < 2:
            return live[0] if live else None
        first, rest = live[0], live[1:]
        merged: Environment = {}
        for name, node in first.items():
            others = [env.get(name, -1) for env in rest]
            if all(other == node for other in others):
                merged[name] = node
            elif "." not in name or -1 not in others:  # an attribute that one path leaves alone is looked up anew
                merged[name] = self.phi(line, [node, *others])
        for name in dict.fromkeys(name for env in rest for name in env if name not in first and "." not in name):
            merged[name] = self.phi(line, [env.get(name, -1) for env in rest])
        return merged

    def settle(self, line: int, before: Environment | None, start: int, own: Collection[str] = ()) -> None:
        """After a part of an expression that runs or not: what it bound since `start` is joined in, what its tests said is forgotten."""
        after, self.env = self.env, before
        if after is None or before is None:
            return
        for name in dict.fromkeys(name for name, _ in self.bound[start:]):
            if name not in own and name in after:
                before[name] = self.phi(line, [before.get(name, -1), after[name]])

    def phi(self, line: int, nodes: Sequence[int]) -> int:
        """A node that is one of these; negative ones stand for paths that say nothing."""
        distinct = tuple(dict.fromkeys(node for node in nodes if node >= 0))
        return distinct[0] if len(distinct) == 1 else self.add(Op.PHI, line, distinct)
