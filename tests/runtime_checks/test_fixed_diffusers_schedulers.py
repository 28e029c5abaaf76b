"""Every scheduler class of diffusers, original and fixed, over a whole schedule: the same bits at every step."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "fixed_schedulers.py"


@pytest.mark.parametrize("library", ["diffusers", "scipy", "torchsde"])
def test_what_the_walk_needs_is_installed(library: str) -> None:
    pytest.importorskip(library, reason="comes with the extra `test`")


def test_every_class_gives_the_same_bits(tmp_path: Path) -> None:
    diffusers = pytest.importorskip("diffusers", reason="comes with the extra `test`")
    kept = tmp_path / "kept.json"
    command = [sys.executable, str(SCRIPT), "--alone", "--quick", "--json", str(kept)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    told = json.loads(kept.read_text())
    walked = {one["class"]: one for one in told["classes"]}
    assert set(walked) == {name for name in dir(diffusers) if name.endswith("Scheduler") and not name.startswith("Flax")}
    assert all(one["steps"] > 0 and not one["differing"] for one in walked.values())
    assert len(told["fixes"]) > 20
