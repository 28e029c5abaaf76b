"""How selectors combine."""
from __future__ import annotations

from pathlib import Path

import pytest

from hostlint.selection import Layer, enabled, file_ignores

CODES = {"HL101": "device-item", "HL102": "device-cast", "HL201": "upload-constructor", "HL901": "unused-suppression"}


def expand(selector: str) -> frozenset[str]:
    found = frozenset(code for code, name in CODES.items() if selector in ("ALL", name) or code.startswith(selector))
    if not found:
        raise ValueError(selector)
    return found


@pytest.mark.parametrize(
    ("layers", "codes"),
    [
        ([], "101 102 201 901"),
        ([Layer(select=["HL1"])], "101 102"),
        ([Layer(select=["device-cast", "HL2"])], "102 201"),
        ([Layer(ignore=["HL1"])], "201 901"),
        ([Layer(select=["HL1"], ignore=["HL101"])], "102"),
        ([Layer(select=["HL101"], ignore=["HL1"])], "101"),
        ([Layer(select=["HL101"], ignore=["device-item"])], ""),
        ([Layer(select=["HL2"], extend_select=["HL101"])], "101 201"),
        ([Layer(select=["HL2"]), Layer(extend_select=["HL101"])], "101 201"),
        ([Layer(select=["HL2"], ignore=["HL201"]), Layer(select=["HL2"])], "201"),
        ([Layer(ignore=["HL1"]), Layer(ignore=["HL2"])], "901"),
        ([Layer(select=[])], ""),
        ([Layer(select=["ALL"], ignore=["HL9"])], "101 102 201"),
    ],
)
def test_the_more_specific_selector_wins(layers: list[Layer], codes: str) -> None:
    assert sorted(enabled(layers, expand)) == [f"HL{number}" for number in codes.split()]


def test_an_unknown_selector_is_not_swallowed() -> None:
    with pytest.raises(ValueError, match="HL7"):
        enabled([Layer(ignore=["HL7"])], expand)


def test_ignores_by_pattern() -> None:
    base = Path("/p")
    (tests,) = file_ignores([("tests/*", ["HL1", "HL901"])], base, expand)
    assert tests.cover("HL101", base / "tests" / "test_a.py")
    assert not tests.cover("HL201", base / "tests" / "test_a.py")
    assert not tests.cover("HL101", base / "src" / "a.py")
    (other,) = file_ignores([("!src/**", ["HL1"])], base, expand)
    assert other.cover("HL101", base / "tests" / "test_a.py")
    assert not other.cover("HL101", base / "src" / "a.py")
    (named,) = file_ignores([("conftest.py", ["HL1"])], base, expand)
    assert named.cover("HL102", base / "a" / "conftest.py")
