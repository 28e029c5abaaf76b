"""Found first on the path of a program that `hostlint confirm` runs: arms the recorder, then gives way to the real sitecustomize."""
from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path


def _give_way() -> None:
    here = Path(__file__).resolve().parent
    sys.path[:] = [each for each in sys.path if Path(each or ".").resolve() != here]
    own = sys.modules.pop("sitecustomize")
    if importlib.util.find_spec("sitecustomize") is not None:
        importlib.import_module("sitecustomize")  # the user's, or the distribution's
    sys.modules.setdefault("sitecustomize", own)  # the import that is under way wants to find one


_give_way()
if "HOSTLINT_CONFIRM" in os.environ:
    from hostlint.runtime_checks.confirm.arm import arm

    arm(os.environ["HOSTLINT_CONFIRM"])
