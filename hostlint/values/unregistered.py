"""Host memory whose registration with the device is taken back while a copy that does not block may still read it."""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.model import Confidence
from hostlint.values import order
from hostlint.values.judging import Meeting
from hostlint.values.rebuilt import site_of
from hostlint.values.value import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.facts.schema import Call
    from hostlint.facts.spans import Places
    from hostlint.index import FunctionId
    from hostlint.values.evaluator import Evaluator, Frame

FREES = frozenset({"cudaHostUnregister", "hipHostUnregister", "cudaFreeHost", "hipHostFree"})
UPLOADS = frozenset({"to", "cuda", "copy_"})
RACE = "not a wait but a race: the copy reads the pages when the device gets to it"


class Unregistered:
    """Finds them in one function, in the order of its text."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def meetings(self, fid: FunctionId, places: Places) -> Iterator[Meeting]:
        outline = self._evaluator.index.function(fid)
        for call in outline.calls:
            if call.chain.rpartition(".")[2] in FREES and call.node >= 0:
                frame = self._evaluator.frame(fid)
                copy = next((each for each in reversed(outline.calls) if each.node < call.node and _uploads(frame, each)), None)
                spot = places(call, outline.calls) if copy is not None and not _waits(frame, copy, call) else None
                if copy is not None and spot is not None:
                    why = f"line {copy.line} copies with `non_blocking=True`, and nothing waits in between"
                    yield Meeting(FactKind.PINNED_FREED, site_of(call, spot), call.chain, why, Confidence.LIKELY, RACE, wrong=True)


def _uploads(frame: Frame, call: Call) -> bool:
    """A copy to the device that does not block."""
    if call.node < 0 or not order.is_non_blocking(frame, call.node):
        return False
    name, receiver = order.method(frame, call.node)
    onto = receiver if name == "copy_" else call.node
    return name in UPLOADS and frame.value(onto).place is not Place.HOST


def _waits(frame: Frame, after: Call, before: Call) -> bool:
    return any(after.node < call.node < before.node and order.call_waits(frame, call) for call in frame.outline.calls)
