"""What the names of a function's scope are bound to, as chains."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.index import FunctionId, ProjectIndex


class Bindings:
    def __init__(self, index: ProjectIndex) -> None:
        self._index = index
        self._names: dict[FunctionId, dict[str, list[str]]] = {}

    def of(self, fid: FunctionId) -> dict[str, list[str]]:
        """What the local names of a function (its parameters included) are bound to; an annotation has a colon before it."""
        if fid not in self._names:
            names: dict[str, list[str]] = {}
            outline = self._index.function(fid)
            for param in outline.params:
                names[param.name] = [f":{param.annotation}"] if param.annotation and param.kind in ("positional", "keyword") else []
            for name, chain in outline.assigns:
                if name.isidentifier():
                    names.setdefault(name, []).append(chain)
            for name, chain in outline.assigns:
                held = name.rstrip("[]")
                if held is not name and self._is_local(fid, held, names):
                    names.setdefault(held, []).append(name[len(held) :] + chain)
            self._names[fid] = names
        return self._names[fid]

    def _is_local(self, fid: FunctionId, held: str, names: dict[str, list[str]]) -> bool:
        """Whether what is stored in is a container of the function's own: elements of others are found by who holds these."""
        return held in names or (fid[1] > 0 and held.isidentifier() and self._index.resolve(fid[0], held, fid[1]) is None)
