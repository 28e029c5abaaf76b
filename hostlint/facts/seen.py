"""What other files can see of one without looking into its functions, as bytes, and which changes of that none of them can have noticed."""
from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hostlint.cache import digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.facts.schema import FileOutline

FIRM, NAME, ITEM = 20, 4, 8  # bytes of digests: of what has to stay, of a name, of all that is said of it


def seen_of(outline: FileOutline) -> bytes:
    """Names, bases, annotations and imports, but no line and no node: a change here may change what other files' names mean.

    First what has to stay, then each name of the module and of its functions, so that it can be told whether names only came."""
    items = list(_items(outline))
    counts = Counter((kind, name) for kind, name, _ in items)
    classes = [
        (c.qualname, c.bases, [(attribute[0], attribute[3]) for attribute in c.attributes], c.annotations, [name for name, _ in c.methods])
        for c in outline.classes
    ]
    disputed = [item for item in items if counts[item[:2]] > 1]  # of two definitions the last counts
    firm = digest(repr((outline.module, outline.stars, classes, disputed)).encode())
    single = {digest(item[1].encode())[:NAME] + digest(repr(item).encode())[:ITEM] for item in items if counts[item[:2]] == 1}
    return firm + b"".join(sorted(single))


def _items(outline: FileOutline) -> Iterator[tuple[str, str, object]]:
    """What kind of thing has a name, the name, and what is said of it."""
    for function in outline.functions:
        if function.name != "<lambda>":  # which nobody can name
            params = [(param.name, param.annotation, param.kind) for param in function.params]
            yield "function", function.qualname, (params, function.returns, function.flags, function.decorators, function.imports)
    for name, target in outline.imports:
        yield "import", name, target
    for name, _ in outline.globals:
        yield "global", name, None


def only_came(before: bytes, after: bytes) -> bool:
    """Whether a file has all that it had, as it was, and else only names that it had not: of these nobody can have made use."""
    if before[:FIRM] != after[:FIRM]:
        return False
    old, new = _split(before), _split(after)
    return old <= new and not {item[:NAME] for item in new - old} & {item[:NAME] for item in old}


def _split(seen: bytes) -> set[bytes]:
    return {seen[start : start + NAME + ITEM] for start in range(FIRM, len(seen), NAME + ITEM)}
