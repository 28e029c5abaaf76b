"""One confirmed run: scan, run the program under the recorder, merge what its processes wrote, join."""
from __future__ import annotations

import itertools
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hostlint import registry
from hostlint.confirm.join import Join
from hostlint.confirm.merge import Merge
from hostlint.confirm.program import run
from hostlint.confirm.watch import Watch, digest
from hostlint.report.json_report import confirmed_object, finding_object
from hostlint.runtime_checks.confirm.counters import read_processes

if TYPE_CHECKING:
    from hostlint.confirm.record import Event, Record
    from hostlint.model import Finding
    from hostlint.scan import Outcome


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is run, and how it is recorded."""

    arguments: tuple[str, ...]  # of the interpreter: SCRIPT ARG… or -m MODULE ARG…
    device: str
    warmup: int


def confirm(wanted: Wanted, outcome: Outcome, shown: Sequence[Finding]) -> Record:
    """Runs the program; `outcome` is a scan at any heat and confidence, `shown` those of its findings that a report is to show.

    A suppressed finding explains an event too: somebody has looked at it.
    """
    root, working = outcome.settings.root, outcome.settings.working
    findings = (*outcome.result.findings, *outcome.suppressed)
    watch = Watch(working, tuple(file.file for file in outcome.given), findings)
    digests = {file.path: digest(file.file) for file in outcome.given}
    with tempfile.TemporaryDirectory(prefix="hostlint-") as name:
        folder = Path(name)
        plan = watch.plan(wanted.device, wanted.warmup)
        plan.write(folder)
        status = run(wanted.arguments, folder)
        merge = Merge(root.resolve())
        for process in read_processes(folder):
            merge.take(process)
    record = merge.record(wanted.arguments, plan, status)
    paths = {file.path: merge.shown(watch.real(file.path)) for file in outcome.given}
    record = replace(record, digests={paths[path]: value for path, value in digests.items()})
    return joined(record, join(record, findings, watch, paths, root), shown)


def join(
    record: Record, findings: tuple[Finding, ...], watch: Watch, paths: dict[str, str], root: Path, changed: Collection[str] = ()
) -> Join:
    """The join of a record of the project at `root` with findings of the files in `paths` (a finding's name -> the record's).

    `changed` are files that were scanned with another text than the one on the disk."""
    names = {watch.real(path): name for path, name in paths.items()}
    loops = {finding: (names[loop[0]], loop[1]) for finding in findings if (loop := watch.loop_of(finding)) and loop[0] in names}
    differ = (path for path, name in paths.items() if record.digests.get(name) != digest(watch.working / path))
    facts = {rule.code: frozenset(kind.value for kind in rule.kinds) for rule in registry.rules()}
    outside = frozenset(number for number, event in enumerate(record.events) if not _in_a_loop(event, watch, root))
    return Join(record, findings, paths, loops, frozenset((*differ, *changed)), facts, outside)


def _in_a_loop(event: Event, watch: Watch, root: Path) -> bool:
    """Whether a frame stands in a loop, from the event's place outwards: what a library does inside is its own affair."""
    outwards = itertools.dropwhile(lambda frame: frame != event.place, event.stack)
    return any(watch.loops.around(str(root / frame.path), frame.line) for frame in outwards)


def joined(record: Record, made: Join, shown: Sequence[Finding]) -> Record:
    """The record with the verdicts on the findings that are shown, worst first, and what none of all findings explains."""
    verdicts = [(finding, made.confirmed(finding)) for finding in shown]
    ranked = sorted(verdicts, key=lambda one: (-(one[1].blocked_s or 0.0), -one[1].count, one[0].sort_key))
    objects = tuple({**finding_object(finding), "confirmed": confirmed_object(verdict)} for finding, verdict in ranked)
    number = {finding: index for index, (finding, _) in enumerate(ranked)}
    explained = tuple(tuple(number[one] for one in made.explained[event] if one in number) for event in range(len(record.events)))
    paths = {path: name for path, name in made.paths.items() if path != name}
    record = replace(record, unpredicted=made.unpredicted, setup=made.setup, library=made.library)
    return replace(record, findings=objects, explained=explained, paths=paths)
