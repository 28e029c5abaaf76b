"""What a run said of a finding, in a few words."""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.confirm.join import Verdict
from hostlint.report.confirm_words import amount, milliseconds, plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hostlint.confirm.join import Confirmed
    from hostlint.model import Finding

_PLAIN = {
    Verdict.NO_WAIT: "no-wait, it ran and did not make the host wait",
    Verdict.NOT_REACHED: "not-reached, it did not run",
}


def verdict(confirmed: Confirmed) -> str:
    """`confirmed, 40 times, 1 a step, 12.1 ms`."""
    if confirmed.verdict is Verdict.NOT_MEASURED:
        return f"not-measured, {confirmed.why}" if confirmed.why else "not-measured"
    if confirmed.verdict in _PLAIN:
        return _PLAIN[confirmed.verdict]
    said = [confirmed.verdict.value, plural(confirmed.count, "time")]
    if confirmed.per_step is not None:
        said.append(f"{amount(confirmed.per_step)} a step")
    if confirmed.blocked_s is not None:
        said.append(milliseconds(confirmed.blocked_s * 1e3))
    return ", ".join(said)


def verdicts(findings: Iterable[Finding]) -> str:
    """How many findings have which verdict; empty where there was no run."""
    found = [finding.confirmed.verdict for finding in findings if finding.confirmed is not None]
    return ", ".join(f"{found.count(each)} {each.value}" for each in Verdict if each in found)
