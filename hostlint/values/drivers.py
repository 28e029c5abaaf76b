"""Drivers: loops that hand their work to remote workers and run no model themselves, so that what they hold stays in host memory."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hostlint.values.conventions import MODELS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.facts.schema import Call
    from hostlint.index import FunctionId
    from hostlint.values.evaluator import Evaluator

REMOTE = re.compile(
    r"(^|\.)remote$|^ray\.(get|wait|put|kill)$|(^|\.)rpc_(sync|async)$|"
    r"(^|[._])(wg|(worker|actor|model)_?groups?)(\[\])?\.\w+$"
)
LOCAL = re.compile(r"backward$|(^|[._])(optim(izer)?s?|scaler)(\[\])?\.step$|\.cuda$")
BARE = frozenset({"model", "net", "network", "module", "transformer", "unet", "policy", "actor", "critic"})
MOST = 60  # functions up the calls; where there are more, nobody says


class Drivers:
    """Which functions run only in processes that drive others."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._known: dict[FunctionId, tuple[bool, int]] = {}

    def drives(self, fid: FunctionId) -> bool:
        """Whether every loop that is seen to call a function only hands out work."""
        if fid not in self._known:
            outer, self._evaluator.files = self._evaluator.files, 0
            found = self._drives(fid)
            self._known[fid] = (found, self._evaluator.files)
            self._evaluator.files = outer
        found, files = self._known[fid]
        self._evaluator.files |= files
        return found

    def _drives(self, fid: FunctionId) -> bool:
        seen, queue, roots = {fid}, [fid], 0
        for one in queue:
            self._evaluator.files |= 1 << one[0]
            above = self._above(one)
            handed = any(REMOTE.search(chain) for _, chain in above)  # it is the work that is handed out
            if handed or self._is_worker(one) or not (above or self._hands_out(one)) or len(queue) > MOST:
                return False
            roots += not above
            fresh = [caller for caller in dict.fromkeys(caller for caller, _ in above) if caller not in seen]
            seen.update(fresh)
            queue += fresh
        return roots > 0

    def _above(self, fid: FunctionId) -> Sequence[tuple[FunctionId, str]]:
        """The functions that call this one on a step's path, each with the chain that it calls; not `scaler.step(…)` of that name."""
        surroundings, index = self._evaluator.surroundings, self._evaluator.index
        edges = [edge for edge in surroundings.callers(fid) if edge.caller != fid]
        calls = [(edge.caller, index.function(edge.caller).calls[edge.call_index], edge.certain) for edge in edges]
        meant = [(caller, call) for caller, call, certain in calls if certain or not call.chain.endswith(".step")]
        return [(caller, call.chain) for caller, call in meant if surroundings.is_hot(caller, call.region)]

    def _is_worker(self, fid: FunctionId) -> bool:
        index = self._evaluator.index
        owner = index.owner(fid)
        return (owner is not None and index.is_nn_module(owner)) or any(map(_runs_here, self._calls(fid)))

    def _hands_out(self, fid: FunctionId) -> bool:
        """Whether the function, or another one of its class, calls remote workers, and none runs a model."""
        calls = [call for one in self._family(fid) for call in self._calls(one)]
        return any(REMOTE.search(call.chain) for call in calls) and not any(map(_runs_here, calls))

    def _family(self, fid: FunctionId) -> Sequence[FunctionId]:
        index = self._evaluator.index
        owner = index.owner(fid)
        methods = [(klass[0], number) for klass in index.mro(owner) for number in index.methods(klass).values()] if owner else []
        return [fid, *methods]

    def _calls(self, fid: FunctionId) -> tuple[Call, ...]:
        return self._evaluator.index.function(fid).calls


def _runs_here(call: Call) -> bool:
    """Whether the call is an optimizer's or a model's: `self.actor(rows)`, `model(rows)`, but not `need_critic(config)`."""
    owner, _, name = call.chain.rpartition(".")
    model = MODELS.search(name) and name[:1].islower() if owner else name in BARE
    return bool(LOCAL.search(call.chain) or (model and not REMOTE.search(call.chain)))
