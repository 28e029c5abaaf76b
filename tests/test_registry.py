"""The catalogue: every rule is found, sound and selectable, and unsound ones are refused with a reason."""
from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import hostlint.rules
from hostlint import registry
from hostlint.facts.kinds import FactKind
from hostlint.model import Severity
from hostlint.rule import Example, Problem, Rule

PAGE = """A bad thing.

## Why it costs
x

## Instead
x

## Not flagged
x

## Evidence
x
"""
GOOD = Example(bad="x = 1  # expect\n", good="y = 2\n")
RULE = Rule("HL101", "some-rule", "says something", (FactKind.ITEM,), lambda _fact, _node: Problem("no"), (GOOD,))


def module(rule: object, page: str | None = PAGE, name: str = "some_rule") -> ModuleType:
    made = ModuleType(f"hostlint.rules.{name}", page)
    if rule is not None:
        made.RULE = rule  # type: ignore[attr-defined]
    return made


def test_rules_are_this_checkouts() -> None:
    assert Path(hostlint.rules.__file__ or "").parent == Path(__file__).parents[1] / "rules"


def test_every_module_is_a_rule_and_they_are_sorted() -> None:
    found = registry.rules()
    assert {rule.name.replace("-", "_") for rule in found} == {entry.name for entry in pkgutil.iter_modules(hostlint.rules.__path__)}
    assert [rule.code for rule in found] == sorted(rule.code for rule in found)
    assert {rule.code[:3] for rule in found} >= {"HL1", "HL2", "HL9"}


def test_every_kind_has_exactly_one_rule() -> None:
    assert [registry.for_kind(kind).kinds for kind in FactKind] == [(kind,) for kind in FactKind]


def test_codes_and_names_of_the_foundation_never_change() -> None:
    names = {rule.code: rule.name for rule in registry.rules()}
    assert names["HL101"] == "device-item"
    assert names["HL112"] == "boolean-mask-write"
    assert names["HL118"] == "device-equality"
    assert names["HL208"] == "pageable-non-blocking"
    assert names["HL904"] == "malformed-comment"


def test_pages_come_from_the_docstrings() -> None:
    for rule in registry.rules():
        assert rule.page.splitlines()[0].endswith((".", "`"))
        assert "\n## How to confirm\n" in rule.page
        assert len(rule.examples) >= 3


@pytest.mark.parametrize(("word", "code"), [("HL101", "HL101"), ("device-item", "HL101"), ("hl101", None), ("item", None)])
def test_find(word: str, code: str | None) -> None:
    found = registry.find(word)
    assert (found.code if found else None) == code


def test_expand() -> None:
    everything = registry.expand("ALL")
    assert everything == {rule.code for rule in registry.rules()}
    assert registry.expand("HL2") == {code for code in everything if code.startswith("HL2")}
    assert registry.expand("HL10") == {f"HL10{n}" for n in range(1, 10)}
    assert registry.expand("device-tolist") == {"HL105"}
    assert registry.expand("HL207") == {"HL207"}
    assert {code for family in registry.FAMILIES for code in registry.expand(family)} == everything


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [("device-itme", "device-item"), ("HL190", "HL1"), ("device_item", "device-item"), ("hl101", "HL101"), ("all", "ALL"), ("HL.", "HL")],
)
def test_unknown_selectors_say_what_was_meant(wrong: str, hint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"unknown rule {wrong!r}")) as caught:
        registry.expand(wrong)
    assert hint in str(caught.value)


def test_a_sound_module_is_read_with_its_page() -> None:
    assert registry.read(module(RULE)) == dataclasses.replace(RULE, page=PAGE.rstrip())


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (module(None), "no RULE"),
        (module("a rule"), "no RULE"),
        (module(RULE, page=None), "no section 'Why it costs'"),
        (module(RULE, page=PAGE.replace("## Evidence", "## Proof")), "no section 'Evidence'"),
        (module(RULE, name="other_rule"), "not the file's name"),
        (module(dataclasses.replace(RULE, name="Some-Rule")), "not the file's name"),
        (module(dataclasses.replace(RULE, code="HL1")), "not of the form"),
        (module(dataclasses.replace(RULE, summary="")), "no summary"),
        (module(dataclasses.replace(RULE, examples=())), "no example"),
        (module(dataclasses.replace(RULE, examples=(Example(bad="x = 1  # expect\n", good=""),))), "no look-alike"),
        (module(dataclasses.replace(RULE, check=None)), "kinds and check"),
        (module(dataclasses.replace(RULE, kinds=())), "kinds and check"),
    ],
)
def test_an_unsound_module_is_refused_by_name(broken: ModuleType, complaint: str) -> None:
    with pytest.raises(registry.RegistryError, match=re.escape(complaint)) as caught:
        registry.read(broken)
    assert broken.__name__ in str(caught.value)


@pytest.mark.parametrize(
    "twin",
    [
        dataclasses.replace(RULE, name="other-rule", kinds=(FactKind.FORMAT,)),
        dataclasses.replace(RULE, code="HL102", name="other-rule"),
    ],
)
def test_two_rules_never_share_a_code_or_a_kind(twin: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = [module(RULE), module(twin, name="other_rule")]
    monkeypatch.setattr(registry, "_modules", lambda: iter(pair))
    with pytest.raises(registry.RegistryError, match="belongs to some-rule"):
        registry.rules.__wrapped__()


def test_without_the_rules_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> ModuleType:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(registry.RegistryError, match=r"pip install -e \."):
        registry.rules.__wrapped__()


def test_loading_the_rules_stays_light() -> None:
    program = "import sys; from hostlint import registry; registry.rules(); print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "hostlint.rules.device_item" in loaded
    assert not {"libcst", "torch", "numpy", "rich", "click", "pathspec", "difflib"} & set(loaded)


def test_comment_rules_only_word_the_engine_s_findings() -> None:
    comment_rules = [rule for rule in registry.rules() if rule.check is None]
    assert [rule.code for rule in comment_rules] == ["HL901", "HL902", "HL903", "HL904"]
    assert comment_rules[-1].severity is Severity.ERROR
