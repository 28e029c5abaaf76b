"""What the engine knows of the values at one fact's place, for fixes: the call's callee, receiver and arguments, worked out when asked."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op
from hostlint.values.detail import External, Method
from hostlint.values.lattice import UNKNOWN

if TYPE_CHECKING:
    from hostlint.values.evaluator import Frame
    from hostlint.values.value import Value


@dataclass(frozen=True, slots=True)
class Known:
    """The values of one node of a function's graph; an unknown Value where there is no such part."""

    frame: Frame | None = None
    node: int = -1

    @property
    def value(self) -> Value:
        """Of the fact's own node: of the call, the index, the store."""
        return self._of(self.node)

    @property
    def callee(self) -> str:
        """The dotted name of the function outside the project that is called (`torch.tensor`); "" where that is not proved."""
        detail = self._of(self._call[2]).detail if self._call else None
        return detail.name if isinstance(detail, External) else ""

    @property
    def receiver(self) -> Value:
        """What the called method belongs to."""
        detail = self._of(self._call[2]).detail if self._call else None
        return detail.receiver if isinstance(detail, Method) else UNKNOWN

    @property
    def base(self) -> Known:
        """What is known of the expression that the called method or the attribute belongs to: in `torch.arange(n).to(d)` of the arange."""
        node = self.frame.graph.nodes[self._call[2]] if self._call and self.frame is not None and self._call[2] >= 0 else self._node
        return Known(self.frame, node[2] if node and node[0] == Op.ATTR else -1)

    def argument(self, position: int) -> Value:
        """A positional argument of the call, counted from 0."""
        arguments = self._call[3] if self._call else ()
        return self._of(arguments[position]) if position < len(arguments) else UNKNOWN

    def keyword(self, name: str) -> Value:
        """An argument of the call that is given by name."""
        return next((self._of(node) for key, node in (self._call[4] if self._call else ()) if key == name), UNKNOWN)

    @property
    def container(self) -> Value:
        """What is written to or read from: `x` in `x[i] = v`, in `x[i] op= v` and in `x[i]`."""
        node = self._node
        return self._of(node[2]) if node and node[0] in (Op.STORE, Op.INDEX) else UNKNOWN

    @property
    def index(self) -> Value:
        """Where it is written or read: `i` in `x[i] = v` and in `x[i]`."""
        node = self._node
        return self._of(node[3]) if node and node[0] in (Op.STORE, Op.INDEX) else UNKNOWN

    @property
    def stored(self) -> Value:
        """What is written: `v` in `x[i] = v` and in `x[i] op= v`."""
        return self._of(self._store[4]) if self._store else UNKNOWN

    @property
    def _store(self) -> Any:
        node = self._node
        return node if node and node[0] == Op.STORE else None

    @property
    def _call(self) -> Any:  # a node of the graph: a tuple whose form depends on its operation
        node = self._node
        return node if node and node[0] == Op.CALL else None

    @property
    def _node(self) -> Any:
        inside = self.frame is not None and 0 <= self.node < len(self.frame.graph.nodes)
        return self.frame.graph.nodes[self.node] if self.frame is not None and inside else None

    def _of(self, node: int) -> Value:
        return self.frame.value(node) if self.frame is not None else UNKNOWN
