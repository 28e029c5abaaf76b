"""Which calls stop the whole process for a while: allocator flushes, collections of the cyclic collector, and its off switches."""
from __future__ import annotations

import re

FLUSHES = frozenset({"empty_cache", "empty_device_cache", "clear_device_cache", "backend_empty_cache", "flush_memory"})
COLLECTIONS = frozenset({"collect"})
OFF_SWITCHES = frozenset({"disable", "set_threshold"})
ON_SWITCHES = frozenset({"gc.collect", "gc.enable"})
NAMES = FLUSHES | COLLECTIONS | OFF_SWITCHES

# What a receiver of `empty_cache` is called where it is the allocator's module and no cache of the program's own.
ALLOCATOR = re.compile(
    r"(^|[._])(torch|cuda|xpu|npu|hpu|mps|mlu|musa|accelerator|device|devices|device_?module|platform|backend|get_accelerator|"
    r"get_torch_device|get_device_module)(_module|_backend|_name)?(\(\)|\[\])?$"
)
# Functions whose work it is to give memory back between two uses of the device: what they flush is meant.
RELEASES = re.compile(
    r"(^|_)(off_?load(ed|ing|er)?|on_?load|sleep|wake(_?up)?|un_?load|swap|tear_?down|shut_?down|close|idle|oom|out_of_memory|recover(y)?|evict|release[ds]?|"
    r"destroy|drop|exit|del|retry|update_weights|reload|load|restart|abort|hibernate|resume|suspend|free_(gpu|cuda|model|vram)\w*|"
    r"aggressive_\w+)(_|$)",
    re.IGNORECASE,
)


MOVES_OUT = re.compile(r"(^|_)(off_?load|on_?load|un_?load|swap|wake_?up)(_|$)|(?<!time)\.sleep$", re.IGNORECASE)
# Settings of a program that ask for the release: `if args.empty_unused_memory_level >= 1`.
ASKED_FOR = re.compile(
    r"\.\w*((empty|flush|clear|free|release)_\w*(cache|mem|unused)|low_?v?ram|low_?mem|sleep_mode|offload)", re.IGNORECASE
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def is_release(qualname: str) -> bool:
    """Whether a function, or the class around it, is there to give memory back."""
    return any(RELEASES.search(_CAMEL.sub("_", part)) for part in qualname.replace("__", "").split("."))


def is_release_file(path: str) -> bool:
    """Whether a file is about giving memory back: `layerwise_offload.py`."""
    return is_release(path.rpartition("/")[2].removesuffix(".py"))
