"""`hostlint rule` and `explain`."""
from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest

from hostlint import registry

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize("command", ["rule", "explain"])
@pytest.mark.parametrize("name", ["HL101", "device-item"])
def test_a_page(hostlint: Run, command: str, name: str) -> None:
    done = hostlint(command, name)
    rule = registry.find("HL101")
    assert rule is not None
    assert done.returncode == 0
    assert done.stdout.startswith("# HL101 device-item (warning)\n")
    assert rule.page in done.stdout
    assert rule.examples[0].bad.strip() in done.stdout
    assert "# HL102" not in done.stdout


def test_a_family_and_all(hostlint: Run) -> None:
    family = hostlint("rule", "HL9").stdout
    shown = [code for code in ("HL901", "HL902", "HL903", "HL904", "HL101") if f"# {code} " in family]
    assert shown == ["HL901", "HL902", "HL903", "HL904"]
    every = hostlint("rule", "--all").stdout
    assert [rule.code for rule in registry.rules() if f"# {rule.code} {rule.name} (" not in every] == []


def test_the_catalogue(hostlint: Run) -> None:
    listed = hostlint("rule").stdout
    lines = [line.split()[:2] for line in listed.splitlines() if line.startswith("  HL")]
    assert lines == [[rule.code, rule.name] for rule in registry.rules()]


def test_json(hostlint: Run) -> None:
    one = json.loads(hostlint("rule", "device-item", "--output-format", "json").stdout)
    assert (one["code"], one["name"], one["severity"]) == ("HL101", "device-item", "warning")
    assert "## Why it costs" in one["page"]
    assert set(one["examples"][0]) == {"bad", "good"}
    several = json.loads(hostlint("rule", "HL9", "--output-format", "json").stdout)
    assert [rule["code"] for rule in several] == ["HL901", "HL902", "HL903", "HL904"]
    for arguments in ((), ("--all",)):
        every = json.loads(hostlint("rule", *arguments, "--output-format", "json").stdout)
        assert [rule["code"] for rule in every] == [rule.code for rule in registry.rules()]
