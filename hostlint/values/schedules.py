"""Schedules of denoising steps: tables that schedulers keep on the host, and what a pipeline library's helper hands out."""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.model import Confidence
from hostlint.values.detail import Items
from hostlint.values.lattice import INTEGER, UNKNOWN, is_none
from hostlint.values.value import Place, Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hostlint.index import ClassId
    from hostlint.values.arguments import Argument
    from hostlint.values.evaluator import Frame

RETRIEVER = "retrieve_timesteps"  # of diffusers' pipelines, which many take over: (scheduler, steps, device, …) -> timesteps, their number
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


def retrieved(arguments: Sequence[Argument], keywords: Mapping[str, Argument]) -> Value:
    """What the library's helper returns: timesteps where it is told to put them, and how many there are."""
    device = arguments[2] if len(arguments) > 2 else keywords.get("device")
    if device is None or is_none(device.value):
        return UNKNOWN
    times = Value(Place.DEVICE, "the schedule is retrieved onto the device", Confidence.LIKELY, vector=True, rank0=False, bare=True)
    return Value(Place.PYTHON, detail=Items("tuple", (times, INTEGER)))
