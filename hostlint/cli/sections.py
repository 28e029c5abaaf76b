"""Options in sections, so that a long help stays readable, and how their comma-separated values are read."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., object])
PatternRules = tuple[tuple[str, tuple[str, ...]], ...]


class _Option(click.Option):
    def __init__(self, *arguments: Any, section: str, **settings: Any) -> None:  # Any: click's own many keywords
        super().__init__(*arguments, **settings)
        self.section = section


class SectionedCommand(click.Command):
    """A command whose help lists its options section by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record and isinstance(parameter, click.Option):
                sections.setdefault(getattr(parameter, "section", "Help"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


@dataclass(frozen=True, slots=True)
class Section:
    title: str

    def option(self, *names: str, **settings: Any) -> Callable[[F], F]:  # Any: click's own many keywords
        return click.option(*names, cls=_Option, section=self.title, **settings)

    def names(self, spelling: str, metavar: str, text: str, replaces: bool = False) -> Callable[[F], F]:
        """An option that takes `A,B` and may be repeated; one that replaces the configuration's tells nothing from none."""
        return self.option(spelling, multiple=True, callback=_split_or_none if replaces else _split, metavar=metavar, help=text)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """One decorator for several options, listed in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _split(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


def _split_or_none(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[str, ...] | None:
    return _split(ctx, param, values) if values else None


def pattern_rules(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> PatternRules:
    """`PATTERN:RULE`, comma-separated; a rule without a pattern belongs to the pattern before it."""
    pairs: list[tuple[str, tuple[str, ...]]] = []
    for item in _split(ctx, param, values):
        pattern, colon, rule = (part.strip() for part in item.rpartition(":"))
        if colon and pattern and rule:
            pairs.append((pattern, (rule,)))
        elif not colon and pairs:
            pairs[-1] = (pairs[-1][0], (*pairs[-1][1], rule))
        else:
            raise click.BadParameter(f"{item!r} is not of the form PATTERN:RULE", ctx, param)
    return tuple(pairs)
