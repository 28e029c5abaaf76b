"""Writes fixed_models/README.md: a row for each corrected model, from rows.json (what tests hold them to) and h200.json (what a GPU took).

    python benchmarks/fixed_models/table.py
"""
from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
README = HERE.parent.parent / "fixed_models" / "README.md"
COLUMNS = ("system", "fault", "cure", "fix", "waits", "uploads", "redone", "bits", "waits on the GPU", "step, host busy", "step, GPU busy")
TITLE = """\
# Corrected models

<!-- Written by benchmarks/fixed_models/table.py from rows.json and h200.json beside it; change those. -->
"""
WORDS = """
Each file here is what `hostlint fix --review` made of the faulty model of the same name in `tests/faulty_models/`, byte for byte. Numbers
are those of one step, before → after. *Waits* and *uploads* are events under the stand-in (`record_host_events(device="simulated")`),
where a call that waits counts once; *redone* are operators that ran again on the very values on which they ran before (in the step
before, or for the other branch of guidance). Tests count them all. *Bits* (in float32 and bfloat16), the waits on the GPU and the times
(in float32) were measured on an {device} with torch {torch}, {date}: {sizes}. A time is the median of {rounds} rounds and, in brackets,
the middle half of them; where the brackets overlap, the difference is noise. [docs/fixed-models.md](../docs/fixed-models.md) says how all
this is shown, and what it does not say.
"""


def written(rows: dict[str, Any], gpu: dict[str, Any]) -> str:
    """The page's text."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "| " + " | ".join("---" for _ in COLUMNS) + " |"]
    lines += ["| " + " | ".join(cells(name, rows[name], gpu["systems"][name])) + " |" for name in sorted(rows)]
    words = WORDS.format(**{key: gpu[key] for key in ("device", "torch", "date", "rounds")}, sizes=sizes(gpu))
    return "\n".join([TITLE, textwrap.fill(" ".join(words.split()), 140, break_long_words=False), "", *lines, ""])


def cells(name: str, row: dict[str, Any], measured: dict[str, Any]) -> list[str]:
    steps = [changed(row[key]) for key in ("waits", "uploads", "redone")]
    bits = measured["host"]["bits"] if measured["host"]["bits"] == measured["gpu"]["bits"] else "differ"
    times = [" → ".join(spread(one) for one in measured[size]["step_ms"]) for size in ("host", "gpu")]
    return [f"`{name}`", row["fault"], row["cure"], row["fix"], *steps, bits, changed(measured["host"]["waits"]), *times]


def changed(pair: list[float]) -> str:
    return f"{pair[0]:g} → {pair[1]:g}"


def spread(one: list[float]) -> str:
    middle, low, high = one
    return f"{middle:.2f} ms ({low:.2f}–{high:.2f})"


def sizes(gpu: dict[str, Any]) -> str:
    """Both sizes in words, with the models that have one of their own."""
    said = []
    for size, busy in (("host", "host"), ("gpu", "GPU")):
        wanted = gpu["sizes"][size]
        words = f"with the {busy} busy, a width of {wanted['width']:,}, {wanted['blocks']} blocks and {wanted['length']:,} tokens"
        for key, values in sorted(gpu["own"].items()):
            if key.partition(" ")[0] == size:
                words += f", `{key.partition(' ')[2]}` with {' and '.join(f'{name} {value:,}' for name, value in values.items())}"
        said.append(words)
    return "; ".join(said) + "; in batches of two unless it says otherwise"


def main() -> None:
    rows, gpu = (json.loads((HERE / file).read_text(encoding="utf-8")) for file in ("rows.json", "h200.json"))
    README.write_text(written(rows, gpu), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
