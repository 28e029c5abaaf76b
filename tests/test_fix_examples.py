"""All rules' fixes together on the examples that claim one: the result compiles, keeps its comments, and a second run changes nothing."""
from __future__ import annotations

import io
import tokenize
from typing import TYPE_CHECKING

import pytest

from hostlint import registry
from hostlint.fix.once import fix_text
from hostlint.testing import unmarked

if TYPE_CHECKING:
    from hostlint.rule import Example

CLAIMED = [(rule.name, number, one) for rule in registry.rules() for number, one in enumerate(rule.examples, 1) if one.fix is not None]


def comments(text: str) -> list[str]:
    return [token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.COMMENT]


@pytest.mark.parametrize("example", [one for *_, one in CLAIMED], ids=[f"{name}-{number}" for name, number, _ in CLAIMED])
def test_fixes_of_all_rules_come_to_an_end(example: Example) -> None:
    program = unmarked(example.bad)
    result = fix_text(program, "example.py", review=True)
    assert not result.errors
    assert result.mended
    text = result.files[0].text
    compile(text, "example.py", "exec")
    assert comments(text) == comments(program)
    again = fix_text(text, "example.py", review=True)
    assert not again.files
    assert [(one.finding.code, one.finding.span) for one in again.left] == [(one.finding.code, one.finding.span) for one in result.left]
