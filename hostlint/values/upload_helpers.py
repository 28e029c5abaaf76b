"""A loader's batch that a helper of the project uploads: who leaves its `non_blocking` out makes the host wait for every tensor in it."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hostlint.facts.calls import BY_HELPER, UPLOAD_HELPER
from hostlint.facts.kinds import FactKind
from hostlint.model import Confidence
from hostlint.values.detail import Function, Instance, Literal
from hostlint.values.judging import Meeting
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.facts.graph import Site
    from hostlint.values.arguments import Argument
    from hostlint.values.evaluator import Frame

FLAG = "non_blocking"
# What a loader hands out; what a module is given has most often been moved before.
BATCH = re.compile(r"(^|[._])(batch|batches|minibatch|micro_?batch|samples?|examples?)$", re.IGNORECASE)
MEASURED = "measured on an H200 with torch 2.11: `hs.to(d)`"


def left_blocking(
    frame: Frame, callee: Value, arguments: Sequence[Argument], keywords: Sequence[tuple[str, Argument]], site: Site
) -> Meeting | None:
    """`send_to_device(batch, device)` where the helper takes `non_blocking` and does not set it by itself."""
    detail, name = callee.detail, site.detail.rpartition(".")[2]
    if not isinstance(detail, Function) or not UPLOAD_HELPER.match(name) or not arguments:
        return None
    params = frame.evaluator.index.function(detail.function).params
    place = next((number for number, param in enumerate(params) if param.name == FLAG), -1)
    given = place < len(arguments) or FLAG in dict(keywords)
    if place < 0 or given or not _is_off(frame, detail.function, params[place].default) or not _is_batch(arguments[0].value, site.subject):
        return None
    evidence = f"`{site.subject}` comes from a loader by its name, and `{name}` copies with `{FLAG}=False` where nobody sets it"
    return Meeting(FactKind.BLOCKING_UPLOAD, site, name, evidence, Confidence.LIKELY, MEASURED, BY_HELPER)


def _is_batch(value: Value, name: str) -> bool:
    elsewhere = value.is_device or value.place in (Place.HOST, Place.NUMPY) or isinstance(value.detail, (Instance, Literal))
    return not elsewhere and bool(BATCH.search(name))


def _is_off(frame: Frame, function: tuple[int, int], default: int) -> bool:
    if default < 0:
        return False
    parent = frame.evaluator.index.function(function).parent
    detail = frame.evaluator.frame((function[0], parent)).value(default).detail
    return isinstance(detail, Literal) and detail.value is False
