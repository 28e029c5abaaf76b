"""A number that each pass reads and only the code after the loop uses, so that the last one alone counts: it is read there."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.fix.loops import bindings_of, block_of, direct_loop, loads_of, shared_with_nested
from hostlint.fix.outline import COMPREHENSIONS, LOOPS
from hostlint.fix.reads import without_graph
from hostlint.model import Applicability, Edit, Span

if TYPE_CHECKING:
    from hostlint.fix.place import Place
    from hostlint.fix.reads import Read
    from hostlint.model import Fix


def read_last(place: Place, read: Read) -> Fix | None:
    """`for …: last = loss.item()` and `return last` to `last = loss.detach().clone()` and `return last.item()`."""
    here, function = direct_loop(place), place.function
    if here is None or function is None or here[0].orelse or here[1] is not place.statement:
        return None
    loop, statement = here
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is read.node:
            pass
        case _:
            return None
    loads = loads_of(function, name)
    block = block_of(place.path, loop)
    after = [one for later in block[block.index(loop) + 1 :] for one in loads_of(later, name)]
    if len(loads) != 1 or len(after) != 1 or len(bindings_of(function, name)) != 1 or shared_with_nested(function, name):
        return None
    way = place.outline.around(place.outline.span(after[0]))[place.path.index(loop) :]
    if any(isinstance(one, (*LOOPS, *COMPREHENSIONS, ast.Lambda)) for one in way):
        return None  # it would be read again and again there
    kept = f"{without_graph(place, read)}.clone()"
    number = f"{name}.item()" if read.how == "item" else f"{read.how}({name})"
    end = place.outline.span(after[0])
    edits = [place.replace(kept), Edit(Span(end.line, end.column, end.end_line, end.end_column), number)]
    if read.is_proved_scalar:
        return place.fix(Applicability.EXACT, "keep the tensor, and read the last one where it is used", edits)
    source = place.outline.source(place.outline.span(read.tensor))
    message = f"keep the tensor, and read the last one where it is used, where `{source}` is one number"
    return place.fix(Applicability.REVIEW, message, edits)
