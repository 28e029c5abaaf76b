"""What a rule words its fixes with: names and what they mean, imports in their order, spans of parts, lines before and after statements."""
from __future__ import annotations

import ast
import sys

import libcst as cst
import pytest

from hostlint.facts.fact import Fact
from hostlint.facts.kinds import FactKind
from hostlint.fix.edits import Text, joined
from hostlint.fix.outline import Outline
from hostlint.fix.place import Place
from hostlint.model import Confidence, Edit, Heat, HeatLevel, Span
from hostlint.values.known import Known


def place_of(text: str, wanted: str = "HERE") -> Place:
    """The place of an expression of a text: its first occurrence."""
    before, _, _ = text.partition(wanted)
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    end_line = line + wanted.count("\n")
    end = column + len(wanted) if end_line == line else len(wanted) - wanted.rfind("\n")
    span = Span(line, column, end_line, end)
    fact = Fact(
        FactKind.ITEM, "mod.py", "f", span, (line, end_line), "item()", "x", "", Confidence.CERTAIN, Heat(HeatLevel.LOOP), ""
    )
    return Place(fact, cst.parse_expression(f"({wanted}\n)"), Outline(text), Known())


def after(text: str, *edits: Edit | None) -> str:
    given = [edit for edit in edits if edit is not None]
    patch, numbers = joined(Text(text), [given])
    assert numbers == [0]
    return patch.after


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("import torch\nHERE", "torch"),
        ("import torch as th\ntorch = 1\nHERE", ""),
        ("import torch\ndef f(torch):\n    HERE", ""),
        ("import torch\ndef f():\n    HERE\n    torch = 1", ""),
        ("import torch\ndef f():\n    def g():\n        torch = 1\n    HERE", "torch"),
        ("import torch\ndef f():\n    for torch in x:\n        pass\n    HERE", ""),
        ("import torch\ndef f():\n    [torch for torch in x]\n    HERE", "torch"),
        ("import torch\n[HERE for torch in x]", ""),
        ("import torch\nclass A:\n    torch = 1\n    def f(self):\n        HERE", "torch"),
        ("import torch\nclass A:\n    torch = 1\n    HERE", ""),
        ("import torch\ndef f():\n    global torch\n    torch = 1\n    HERE", ""),
        ("import torch\ndef g():\n    global torch\n    torch = 1\ndef f():\n    HERE", ""),
        ("def f():\n    import torch\n    HERE", "torch"),
        ("def f():\n    HERE\n    import torch", ""),
        ("def f():\n    if x:\n        import torch\n    HERE", ""),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None\nHERE", ""),
        ("if TYPE_CHECKING:\n    import torch\nHERE", ""),
        ("import torch.nn\nimport torch\nHERE", "torch"),
        ("import torch\ndel torch\nHERE", ""),
        ("import torch\nwith x as torch:\n    pass\nHERE", ""),
        ("import torch\ntry:\n    pass\nexcept E as torch:\n    pass\nHERE", ""),
        ("from . import torch\nHERE", ""),
        ("from a import b as torch\nHERE", "a.b"),
        ("import torch\nlambda torch: HERE", ""),
        ("import torch\nmatch x:\n    case torch:\n        HERE", ""),
    ],
)
def test_meaning(text: str, meaning: str) -> None:
    place = place_of(text)
    assert place.outline.meaning("torch", place.path) == meaning


@pytest.mark.parametrize(
    ("head", "written"),
    [
        ("import torch\n", "import torch\ntorch.full\n"),
        ("import torch as th\n", "import torch as th\nth.full\n"),
        ("from torch import full\n", "from torch import full\nfull\n"),
        ("from torch import full as fill\n", "from torch import full as fill\nfill\n"),
        ("import torch.nn as nn\n", "import torch\nimport torch.nn as nn\ntorch.full\n"),
        ("from torch.nn import Module\n", "import torch\nfrom torch.nn import Module\ntorch.full\n"),
        ('"""Doc."""\n', '"""Doc."""\nimport torch\ntorch.full\n'),
        ("", "import torch\ntorch.full\n"),
        ("torch = 1\n", None),
        ("import torch\ntorch = 1\n", None),
    ],
)
def test_spelled(head: str, written: str | None) -> None:
    text = f"{head}HERE\n"
    place = place_of(text)
    spelled = place.spelled("torch.full")
    if written is None:
        assert spelled is None
    else:
        assert spelled is not None
        assert after(text, place.replace(spelled.text), *spelled.edits).replace("\n\n", "\n") == written


@pytest.mark.parametrize(
    ("head", "line", "written"),
    [
        ("import os\nimport torch\n", "import functools", "import functools\nimport os\nimport torch\n"),
        ("import os\nimport sys\n\nimport torch\n", "import re", "import os\nimport re\nimport sys\n\nimport torch\n"),
        ("import os\n\nimport torch\n", "import tqdm", "import os\n\nimport torch\nimport tqdm\n"),
        ("import os\n", "import torch", "import os\n\nimport torch\n"),
        ("from __future__ import annotations\n", "import os", "from __future__ import annotations\n\nimport os\n"),
        ('"""Doc."""\nfrom __future__ import annotations\nimport torch\n', "import os",
         '"""Doc."""\nfrom __future__ import annotations\n\nimport os\nimport torch\n'),
        ("from __future__ import annotations\n\nimport math\nimport os\n", "import functools",
         "from __future__ import annotations\n\nimport functools\nimport math\nimport os\n"),
        ("# Licence\n\nimport torch  # why\n", "import tqdm", "# Licence\n\nimport torch  # why\nimport tqdm\n"),
        ("import a; import b\n", "import c", "import a; import b\nimport c\n"),
        ("from a import (\n    b,\n    c,\n)\n", "from z import y", "from a import (\n    b,\n    c,\n)\nfrom z import y\n"),
        ("from a import b\n", "import z", "import z\nfrom a import b\n"),
        ("import torch\n", "import os", "import os\n\nimport torch\n"),
        ("import os\ntry:\n    import torch\nexcept ImportError:\n    pass\n", "import re",
         "import os\nimport re\ntry:\n    import torch\nexcept ImportError:\n    pass\n"),
    ],
)  # fmt: skip
def test_imports_go_in_order(head: str, line: str, written: str) -> None:
    text = f"{head}\n\nHERE\n"
    made = after(text, place_of(text).imported(line))
    ast.parse(made)
    assert made == f"{written}\n\nHERE\n"


def test_fresh_names_are_free_in_the_whole_file() -> None:
    place = place_of("import kept\ndef f(kept_2, *, kept_3=1):\n    global kept_4\n    HERE\nclass kept_5: ...\n")
    assert place.fresh("kept") == "kept_6"
    assert place.fresh("other") == "other"
    assert place.fresh("sum") == "sum_2"
    assert place.fresh("for") == "for_2"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters came with Python 3.12")
def test_type_parameters_are_names_too() -> None:
    assert place_of("def f[kept](x): HERE\n").fresh("kept") == "kept_2"


NESTED = """\
class A:
    def f(self, rows):
        for row in rows:
            # why
            while row:
                g = [HERE for _ in row]
            else:
                pass
        @decorated
        def h():
            return 1
        return g; x = 2
"""


def test_what_encloses_a_place() -> None:
    place = place_of(NESTED)
    assert [type(loop).__name__ for loop in place.loops] == ["While", "For"]
    assert place.function is not None
    assert place.function.name == "f"
    assert ast.unparse(place.statement or ast.Pass()) == "g = [HERE for _ in row]"
    assert [type(loop).__name__ for loop in place_of("for x in y:\n    pass\nelse:\n    HERE\n").loops] == []
    assert place_of("for x in HERE:\n    pass\n").loops == ()


def test_lines_before_and_after_statements() -> None:
    place = place_of(NESTED)
    inner, outer = place.loops
    made = after(NESTED, place.before(inner, "k = 1\nif k:\n    k = 2"), place.after(outer, "done = 1"), place.replace("k"))
    hoisted = "            k = 1\n            if k:\n                k = 2\n            # why\n"
    wanted = NESTED.replace("            # why\n", hoisted).replace("        @decorated\n", "        done = 1\n        @decorated\n")
    assert made == wanted.replace("HERE", "k")
    assert place.function is not None
    decorated, returned = place.function.body[1], place.function.body[2]
    assert "        y = 1\n        @decorated\n" in after(NESTED, place.before(decorated, "y = 1"))
    assert place.after(returned, "y = 1") is None
    assert place.before(place.function.body[3], "y = 1") is None


def test_an_elif_has_no_line_before_it() -> None:
    place = place_of("if a:\n    pass\nelif HERE:\n    pass\n")
    assert isinstance(place.statement, ast.If)
    assert place.before(place.statement, "y = 1") is None


def test_spans_of_parts() -> None:
    text = "\u00e9 = 1; y = torch.tensor(\n    [1.0],\n  device=(d))\n"
    place = place_of(text, "torch.tensor(\n    [1.0],\n  device=(d))")
    assert isinstance(place.node, cst.Call)
    data, device = place.node.args
    edits = (place.replace("full", place.node.func.attr), place.replace("(1,), 1.0", data), place.replace("e", device.value))  # type: ignore[attr-defined]
    assert after(text, *edits) == "\u00e9 = 1; y = torch.full(\n    (1,), 1.0,\n  device=(e))\n"


HELPER = "def kept(n):\n    return n\n"


def test_a_helper_goes_in_once() -> None:
    text = "import torch\n\nx = HERE\n"
    place = place_of(text)
    helper = place.helper("kept", HELPER)
    made = after(text, place.replace(f"{helper.text}(1)"), *helper.edits)
    assert made == "import torch\n\n\ndef kept(n):\n    return n\n\n\nx = kept(1)\n"
    again = place_of(made.replace("kept(1)", "HERE")).helper("kept", HELPER)
    assert (again.text, again.edits) == ("kept", ())
    taken = place_of("kept = 1\nHERE\n").helper("kept", HELPER)
    assert taken.text == "kept_2"
    assert "def kept_2(n):" in taken.edits[0].text
    shadowed = place_of(f"{HELPER}def f(kept):\n    HERE\n").helper("kept", HELPER)
    assert shadowed.text == "kept_2"


def test_dotted() -> None:
    place = place_of("import torch.nn.functional as F\nHERE\n")
    assert place.dotted(cst.parse_expression("F.pad")) == "torch.nn.functional.pad"
    assert place.dotted(cst.parse_expression("G.pad")) == ""
    assert place.dotted(cst.parse_expression("F().pad")) == ""


def test_a_fix_that_crashes_is_an_error_and_the_finding_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from hostlint import judge
    from hostlint.registry import all_for_kind
    from hostlint.scan import scan_text

    def crash(place: Place) -> None:
        raise ZeroDivisionError

    broken = lambda kind: tuple(replace(rule, fix=crash) for rule in all_for_kind(kind))  # noqa: E731
    monkeypatch.setattr(judge, "all_for_kind", broken)
    text = "import torch\n\n\ndef f(model, n: int):\n    for i in range(n):\n        model(torch.tensor(i, device=\"cuda\"))\n"
    findings, errors = scan_text(text, "mod.py", fixes=True)
    assert [(finding.code, finding.fix) for finding in findings] == [("HL201", None)]
    assert [error.message for error in errors] == ["the fix of the rule pageable-constructor failed: ZeroDivisionError()"]
    assert scan_text(text, "mod.py")[1] == []
