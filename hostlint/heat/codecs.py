"""Whether a project serves requests, which encode and decode once around their steps, or trains the models that do so."""
from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from hostlint.heat import words
from hostlint.heat.nature import innermost_loops, is_unused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.facts.schema import FunctionOutline
    from hostlint.heat.loops import StepLoops
    from hostlint.index import ProjectIndex

_CODEC = re.compile(r"(^|_)(vae|ae|vq|autoencoder|codec|vocoder|first_stage(_model)?)$")
_CODES = frozenset({"encode", "decode", "tiled_encode", "tiled_decode"})


class Codecs:
    def __init__(self, index: ProjectIndex, loops: StepLoops) -> None:
        self._index = index
        self._loops = loops

    @cached_property
    def serve(self) -> bool:
        """Something encodes or decodes outside loops, and no step calls a codec itself."""
        found = set(self._calls())
        return "around" in found and "step" not in found

    @cached_property
    def serve_only(self) -> bool:
        """They serve, and nothing trains: no optimizer takes a step."""
        return self.serve and not any(map(_trains, self._used()))

    @cached_property
    def never_trains(self) -> bool:
        """Something encodes or decodes around its steps, and there is neither a backward pass nor an optimizer's step."""
        found = (what == "around" for what in self._calls())
        return any(found) and not any(_trains(function) or _goes_back(function) for function in self._used())

    def _used(self) -> Iterator[FunctionOutline]:
        for outline in self._index.files:
            if not is_unused(outline):
                yield from outline.functions

    def _calls(self) -> Iterator[str]:
        for file, outline in enumerate(self._index.files):
            if is_unused(outline):
                continue
            for function in outline.functions:
                yield from self._of(function, (file, function.index))

    def _of(self, function: FunctionOutline, fid: tuple[int, int]) -> Iterator[str]:
        loops: tuple[int, ...] = ()
        for call in function.calls:
            name, receiver = words.last_name(call.chain), words.receiver_name(call.chain)
            if name in _CODES and _CODEC.search(receiver):
                loops = loops or innermost_loops(function.regions)
                if not loops[call.region]:
                    yield "around"
            elif _CODEC.search(name) and not call.chain.endswith("]") and self._loops.surrounding(fid, call.region):
                yield "step"


def _trains(function: FunctionOutline) -> bool:
    return any(words.last_name(call.chain) == "step" and "optim" in words.receiver_name(call.chain).lower() for call in function.calls)


def _goes_back(function: FunctionOutline) -> bool:
    return any(words.last_name(call.chain) == "backward" for call in function.calls)
