"""`hostlint confirm` from the command line, on the stand-in: programs keep their ways, and the record is right however they end."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

TRAIN = """\
import sys
import torch
from torch import nn
from hostlint.runtime_checks import allow


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        scale = torch.tensor(0.5, device=x.device)
        return self.layer(x) * scale


def train(steps, log):
    device = torch.device("cuda")
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        loss = model(torch.randn(2, 4, device=device)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if log:
            print(loss.item())
        value = float(
            loss.detach()
        )
        with allow("the number is the product"):
            loss.tolist()
        if isinstance(loss, float) and loss.item() > 3:
            print("never")
    return value


train(int(sys.argv[1]), log=False)
print("done")
"""
WILD = """\
import multiprocessing, os, sys, threading, warnings
import torch


def read(x, times):
    for _ in range(times):
        x.sum().item()


def child():
    read(torch.ones(3, device="cuda"), 5)


if __name__ == "__main__":
    assert sys.argv[1:] == ["--lr", "3", "-m", "x"], sys.argv
    warnings.simplefilter("error")
    warnings.showwarning = None
    x = torch.ones(3, device="cuda")
    os.chdir("/")
    threads = [threading.Thread(target=read, args=(x, 3)) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pid = os.fork()
    if pid == 0:
        read(x, 7)
        os._exit(0)
    os.waitpid(pid, 0)
    process = multiprocessing.get_context("spawn").Process(target=child)
    process.start()
    process.join()
    sys.stdout.buffer.write(b"\\xff\\x00binary")
    sys.stdout.flush()
    read(x, 2)
    os._exit(4)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "hostlint.toml").write_text("")
    return tmp_path


def confirm(project: Path, *arguments: str, **given: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "hostlint", "confirm", "--device", "simulated", "--no-cache", "--record", "record.json", *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, check=False, **given)


def recorded(project: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((project / "record.json").read_text(encoding="utf-8"))
    return read


def waits(record: dict[str, Any]) -> dict[tuple[str, int], int]:
    return {(one["call"], one["place"]["line"]): one["count"] for one in record["events"] if one["kind"] not in ("collect", "flush")}


def test_findings_get_verdicts_and_every_wait_is_explained(project: Path) -> None:
    (project / "train.py").write_text(TRAIN)
    done = confirm(project, "train.py", "6")
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    assert text.startswith("done\n")
    assert "Every wait of the steps in the scanned files has its finding, or a reason." in text
    record = recorded(project)
    verdicts = {(one["code"], one["line"]): (one["confirmed"]["verdict"], one["confirmed"]["count"]) for one in record["findings"]}
    assert verdicts[("HL201", 13)] == ("confirmed", 6)
    assert verdicts[("HL101", 27)] == ("not-reached", 0)
    assert verdicts[("HL102", 28)] == ("confirmed", 6)
    assert {one["confirmed"]["per_step"] for one in record["findings"] if one["line"] in (13, 28)} == {1.0}
    allowed = [one for one in record["events"] if one["allowed"]]
    assert [(one["call"], one["count"], one["allowed"]) for one in allowed] == [("Tensor.tolist", 6, "the number is the product")]
    assert [record["events"][number]["call"] for number in record["setup"]] == ["Module.to"]
    again = subprocess.run([sys.executable, "-m", "hostlint", "report", "record.json"], cwd=project, capture_output=True, check=True)
    assert f"done\n{again.stdout.decode()}" == text


def test_work_that_is_redone_is_counted_by_its_arguments(project: Path) -> None:
    (project / "main.py").write_text(
        "import torch\nfrom torch import nn\n\n\n@torch.no_grad()\ndef denoise(model, latents, mask, steps):\n"
        "    for t in range(steps):\n        weights = mask.float()\n        latents = latents - model(latents) * weights\n"
        "    return latents\n\n\n"
        "mask = torch.ones(4, dtype=torch.bool, device='cuda')\n"
        "denoise(nn.Linear(4, 4).cuda(), torch.randn(2, 4, device='cuda'), mask, 8)\n"
    )
    confirm(project, "main.py")
    (finding,) = [one for one in recorded(project)["findings"] if one["code"] == "HL302"]
    assert (finding["line"], finding["confirmed"]["verdict"], finding["confirmed"]["count"]) == (8, "redone", 7)


def test_warm_up_is_left_out(project: Path) -> None:
    (project / "train.py").write_text(TRAIN)
    confirm(project, "--warmup", "4", "train.py", "6")
    record = recorded(project)
    assert waits(record) == {("torch.tensor", 13): 2, ("Tensor.__float__", 28): 2, ("Tensor.tolist", 32): 2}
    assert {one["confirmed"]["per_step"] for one in record["findings"] if one["line"] in (13, 28)} == {1.0}


def test_a_program_with_ways_of_its_own_is_recorded_whole(project: Path) -> None:
    (project / "wild.py").write_text(WILD)
    done = confirm(project, "--output-format", "json", "--output-file", "out.json", "wild.py", "--lr", "3", "-m", "x")
    assert (done.returncode, done.stdout, done.stderr) == (4, b"\xff\x00binary", b"")
    record = recorded(project)
    assert waits(record) == {("Tensor.item", 7): 64 * 3 + 7 + 5 + 2}
    assert sorted(one["how"] for one in record["processes"] if one["device"]) == ["forked", "started", "started"]
    assert record["exit"] == 4
    report = json.loads((project / "out.json").read_text(encoding="utf-8"))
    assert (report["version"], report["unpredicted"]) == (1, [])


@pytest.mark.parametrize(
    ("ending", "status", "words"),
    [
        ("raise KeyError('x')", 1, b"KeyError"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, b""),
    ],
)
def test_a_program_that_dies_loses_nothing(project: Path, ending: str, status: int, words: bytes) -> None:
    (project / "main.py").write_text(f"import torch\nfor _ in range(9):\n    torch.ones(1, device='cuda').item()\n{ending}\n")
    done = confirm(project, "main.py")
    assert done.returncode == status
    assert words in done.stderr
    assert waits(recorded(project)) == {("Tensor.item", 3): 9}


def test_ctrl_c_ends_the_program_and_the_record_is_kept(project: Path) -> None:
    (project / "pkg").mkdir()
    (project / "pkg" / "__init__.py").write_text("")
    (project / "pkg" / "__main__.py").write_text(
        "import sys, time\nimport torch\nfor _ in range(3):\n    torch.ones(1, device='cuda').item()\n"
        "open('ready', 'w').close()\nassert sys.argv[1:] == ['--help']\ntime.sleep(600)\n"
    )
    command = [sys.executable, "-m", "hostlint", "confirm", "--device", "simulated", "--record", "record.json", "-m", "pkg", "--help"]
    running = subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    while not (project / "ready").exists():
        assert running.poll() is None
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)
    _, errors = running.communicate(timeout=120)
    assert b"KeyboardInterrupt" in errors
    assert running.returncode == -signal.SIGINT
    assert waits(recorded(project)) == {("Tensor.item", 4): 3}


def test_steps_that_the_program_marks_count(project: Path) -> None:
    (project / "main.py").write_text(
        "import torch\nfrom hostlint.runtime_checks import step\nx = torch.ones(3, device='cuda')\n"
        "for _ in range(5):\n    step()\n    x.sum().item()\n    x.tolist()\n    print(x.nonzero().shape)\n"
    )
    confirm(project, "--warmup", "1", "main.py")
    record = recorded(project)
    assert sum(one["steps"] for one in record["processes"]) == 4
    assert waits(record) == {("Tensor.item", 6): 4, ("Tensor.tolist", 7): 4, ("Tensor.nonzero", 8): 4}


def test_ranks_are_merged_and_told_apart(project: Path) -> None:
    (project / "main.py").write_text(
        "import os, subprocess, sys\n"
        "if 'RANK' not in os.environ:\n"
        "    ranks = [subprocess.Popen([sys.executable, __file__], env={**os.environ, 'RANK': str(rank)}) for rank in range(2)]\n"
        "    sys.exit(max(rank.wait() for rank in ranks))\n"
        "import torch\n"
        "for _ in range(3 if os.environ['RANK'] == '0' else 1):\n"
        "    torch.ones(1, device='cuda').item()\n"
    )
    done = confirm(project, "main.py")
    assert done.returncode == 0, done.stderr
    (event,) = [one for one in recorded(project)["events"] if one["kind"] == "read"]
    assert (event["count"], event["ranks"]) == (4, {"0": 3, "1": 1})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.py"], "there is no script nowhere.py"),
        (["--record", "no/folder.json", "train.py"], "no/folder.json"),
        (["--devise", "cuda", "train.py"], "--devise"),
        ([], "missing argument"),
    ],
)
def test_a_wrong_call_runs_nothing(project: Path, arguments: list[str], message: str) -> None:
    (project / "train.py").write_text("open('ran', 'w')\n")
    command = [sys.executable, "-m", "hostlint", "confirm", *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message.lower() in done.stderr.lower()
    assert not (project / "ran").exists()


def test_a_program_without_torch_says_so(project: Path) -> None:
    (project / "main.py").write_text("print('hello')\n")
    done = confirm(project, "main.py")
    assert done.returncode == 0
    assert b"The program did not import torch" in done.stdout


def test_events_of_ones_own_code_can_fail_a_run(project: Path) -> None:
    (project / "main.py").write_text("import torch\ntorch.ones(1, device='cuda').item()\n")
    assert confirm(project, "--fail-on-events", "main.py").returncode == 1


@pytest.mark.parametrize("content", ["{", "[]", '{"version": 9}', '{"version": 1, "events": [1]}'])
def test_a_file_that_is_no_record_is_refused(project: Path, content: str) -> None:
    (project / "record.json").write_text(content)
    command = [sys.executable, "-m", "hostlint", "report", "record.json"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "record.json" in done.stderr
