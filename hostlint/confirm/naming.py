"""What a record calls its files, put into the words of somebody who stands in another folder than the project's root."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.confirm.record import Event, Place, Record


def as_seen(record: Record) -> Record:
    """The record with its files named as its findings name them: from the folder in which the program was run."""
    return as_named(record, record.paths)


def as_named(record: Record, paths: Mapping[str, str]) -> Record:
    """`paths` are new names -> the record's."""
    names = {name: path for path, name in paths.items() if path != name}
    if not names:
        return record

    def place(old: Place) -> Place:
        return replace(old, path=names.get(old.path, old.path))

    def event(old: Event) -> Event:
        return replace(old, place=place(old.place), stack=tuple(map(place, old.stack)))

    return replace(
        record,
        events=tuple(map(event, record.events)),
        digests={names.get(name, name): value for name, value in record.digests.items()},
        paths={},
    )
