"""`hostlint rule` and `hostlint explain`: the catalogue, and each rule's page."""
from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hostlint.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from hostlint.rule import Rule


@click.command(short_help="Show a rule's page, or the catalogue.")
@click.argument("rule", required=False, metavar="[CODE|NAME]")
@click.option("--all", "every", is_flag=True, help="The pages of all rules.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="The form of the answer.  [default: text]")
def rule(rule: str | None, every: bool, output_format: str) -> None:
    """Show the page of a rule, those of a family (`HL1`), or the catalogue."""
    from hostlint.cli import output

    if rule and every:
        raise UsageError("name a rule or ask for --all, not both")
    chosen = _chosen(rule)
    if output_format == "json":
        one = len(chosen) == 1 and rule is not None
        document = _object(chosen[0]) if one else [_object(each) for each in chosen]
        output.write_standard(json.dumps(document, indent=1) + "\n")
    elif rule or every:
        output.write_standard("\n\n".join(_page(each) for each in chosen) + "\n")
    else:
        output.write_standard(_catalogue(chosen))


explain = rule


def _chosen(name: str | None) -> tuple[Rule, ...]:
    from hostlint import registry
    from hostlint.config import files

    with contextlib.suppress(ConfigError):  # a page can be read whatever is wrong with the configuration
        config = files.find(Path.cwd())
        if config.file and config.rule_modules:
            registry.use(config.rule_modules, config.file.parent)
    try:
        codes = registry.expand(name or "ALL")
    except ValueError as error:
        raise UsageError(str(error)) from error
    return tuple(each for each in registry.rules() if each.code in codes)


def _page(rule: Rule) -> str:
    title = f"# {rule.code} {rule.name} ({rule.severity.value})"
    examples = "\n\n".join(f"{_block('Flagged', each.bad)}\n\n{_block('Not flagged', each.good)}" for each in rule.examples)
    return f"{title}\n\n{rule.page.strip()}\n\n## Examples\n{examples}"


def _block(title: str, source: str) -> str:
    return f"{title}:\n```python\n{source.strip()}\n```"


def _catalogue(rules: tuple[Rule, ...]) -> str:
    from hostlint.registry import FAMILIES, OWN_CODES

    width = max((len(each.name) for each in rules), default=0)
    lines: list[str] = []
    families = {f"{family}xx  {meaning}": [each for each in rules if each.code.startswith(family)] for family, meaning in FAMILIES.items()}
    families["your own"] = [each for each in rules if not each.code.startswith(OWN_CODES)]
    for title, members in families.items():
        if members:
            lines += [title, *(f"  {each.code}  {each.name:{width}}  {each.summary}" for each in members), ""]
    return "\n".join(lines)


def _object(rule: Rule) -> dict[str, object]:
    return {
        "code": rule.code,
        "name": rule.name,
        "summary": rule.summary,
        "severity": rule.severity.value,
        "page": rule.page,
        "examples": [{"bad": each.bad, "good": each.good} for each in rule.examples],
    }
