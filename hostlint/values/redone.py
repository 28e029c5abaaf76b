"""Work that is done again at every step although its result could be kept."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.values.block_casts import BlockCasts
from hostlint.values.block_work import BlockConstancy, BlockWork
from hostlint.values.causes import joined
from hostlint.values.chains import Chains
from hostlint.values.constancy import Constancy
from hostlint.values.dead_keys import DeadKeys
from hostlint.values.environment import Environment
from hostlint.values.hoisted import Hoisted
from hostlint.values.host_counters import HostCounters
from hostlint.values.identity import Identity
from hostlint.values.identity_feeds import Feeds
from hostlint.values.log_lines import LogLines
from hostlint.values.per_step import StepConstancy
from hostlint.values.projected import Projected
from hostlint.values.rebuilt import Rebuilt
from hostlint.values.schedule_tables import ScheduleTables
from hostlint.values.serving import Serving
from hostlint.values.single_entries import SingleEntries
from hostlint.values.size_tables import SizeTables
from hostlint.values.unregistered import Unregistered
from hostlint.values.value_keys import ValueKeys
from hostlint.values.worth import Worth

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hostlint.facts.spans import Places
    from hostlint.index import FunctionId
    from hostlint.values.constancy import StepLoops
    from hostlint.values.evaluator import Evaluator
    from hostlint.values.judging import Meeting

KINDS = frozenset({
    FactKind.REBUILT_CONSTANT, FactKind.INVARIANT_WORK, FactKind.CAST_PER_BLOCK, FactKind.CONSTANT_PROJECTION,
    FactKind.IDENTITY_KEY,
    FactKind.SAME_PER_BLOCK, FactKind.ENVIRONMENT_READ, FactKind.SIZE_TABLE, FactKind.VALUE_KEY,
    FactKind.UNGUARDED_COLLECTIONS, FactKind.PINNED_FREED, FactKind.EAGER_LOG, FactKind.HOST_COUNTER, FactKind.SINGLE_ENTRY,
})  # fmt: skip  # what is found here

KERNELS = re.compile(r"(^|\.)(triton|helion|tilelang|cute|numba|gluon|pallas)\.")  # loops that a compiler of kernels unrolls


class Redone:
    """Finds work that is redone in the functions of a project."""

    def __init__(self, evaluator: Evaluator, loops: StepLoops) -> None:
        self._evaluator = evaluator
        self._index = evaluator.index
        constancy = Constancy(evaluator, loops)
        worth = Worth(evaluator, constancy, loops)
        self._hoisted = Hoisted(evaluator, constancy, worth)
        self._size_tables = SizeTables(evaluator, constancy, self._hoisted)
        blocks = BlockConstancy(evaluator, constancy, self._hoisted)
        chains = Chains(evaluator, constancy, self._hoisted, self._size_tables)
        self._casts = BlockCasts(evaluator, constancy, self._hoisted, chains)
        self._rebuilt = Rebuilt(evaluator, constancy, blocks, chains, worth)
        self._blocks = BlockWork(evaluator, blocks, self._hoisted)
        self._environment = Environment(evaluator, constancy)
        self._unregistered = Unregistered(evaluator)
        self._log_lines = LogLines(evaluator)
        self._counters = HostCounters(evaluator)
        self._serving = Serving(evaluator)
        identity = Identity(evaluator)
        self._feeds = Feeds(evaluator, identity)
        self._dead_keys = DeadKeys(evaluator)
        self._value_keys = ValueKeys(evaluator, constancy, identity)
        self._schedules = ScheduleTables(evaluator, constancy)
        steps = StepConstancy(evaluator, constancy, self._hoisted)
        self._projected = Projected(evaluator, steps, worth)
        self._single_entries = SingleEntries(evaluator, constancy, loops, steps)

    def counted_at(self, fid: FunctionId, line: int, column: int) -> int:
        """The line that counts what a place reads, where that is all that is ever added; 0 for other reads, and before it was told."""
        return self._counters.counted.get((fid, line, column), 0)

    def meetings(self, fid: FunctionId, is_hot: Callable[[int], bool], places: Places) -> Iterator[Meeting]:
        """What the hot places of one function compute again."""
        if any(KERNELS.search(decorator) for decorator in self._index.function(fid).decorators):
            return
        found = list(self._rebuilt.meetings(fid, is_hot, places))
        if found and self._size_tables.is_told_at_calls(fid):
            found = []
        finders = (self._hoisted, self._schedules, self._blocks, self._casts, self._projected)  # what says more of a statement speaks first
        for finder in finders:
            told = {meeting.site.first_line for meeting in found}
            found += [meeting for meeting in finder.meetings(fid, is_hot, places) if meeting.site.first_line not in told]
        yield from joined(self._evaluator.graph_of(fid), found) if len(found) > 1 else found
        yield from self._feeds.meetings(fid, is_hot, places)
        yield from self._dead_keys.meetings(fid, is_hot)
        yield from self._size_tables.meetings(fid, is_hot, places)
        yield from self._value_keys.meetings(fid, is_hot, places)
        yield from self._serving.meetings(fid, places)
        yield from self._unregistered.meetings(fid, places)
        yield from self._log_lines.meetings(fid, is_hot, places)
        yield from self._counters.meetings(fid, is_hot, places)
        yield from self._single_entries.meetings(fid, is_hot, places)
        yield from self._environment.meetings(fid, is_hot, places)
