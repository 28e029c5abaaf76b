"""From which size a pageable non_blocking copy makes the host wait, as measured."""
from __future__ import annotations

import json
from functools import cache
from pathlib import Path

REWRITERS = frozenset({"copy_", "fill_", "zero_"})  # methods that give a buffer new contents


@cache
def largest_free_copy() -> int:
    """Bytes: a pageable non_blocking upload of this size or less did not wait (pageable_h200.json)."""
    measured = json.loads((Path(__file__).parent / "pageable_h200.json").read_text(encoding="utf-8"))
    return int(measured["largest_without_wait"])
