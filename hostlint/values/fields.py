"""Fields of data classes that no method stores: what the class's own builders are given decides where they lie."""
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hostlint.facts.graph import Op
from hostlint.facts.schema import FunctionFlag
from hostlint.model import Confidence
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.index import ClassId
    from hostlint.values.evaluator import Frame


def as_built(frame: Frame, cid: ClassId, declared: Value) -> Value:
    """A field that is declared as a tensor: the host's where all that the builders (`Meta.from_values(v)`) are given is."""
    if declared.place is not Place.TENSOR or frame.fuel <= 1:
        return declared
    given = [value for value in _given(frame, cid) if value.is_tensor]
    if not given or any(value.place is not Place.HOST for value in given):
        return declared
    return replace(declared, place=Place.HOST, why=given[0].why, confidence=Confidence.LIKELY)


def _given(frame: Frame, cid: ClassId) -> Iterator[Value]:
    """What the parameters of the class's builders hold: class methods that are called and hand tensors on to the class."""
    evaluator = frame.evaluator
    for number in evaluator.index.methods(cid).values():
        builder = (cid[0], number)
        if evaluator.index.function(builder).flags & FunctionFlag.CLASS and evaluator.surroundings.callers(builder):
            inner = evaluator.frame(builder, frame.fuel - 1)
            yield from (inner.value(place) for place, node in enumerate(inner.graph.nodes) if node[0] == Op.PARAM and node[2])
