"""A fact: a place in the source where the engine has proved that the host waits, uploads or pauses."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.facts.kinds import FactKind
    from hostlint.model import Confidence, Heat, Span


@dataclass(frozen=True, slots=True)
class Repeated:
    """How much a place does again: the launches of one time (0: not counted), and the other places that are told with it."""

    launches: int = 0
    others: tuple[Span, ...] = ()
    on_host: bool = False  # operations of the host, no launches
    in_blocks: bool = False  # a loop over blocks comes by


@dataclass(frozen=True, slots=True)
class Fact:
    """What a rule is given. `subject` is the value that is read or moved, in source words (`loss`, `x.sum()`)."""

    kind: FactKind
    path: str
    function: str  # qualified name
    span: Span  # of the expression that waits
    statement: tuple[int, int]  # lines of the enclosing statement
    call: str  # the spelling, for messages: "item()", "float()", "if", "torch.unique"
    subject: str
    evidence: str  # why the subject is taken to live where it does
    confidence: Confidence
    heat: Heat
    measured: str  # what the table of torch says: "measured on H200, torch 2.11: ..." or "not measured: ..."
    detail: str = ""  # rule-specific: which condition held, e.g. "0-dim index", "alpha"
    source: str = ""  # of the enclosing statement (of a compound one: its header), for rules that look at what is done with the value
    repeated: Repeated | None = None  # of work that is redone
    note: str = ""  # what the project's other places say of the value: the end of the message
