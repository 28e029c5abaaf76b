"""The options of every command that scans."""
from __future__ import annotations

from pathlib import Path

import click

from hostlint.cli.sections import Section, pattern_rules, together
from hostlint.config.keys import CONFIDENCES, HEATS, SEVERITIES
from hostlint.report.base import FORMATS

_FILE = click.Path(path_type=Path)
_RULES = Section("Rules")
_FILES = Section("Files and configuration")
_COUNTS = Section("What counts")
_REPORT = Section("Report")
_FIXES = Section("Fixes")
_PROGRAM = Section("The program")
_RUN = Section("The run")
_COLOR = _REPORT.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colours; auto: on a terminal.")

which_findings = together(
    _RULES.names("--select", "RULE,...", "Only these rules: names, codes, code prefixes, ALL.", replaces=True),
    _RULES.names("--ignore", "RULE,...", "Not these rules."),
    _RULES.names("--extend-select", "RULE,...", "These rules too."),
    _RULES.option(
        "--per-file-ignores",
        multiple=True,
        callback=pattern_rules,
        metavar="PATTERN:RULE,...",
        help="Not these rules in the files of a pattern.",
    ),
    _FILES.option("--config", type=_FILE, metavar="FILE", help="Read this configuration instead of the nearest one."),
    _FILES.option("--isolated", is_flag=True, help="Read no configuration."),
    _FILES.names("--exclude", "GLOB,...", "Leave these out, instead of the usual ones.", replaces=True),
    _FILES.names("--extend-exclude", "GLOB,...", "Leave these out too."),
    _FILES.option("--respect-gitignore/--no-respect-gitignore", default=True, help="Leave out what git ignores.  [default: yes]"),
    _COUNTS.option("--min-heat", type=click.Choice(list(HEATS)), help="How often a place must run.  [default: call]"),
    _COUNTS.option("--min-confidence", type=click.Choice(list(CONFIDENCES)), help="How sure a finding must be.  [default: likely]"),
    _COUNTS.option("--hot", multiple=True, metavar="MODULE:NAME", help="Take this function as called in every step."),
)

what_to_scan = together(
    click.argument("paths", nargs=-1, metavar="[PATH]..."),
    which_findings,
    _FILES.option("--stdin-filename", metavar="NAME", help="The file that the program on standard input (`-`) stands for."),
)

what_fails = together(
    _COUNTS.option("--fail-on", type=click.Choice(list(SEVERITIES)), help="The least severity for exit status 1.  [default: warning]"),
    _COUNTS.option("--exit-zero", is_flag=True, help="Exit with 0 although there are findings."),
    _COUNTS.option("--baseline", type=_FILE, metavar="FILE", help="Leave out the findings that this file knows."),
    _COUNTS.option("--record", type=_FILE, metavar="FILE", help="Take verdicts, and severities, from a run that `confirm` kept."),
)

how_to_report = together(
    what_fails,
    _REPORT.option("--output-format", type=click.Choice(list(FORMATS)), default="full", help="The report's form.  [default: full]"),
    _REPORT.option("--output-file", type=_FILE, metavar="FILE", help="Write the report there, whole or not at all."),
    _REPORT.option("--statistics", is_flag=True, help="Count the findings of each rule instead."),
    _COLOR,
)

how_to_fix = together(
    _FIXES.option("--review", is_flag=True, help="Also apply the fixes that rest on an assumption, to be reviewed."),
    _FIXES.option("--diff", is_flag=True, help="Print what would change, write nothing; exit with 1 if anything would."),
    _FIXES.option("--baselined", is_flag=True, help="Also fix what the baseline knows."),
    what_fails,
    _COLOR,
)

confirm_runs = together(
    _PROGRAM.option("-m", "module", is_flag=True, help="Run a module, as `python -m` does."),
    _PROGRAM.option("--scan", multiple=True, metavar="PATH", help="What to scan, and to tell apart from libraries.  [default: here]"),
    _PROGRAM.option(
        "--device",
        type=click.Choice(["auto", "cuda", "simulated"]),
        default="auto",
        help="A real GPU, or a stand-in on the CPU.  [default: auto: the GPU where there is one]",
    ),
    _PROGRAM.option(
        "--warmup", type=click.IntRange(min=0), default=0, metavar="N", help="Leave out so many steps, or calls at a place.  [default: 0]"
    ),
    _PROGRAM.option("--record", type=_FILE, metavar="FILE", help="Keep the record, for `report` and `scan --record`."),
    _PROGRAM.option("--fail-on-events", is_flag=True, help="Exit with 1 if your own code made the host wait and nothing allows that."),
)

confirm_reports = together(
    _REPORT.option(
        "--output-format", type=click.Choice(["text", "json", "html", "trace"]), default="text", help="The report's form.  [default: text]"
    ),
    _REPORT.option("--output-file", type=_FILE, metavar="FILE", help="Write the report there, whole or not at all."),
    _REPORT.option("--html", type=_FILE, metavar="FILE", help="Write a page to look at, too."),
    _COLOR,
)

the_run = together(
    _RUN.option("--no-cache", is_flag=True, help="Keep nothing for the next run, and use nothing of the last."),
    _RUN.option("--cache-dir", type=_FILE, metavar="DIR", help="Where to keep it.  [default: .hostlint_cache]"),
    _RUN.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes to use.  [default: all processors]"),
    _RUN.option("-q", "--quiet", is_flag=True, help="Say nothing beside the report."),
    _RUN.option("-v", "--verbose", is_flag=True, help="Say what is read, and how long it takes."),
)
