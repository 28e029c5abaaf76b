"""Debug messages that are worked out at every step although their level is off: strings over whole collections."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op, SiteKind, operands
from hostlint.facts.kinds import FactKind
from hostlint.model import Confidence
from hostlint.values.detail import Function
from hostlint.values.judging import Meeting
from hostlint.values.rebuilt import site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hostlint.facts.schema import Call
    from hostlint.facts.spans import Places
    from hostlint.index import FunctionId
    from hostlint.values.evaluator import Evaluator

COST = "not measured: the host's time to go through the collection and to format it"
LOGGER = re.compile(r"(^|\.)_?(log|logger|logging|_logger|LOG|LOGGER)(\(\)|\[\])*\.(debug|trace)$")
COSTLY = frozenset({"pformat", "dumps", "format_exc", "format_stack", "memory_summary", "memory_stats", "join", "named_parameters"})


class LogLines:
    """Finds the debug lines of hot places whose message is costly to make."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._helpers: dict[FunctionId, bool] = {}

    def meetings(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        outline = self._evaluator.index.function(fid)
        for call in outline.calls:
            if call.node < 0 or not is_hot(call.region) or not self._logs(fid, call):
                continue
            spot = places(call, outline.calls) if self._is_costly(fid, call) else None
            if spot is not None:
                why = "debug messages are off by default"
                yield Meeting(FactKind.EAGER_LOG, site_of(call, spot), call.chain, why, Confidence.LIKELY, COST)

    def _logs(self, fid: FunctionId, call: Call) -> bool:
        """`log.debug(...)`, or a function of the project that hands its message on to that."""
        if LOGGER.search(call.chain):
            return True
        if "debug" not in call.chain.lower():
            return False
        frame = self._evaluator.frame(fid)
        item: Any = frame.graph.nodes[call.node]
        detail = frame.value(item[2]).detail if item[0] == Op.CALL else None
        return isinstance(detail, Function) and self._hands_on(detail.function)

    def _hands_on(self, fid: FunctionId) -> bool:
        if fid not in self._helpers:
            self._evaluator.files |= 1 << fid[0]
            nodes = self._evaluator.graph_of(fid).nodes
            calls = [call for call in self._evaluator.index.function(fid).calls if LOGGER.search(call.chain) and call.node >= 0]
            given = [nodes[part] for call in calls for part in _arguments(nodes[call.node])]
            self._helpers[fid] = any(part[0] == Op.PARAM for part in given)
        return self._helpers[fid]

    def _is_costly(self, fid: FunctionId, call: Call) -> bool:
        """Whether the message is a string over a whole collection; arguments that the logger formats later may be worked out, too."""
        graph = self._evaluator.graph_of(fid)
        item: Any = graph.nodes[call.node]
        parts = _arguments(item)
        if any(graph.nodes[part][0] == Op.TEXT for part in parts):
            parts += [site.node for site in graph.sites if site.kind == SiteKind.FORMAT and site.first_line <= call.line <= site.last_line]
        seen: set[int] = set()
        while parts:
            node = parts.pop()
            if node in seen or node < 0:
                continue
            seen.add(node)
            part: Any = graph.nodes[node]
            if part[1] < call.line or part[0] == Op.PHI:
                continue  # made before: whatever it cost is no matter of the message
            if part[0] == Op.COMPREHENSION or (part[0] == Op.CALL and _name(graph.nodes[part[2]]) in COSTLY):
                return True
            parts.extend(operands(part))
        return False


def _arguments(item: Any) -> list[int]:
    return list(item[3]) if item[0] == Op.CALL else []


def _name(callee: Any) -> str:
    return str(callee[3]) if callee[0] == Op.ATTR else str(callee[2]) if callee[0] in (Op.GLOBAL, Op.FREE) else ""
