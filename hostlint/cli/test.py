"""`hostlint test`: proves the examples of rules."""
from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hostlint.errors import FINDINGS, ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.rule import Rule


@click.command(short_help="Prove the examples of rules.")
@click.argument("rules", nargs=-1, metavar="[RULE|FILE]...")
def test(rules: tuple[str, ...]) -> int:
    """Prove the examples of rules, hostlint's or your own: by name, code or family, or the file of a rule (default: all).

    Exit status: 0 they hold, 1 one does not, 2 a mistake in the call or a file that is no rule.
    """
    from hostlint.cli import output

    lines, failed = [], False
    for rule in _chosen(rules):
        problems = _problems(rule)
        failed = failed or bool(problems)
        lines.append(f"{rule.code} {rule.name}: {_count(len(rule.examples))} {'failed' if problems else 'proved'}")
        lines += [f"  {problem}" for problem in problems]
    output.write_standard("\n".join([*lines, ""]))
    return FINDINGS if failed else 0


def _problems(rule: Rule) -> list[str]:
    from hostlint.testing import check_example

    if rule.check is None:  # about suppressions, with the date as an input: the engine proves these
        return []
    return [f"example {number}: {problem}" for number, example in enumerate(rule.examples, 1) for problem in check_example(rule, example)]


def _chosen(names: Sequence[str]) -> tuple[Rule, ...]:
    from hostlint import registry

    files = [Path(name) for name in names if name.endswith(".py")]
    for file in files:
        if not file.is_file():
            raise UsageError(f"there is no file {file}")
    _take_in([file.resolve() for file in files])
    wanted = [*(name for name in names if not name.endswith(".py")), *(file.stem.replace("_", "-") for file in files)]
    try:
        codes = frozenset(code for name in wanted or ("ALL",) for code in registry.expand(name))
    except ValueError as error:
        raise UsageError(str(error)) from error
    return tuple(rule for rule in registry.rules() if rule.code in codes)


def _take_in(files: Sequence[Path]) -> None:
    """Users' rules: those of the configuration, or those in the given files where hostlint does not have them."""
    from hostlint import registry
    from hostlint.config import files as configuration

    foreign = [file for file in files if file not in registry.sources()]
    folders = {file.parent for file in foreign}
    if len(folders) > 1:
        raise UsageError("rules of your own are tested one folder at a time")
    if foreign:
        registry.use([file.stem for file in foreign], folders.pop())
        return
    with contextlib.suppress(ConfigError):
        config = configuration.find(Path.cwd())
        if config.file and config.rule_modules:
            registry.use(config.rule_modules, config.file.parent)


def _count(number: int) -> str:
    return "1 example" if number == 1 else f"{number} examples"
