"""What a body may do on purpose: `allow(reason)` around it, and the `path:function` entries that guards take."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.facts.kinds import FactKind
    from hostlint.runtime_checks.events import EventKind, Frame

_FAMILIES = {
    "read": "HL1", "data-dependent-size": "HL1", "hidden-wait": "HL1", "explicit-sync": "HL1",
    "upload": "HL2", "flush": "HL4", "collect": "HL4",
}


@dataclass(frozen=True, slots=True)
class Allowance:
    reason: str
    rules: tuple[str, ...]  # empty: everything

    def covers(self, kind: EventKind, fact: FactKind | None) -> bool:
        return not self.rules or any(_covers(rule, kind.value, fact) for rule in self.rules)


_current: ContextVar[tuple[Allowance, ...]] = ContextVar("hostlint_allow", default=())


@contextmanager
def allow(reason: str, rules: Iterable[str] = ()) -> Iterator[None]:
    """Waits, uploads and pauses inside the body are meant; guards let them pass, recorders note the reason, and the scan reads it too.

    `reason` says why, and may not be empty. `rules` limits it to these rules, named by name (`device-item`), code (`HL101`) or family
    (`HL2`). It holds for the current thread or asyncio task, what that awaits, and threads that a guard follows. Raises ValueError for an
    empty reason or an unknown rule.
    """
    if not reason.strip():
        raise ValueError("allow() needs a reason: say why the host may wait here")
    if isinstance(rules, str):
        rules = (rules,)
    given = tuple(rules)
    for rule in given:
        _chosen(rule)
    token = _current.set((*_current.get(), Allowance(reason, given)))
    try:
        yield
    finally:
        _current.reset(token)


def allowed_reason(kind: EventKind, fact: FactKind | None = None) -> str | None:
    """The reason of the innermost `allow` around this point that covers such an event, else None."""
    return next((one.reason for one in reversed(_current.get()) if one.covers(kind, fact)), None)


def _covers(rule: str, kind: str, fact: FactKind | None) -> bool:
    facts, codes = _chosen(rule)
    return fact in facts if fact is not None else any(code.startswith(_FAMILIES[kind]) for code in codes)


@lru_cache(maxsize=256)
def _chosen(rule: str) -> tuple[frozenset[FactKind], tuple[str, ...]]:
    """The kinds of fact that the rules of this name, code or family speak of, and these rules' codes."""
    from hostlint.registry import rules

    chosen = [one for one in rules() if rule and (rule == one.name or one.code.startswith(rule))]
    if not chosen:
        raise ValueError(f"allow(): no rule is called {rule!r}; `hostlint rule` lists them")
    return frozenset(kind for one in chosen for kind in one.kinds), tuple(one.code for one in chosen)


@dataclass(frozen=True, slots=True)
class CallSites:
    """Entries `end of path:function`: each covers that function's own call sites, not its callees'."""

    entries: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, entries: Iterable[str]) -> CallSites:
        """Raises ValueError for an entry without a function, TypeError for one that is no text."""
        if isinstance(entries, str):
            entries = (entries,)
        return cls(tuple(_entry(text) for text in entries))

    def cover(self, frame: Frame) -> bool:
        path = frame.path.replace("\\", "/")
        names = {frame.function, frame.function.rpartition(".")[2]}
        return any(path.endswith(end) and function in names for end, function in self.entries)


def _entry(text: str) -> tuple[str, str]:
    if not isinstance(text, str):
        raise TypeError(f"an entry of allow is 'end of path:function', not {text!r}")
    path, separator, function = text.rpartition(":")
    if not (separator and path and function):
        raise ValueError(f"an entry of allow is 'end of path:function', not {text!r}")
    return path.replace("\\", "/"), function

