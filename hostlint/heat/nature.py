"""How hot a function can be by its nature: its name, decorators and file say that it runs once, rarely, or never in earnest."""
from __future__ import annotations

import re
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING

from hostlint.facts.schema import FunctionFlag, RegionKind
from hostlint.heat import seldom
from hostlint.model import HeatLevel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.facts.schema import FileOutline, FunctionOutline, Region


class Nature(IntEnum):
    COLD = 0  # construction, loading, printing, tests, benchmarks
    ONCE = 1  # kept results, evaluation: at most once a request
    RARE = 2  # cold, unless a step is seen to reach it: `convert_output` runs per step, `convert_checkpoint` does not
    ANY = 3


_COLD = re.compile(
    r"^(__init__|__post_init__|__new__|__init_subclass__|__set_name__|__class_getitem__|__repr__|__str__|extra_repr|__del__|__getstate__|"
    r"__setstate__|__reduce__|__reduce_ex__|__deepcopy__|state_dict|load_state_dict|_load_from_state_dict|_save_to_state_dict|"
    r"_?reset_parameters|_?init(ialize)?_weights|post_init|from_pretrained|save_pretrained|from_config|from_single_file|save_model|load_model|"
    r"save_checkpoint|load_checkpoint|_?load_weights?(_\w+)?|\w*weight_loader|process_weights_after_loading|create_weights|_?warm_?up(_\w+)?|_*pre_?warm(_\w+)?|\w+_warm_?up|"
    r"raise(_\w+)?|_+raise(_\w+)?|\w+_(mps|mlx)|\w+_(mps|mlx)_\w+|_+(mps|mlx)_\w+|parse_args|add_\w*arguments?|add_cli_args|get_parser|build_parser|setUp|tearDown|setUpClass|tearDownClass)$"
)
_RARE = re.compile(
    r"^_*(load|save|convert|export|quantize|setup|initialize|install|download|dump|plot|visualize|configure|parse|register|migrate|"
    r"serialize|deserialize|shutdown|cleanup|destroy|close|teardown|freeze|unfreeze)(_|$)|_weights?$|_checkpoint$|_state_dict$|"
    r"^_*(prepare|store|fuse|unfuse|merge|unmerge|apply|load|unload|set|activate|swap)_(\w+_)?(loras?|adapters?)(_\w+)?$"
)
_ONCE = re.compile(
    r"^_*(eval|evaluate|evaluation|validate|validation|test)$|"
    r"^_*(on_)?(eval|evaluate|evaluation|val|valid|validate|validation|test|predict|prediction)_(step|epoch|loop|end|batch|model|one|all|dataset|metrics|"
    r"loss|performance|policy|log|iter|iters|iteration|iterations|image|images)(_\w+)?$|^_*get_(eval|evaluation|val|validation|test)_\w+$|"
    r"^_*(log|run|do|on)_(eval|evaluate|evaluation|validation|validate|test)(_\w+)?$|"
    r"^_*((maybe|try)_)?(dump|plot|visuali[sz]e|rebalance)(_|$)|^_*(re)?capture(_(one|all|prepare|graphs?|model|forward|stream)(_\w+)?)?$|"
    r"^_*(re)?capture_(\w+_)?graphs?$|^_*(create|record|build)_(cuda|device|gpu)_graphs?$|_capture(_\w*graphs?)?$|"
    r"_(eval|evaluation|validation)$|^on_(train|fit|test|predict|val|validation)_(epoch_)?(start|end|begin)$|(^|_)epoch_(start|end|begin)$|"
    r"^_*(ingest|process|handle|recv|receive|accept|admit|add|enqueue|abort|cancel|retract|resume|preempt|finish|release|free)_(\w+_)?"
    r"(req|request)s?$|(^|_)(recover|elastic|failover|rejoin|scale_(up|down)|reconfigure)(_|$)|(^|_)(req|request)s?_(finish|done|abort|releas|end|start)\w*$|(^|_)((self|sanity|determinism|consistency|correctness)_check|invariants?|leaks?)(_|$)|"
    r"^_*unmerge(_|$)|^compute_(eval_|val_)?metrics$|^_*(set|retrieve|prepare)_timesteps$|^_*(reset|teardown)$|"
    r"^_*on_idle$|_(during|when|while|on)_idle$|^_*maybe_(record|log|report|profile|save|export|trace)(_|$)|"
    # what a memory pool does when it runs out
    r"^_*((maybe|try)_)?(make_room|defrag(ment)?|relocate|reclaim|compact_(pending|pages|blocks|pool|memory|impl))(_|$)"
)
# What puts hooks in place or takes them away, once: the hooks themselves run at every step.
_INSTALLS = re.compile(
    r"^_*((maybe|try|should|can)_)?(register|add|remove|set|install|uninstall|clear|attach|detach|apply|initialize|deinitialize|deinitalize|"
    r"init|unregister|enable|disable|free|append|insert|delete|unhook|reapply)_(\w+_)?hooks?(_(fn|func|function|to|from|on|in|if)\w*)?$|^register_(forward|step|full|backward)\w*$"
)
_TEST = re.compile(r"test_\w")
# The body is compiled for the device: what reads like a truth test or an index there is no host code.
_KERNEL = re.compile(
    r"(^|\.)(triton|tl|helion|tilelang|T|cute|cutlass|numba|cuda|gluon|pallas|ti|wp)\."
    r"(jit|kernel|prim_func|autotune|heuristics|func|experimental)\b"
)
_BENCHMARK = re.compile(r"^_*(bench|benchmark|timeit|autotune)(_|$|mark|ing)|^_*profile(_|$)|_(bench|benchmark)$", re.IGNORECASE)
_BENCHMARK_FILE = re.compile(
    r"(^|/)(bench|benchmarks?|benchmarking|profiling)/|(^|/)(bench|benchmark|autotune)(_[^/]*)?\.py$|_bench(mark)?\.py$"
)
_TEST_FILE = re.compile(r"(^|/)(tests?|testing|unittests?)/|(^|/)test_[^/]*\.py$|_test\.py$|(^|/)conftest\.py$")
_DEBUG_FILE = re.compile(
    r"(^|/)((\w+_)?debug(ging|ger)?(_(utils?|tools?|helpers?))?|fault_?injection|chaos|perturb|(\w+_)?canary)(/|\.py$)"
)
_OFF_DEVICE_FILE = re.compile(r"(^|/)(mlx|mps|cpu)(/|\.py$)|(^|/)mlx_[^/]*\.py$")
# Other accelerators than the measured kind: whether their hosts wait is not known.
_OTHER_DEVICE_FILE = re.compile(r"(^|/)([^/]*_)?(npu|xpu|hpu|mlu|musa|tpu|xla|neuron|ascend)(_[^/]*)?(/|\.py$)")
_OTHER_DEVICE = re.compile(r"(^|_)(npu|xpu|hpu|mlu|musa|tpu|xla|neuron|ascend\w*)(_|$)")
_TOOL_FILE = re.compile(r"(^|/)(setup|hubconf|(convert|export|quantize)_[^/]*)\.py$|(^|/)(exporters?|onnx|executorch|torchscript)(/|\.py$)")
_KEPT = re.compile(r"(^|\.|_)(lru_cache|cache|cached|cachedmethod|cached_property|cached_function|memoi[sz]e|run_once)(_\w+)?(\(\))?$")
_FOR_GOOD = re.compile(r"(^|\.|_)(lru_cache|cache|cached_function|memoi[sz]e|run_once)(_\w+)?(\(\))?$")

_REGION_LIMITS = {
    RegionKind.MEMO: HeatLevel.REQUEST,
    RegionKind.EVERY_N: HeatLevel.REQUEST,
    RegionKind.DEBUG: HeatLevel.REQUEST,
    RegionKind.ONCE: HeatLevel.REQUEST,
    RegionKind.EVALUATION: HeatLevel.REQUEST,
    RegionKind.RARE: HeatLevel.REQUEST,
    RegionKind.EXCEPT: HeatLevel.COLD,
    RegionKind.RAISE: HeatLevel.COLD,
    RegionKind.EXPORT: HeatLevel.COLD,
}


def nature_of(function: FunctionOutline, file: FileOutline) -> Nature:
    if function.flags & FunctionFlag.HOT:
        return Nature.ANY
    if function.flags & FunctionFlag.COLD or is_unused(file) or _is_test(function):
        return Nature.COLD
    if any(_KERNEL.search(decorator) for decorator in function.decorators):
        return Nature.COLD
    if function.name.endswith("_cpu") and _is_host_variant(function.name, file):
        return Nature.COLD
    if any(_keeps(decorator) for decorator in function.decorators):
        return min(_kept_for(function.decorators), _by_name(function.name))
    if function.index == 0:
        return Nature.ANY
    once = _is_for_others(function, file) or seldom.is_module(file.module) or _is_of_seldom(function, file)
    return min(_by_name(function.name), Nature.ONCE) if once else _by_name(function.name)


def _is_of_seldom(function: FunctionOutline, file: FileOutline) -> bool:
    return function.owner >= 0 and seldom.is_class(file.classes[function.owner].name)


def _is_for_others(function: FunctionOutline, file: FileOutline) -> bool:
    return bool(_OTHER_DEVICE.search(function.name)) or _is_others(file.module)


@cache
def _is_others(module: str) -> bool:
    """A part for other accelerators; a package that is named after one is all its users have."""
    package, _, part = module.partition(".")
    return bool(_OTHER_DEVICE_FILE.search((part or package).replace(".", "/") + ".py"))


def _is_host_variant(name: str, file: FileOutline) -> bool:
    """`copy_cpu` beside `copy_cuda` or `copy_triton`: what runs where there is no accelerator."""
    others = {name.removesuffix("cpu") + kind for kind in ("cuda", "gpu", "triton", "npu", "xpu", "hip")}
    return any(other.name in others for other in file.functions) or any(name in others for name, _ in file.imports)


def _is_test(function: FunctionOutline) -> bool:
    """A test that stands beside the code it tests; `test_step` and its kin evaluate."""
    return not function.parent and function.owner < 0 and bool(_TEST.match(function.name)) and not _ONCE.search(function.name)


def is_unused(file: FileOutline) -> bool:
    """Tests, benchmarks, converters, tools to debug with, other machines: what runs there is no product's step.

    The module tells where a file is in its project; its path depends on where one stands, and so would the findings.
    """
    return _is_unused_path(file.module.replace(".", "/") + ".py")


@cache
def _is_unused_path(path: str) -> bool:
    return any(pattern.search(path) for pattern in (_TEST_FILE, _BENCHMARK_FILE, _TOOL_FILE, _DEBUG_FILE, _OFF_DEVICE_FILE))


@cache
def _keeps(decorator: str) -> bool:
    return bool(_KEPT.search(decorator))


def _kept_for(decorators: tuple[str, ...]) -> Nature:
    """A cache that lives as long as the process has its values after the first requests; one that an object holds may be filled by each."""
    return Nature.COLD if any(_FOR_GOOD.search(decorator) for decorator in decorators) else Nature.ONCE


@cache
def installs(name: str) -> bool:
    """A function of that name puts hooks in place or takes them away."""
    return bool(_INSTALLS.search(name))


@cache
def _by_name(name: str) -> Nature:
    if _COLD.search(name) or _BENCHMARK.search(name):
        return Nature.COLD
    if _ONCE.search(name) or installs(name) or seldom.is_function(name):
        return Nature.ONCE
    return Nature.RARE if _RARE.search(name) else Nature.ANY


def region_limits(regions: Sequence[Region], serves_only: bool = False) -> tuple[HeatLevel, ...]:
    """The most heat that each region of a function may have, its guards considered; who only serves never trains."""
    limits: list[HeatLevel] = []
    for position, region in enumerate(regions):
        own = _REGION_LIMITS.get(region.kind, HeatLevel.LOOP)
        if serves_only and region.kind == RegionKind.TRAINING:
            own = HeatLevel.REQUEST
        limits.append(own if position == 0 else min(own, limits[region.parent]))
    return tuple(limits)


def repeats(region: Region) -> bool:
    """A loop over rows, rather than over what an object is set up with, as its reward functions."""
    return region.kind == RegionKind.LOOP and not region.text.startswith("self.")


def in_rounds(regions: Sequence[Region]) -> tuple[bool, ...]:
    """For each region whether it runs once for a generation of results: behind such a guard, and in no loop over rows there."""
    found: list[bool] = []
    for position, region in enumerate(regions):
        inside = position > 0 and found[region.parent] and not repeats(region)
        found.append(inside or region.kind == RegionKind.ROUND)
    return tuple(found)


def innermost_loops(regions: Sequence[Region]) -> tuple[int, ...]:
    """For each region the loop that it lies in (itself, where it is one), 0 where there is none."""
    loops: list[int] = []
    for position, region in enumerate(regions):
        loops.append(position if region.kind == RegionKind.LOOP else loops[region.parent] if position else 0)
    return tuple(loops)
