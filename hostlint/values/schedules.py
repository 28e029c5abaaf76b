"""Schedulers that keep their tables on the host: the times that are handed to them come out of these, and so are the host's."""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.model import Confidence
from hostlint.values import annotated
from hostlint.values.value import Place

if TYPE_CHECKING:
    from hostlint.values.evaluator import Frame

TABLES = {"timestep": "timesteps", "timesteps": "timesteps", "t": "timesteps", "sigma": "sigmas", "sigmas": "sigmas"}


def is_of_host_schedule(frame: Frame, name: str) -> bool:
    """Whether a method asks for a time of the schedule that its own object made on the host."""
    from hostlint.values.members import attribute  # it asks for parameters itself

    owner = frame.evaluator.index.owner(frame.fid)
    if name not in TABLES or owner is None or frame.fuel <= 0:
        return False
    table = attribute(frame, annotated.instance(owner), TABLES[name])
    return table.place is Place.HOST and table.confidence > Confidence.POSSIBLE
