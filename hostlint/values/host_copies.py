"""What the code around a read already has on the host: `batch.seq_lens_cpu` beside `batch.seq_lens`."""
from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.facts.schema import FileOutline, FunctionOutline

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_FORMS = ("{}_cpu", "{}_host", "{}_list", "{}_cpu_list", "{}_list_cpu", "cpu_{}", "host_{}")


class HostCopies:
    """The host's copies that one file shows."""

    def __init__(self, file: FileOutline) -> None:
        self._file = file

    def beside(self, function: FunctionOutline, subject: str, source: str) -> str:
        """The name under which the value that a text reads is on the host as well; "" where the file shows none. What the statement itself
        makes is none."""
        given = {param.name for param in function.params}
        for owner, name in _values(subject):
            for form in _FORMS:
                copy = form.format(name)
                if copy in (self._attributes if owner else given) and not re.search(rf"\b{copy}\b", source):
                    return f"{owner}.{copy}" if owner else copy
        return ""

    @cached_property
    def _attributes(self) -> set[str]:
        """Every attribute that the file reads, hands over or gives its classes."""
        handed = (text for function in self._file.functions for call in function.calls for text in call.passed)
        read = (text for function in self._file.functions for text in function.reads)
        names = {text.rpartition(".")[2] for text in (*read, *handed) if "." in text}
        names.update(name for klass in self._file.classes for name, *_ in klass.attributes)
        names.update(name for klass in self._file.classes for name, _ in klass.annotations)
        return names


def _values(text: str) -> Iterator[tuple[str, str]]:
    """The values that a text names, without the methods that it calls on them: ("batch", "seq_lens") of `batch.seq_lens.max()`."""
    for match in _DOTTED.finditer(text):
        dotted = match.group()
        if text[match.end() : match.end() + 1] == "(":
            dotted = dotted.rpartition(".")[0]
        owner, _, name = dotted.rpartition(".")
        if name:
            yield owner, name
