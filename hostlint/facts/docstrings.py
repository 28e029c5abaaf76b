"""Types of parameters that a docstring states: `lengths (torch.Tensor): …`, `x (`torch.LongTensor` of shape …)`, `x : np.ndarray`."""
from __future__ import annotations

import ast
import re
from collections.abc import Mapping

_STATED = re.compile(
    r"^[ \t]*[*`]{0,2}(\w+)`{0,2}[ \t]*(?:\([ \t]*|:[ \t]*)"
    r"[`~:\w]*?((?:torch\.)?\w*Tensor|torch\.tensor|(?:np|numpy)\.ndarray|int|float|bool|str)"
    r"`?(?=[ \t]*(?:[),;]|of\b|$))",
    re.MULTILINE | re.IGNORECASE,
)
_LONGEST = 20_000  # longer texts describe files, not parameters


def stated_types(body: list[ast.stmt]) -> Mapping[str, str]:
    """The types by the parameters' names, as an annotation would give them."""
    first = body[0]
    text = first.value.value if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else None
    if not isinstance(text, str) or len(text) > _LONGEST:
        return {}
    return {name: _annotation(stated) for name, stated in _STATED.findall(text)}


def _annotation(stated: str) -> str:
    last = stated.rpartition(".")[2]
    if last.lower().endswith("tensor"):
        return "torch.Tensor"
    return "np.ndarray" if last == "ndarray" else last.lower()
