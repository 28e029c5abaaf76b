"""What one scan does: the command line's options laid over the project's configuration, checked and made whole."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hostlint import registry
from hostlint.cache import FOLDER
from hostlint.config import files as config_files
from hostlint.config.files import Config
from hostlint.discovery import DEFAULT_EXCLUDE, LeftOut
from hostlint.errors import ConfigError, UsageError
from hostlint.ignores import Globs
from hostlint.model import Confidence, Finding, HeatLevel, Severity
from hostlint.project import common_folder, find_root
from hostlint.selection import FileIgnores, Layer, enabled, file_ignores
from hostlint.suppress import OWN_FAMILY

T = TypeVar("T")
PatternRules = tuple[tuple[str, tuple[str, ...]], ...]
MIN_HEAT, MIN_CONFIDENCE = HeatLevel.CALL, Confidence.LIKELY
_NO_GLOB = frozenset("*?[]!/\\")


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line said; None and () where it said nothing. `paths` are absolute."""

    working: Path
    paths: tuple[Path, ...]
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    per_file_ignores: PatternRules = ()
    config: Path | None = None
    isolated: bool = False
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    respect_gitignore: bool = True
    min_heat: HeatLevel | None = None
    min_confidence: Confidence | None = None
    fail_on: Severity | None = None
    baseline: Path | None = None
    hot: tuple[str, ...] = ()
    cache: bool = True
    cache_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    root: Path
    working: Path
    config: Config
    enabled: frozenset[str]
    file_ignores: tuple[FileIgnores, ...]
    left_out: LeftOut
    min_heat: HeatLevel
    min_confidence: Confidence
    fail_on: Severity
    baseline: Path | None
    hot: tuple[str, ...]
    cache_dir: Path | None  # None: no cache

    def wants(self, finding: Finding) -> bool:
        """Whether a finding is to be shown, as far as rule, file, heat and confidence decide."""
        if finding.code not in self.enabled or not counts(finding, self.min_heat, self.min_confidence):
            return False
        return not any(ignores.cover(finding.code, self.working / finding.path) for ignores in self.file_ignores)


def counts(finding: Finding, heat: HeatLevel, confidence: Confidence) -> bool:
    """Whether it is hot and sure enough; what is said about a suppression has no heat of its own."""
    return finding.code.startswith(OWN_FAMILY) or (finding.heat.level >= heat and finding.confidence >= confidence)


def resolve(options: Options) -> Settings:
    """Read the configuration and combine; a rule or file that does not exist is an error."""
    config = _config(options)
    root = find_root(options.paths, options.working)
    layers = (Layer(config.select, config.ignore, config.extend_select), Layer(options.select, options.ignore, options.extend_select))
    base = config.file.parent if config.file else root
    if config.rule_modules:
        registry.use(config.rule_modules, base)
    _check_rules(config, options)
    return Settings(
        root=root,
        working=options.working,
        config=config,
        enabled=enabled(layers, registry.expand, registry.off()),
        file_ignores=(
            *file_ignores(config.per_file_ignores, base, registry.expand),
            *file_ignores(options.per_file_ignores, options.working, registry.expand),
        ),
        left_out=_left_out(config, options, base),
        min_heat=_first(options.min_heat, config.min_heat, MIN_HEAT),
        min_confidence=_first(options.min_confidence, config.min_confidence, MIN_CONFIDENCE),
        fail_on=_first(options.fail_on, config.fail_on, Severity.WARNING),
        baseline=options.baseline or config.baseline,
        hot=(*config.hot, *options.hot),
        cache_dir=(options.cache_dir or config.cache_dir or root / FOLDER) if options.cache else None,
    )


def _config(options: Options) -> Config:
    if options.config and options.isolated:
        raise UsageError("--config names a configuration and --isolated refuses every one: give one of them")
    if options.config:
        return config_files.read(options.config)
    if options.isolated:
        return Config()
    return config_files.find(common_folder(options.paths) if options.paths else options.working)


def _check_rules(config: Config, options: Options) -> None:
    for key, name in _named(config):
        for problem in _problem(name):
            raise ConfigError(f"{config.file}: `{key}`: {problem}")
    for key, name in _named(options):
        for problem in _problem(name):
            raise UsageError(f"--{key}: {problem}")


def _named(source: Config | Options) -> Iterator[tuple[str, str]]:
    """Every selector that a source uses, with the key that holds it."""
    by_pattern = [name for _, names in source.per_file_ignores for name in names]
    keys = {"select": source.select or (), "ignore": source.ignore, "extend-select": source.extend_select, "per-file-ignores": by_pattern}
    return ((key, name) for key, names in keys.items() for name in names)


def _problem(name: str) -> Iterator[str]:
    try:
        registry.expand(name)
    except ValueError as error:
        yield str(error)


def _left_out(config: Config, options: Options, base: Path) -> LeftOut:
    named = options.exclude if options.exclude is not None else config.exclude
    home = options.working if options.exclude is not None else base
    names = frozenset(name for name in (DEFAULT_EXCLUDE if named is None else named) if _NO_GLOB.isdisjoint(name))
    patterns = (
        (home, tuple(name for name in named or () if name not in names)),
        (base, config.extend_exclude),
        (options.working, options.extend_exclude),
    )
    return LeftOut(tuple(Globs(folder, globs) for folder, globs in patterns if globs), names, options.respect_gitignore)


def _first(option: T | None, configured: T | None, otherwise: T) -> T:
    return option if option is not None else configured if configured is not None else otherwise
