"""The faulty models that the README scans: found on exactly the marked lines, and programs that run."""
from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "tests" / "faulty_models"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def marked() -> set[tuple[str, int, str]]:
    return {
        (f"tests/faulty_models/{file.name}", number, code)
        for file in MODELS.glob("*.py")
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for code in re.findall(r"HL\d+", line.partition("# expect:")[2])
    }


@pytest.fixture(scope="session")
def report() -> dict[str, list[dict[str, object]]]:
    command = [sys.executable, "-m", "hostlint", "scan", "tests/faulty_models", "--output-format", "json", "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    parsed: dict[str, list[dict[str, object]]] = json.loads(done.stdout)
    return parsed


def test_exactly_the_marked_lines_are_found(report: dict[str, list[dict[str, object]]]) -> None:
    found = {(finding["path"], finding["line"], finding["code"]) for finding in report["findings"]}
    assert len(marked()) >= 9
    assert found == marked()


def test_the_fault_across_two_files_shows_its_chain(report: dict[str, list[dict[str, object]]]) -> None:
    uploads = [one for one in report["findings"] if one["code"] == "HL201" and str(one["path"]).endswith("denoise_schedule.py")]
    (heat,) = (finding["heat"] for finding in uploads)
    assert isinstance(heat, dict)
    assert heat["level"] == "call"
    assert {link["path"] for link in heat["chain"]} == {"tests/faulty_models/denoise_loop.py"}
    assert heat["chain"][0]["function"] == "denoise"


def test_they_are_programs_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(MODELS)
    decode_loop, denoise_loop, training_loop = map(import_module, ("decode_loop", "denoise_loop", "training_loop"))

    torch.manual_seed(0)
    model = training_loop.make_model("cpu")
    batches = [(torch.randn(4, 8), torch.randn(4, 1)) for _ in range(3)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first, *_, last = [training_loop.train_epoch(model, optimizer, batches, "cpu") for _ in range(20)]
    assert last < first

    tokens = decode_loop.generate(decode_loop.Decoder(device="cpu"), torch.zeros(1, dtype=torch.long), torch.zeros(1, 16), end=31)
    assert all(0 <= token < 31 for token in tokens)
    assert len(tokens) > 1

    sample = denoise_loop.denoise(denoise_loop.Denoiser(device="cpu"), torch.zeros(2, 8), steps=3)
    assert sample.shape == (2, 8)
    assert sample.abs().sum() > 0
