"""Functions that are put in the place of a module's forward: `Attention.forward = attention_forward` and its other spellings."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hostlint.scopes import SymbolKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.facts.schema import FileOutline, FunctionOutline
    from hostlint.index import FunctionId, ProjectIndex

_ATTRIBUTE = ".forward"
_BOUND = ".__get__()"
# What serves a whole request has a forward, too.
_NO_MODULE = re.compile(
    r"(^|_)(pipe|pipeline|engine|worker|stage|trainer|handler|client|server|runner)s?$|(Pipeline|Stage|Worker|Engine|Handler)$"
)
_HOPS = 3  # names that a function goes by on its way


def replaced_forwards(index: ProjectIndex) -> frozenset[FunctionId]:
    """Every function of the project that some line makes a module's forward."""
    found: set[FunctionId] = set()
    for file, outline in enumerate(index.files):
        for function in outline.functions:
            fid = (file, function.index)
            for target, chain in _replacements(function):
                if _is_module(index, fid, target):
                    found.update(_functions(index, fid, chain, _HOPS))
    return frozenset(found)


def _replacements(function: FunctionOutline) -> Iterator[tuple[str, str]]:
    """What gets another forward, and which."""
    for name, chain in function.assigns:
        if name.endswith(_ATTRIBUTE):
            yield name.removesuffix(_ATTRIBUTE), chain
    for call in function.calls:
        if call.chain == "setattr" and call.strings == ("forward",) and call.slots == ("0", "2"):
            yield call.passed[0], call.passed[1]


def _is_module(index: ProjectIndex, fid: FunctionId, target: str) -> bool:
    """Whether it may be a torch module, or a class of them, that gets another forward."""
    last = target.removesuffix(".__class__").rstrip("[]()").rpartition(".")[2]
    if _NO_MODULE.search(last):
        return False
    owner = index.owner(fid) if target == "self" else None
    if owner is not None:
        return index.is_nn_module(owner)
    symbol = index.resolve(fid[0], target, fid[1])
    return symbol is None or symbol.kind is not SymbolKind.CLASS or index.is_nn_module(symbol.id)


def _functions(index: ProjectIndex, fid: FunctionId, chain: str, hops: int) -> Iterator[FunctionId]:
    """The functions that a chain may stand for: by its own name, by what a name is bound to, as what a function inside a maker is."""
    chain = chain.removesuffix(_BOUND)
    symbol = index.resolve(fid[0], chain.removesuffix("()"), fid[1])
    if symbol is not None and symbol.kind is SymbolKind.FUNCTION:
        yield from _made(index.files[symbol.file], symbol.id) if chain.endswith("()") else (symbol.id,)
        return
    head, _, name = chain.rpartition(".")
    owner = index.owner(fid) if head == "self" else None
    method = index.find_method(owner, name) if owner is not None else None
    if method is not None:
        yield method
    elif hops:
        for local, bound in index.function(fid).assigns:
            if local == chain and bound != chain and not bound.startswith(":"):
                yield from _functions(index, fid, bound, hops - 1)


def _made(outline: FileOutline, maker: FunctionId) -> Iterator[FunctionId]:
    returned = {chain for name, chain in outline.functions[maker[1]].assigns if name == "return"}
    for function in outline.functions:
        if function.index and function.parent == maker[1] and function.owner < 0 and function.name in returned:
            yield (maker[0], function.index)
