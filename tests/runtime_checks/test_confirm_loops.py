"""The passes of loops are counted once each, however often a pass comes back to its first line."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hostlint.confirm.watch import Loops

FORMS = {  # five passes each
    "plain": "for i in range(5):\n    f(i)\n    f(i)\n",
    "a call that goes over lines": "for i in range(5):\n    f(\n        i,\n        i,\n    )\n    f(i)\n",
    "a block with an end": "for i in range(5):\n    with suppress(ValueError):\n        f(i)\n    f(i)\n",
    "a loop first": "for i in range(5):\n    for j in range(3):\n        f(j)\n    f(i)\n",
    "a loop that is all": "for i in range(5):\n    for j in range(3):\n        f(\n            j,\n        )\n",
    "a head that goes over lines": "for i, j in zip(\n    range(5),\n    range(\n        9\n    ),\n):\n    f(\n        i,\n    )\n",
    "continue": "for i in range(5):\n    if i % 2:\n        continue\n    f(i)\n",
    "a text first": 'for i in range(5):\n    "what it does"\n    f(\n        i,\n    )\n',
    "while": "i = 0\nwhile i < 5:\n    i = f(\n        i,\n        1,\n    )\n",
    "while with a head over lines": "i = 0\nwhile (\n    i < 5\n    and i > -1\n):\n    i = f(i, 1)\n",
    "while True": "i = 0\nwhile True:\n    with suppress(ValueError):\n        f(i)\n    i = i + 1\n    if i == 5:\n        break\n",
    "an error in between": "for i in range(5):\n    try:\n        f(1 / (i - 2))\n    except ZeroDivisionError:\n        continue\n",
    "generators in turn": (
        "def g():\n    for i in range(5):\n        yield f(\n            i,\n        )\n\n\nfor pair in zip(g(), range(5)):\n    pass\n"
    ),
}
PROGRAM = """
import json, sys
from contextlib import suppress
from pathlib import Path
from hostlint.confirm.watch import Loops
from hostlint.runtime_checks.confirm.counters import Counters, read_processes
from hostlint.runtime_checks.confirm.counting import Paths
from hostlint.runtime_checks.confirm.plan import Plan
from hostlint.runtime_checks.confirm.reached import Lines, watch_lines

def f(first, second=0):
    return first + second

folder = Path(sys.argv[1])
forms = {str(file): file.read_text() for file in sorted(folder.glob("*.py"))}
loops = Loops()
bodies = {path: {loops.body(path, line) for line in range(1, 20)} - {None} for path in forms}
plan = Plan("simulated", loops={path: [(body, *loops.head(path, body)) for body in found] for path, found in bodies.items()})
(folder / "kept").mkdir()
plan.write(folder / "kept")
counters = Counters(folder / "kept")
counters.open({})
assert watch_lines(Lines(Plan.read(folder / "kept"), Paths(tuple(forms)), counters))
for path, text in forms.items():
    exec(compile(text, path, "exec"), {"f": f, "suppress": suppress})
(process,) = read_processes(folder / "kept")
outer = {path: min(found) for path, found in bodies.items()}
print(json.dumps({slot.about["path"]: slot.count for slot in process.slots if slot.about["line"] == outer[slot.about["path"]]}))
"""


@pytest.fixture(scope="module")
def passes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Of the outermost loop of each form, as another process counted them: this one may be watched by another tool."""
    folder = tmp_path_factory.mktemp("forms")
    for name, text in FORMS.items():
        (folder / f"{name}.py").write_text(text)
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(folder)], capture_output=True, text=True, check=True)
    return {Path(path).stem: count for path, count in json.loads(done.stdout).items()}


@pytest.mark.parametrize("form", FORMS)
def test_each_pass_counts_once(passes: dict[str, int], form: str) -> None:
    assert passes[form] == 5


def test_what_stands_in_a_loop_or_a_comprehension_can_happen_often(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("first = 1\nread = [\n    x.item()\n    for x in xs\n]\nfor x in xs:\n    for y in x:\n        y.item()\nlast = 1\n")
    loops = Loops()
    assert [line for line in range(1, 10) if loops.around(str(file), line)] == [2, 3, 4, 5, 6, 7, 8]
    assert [loops.body(str(file), line) for line in range(1, 10)] == [None] * 5 + [7, 8, 8, None]
    assert not loops.around(str(tmp_path / "nowhere.py"), 1)
