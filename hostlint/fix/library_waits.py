"""Fixes of waits inside a library's call: draws by the formula that reads nothing, metrics that do not check what they are given."""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.fix.calls import follow, is_handled, with_argument
from hostlint.model import Applicability
from hostlint.values.detail import ExternalInstance

if TYPE_CHECKING:
    from hostlint.fix.place import Place
    from hostlint.model import Fix

DRAWN_BY_FORMULA = frozenset({"Normal"})  # `rsample` makes `loc + eps * scale`, in the steps in which `sample` does


def without_wait(place: Place) -> Fix | None:
    """`force.sample()` to `force.rsample().detach()`; `Accuracy(num_classes=n)` to `Accuracy(num_classes=n, validate_args=False)`."""
    import libcst as cst

    match place.node:
        case cst.Call(func=cst.Attribute(attr=cst.Name("sample") as method)) as call:
            drawn = place.known.receiver.detail
            if not isinstance(drawn, ExternalInstance) or drawn.classes[0] not in DRAWN_BY_FORMULA:
                return None
            message = "draw by the same formula, where mean and scale are of one dtype: a negative scale or NaN then does not raise"
            return place.fix(Applicability.REVIEW, message, place.replace("rsample", method), follow(place, call, ".detach()"))
        case cst.Call() as call if place.known.callee.startswith("torchmetrics.") and not is_handled(place):
            if any(one.star or (one.keyword is not None and one.keyword.value == "validate_args") for one in call.args):
                return None
            message = "do not check what is counted: wrong input (labels out of range) then gives wrong numbers instead of an error"
            return place.fix(Applicability.REVIEW, message, with_argument(place, call, "validate_args=False"))
    return None
