"""The words that rules share: why a place is hot, and source text short enough for one line."""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.model import HeatLevel

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from hostlint.facts.fact import Fact

LONGEST_QUOTE = 60
ONE_UPLOAD = (
    "values that the host makes anew each step need one upload: gather them in one tensor and copy it with `non_blocking=True` from pinned"
    " buffers that are kept (a ring, an event each)"
)


def when(fact: Fact) -> str:
    """How often the place runs, as the end of a clause: `in the step loop at line 12`."""
    level, chain = fact.heat.level, fact.heat.chain
    if level is HeatLevel.LOOP:
        loop = f"loop at line {chain[-1].line}" if chain else "loop"
        return f"in the {loop}, {_reached(fact)}" if len(chain) > 1 else f"in the step {loop}"
    if level is HeatLevel.REQUEST:
        return "once per request"
    if level is HeatLevel.COLD:
        return "in code that runs once"
    return _reached(fact)


def _reached(fact: Fact) -> str:
    """Where the chain to the place begins: a step loop, or a function that runs each step by convention."""
    start = fact.heat.chain[0] if fact.heat.chain else None
    if start is None or (start.path, start.function) == (fact.path, fact.function):
        return f"on every call of `{fact.function.rpartition('.')[2]}`, which runs each step"
    caller = "module level" if start.function == "<module>" else f"`{start.function}`"
    place = f"line {start.line}" if start.path == fact.path else f"{start.path}:{start.line}"
    return f"on every step (called from {caller}, {place})"


def happens(fact: Fact) -> str:
    """As `when`, for what is wrong at any heat: a place that no step is seen to reach is named by its function."""
    return when(fact) if fact.heat.chain else f"whenever `{fact.function.rpartition('.')[2]}` runs"


def amount(fact: Fact) -> str:
    """How much is done again, as a clause: `, with lines 7 and 9 in 12 launches in each block`; "" for one launch, or none counted."""
    if fact.repeated is None:
        return ""
    lines = sorted({span.line for span in fact.repeated.others} - {fact.span.line})
    words = [f"with line{'s' * (len(lines) > 1)} {listed(lines)}"] if lines else []
    unit = "operations of the host" if fact.repeated.on_host else "launches"
    words += [f"in {fact.repeated.launches} {unit}"] if fact.repeated.launches > 1 else []
    words += ["in each block"] if fact.repeated.in_blocks else []
    return f", {' '.join(words)}" if words else ""


def listed(numbers: Sequence[int]) -> str:
    """`4, 7 and 9`."""
    words = [str(number) for number in numbers]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def waits(fact: Fact, subject: str) -> str:
    """The first half of most messages: what makes the host wait, and why that is often."""
    return f"`{subject}` makes the host wait for the device {when(fact)}"


def text(node: cst.CSTNode) -> str:
    """The node's source on one line, its middle left out where it is long."""
    import libcst as cst

    return short(cst.Module([]).code_for_node(node))


def receiver(node: cst.BaseExpression, otherwise: str) -> str:
    """The text of what a method is called on; `otherwise` for other expressions and for functions of a module."""
    import libcst as cst

    match node:
        case cst.Call(func=cst.Attribute(value=cst.Name("torch" | "np" | "numpy" | "math" | "F"))):
            return short(otherwise)
        case cst.Call(func=cst.Attribute(value=value)):
            return text(value)
    return short(otherwise)


def whole(node: cst.BaseExpression) -> str:
    """The text of a fact's own expression, without the parentheses in which it was parsed."""
    return text(node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[1:]))


def short(source: str) -> str:
    line = " ".join(source.split())
    if len(line) <= LONGEST_QUOTE:
        return line
    half = (LONGEST_QUOTE - 3) // 2
    return f"{line[:half]}...{line[-half:]}"
