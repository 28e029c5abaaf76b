"""Schedulers that keep their tables on the host: the times that are handed to them come out of these, and so are the host's."""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.values.value import Place

if TYPE_CHECKING:
    from hostlint.index import ClassId
    from hostlint.values.evaluator import Frame

TABLES = {"timestep": "timesteps", "timesteps": "timesteps", "t": "timesteps", "sigma": "sigmas", "sigmas": "sigmas"}


def is_of_host_schedule(frame: Frame, name: str) -> bool:
    """Whether a method asks for a time of the schedule that its own object made on the host, if only out of other numbers of the host."""
    owner = frame.evaluator.index.owner(frame.fid)
    if name not in TABLES or owner is None or frame.fuel <= 0:
        return False
    places = _stored(frame, owner, TABLES[name])
    if not places or Place.DEVICE in places:
        return False
    others = _stored(frame, owner, "sigmas")
    return Place.HOST in places or (Place.HOST in others and Place.DEVICE not in others)


def _stored(frame: Frame, owner: ClassId, table: str) -> set[Place]:
    """Where what the object stores under that name lives, store by store: a table that is scaled in place is made of itself."""
    stores = frame.evaluator.index.attribute_stores(owner, table)
    return {frame.evaluator.frame(fid, frame.fuel - 1).value(node).place for fid, node, _ in stores}
