"""What the tests of heat share: programs whose `probe()` calls stand in places that a comment on their line names the heat of."""
from __future__ import annotations

import textwrap

from hostlint.facts.lower import lower_file
from hostlint.heat import compute_heat
from hostlint.index import ProjectIndex


def differences(source: str = "", /, *, path: str = "main.py", cold: tuple[str, ...] = (), **modules: str) -> list[str]:
    """The places where the heat of a `probe()` is not the one that its line's comment names, in one file or in modules, in whose names `__`
    stands for a dot."""
    texts = {path: textwrap.dedent(source)} if source else {}
    texts.update((name.replace("__", "/") + ".py", textwrap.dedent(text)) for name, text in modules.items())
    outlines = [lower_file(text, name, name.removesuffix(".py").replace("/", ".")).outline for name, text in texts.items()]
    heat = compute_heat(ProjectIndex(outlines), (), cold)
    wrong, seen = [], 0
    for file, (name, outline) in enumerate(zip(texts, outlines, strict=True)):
        lines = texts[name].splitlines()
        for function in outline.functions:
            for call in (call for call in function.calls if call.chain == "probe"):
                seen += 1
                found = heat.site((file, function.index), call.region).level.label
                wanted = lines[call.line - 1].rpartition("# ")[2]
                wrong += [] if found == wanted else [f"{name}:{call.line} is {found}, not {wanted}"]
    assert seen, "no probe in the sources"
    return wrong
