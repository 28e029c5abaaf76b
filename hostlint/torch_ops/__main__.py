"""`python -m hostlint.torch_ops` lists the entries with a form that waits by reasoning and not by measurement."""
from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby

from hostlint.torch_ops import function, method
from hostlint.torch_ops.table import ARGUMENT_PARSER, index


def unmeasured() -> Iterator[tuple[str, str]]:
    """(kind, name) of every entry with such a form; the arguments that torch reads while parsing are left out: they are one fact."""
    names = index()
    for ops, look_up in ((names.functions, function), (names.methods, method)):
        for name in ops:
            op = look_up(name)
            for wait in op.waits if op is not None else ():
                if not wait.measured and wait.evidence != ARGUMENT_PARSER:
                    yield wait.kind.value, name


def listing() -> str:
    found = sorted(set(unmeasured()))
    groups = groupby(found, key=lambda pair: pair[0])
    return "".join(f"- {kind}: {', '.join(f'`{name}`' for _, name in pairs)}\n" for kind, pairs in groups)


if __name__ == "__main__":
    sys.stdout.write(listing())
