"""What flows out of a scan: findings, errors and the closed sets that grade them."""
from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.confirm.join import Confirmed


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        return ("note", "warning", "error").index(self.value)


class Confidence(IntEnum):
    """How sure the scan is that the value lives where the finding says it does."""

    POSSIBLE = 0
    LIKELY = 1
    CERTAIN = 2

    @property
    def label(self) -> str:
        return self.name.lower()


class HeatLevel(IntEnum):
    """How often a place runs (contract.md): a step loop of its own function, called from one, once a request, cold."""

    COLD = 0
    REQUEST = 1
    CALL = 2
    LOOP = 3

    @property
    def label(self) -> str:
        return self.name.lower()


class Applicability(Enum):
    EXACT = "exact"
    REVIEW = "review"


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of source: 1-based lines and character columns, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One call on the way from the hot loop to the finding."""

    path: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class Heat:
    level: HeatLevel
    chain: tuple[ChainLink, ...] = ()


@dataclass(frozen=True, slots=True)
class Edit:
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    applicability: Applicability
    message: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    name: str
    path: str
    span: Span
    message: str
    severity: Severity
    confidence: Confidence
    function: str
    heat: Heat
    kind_evidence: str
    fix: Fix | None = None
    statement: tuple[int, int] = (0, 0)  # first and last line of the enclosing statement, for suppressions
    parts: tuple[Span, ...] = ()  # other places of the same cause, which are told with this one
    confirmed: Confirmed | None = field(default=None, compare=False)  # what a run said of it; no part of what it is

    @property
    def sort_key(self) -> tuple[str, int, int, str]:
        return (self.path, self.span.line, self.span.column, self.code)


@dataclass(frozen=True, slots=True)
class FileError:
    path: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Summary:
    files: int = 0
    lines: int = 0
    findings: int = 0
    suppressed: int = 0
    baselined: int = 0


@dataclass(frozen=True, slots=True)
class ScanResult:
    findings: tuple[Finding, ...] = ()
    errors: tuple[FileError, ...] = ()
    summary: Summary = field(default_factory=Summary)
