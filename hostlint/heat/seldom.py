"""Names of what is done seldom, whoever calls it: models are saved, parts take turns on the device, a run is measured on purpose."""
from __future__ import annotations

import re
from functools import cache

_LEARNED = r"models?|modules?|params?|parameters|optimi[sz]ers?|states?|state_dicts?|weights?"
# What saves a model, puts its parts together or turns it into another form; `convert_output` and its kin are rare at most.
_SAVES = re.compile(
    r"^_*((maybe|try|async)_)?(merge|convert|save|export|gather|write|consolidate|collect|dump|load|restore|resume)_(\w+_)?"
    r"(ckpts?|checkpoints?|state_?dicts?)(_\w+)?$"
)
# Parts of a system take turns on the device: that models and optimizers move is asked for. Layers and gradients move at every step.
_TURNS = re.compile(
    rf"^_*((maybe|async)_)?(off|on|re|un)load_(\w+_)?({_LEARNED})(_(to|from|on|onto)_\w+)?$|"
    rf"^_*(move|copy|load|send|put|save|restore|transfer|swap)_(\w+_)?({_LEARNED})_(back_)?(to|from|on|onto)_(cpu|host|gpu|cuda|device)$|"
    r"_sharded_(save|load)_(to|from)_(cpu|host)$"
)
# What times a run waits for the device on purpose; the run itself is as hot as ever.
_TIMES = re.compile(
    r"(^|_)(profil(er|ing)|benchmark(ed|ing)|timed)(_(run|pass|loop|step|pipe(line)?|hook|call))?$|^_*run_(profiled?|timed)_"
)
_MEASURES = re.compile(
    r"(^|_)calibrat(e|ion|ing)(_(?!error|loss|curve|metric|bin)\w+)?$|^_*(auto_?)?tun(e|ing)(_|$)|"
    r"^_*(grid_)?search_(\w+_)?(scales?|clips?|clipping|thresholds?|ratios?|configs?|hyper\w*|schemes?|alphas?)$"
)
_MODULE = re.compile(
    r"(^|[._])(saver|merger)$|(^|[._])(ckpts?|checkpoints?|weights?|model|state_dict)_?(loader|converter)$|(^|[._])(ckpt|weight)_utils$|"
    r"(^|[._])calibrat(or|ion)(_(?!error)\w+)?$"
)
_CLASS = re.compile(r"Calibrat(or|ion)(Mixin|Base)?$")
_TIMES_MODULE = re.compile(r"(^|[._])profil(er|ing)(_\w+)?$")
_TIMES_CLASS = re.compile(r"(Profiler|Benchmark(er)?)(Mixin|Base)?$")

# Arguments that switch checks and records on; what a distribution validates it validates by default.
_CHECK = re.compile(
    r"^_*(do_|run_|with_|enable_|should_)?((sanity_)?checks?|check_\w+|\w+_checks?|verify(_\w+)?|assert_\w+|debug(_\w+)?|\w+_debug|verbose|"
    r"profile|profiling|diagnose|diagnostics|print_\w+|log_stats|trace|dump(_\w+)?)$"
)


@cache
def is_check(name: str) -> bool:
    """An argument of that name, where it is off by default, is set to look into what goes wrong."""
    return bool(_CHECK.search(name))


@cache
def is_function(name: str) -> bool:
    """A function of that name saves or moves what a model learned, or calibrates."""
    return any(pattern.search(name) for pattern in (_SAVES, _TURNS, _MEASURES))


@cache
def is_class(name: str) -> bool:
    """A class of that name calibrates."""
    return bool(_CLASS.search(name))


@cache
def is_module(module: str) -> bool:
    """A module of that dotted name loads, saves and converts what a model learned, or calibrates."""
    return bool(_MODULE.search(module))


@cache
def times(function: str, owner: str, module: str) -> bool:
    """Whether a function times what it calls, by its name, its class's or its module's."""
    return bool(_TIMES.search(function) or _TIMES_CLASS.search(owner) or _TIMES_MODULE.search(module))
