"""What a rule is: one module in `rules/` whose docstring is its page and whose `RULE` words the facts of one kind."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlint.facts.fact import Fact
from hostlint.model import Fix, Severity

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.kinds import FactKind


@dataclass(frozen=True, slots=True)
class Problem:
    """What a rule says about a fact: one sentence, what to write instead, and perhaps a fix."""

    message: str
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """Faulty and corrected source. In `bad` each line that must be flagged ends in `# expect`; nothing else may be, by any rule of the
    same family; `good` must be silent. `also` names other rules' codes that may rightly flag marked lines of `bad` too."""

    bad: str
    good: str
    also: tuple[str, ...] = ()


Check = Callable[[Fact, "cst.BaseExpression"], "Problem | None"]


@dataclass(frozen=True, slots=True)
class Rule:
    """`check` gets a fact of one of `kinds` and the concrete syntax of the fact's expression; it returns what to say, or None.

    Rules about comments (HL9) have no kinds and no check: the engine finds them while it applies the suppressions.
    """

    code: str
    name: str
    summary: str
    kinds: tuple[FactKind, ...]
    check: Check | None
    examples: tuple[Example, ...]
    severity: Severity = Severity.WARNING
    page: str = ""  # filled by the registry from the module's docstring
