"""Every call that was measured on a GPU follows from the table: a reader that knows nothing but the table predicts which of them wait."""
from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hostlint.torch_ops
from hostlint.torch_ops import function, method
from hostlint.torch_ops.expressions import Reader
from hostlint.torch_ops.table import index
from hostlint.torch_ops.typed import from_facts

if TYPE_CHECKING:
    from hostlint.torch_ops.spec import Op, Wait

FOLDER = Path(hostlint.torch_ops.__file__).parent
MEASURED = json.loads((FOLDER / "waits_h200.json").read_text(encoding="utf-8"))
ENTRIES = {entry["call"]: entry for entry in MEASURED["calls"]}
MODULES = {**MEASURED["modules"], "dist": "torch.distributed"}
NAMES = {name: from_facts(known) for name, known in MEASURED["facts"].items()}
KINDS = ("free", "device-wait", "host-work", "error")

# Where the table says something else than the measurement, and why it stays so.
EXCEPTIONS = {
    "torch.equal(x, X)": "other shapes are unequal without a look at the values",
    "x.equal(x)": "a tensor equals itself without a look at the values",
    "x.index_put_((hm,), s)": "a host mask is expanded on the host; the table tells a list's host tensors from none, not their types",
    "x.untyped_storage().cpu()": "storages are no tensors to the table",
    "x.untyped_storage().tolist()": "storages are no tensors to the table",
    "torch.nn.Linear(8, 8).to(d)": "the table does not follow where a module's parameters live",
    "lin.load_state_dict(host_state)": "the table does not follow where a module's parameters live",
    "lin_host.load_state_dict(loaded_state)": "the table does not follow where a module's parameters live",
    "torch.save(lin.state_dict(), io.BytesIO())": "the table does not follow where a module's parameters live",
    "torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(8, 8, device=d))(seq)": "forward of a parametrized module",
    "lin_reading(seq).sum().backward()": "a hook of the program reads",
    "w.prod().backward()": "a backward function that reads; the table speaks of forward calls",
    "torch.linalg.norm(A, 2)": "the value of the order decides, no condition asks for numbers",
    "torch.linalg.norm(A, 'nuc')": "the value of the order decides, no condition asks for numbers",
    "torch.linalg.matrix_norm(A, 2)": "the value of the order decides, no condition asks for numbers",
    "torch.linalg.matrix_norm(A, 'nuc')": "the value of the order decides, no condition asks for numbers",
    "torch.linalg.matrix_power(A, -1)": "the sign of the power decides, no condition asks for numbers",
    "sp.coalesce()": "it is coalesced already",
    "jagged.unbind()": "nested layouts are not told apart",
    "jagged.to_padded_tensor(0.0)": "nested layouts are not told apart",
    "sync_bn(img3)": "without a process group it is a plain batch norm",
    "scaler.get_scale()": "nothing has been scaled: the scale is still a number",
    "scaler.state_dict()": "nothing has been scaled: the scale is still a number",
    "scaler.scale(s); scaler.step(opt_adamw_fused); scaler.update()": "a fused optimizer checks on the device",
    "file_dev.seek(0); torch.load(file_dev)": "the file decides where its tensors go",
    "huge_alloc_free()": "a flush is a pause, of another family of rules",
    "256 MiB: torch.empty(...); empty_cache()": "a flush is a pause, of another family of rules",
    "2 MiB: torch.empty(...); empty_cache()": "a flush is a pause, of another family of rules",
    "ev.record(side); ev.synchronize()": "it waits for another stream than the busy one",
    "side.synchronize()": "it waits for another stream than the busy one",
    "with torch.cuda.stream(side): x.cpu()": "it waits for another stream than the busy one",
    "torch.cuda.graph(torch.cuda.CUDAGraph())": "entering the capture waits, making the context does not",
    "dist.all_reduce(x, group=gloo)": "the group's backend decides",
    "dist.monitored_barrier(gloo)": "the group's backend decides",
    "dist.all_gather_object([None], 1, group=gloo)": "the group's backend decides",
    "dist.broadcast_object_list([1], 0, group=gloo)": "the group's backend decides",
    "dist.barrier(gloo)": "the group's backend decides",
}


def waits_in(call: str) -> list[Wait]:
    reader = Reader(NAMES, MODULES)
    for statement in ast.parse(ENTRIES[call].get("source", call)).body:
        reader.visit(statement)
    return reader.waits


def every_op() -> list[Op]:
    names = index()
    found = [function(name) for name in names.functions if not name.endswith("*")] + [method(name) for name in names.methods]
    return [op for op in found if op is not None]


@pytest.mark.parametrize("group", sorted({entry["group"] for entry in MEASURED["calls"]}))
def test_the_table_predicts_the_measured_calls(group: str) -> None:
    entries = [entry for entry in MEASURED["calls"] if entry["group"] == group and entry["kind"] != "error"]
    predicted = {entry["call"]: bool(waits_in(entry["call"])) for entry in entries}
    measured = {entry["call"]: entry["blocks"] for entry in entries}
    differ = {call for call in measured if measured[call] is not predicted[call]}
    assert differ == EXCEPTIONS.keys() & measured.keys()


def test_the_exceptions_are_few_and_measured() -> None:
    assert EXCEPTIONS.keys() <= ENTRIES.keys()
    assert len(EXCEPTIONS) <= 0.02 * len(ENTRIES)


def test_what_waits_does_so_by_an_entry_that_was_measured() -> None:
    waiting = [entry["call"] for entry in MEASURED["calls"] if entry["blocks"] and entry["call"] not in EXCEPTIONS]
    believed = [call for call in waiting if not any(wait.measured for wait in waits_in(call))]
    assert believed == []


def test_every_entry_marked_as_measured_cites_a_call_that_blocked() -> None:
    cited = {wait.evidence for op in every_op() for wait in op.waits if wait.measured}
    assert cited <= {call for call, entry in ENTRIES.items() if entry["blocks"]}
    assert len(cited) > 350


def test_the_measurement_is_whole() -> None:
    """The forms of the torch that users meet, each once, with a verdict or the error that it raises."""
    assert len(ENTRIES) == len(MEASURED["calls"]) > 2000
    for entry in MEASURED["calls"]:
        assert entry["kind"] in KINDS
        assert (entry["blocks"] is None) is (entry["kind"] == "error") is ("error" in entry), entry
        assert (entry["blocks"] is True) is (entry["kind"] == "device-wait"), entry
        assert entry["debug_mode_warns"] is None or entry["debug_mode_warns"] is (entry["warnings"] > 0), entry


def test_a_wait_took_as_long_as_the_spin_kernel_and_what_is_free_did_not() -> None:
    kinds = Counter(entry["kind"] for entry in MEASURED["calls"])
    assert kinds["device-wait"] > 700
    assert kinds["error"] < 0.02 * len(ENTRIES)
    shortest = min(entry["busy_s"] for entry in MEASURED["calls"] if entry["kind"] == "device-wait")
    longest = max(entry["busy_s"] for entry in MEASURED["calls"] if entry["kind"] == "free")
    assert longest < 0.015 < 0.018 < shortest


def test_the_debug_mode_is_silent_on_some_waits() -> None:
    silent = {entry["call"] for entry in MEASURED["calls"] if entry["blocks"] and not entry["debug_mode_warns"]}
    assert {"hbig.to(d, non_blocking=True)", "h.copy_(x, non_blocking=True)", "spu.coalesce()", "torch.cuda.synchronize()"} <= silent
    assert "s.item()" not in silent


def test_sizes_of_copies_that_wait() -> None:
    sizes = json.loads((FOLDER / "pageable_h200.json").read_text(encoding="utf-8"))
    assert sizes["smallest_with_wait"] == sizes["largest_without_wait"] + 1 == 2_097_153
    assert all(waits is (int(size) > sizes["largest_without_wait"]) for size, waits in sizes["pageable"].items())
    assert set(sizes["pageable_down"].values()) == {True}
    assert set(sizes["pinned"].values()) | set(sizes["pinned_down"].values()) == {False}
