"""The stand-in says of a measured call what was measured: over a quarter of all forms, taken by their names, at least 98 % agree."""
from __future__ import annotations

import warnings
import zlib

from hostlint.runtime_checks.measure_waits.catalogue import forms
from hostlint.runtime_checks.simulated.agreement import Verdict, compared, share


def test_the_stand_in_agrees_with_the_gpu() -> None:
    chosen = [form for form in forms() if zlib.crc32(form.call.encode()) % 4 == 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forms use what torch calls old
        found = list(compared(chosen))
    agree, counted = share(found)
    assert counted > 450
    assert counted > 0.95 * len(found)  # nearly all can be run without a GPU
    assert sum(one.measured is Verdict.WAITS for one in found) > 100
    assert agree >= 0.98 * counted, [one for one in found if not one.agrees]
