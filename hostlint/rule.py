"""What a rule is: one module in `rules/` whose docstring is its page and whose `RULE` words the facts of one kind."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlint.facts.fact import Fact
from hostlint.model import Applicability, Fix, Severity

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.kinds import FactKind
    from hostlint.fix.place import Place


@dataclass(frozen=True, slots=True)
class Problem:
    """What a rule says about a fact: one sentence, and what to write instead."""

    message: str


@dataclass(frozen=True, slots=True)
class Example:
    """Faulty and corrected source. In `bad` each line that must be flagged ends in `# expect`; nothing else may be, by any rule of the
    same family; `good` must be silent. `also` names other rules' codes that may rightly flag marked lines of `bad` too.

    `fix` claims that the rule's fixes of that applicability (`REVIEW`: of either) turn `bad` into `good`, character for character; without
    it no fix of the rule may touch `bad`. `trials` are expressions that run the program, with `torch` at hand: after an `EXACT` fix each
    gives the same bits as before."""

    bad: str
    good: str
    also: tuple[str, ...] = ()
    fix: Applicability | None = None
    trials: tuple[str, ...] = ()


Check = Callable[[Fact, "cst.BaseExpression"], "Problem | None"]
MakeFix = Callable[["Place"], "Fix | None"]


@dataclass(frozen=True, slots=True)
class Rule:
    """`check` gets a fact of one of `kinds` and the concrete syntax of the fact's expression; it returns what to say, or None.
    `fix` is asked only where fixes are wanted, of facts that `check` worded: the edits that mend the place, or None.

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
    fix: MakeFix | None = None
    on: bool = True  # without any `select`
