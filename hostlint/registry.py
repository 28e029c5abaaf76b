"""Which rules there are: finds the modules of `hostlint.rules`, joins each with its page and refuses what is not sound."""
from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from hostlint.errors import HostlintError
from hostlint.rule import Rule

if TYPE_CHECKING:
    from hostlint.facts.kinds import FactKind

SECTIONS = ("Why it costs", "Instead", "Not flagged", "Evidence")
FAMILIES = {
    "HL1": "the host reads a device value",
    "HL2": "the host uploads",
    "HL3": "work redone that could be kept",
    "HL4": "pauses: allocator flush, cyclic collector",
    "HL5": "wrong cures: races, lost precision, a result dropped",
    "HL9": "about hostlint itself",
}
EVERYTHING = "ALL"
OWN_CODES = "HL"  # a user's rules have other letters
_CODE = re.compile(r"[A-Z]{2,8}[1-9]\d\d")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class RegistryError(HostlintError):
    """The rules cannot be loaded, or one of them breaks the form that every rule has."""


_users_modules: tuple[ModuleType, ...] = ()


def use(names: Iterable[str], folder: Path) -> None:
    """Take in a user's rules: modules, or packages of modules, from a configuration's folder or the environment."""
    global _users_modules  # noqa: PLW0603  the catalogue of this run
    sys.path.append(str(folder))
    _users_modules = tuple(module for name in names for module in _imported(name))
    rules.cache_clear()
    _by_kind.cache_clear()


def _imported(name: str) -> Iterator[ModuleType]:
    try:
        module = importlib.import_module(name)
        inner = [entry.name for entry in pkgutil.iter_modules(getattr(module, "__path__", ()))]
        modules = [importlib.import_module(f"{name}.{each}") for each in inner] or [module]
    except Exception as error:  # a module of the user's can raise anything
        raise RegistryError(f"rule-modules: {name} cannot be imported: {type(error).__name__}: {error}") from error
    for each in modules:
        if read(each).code.startswith(OWN_CODES):
            raise RegistryError(f"rule-modules: {each.__name__}: codes that begin with {OWN_CODES} are hostlint's own")
        yield each


def sources() -> list[Path]:
    """The files of all rules; those of hostlint are found without importing them."""
    spec = importlib.util.find_spec("hostlint.rules")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    users = [Path(module.__file__) for module in _users_modules if module.__file__]
    return sorted(file for folder in folders for file in Path(folder).glob("*.py")) + users


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule with its page, hostlint's own first, sorted by code."""
    found = sorted((read(module) for module in (*_modules(), *_users_modules)), key=lambda rule: (not _is_own(rule), rule.code))
    _check_together(found)
    return tuple(found)


def read(module: ModuleType) -> Rule:
    """The rule of one module, its docstring as the page; a RegistryError names what is wrong with it."""
    rule = getattr(module, "RULE", None)
    if not isinstance(rule, Rule):
        raise RegistryError(f"{module.__name__}: no RULE in this module")
    rule = replace(rule, page=inspect.cleandoc(module.__doc__ or ""))
    faults = list(_faults(rule, module.__name__.rpartition(".")[2]))
    if faults:
        raise RegistryError(f"{module.__name__}: " + "; ".join(faults))
    return rule


def find(code_or_name: str) -> Rule | None:
    """The rule of this code or name."""
    return next((rule for rule in rules() if code_or_name in (rule.code, rule.name)), None)


def expand(selector: str) -> frozenset[str]:
    """The codes that a code, a family's prefix, a name or `ALL` stands for; ValueError where it stands for nothing."""
    if selector == EVERYTHING:
        return frozenset(rule.code for rule in rules())
    rule = find(selector)
    if rule is not None:
        return frozenset({rule.code})
    codes = frozenset(rule.code for rule in rules() if re.fullmatch(r"[A-Z]{2,}\d*", selector) and rule.code.startswith(selector))
    if codes or selector in FAMILIES:
        return codes
    raise ValueError(f"unknown rule {selector!r}" + _did_you_mean(selector))


def off() -> frozenset[str]:
    """The codes that are off unless something selects them."""
    return frozenset(rule.code for rule in rules() if not rule.on)


def for_kind(kind: FactKind) -> Rule:
    """The rule of hostlint's own that words the facts of this kind."""
    return all_for_kind(kind)[0]


def all_for_kind(kind: FactKind) -> tuple[Rule, ...]:
    """Every rule that may word the facts of this kind, hostlint's own first."""
    return _by_kind()[kind]


@cache
def _by_kind() -> dict[FactKind, tuple[Rule, ...]]:
    kinds = {kind for rule in rules() for kind in rule.kinds}
    return {kind: tuple(rule for rule in rules() if kind in rule.kinds) for kind in kinds}


def _is_own(rule: Rule) -> bool:
    return rule.code.startswith(OWN_CODES)


def _modules() -> Iterator[ModuleType]:
    try:
        package = importlib.import_module("hostlint.rules")
    except ModuleNotFoundError as error:
        if error.name != "hostlint.rules":
            raise
        raise RegistryError("hostlint.rules is missing: in a checkout, run pip install -e .") from error
    for entry in pkgutil.iter_modules(package.__path__):
        yield importlib.import_module(f"hostlint.rules.{entry.name}")


def _faults(rule: Rule, module_name: str) -> Iterator[str]:
    if not _CODE.fullmatch(rule.code):
        yield f"code {rule.code!r} is not of the form HL101"
    if not _NAME.fullmatch(rule.name) or rule.name != module_name.replace("_", "-"):
        yield f"name {rule.name!r} is not the file's name with hyphens"
    if not rule.summary:
        yield "no summary"
    yield from (f"no section {title!r} in the page" for title in SECTIONS if f"\n## {title}\n" not in rule.page)
    if not rule.examples:
        yield "no example"
    elif not any(_look_alikes(rule)):
        yield "no look-alike: every line of every example is marked"
    if (rule.check is None) != (not rule.kinds):
        yield "kinds and check go together"


def _look_alikes(rule: Rule) -> Iterator[str]:
    """The examples' lines that hold something and must stay silent."""
    for example in rule.examples:
        lines = [*example.bad.splitlines(), *example.good.splitlines()]
        yield from (line for line in lines if line.strip() and not line.endswith("# expect"))


def _check_together(found: Iterable[Rule]) -> None:
    seen: dict[str | FactKind, str] = {}
    for rule in found:
        keys: tuple[str | FactKind, ...] = (rule.code, rule.name, *(rule.kinds if _is_own(rule) else ()))
        for key in keys:
            if key in seen:
                raise RegistryError(f"{rule.name}: {key} belongs to {seen[key]} already")
            seen[key] = rule.name


def _did_you_mean(selector: str) -> str:
    import difflib  # only a misspelt selector pays for it

    known = [word for rule in rules() for word in (rule.code, rule.name)] + [EVERYTHING, *FAMILIES]
    folded = {word.lower(): word for word in known}
    near = difflib.get_close_matches(selector.lower().replace("_", "-"), folded, n=1)
    return f"; did you mean {folded[near[0]]}?" if near else ""
