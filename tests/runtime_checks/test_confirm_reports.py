"""`hostlint confirm` in its other forms, from a real run on the stand-in: the page finds the steps by itself, the trace holds the run."""
from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

TRAIN = """\
import threading
import torch


def watch(x):
    x.tolist()


def train(x):
    torch.ones(2).cuda()
    for step in range(6):
        for layer in range(3):
            x = x + torch.tensor(0.5, device="cuda")
        if x.sum().item() > 1e9:
            break
        watcher = threading.Thread(target=watch, args=(x,), name="watcher")
        watcher.start()
        watcher.join()


train(torch.ones(2, device="cuda"))
"""


def hostlint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "hostlint", *arguments], cwd=folder, capture_output=True, text=True, check=False)


def test_the_page_and_the_trace_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "hostlint.toml").write_text("")
    (tmp_path / "train.py").write_text(TRAIN)
    forms = ("--html", "page.html", "--record", "run.json", "--output-format", "trace")
    done = hostlint(tmp_path, "confirm", "--device", "simulated", "--min-heat", "request", "--no-cache", *forms, "train.py")
    assert (done.returncode, done.stderr) == (0, "")

    events = json.loads(done.stdout)["traceEvents"]
    waits = [one for one in events if one["ph"] == "X" and one["args"]["kind"] != "collect"]
    assert [one["name"] for one in waits].count("torch.tensor") == 18
    threads = {name: {one["tid"] for one in waits if one["name"] == name} for name in ("Tensor.item", "Tensor.tolist")}
    assert threads["Tensor.item"].isdisjoint(threads["Tensor.tolist"])
    steps = [one["ts"] for one in events if one["ph"] == "i"]
    reads = [one["ts"] for one in waits if one["name"] == "Tensor.item"]
    assert len(steps) == 6
    assert all(begin < read < end for begin, read, end in zip(steps, reads, [*steps[1:], float("inf")], strict=True))

    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Typical step (2 of 6)" in page
    figure = page[page.index("<figure") : page.index("</figure>")]
    kinds = re.findall(r"<small>(?!collect)([\w-]+)</small><b>train.py:(\d+)</b>", figure)
    assert kinds == [("upload", "13"), ("read", "14"), ("read", "6")]
    assert ">watcher</div>" in figure
    assert "<mark>torch.tensor(0.5, device=&quot;cuda&quot;)</mark>" in page

    assert hostlint(tmp_path, "report", "run.json", "--output-format", "html").stdout == page
