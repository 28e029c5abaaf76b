"""Showing a record: what `confirm` and `report` have in common."""
from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hostlint.cli import output
from hostlint.cli.scan import coloured
from hostlint.confirm.naming import as_seen

if TYPE_CHECKING:
    from hostlint.confirm.record import Record

# Name on the command line -> module that holds `render`; imported only when asked for.
FORMS = {"text": "confirm_text", "json": "confirm_json", "html": "confirm_html", "trace": "confirm_trace"}


def show(record: Record, given: Mapping[str, Any]) -> None:
    """Writes the report that the options ask for, and the page of --html beside it."""
    record = as_seen(record)
    in_colours = coloured(given["color"], None if given["output_file"] else sys.stdout)
    output.write(render(record, given["output_format"], in_colours), given["output_file"])
    if given.get("html"):
        output.write(render(record, "html", False), given["html"])


def render(record: Record, form: str, in_colours: bool) -> str:
    text: str = import_module(f"hostlint.report.{FORMS[form]}").render(record, in_colours)
    return text
