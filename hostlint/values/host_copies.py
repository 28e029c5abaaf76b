"""What the code around a read already has on the host: `batch.seq_lens_cpu` beside `batch.seq_lens`."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.facts.schema import FileOutline, FunctionOutline

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_FORMS = ("{}_cpu", "{}_host", "{}_list", "{}_cpu_list", "{}_list_cpu", "cpu_{}", "host_{}")


def host_copy(file: FileOutline, function: FunctionOutline, subject: str, source: str) -> str:
    """The name under which the value that a text reads is on the host as well, as the file shows; "" where it shows none. What the
    statement itself makes is none."""
    attributes = _attributes(file)
    given = {param.name for param in function.params}
    for owner, name in _values(subject):
        for form in _FORMS:
            copy = form.format(name)
            if copy in (attributes if owner else given) and not re.search(rf"\b{copy}\b", source):
                return f"{owner}.{copy}" if owner else copy
    return ""


def _values(text: str) -> Iterator[tuple[str, str]]:
    """The values that a text names, without the methods that it calls on them: ("batch", "seq_lens") of `batch.seq_lens.max()`."""
    for match in _DOTTED.finditer(text):
        dotted = match.group()
        if text[match.end() : match.end() + 1] == "(":
            dotted = dotted.rpartition(".")[0]
        owner, _, name = dotted.rpartition(".")
        if name:
            yield owner, name


def _attributes(file: FileOutline) -> set[str]:
    """Every attribute that the file reads, hands over or gives its classes."""
    read = (chain for function in file.functions for chain in (*function.reads, *(text for call in function.calls for text in call.passed)))
    names = {chain.rpartition(".")[2] for chain in read if "." in chain}
    for klass in file.classes:
        names.update(name for name, *_ in klass.attributes)
        names.update(name for name, _ in klass.annotations)
    return names
