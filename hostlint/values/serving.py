"""Serving loops of a project in which nothing says when the cyclic collector may run."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op
from hostlint.facts.kinds import FactKind
from hostlint.heat.nature import is_unused
from hostlint.heat.words import names_model
from hostlint.model import Confidence
from hostlint.values.detail import Function, Instance
from hostlint.values.judging import Meeting
from hostlint.values.loops import TRAINS, around
from hostlint.values.rebuilt import site_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.facts.schema import Call, FileOutline
    from hostlint.facts.spans import Places
    from hostlint.index import FunctionId
    from hostlint.values.evaluator import Evaluator

PAUSE = "not measured: a full collection walks every container of the process, in the middle of a request"
RECEIVES = re.compile(r"^(recv\w*|receive\w*|poll|get|get_nowait|next_request|accept|consume|dequeue|pop|popleft|blpop|xread)$")
SOURCES = re.compile(r"queue|inbox|socket|sock|conn|pipe|request|channel|mailbox|consumer|broker|receiver|zmq", re.IGNORECASE)
RUNS = re.compile(r"^(forward|generate|execute_model|execute_forward|run_model|denoise|infer|inference|predict)(_\w+)?$")
GUARDS = re.compile(r"(^|\.)gc\.(freeze|disable|collect|enable|set_threshold)$|(^|\.)request_gc(\.|$)|_gc\.defer$")
DEPTH = 3


class Serving:
    """Finds the loops that receive requests and run a model."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._guarded: bool | None = None
        self._runs: dict[FunctionId, bool] = {}

    def meetings(self, fid: FunctionId, places: Places) -> Iterator[Meeting]:
        """One for a loop, at the call that receives."""
        index = self._evaluator.index
        outline = index.function(fid)
        if is_unused(index.files[fid[0]]):
            return
        told: set[int] = set()
        for call in outline.calls:
            loop = next(around(outline, call.region), 0) if _receives(call) else 0
            if loop and loop not in told and outline.regions[loop].text.startswith("while") and self._serves(fid, loop):
                spot = places(call, outline.calls) if not self._is_guarded() else None
                if spot is not None:
                    told.add(loop)
                    why = "nothing in the project freezes, paces or defers collections"
                    site = site_of(call, spot)
                    yield Meeting(FactKind.UNGUARDED_COLLECTIONS, site, call.chain, why, Confidence.LIKELY, PAUSE, wrong=True)

    def _serves(self, fid: FunctionId, loop: int) -> bool:
        """Whether the loop's calls run a model, and no optimizer."""
        outline = self._evaluator.index.function(fid)
        inside = [call for call in outline.calls if loop in around(outline, call.region)]
        if any(TRAINS.search(call.chain) for call in inside):
            return False
        return any(self._runs_model(fid, call, DEPTH) for call in inside)

    def _runs_model(self, fid: FunctionId, call: Call, depth: int) -> bool:
        name = call.chain.rpartition(".")[2]
        if names_model(name) or RUNS.match(name):
            return True
        target = self._target(fid, call) if depth else None
        if target is None:
            return False
        if target not in self._runs:
            self._runs[target] = False
            self._evaluator.files |= 1 << target[0]
            inner = self._evaluator.index.function(target).calls
            self._runs[target] = any(self._runs_model(target, each, depth - 1) for each in inner)
        return self._runs[target]

    def _target(self, fid: FunctionId, call: Call) -> FunctionId | None:
        frame = self._evaluator.frame(fid)
        item: Any = frame.graph.nodes[call.node] if call.node >= 0 else (-1,)
        detail = frame.value(item[2]).detail if item[0] == Op.CALL else None
        if isinstance(detail, Function):
            return detail.function
        return self._evaluator.index.find_method(detail.klass, "__call__") if isinstance(detail, Instance) else None

    def _is_guarded(self) -> bool:
        index = self._evaluator.index
        self._evaluator.files |= (1 << len(index.files)) - 1  # a guard anywhere would change the answer
        if self._guarded is None:
            self._guarded = any(_guards(outline) for outline in index.files if not is_unused(outline))
        return self._guarded


def _receives(call: Call) -> bool:
    receiver, _, name = call.chain.rpartition(".")
    if not RECEIVES.match(name):
        return False
    return bool(SOURCES.search(receiver)) or (name.startswith(("recv", "receive")) and name not in ("recv_tensor", "receive_tensor"))


def _guards(outline: FileOutline) -> bool:
    """A call that says when collections may run, by whatever name the file imports the module."""
    imports = [*outline.imports, *(pair for function in outline.functions for pair in function.imports)]
    names = {name: target for name, target in imports if target == "gc" or target.startswith("gc.") or "request_gc" in target}
    if not names:
        return False
    calls = (call for function in outline.functions for call in function.calls)
    chains = (text for call in calls for text in (call.chain, *call.passed))
    decorators = (text for function in outline.functions for text in function.decorators)
    for text in (*chains, *decorators):
        head, dot, rest = text.partition(".")
        if head in names and GUARDS.search(f"{names[head]}{dot}{rest}"):
            return True
    return False
