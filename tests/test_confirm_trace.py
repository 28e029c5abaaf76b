"""The trace of a run keeps to the Trace Event Format, as its authors describe it: each phase with its fields, times in microseconds."""
from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from hostlint.confirm.record import Event, Loop, Mark, Pass, Place, Process, Record
from hostlint.report.confirm_trace import render

_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
_COMMON = {"name": _TEXT, "ph": _TEXT, "pid": _NUMBER, "tid": _NUMBER, "args": {"type": "object"}}
_TIMED = {**_COMMON, "cat": _TEXT, "ts": {"type": "number", "minimum": 0}}
_NAMED = {
    "process_name": {"name": _TEXT}, "process_labels": {"labels": _TEXT}, "process_sort_index": {"sort_index": _NUMBER},
    "thread_name": {"name": _TEXT}, "thread_sort_index": {"sort_index": _NUMBER},
}  # fmt: skip


def _phase(phase: str, properties: dict[str, Any], *required: str) -> dict[str, Any]:
    needed = ["name", "ph", "pid", "tid", *required]
    return {"type": "object", "properties": {**properties, "ph": {"const": phase}}, "required": needed, "additionalProperties": False}


# From the published description: the object form, complete events (X), instants (i) with their scope, metadata (M) by name.
SCHEMA = {
    "type": "object",
    "required": ["traceEvents"],
    "additionalProperties": False,
    "properties": {
        "traceEvents": {
            "type": "array",
            "items": {
                "oneOf": [
                    _phase("X", {**_TIMED, "dur": {"type": "number", "minimum": 0}}, "ts", "dur"),
                    _phase("i", {**_TIMED, "s": {"enum": ["g", "p", "t"]}}, "ts"),
                    *(
                        _phase("M", {**_COMMON, "name": {"const": name}, "args": {
                            "type": "object", "properties": argument, "required": list(argument), "additionalProperties": False,
                        }}, "args")
                        for name, argument in _NAMED.items()
                    ),
                ]
            },
        },
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "otherData": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}  # fmt: skip


def event(call: str, blocked_s: float | None, kind: str = "read", **given: Any) -> Event:
    settings: dict[str, Any] = {
        "place": Place("train.py", 6, "train"), "stack": (), "fact": None, "allowed": None, "count": 2, "waits": 2, "blocked_s": blocked_s,
        "bytes": 0, "threads": ("MainThread",), "ranks": {"": 2}, "most": 2, **given,
    }  # fmt: skip
    return Event(kind=kind, call=call, **settings)


def process(pid: int, marks: tuple[Mark, ...], began_s: float = 50.0, **given: Any) -> Process:
    settings: dict[str, Any] = {"rank": "", "threads": ("MainThread", "loader"), "torch": "2.13.0", "device": "cuda", **given}
    return Process(pid=pid, parent=1, how="started", arguments=("/usr/bin/python3", "train.py"), python="3.11.7", began_s=began_s,
                   marks=marks, **settings)  # fmt: skip


def record(blocked_s: float | None = 0.02, **given: Any) -> Record:
    marks = (Mark(0, 1.0, blocked_s or 0.0, 0), Mark(1, 1.5, 0.0, 1), Mark(0, 2.0, blocked_s or 0.0, 0))
    passes = (Pass(0, 0.75), Pass(0, 1.75))
    settings: dict[str, Any] = {
        "program": ("train.py",), "device": "cuda", "exit": 0, "loops": (Loop("train.py", 6, 2),),
        "events": (event("Tensor.item", blocked_s), event("Tensor.to", blocked_s, "upload", allowed="on purpose")),
        "processes": (process(7, marks, passes=passes), process(8, marks, 50.25, rank="1")), "explained": ((0,), ()),
        "findings": ({"code": "HL101", "name": "device-item"},), **given,
    }  # fmt: skip
    return Record(**settings)


def traced(made: Record) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(render(made, False))
    jsonschema.validate(read, SCHEMA)
    return read


def having(read: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    return [one for one in read["traceEvents"] if one["ph"] == phase]


def test_events_are_complete_ones_on_the_clock_that_the_processes_share() -> None:
    complete = having(traced(record()), "X")
    assert [(one["pid"], one["tid"], one["name"], one["ts"], one["dur"]) for one in complete] == [
        (7, 1, "Tensor.item", 1_000_000, 20_000),
        (8, 1, "Tensor.item", 1_250_000, 20_000),
        (7, 2, "Tensor.to", 1_500_000, 0),
        (8, 2, "Tensor.to", 1_750_000, 0),
        (7, 1, "Tensor.item", 2_000_000, 20_000),
        (8, 1, "Tensor.item", 2_250_000, 20_000),
    ]
    assert complete[0]["args"] == {
        "kind": "read", "place": "train.py:6 in train", "standing": "explained", "findings": ["HL101 device-item"],
    }  # fmt: skip
    assert complete[2]["args"]["allowed"] == "on purpose"


def test_processes_and_threads_have_names() -> None:
    named = {(one["name"], one["pid"], one["tid"]): next(iter(one["args"].values())) for one in having(traced(record()), "M")}
    assert named["process_name", 7, 0] == "python3 train.py"
    assert named["process_name", 8, 0] == "rank 1 python3 train.py"
    assert named["thread_name", 8, 2] == "loader"


def test_steps_are_instants() -> None:
    instants = having(traced(record()), "i")
    assert [(one["name"], one["pid"], one["ts"]) for one in instants] == [("step 1", 7, 750_000), ("step 2", 7, 1_750_000)]
    marks = (Mark(-1, 0.5, 0.0, 0), Mark(0, 1.0, 0.0, 0))
    marked = having(traced(record(processes=(process(7, marks, steps=1),))), "i")
    assert [(one["name"], one["ts"]) for one in marked] == [("step 1", 500_000)]


def test_a_process_that_took_anothers_number_is_told_apart() -> None:
    one = process(7, (Mark(0, 1.0, 0.0, 0),))
    assert len({found["pid"] for found in having(traced(record(processes=(one, one))), "X")}) == 2


def test_the_stand_in_says_that_it_knows_no_lengths() -> None:
    complete = having(traced(record(None, device="simulated")), "X")
    assert {one["dur"] for one in complete} == {0}
    assert {one["args"]["blocked"] for one in complete} == {"not known on a stand-in"}


@pytest.mark.parametrize("processes", [(), (process(7, ()),)])
def test_an_empty_run_is_a_trace_too(processes: tuple[Process, ...]) -> None:
    assert having(traced(record(events=(), explained=(), processes=processes)), "X") == []
