"""The measuring command: its verdicts, its processes that may hang or die, and the file that it writes."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hostlint.runtime_checks.measure_waits.__main__ import NO_GPU, main
from hostlint.runtime_checks.measure_waits.catalogue import Form
from hostlint.runtime_checks.measure_waits.gpu import Kind, verdict
from hostlint.runtime_checks.measure_waits.output import document, write_whole
from hostlint.runtime_checks.measure_waits.supervisor import LostError, measure_all

SPIN = 0.02
# A worker that measures nothing: form 1 ends it, form 2 hangs, form 3 costs it the GPU.
WORKER = """
import json, os, sys, threading
def say(message):
    print(json.dumps(message), flush=True)
say({"gpu": "none", "process": os.getpid()})
for line in sys.stdin:
    number = int(line)
    if number == 1:
        os._exit(9)
    if number == 2:
        threading.Event().wait()
    say({"entry": {"call": number, "process": os.getpid()}, "names": {}, "fit": number != 3})
    if number == 3:
        sys.exit(3)
"""


@pytest.mark.parametrize(
    ("idle", "behind", "kind"),
    [
        (0.0001, [(0.0201, True)] * 3, Kind.WAIT),
        (0.0001, [(0.0002, False)] * 3, Kind.FREE),
        (0.0001, [(0.0201, True), (0.0201, True), (0.0001, False)], Kind.WAIT),
        (0.0001, [(0.0201, True), (0.0001, False), (0.0001, False)], Kind.FREE),
        (0.0050, [(0.0049, False)] * 3, Kind.FREE),
        (0.0150, [(0.0150, False)] * 3, Kind.HOST_WORK),
        (0.0001, [(0.0050, True)] * 3, Kind.FREE),  # the kernel had ended early: nothing waited for it
    ],
)
def test_a_wait_lasts_until_the_stream_has_drained(idle: float, behind: list[tuple[float, bool]], kind: Kind) -> None:
    found = verdict(0, idle, behind, SPIN)
    assert (found.kind, found.blocks) == (kind, kind is Kind.WAIT)


def test_long_work_of_the_host_outlasts_no_longer_kernel() -> None:
    """A collection of 150 ms before a kernel of 470 ms: it has not seen the stream drain."""
    assert verdict(0, 0.15, [(0.155, False)] * 3, 0.47).kind is Kind.HOST_WORK
    assert verdict(0, 0.15, [(0.48, True)] * 3, 0.47).kind is Kind.WAIT


def test_warnings_of_the_debug_mode_are_counted() -> None:
    found = verdict(2, 0.0001, [(0.02, True)] * 3, SPIN).as_json()
    assert (found["debug_mode_warns"], found["warnings"], found["kind"]) == (True, 2, "device-wait")
    assert verdict(0, 0.0001, [(0.02, True)] * 3, SPIN).debug_mode_warns is False


def form(number: int) -> Form:
    return Form("read", f"call {number}", "pass", ())


def test_what_hangs_or_dies_costs_its_form_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "worker_of_a_test.py").write_text(WORKER, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    machine, *answers = measure_all({number: form(number) for number in range(6)}, "worker_of_a_test", form_s=1.0)
    entries = [answer["entry"] for answer in answers]
    assert machine["gpu"] == "none"
    assert all(isinstance(entry, dict) for entry in entries)
    zero, one, two, three, four, five = (dict(entry) for entry in entries if isinstance(entry, dict))
    assert zero["process"] == machine["process"]
    assert (one["kind"], one["error"], one["call"]) == ("error", "the process ended with status 9", "call 1")
    assert (two["kind"], two["error"], two["blocks"]) == ("error", "no answer within 1 s", None)
    assert (three["call"], four["call"], five["call"]) == (3, 4, 5)
    assert len({zero["process"], three["process"], four["process"]}) == 3
    assert four["process"] == five["process"]


def test_a_worker_that_cannot_start_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "no_worker_of_a_test.py").write_text("raise SystemExit(7)\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    with pytest.raises(LostError, match="ended with status 7"):
        next(measure_all({0: form(0)}, "no_worker_of_a_test"))


def test_the_file_holds_one_call_a_line_and_what_its_names_are() -> None:
    answers = [
        {"entry": {"group": "read", "call": "s.item()", "blocks": True}, "names": {"s": ["float32 0-dim", {"place": "DEVICE"}]}},
        {"entry": {"group": "read", "call": "len(x)", "blocks": False}, "names": {"x": ["float32 [16]", {"place": "DEVICE"}]}},
    ]
    text = document({"gpu": "G", "torch": "2.11", "cuda": "13.0"}, answers)
    found = json.loads(text)
    assert [entry["call"] for entry in found["calls"]] == ["s.item()", "len(x)"]
    assert found["names"] == {"s": "float32 0-dim", "x": "float32 [16]"}
    assert found["facts"] == {"s": {"place": "DEVICE"}, "x": {"place": "DEVICE"}}
    assert (found["gpu"], found["torch"], found["cuda"]) == ("G", "2.11", "13.0")
    assert {"date", "python", "modules", "what"} <= found.keys()
    assert '{"group": "read", "call": "s.item()", "blocks": true}' in [line.strip().rstrip(",") for line in text.splitlines()]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "waits.json"
    write_whole(target, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(target, "new \ud800")
    assert target.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [target]
    write_whole(target, "new")
    assert target.read_text(encoding="utf-8") == "new"


def test_forms_are_listed_without_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "rnn", "--only", "fft"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "rnn\tlstm(seq)" in lines
    assert "fft\ttorch.fft.rfft(x)" in lines
    assert {line.split("\t")[0] for line in lines} == {"rnn", "fft"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hostlint.runtime_checks.measure_waits", "--output", str(tmp_path / "waits.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (2, f"{NO_GPU}\n", "")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_group_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--only", "nothing"])
    assert "invalid choice: 'nothing'" in capsys.readouterr().err
