"""A user's own rules: found beside the configuration, used like hostlint's, refused where they are not sound."""
from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

RULE = '''"""`.item()` in our code.

## Why it costs
It waits.

## Instead
Ask the team.

## Not flagged
Host values.

## Evidence
Ours.
"""
from hostlint.facts.kinds import FactKind
from hostlint.rule import Example, Problem, Rule


def check(fact, node):
    return Problem(f"we never read {fact.subject}; ask the team") if fact.subject == "loss" else None


RULE = Rule(
    code="OUR101",
    name="our-item",
    summary="an item that we do not want",
    kinds=(FactKind.ITEM,),
    check=check,
    examples=(Example(bad="loss.item()  # expect\\n", good="x = 1\\n"),),
)
'''
TRAIN = """def train(model, optimizer, batches):
    for batch in batches:
        loss = model(batch.cuda(non_blocking=True)).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hostlint.toml").write_text('rule-modules = ["our_item"]\n')
    (tmp_path / "our_item.py").write_text(RULE)
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "train.py").write_text(TRAIN)
    return tmp_path


def found(done: subprocess.CompletedProcess[str]) -> list[tuple[str, str]]:
    return [(finding["code"], finding["message"]) for finding in json.loads(done.stdout)["findings"]]


def test_they_speak_beside_hostlints_own(hostlint: Run, folder: Path) -> None:
    done = hostlint("scan", "--output-format", "json", cwd=folder / "pkg")
    assert [code for code, _ in found(done)] == ["HL101", "OUR101"]
    assert found(done)[1][1] == "we never read loss; ask the team"
    assert [code for code, _ in found(hostlint("scan", "--output-format", "json", "--select", "OUR"))] == ["OUR101"]
    assert [code for code, _ in found(hostlint("scan", "--output-format", "json", "--ignore", "our-item"))] == ["HL101"]
    assert [code for code, _ in found(hostlint("scan", "--output-format", "json", "--isolated"))] == ["HL101"]


def test_a_change_of_a_rule_counts_in_the_next_scan(hostlint: Run, folder: Path) -> None:
    assert len(found(hostlint("scan", "--output-format", "json"))) == 2
    (folder / "our_item.py").write_text(RULE.replace("we never read", "nobody here reads"))
    assert found(hostlint("scan", "--output-format", "json"))[1][1].startswith("nobody here reads loss")


def test_their_suppressions_and_pages_work(hostlint: Run, folder: Path) -> None:
    (folder / "pkg" / "train.py").write_text(TRAIN.replace("item())", "item())  # hostlint: ignore[our-item] agreed"))
    assert [code for code, _ in found(hostlint("scan", "--output-format", "json"))] == ["HL101"]
    assert hostlint("rule", "OUR101").stdout.startswith("# OUR101 our-item (warning)\n")
    assert "OUR101  our-item" in hostlint("rule").stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (RULE.replace("OUR101", "HL901"), "hostlint's own"),
        (RULE.replace("## Instead", "## Perhaps"), "no section 'Instead'"),
        (RULE.replace("our-item", "another-name"), "not the file's name"),
        ("import nowhere_to_be_found\n", "cannot be imported: ModuleNotFoundError"),
        ("1 / 0\n", "cannot be imported: ZeroDivisionError"),
    ],
)
def test_what_is_wrong_with_one_is_said(hostlint: Run, folder: Path, text: str, words: str) -> None:
    (folder / "our_item.py").write_text(text)
    done = hostlint("scan")
    assert (done.returncode, done.stdout) == (2, "")
    assert "our_item" in done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_one_that_fails_on_a_fact_is_an_error_of_its_own(hostlint: Run, folder: Path) -> None:
    (folder / "our_item.py").write_text(RULE.replace('fact.subject == "loss"', "fact.subject.no_such_thing"))
    done = hostlint("scan", "--output-format", "json")
    assert done.returncode == 2
    assert [code for code, _ in found(done)] == ["HL101"]
    (error,) = json.loads(done.stdout)["errors"]
    assert (error["path"], error["line"]) == ("pkg/train.py", 6)
    assert "our-item" in error["message"]
