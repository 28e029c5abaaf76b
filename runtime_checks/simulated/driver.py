"""torch.cuda: one device that is there, with its properties, memory figures, seeds and waits."""
from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from hostlint.runtime_checks.patches import Patch
from hostlint.runtime_checks.simulated import streams
from hostlint.runtime_checks.simulated.devices import DEVICES, as_device
from hostlint.runtime_checks.simulated.generators import Generator
from hostlint.runtime_checks.simulated.legacy import LEGACY_TYPES, legacy_type
from hostlint.runtime_checks.simulated.places import is_on_device
from hostlint.runtime_checks.simulated.saved import reading_storage, storage_to_device

MEMORY = 141 * 2**30  # bytes, as the GPU that the table was measured on


@dataclass(frozen=True)
class DeviceProperties:
    """The device that the table speaks of, as far as programs ask."""

    name: str = "Simulated CUDA device (hostlint)"
    major: int = 9
    minor: int = 0
    total_memory: int = MEMORY
    multi_processor_count: int = 132
    warp_size: int = 32
    max_threads_per_multi_processor: int = 2048
    max_threads_per_block: int = 1024
    regs_per_multiprocessor: int = 65536
    shared_memory_per_block: int = 49152
    shared_memory_per_block_optin: int = 232448
    shared_memory_per_multiprocessor: int = 233472
    L2_cache_size: int = 60 * 2**20
    clock_rate: int = 1980000
    memory_clock_rate: int = 3201000
    memory_bus_width: int = 6144
    pci_bus_id: int = 0
    pci_device_id: int = 0
    pci_domain_id: int = 0
    uuid: str = "00000000-0000-0000-0000-000000000000"
    is_integrated: bool = False
    is_multi_gpu_board: bool = False
    gcnArchName: str = ""  # noqa: N815  torch's name


_PROPERTIES = DeviceProperties()


_COUNTED = tuple(
    f"{name}{unit}"
    for name in ("allocation", "allocated", "active", "requested", "reserved", "segment", "inactive_split")
    for unit in ("", "_bytes")
)
_LARGE = ("oversize_allocations", "oversize_segments")
_SINGLE = ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free", "max_split_size")


class _Settings(threading.local):
    sync_debug_mode: int = 0


_settings = _Settings()
_MODES = {"default": 0, "warn": 1, "error": 2}


def _synchronize(*_: object) -> None:
    streams.waited("torch.cuda.synchronize", "torch.cuda.synchronize")


def _nothing(*_: object, **__: object) -> None:
    """What would change something on a device."""


def _chosen(device: object) -> int:
    """The index of a device that there is, as `set_device` wants it."""
    if isinstance(device, int) and device < 0:
        return 0
    as_device("cuda" if device is None else device)
    return 0


def _zero(*_: object, **__: object) -> int:
    return 0


def _count() -> int:
    return DEVICES


def _yes(*_: object, **__: object) -> bool:
    return True


def _no(*_: object, **__: object) -> bool:
    return False


def _properties(device: object = None) -> DeviceProperties:
    _chosen(device)
    return _PROPERTIES


def _capability(device: object = None) -> tuple[int, int]:
    return _properties(device).major, _properties(device).minor


def _name(device: object = None) -> str:
    return _properties(device).name


def _memory(device: object = None) -> tuple[int, int]:
    _chosen(device)
    return MEMORY, MEMORY


def _statistics(*_: object, **__: object) -> dict[str, int]:
    """No figure is kept of memory; each that torch has is 0."""
    large = itertools.product(_LARGE, ("current", "peak", "allocated", "freed"))
    pooled = itertools.product(_COUNTED, ("all", "small_pool", "large_pool"), ("current", "peak", "allocated", "freed"))
    return {**{".".join(parts): 0 for parts in (*pooled, *large)}, **dict.fromkeys(_SINGLE, 0)}


def _no_segments(*_: object, **__: object) -> dict[str, list[object]]:
    return {"segments": [], "device_traces": []}


def _allocator() -> str:
    return "native"


def _flush() -> None:
    torch.cuda.empty_cache()


def _scatter(tensor: torch.Tensor, *_: object) -> list[torch.Tensor]:
    """DataParallel over the one device."""
    return [tensor.to("cuda")]


def _record_stream(tensor: torch.Tensor, stream: object) -> None:
    """All work on the tensor is done."""


def _set_debug_mode(mode: int | str) -> None:
    _settings.sync_debug_mode = _MODES[mode] if isinstance(mode, str) else mode


def _debug_mode() -> int:
    return _settings.sync_debug_mode


def _seed(seed: int) -> None:
    torch.default_generator.manual_seed(seed)


def _seed_at_random() -> None:
    torch.default_generator.seed()


def _state(device: object = None) -> torch.Tensor:
    return torch.default_generator.get_state()


def _set_state(new_state: torch.Tensor, device: object = None) -> None:
    torch.default_generator.set_state(new_state)


def _states() -> list[torch.Tensor]:
    return [torch.default_generator.get_state()]


def _set_states(new_states: list[torch.Tensor]) -> None:
    for state in new_states:
        _set_state(state)


class _Device:
    """`with torch.cuda.device(0):`."""

    def __init__(self, device: object = None) -> None:
        self.idx, self.prev_idx = _chosen(device), 0

    def __enter__(self) -> None:
        """The one device is always the current one."""

    def __exit__(self, *_: object) -> None:
        """So there is nothing to go back to."""


class _DeviceOf(_Device):
    def __init__(self, obj: Any) -> None:
        super().__init__(0 if obj.is_cuda else -1)


# Functions below Python: what code reaches that bound torch.cuda's own names before the stand-in was on.
_BELOW: dict[str, object] = {
    "_cuda_getDeviceCount": _count, "_cuda_getDevice": _zero, "_cuda_setDevice": _chosen, "_cuda_exchangeDevice": _zero,
    "_cuda_maybeExchangeDevice": _zero, "_cuda_synchronize": _synchronize, "_cuda_emptyCache": _nothing, "_cuda_init": _nothing,
    "_cuda_ipc_collect": _nothing, "_cuda_memoryStats": _statistics, "_cuda_resetPeakMemoryStats": _nothing,
    "_cuda_resetAccumulatedMemoryStats": _nothing, "_cuda_set_sync_debug_mode": _set_debug_mode, "_cuda_get_sync_debug_mode": _debug_mode,
    "_cuda_isCurrentStreamCapturing": streams._is_capturing, "_cuda_sleep": _nothing, "_cuda_getCurrentRawStream": _zero,
    "_cuda_setMemoryFraction": _nothing, "_cuda_memorySnapshot": _no_segments, "_cuda_getAllocatorBackend": _allocator,
    "_scatter": _scatter, "_host_emptyCache": _nothing, "_cuda_cudaCachingAllocator_raw_alloc": _zero,
    "_cuda_cudaCachingAllocator_raw_delete": _nothing,
}  # fmt: skip
_CUDA: dict[str, object] = {
    "is_available": _yes, "is_initialized": _yes, "_lazy_init": _nothing, "init": _nothing, "device_count": _count, "current_device": _zero,
    "set_device": _chosen, "device": _Device, "device_of": _DeviceOf, "_exchange_device": _zero, "_maybe_exchange_device": _zero,
    "get_device_properties": _properties, "_get_device_properties": _properties, "get_device_name": _name,
    "get_device_capability": _capability, "is_bf16_supported": _yes, "synchronize": _synchronize, "ipc_collect": _nothing,
    "mem_get_info": _memory, "memory_stats": _statistics, "memory_allocated": _zero, "max_memory_allocated": _zero,
    "memory_reserved": _zero, "max_memory_reserved": _zero, "reset_peak_memory_stats": _nothing, "reset_max_memory_allocated": _nothing,
    "reset_accumulated_memory_stats": _nothing, "set_per_process_memory_fraction": _nothing, "utilization": _zero,
    "temperature": _zero, "power_draw": _zero, "clock_rate": _zero, "memory_usage": _zero, "device_memory_used": _zero,
    "set_sync_debug_mode": _set_debug_mode, "get_sync_debug_mode": _debug_mode, "manual_seed": _seed, "manual_seed_all": _seed,
    "seed": _seed_at_random, "seed_all": _seed_at_random, "get_rng_state": _state, "set_rng_state": _set_state,
    "get_rng_state_all": _states, "set_rng_state_all": _set_states, "default_generators": (torch.default_generator,),
    "can_device_access_peer": _zero, "get_arch_list": lambda: ["sm_90"], "graph_pool_handle": lambda: (0, 0), "_sleep": _nothing,
    **streams.replacements(),
}  # fmt: skip
_ACCELERATOR: dict[str, object] = {
    "is_available": _yes, "device_count": _count, "current_accelerator": lambda check_available=False: torch.device("cuda"),
    "current_device_index": _zero, "current_device_idx": _zero, "set_device_index": _chosen, "set_device_idx": _chosen,
    "current_stream": streams.current_stream, "empty_cache": _flush, "set_stream": streams.set_stream, "synchronize": _synchronize,
    "memory_stats": _statistics, "memory_allocated": _zero, "max_memory_allocated": _zero, "memory_reserved": _zero,
    "max_memory_reserved": _zero, "reset_peak_memory_stats": _nothing, "reset_accumulated_memory_stats": _nothing,
}  # fmt: skip
_STREAMS: dict[str, object] = {"Stream": streams.Stream, "Event": streams.Event}
_GENERIC: dict[str, object] = {"Stream": streams.Stream, "Event": streams.GenericEvent, "Generator": Generator}
_NVTX: dict[str, object] = {"range_push": _zero, "range_pop": _zero, "mark": _nothing, "range_start": _zero, "range_end": _nothing}


def _group_by_place(original: Callable[..., object]) -> Callable[..., object]:
    """Optimizers ask for tensors by device: those of the device are one group, under its name."""

    def grouped(lists: list[list[torch.Tensor | None]], with_indices: bool = False) -> dict[Any, Any]:
        with torch._C.DisableTorchFunction():
            groups: Any = original(lists, with_indices)
            return {key: value for group in groups.items() for key, value in _split(*group)}

    return grouped


def _split(key: tuple[torch.device, torch.dtype], value: tuple[Any, Any]) -> Iterator[tuple[Any, Any]]:
    lists, indices = value
    for on_device in (False, True):
        rows = [row for row, first in enumerate(lists[0]) if is_on_device(first) is on_device]
        if rows:
            device = torch.device("cuda", 0) if on_device else key[0]
            chosen = [[column[row] for row in rows] if column else column for column in lists]
            yield (device, key[1]), (chosen, [indices[row] for row in rows] if indices else indices)


def _instead(value: object) -> Callable[[Callable[..., object]], Callable[..., object]]:
    return lambda _: value  # type: ignore[return-value]  # a class or a tuple may stand for a function's attribute


def _all() -> Iterator[Patch]:
    replaced: tuple[tuple[object, dict[str, object]], ...] = ((torch._C, _BELOW), (torch.cuda, _CUDA))
    for owner, names in replaced:
        yield from (Patch(owner, name, _instead(value)) for name, value in names.items())
    accelerator = getattr(torch, "accelerator", None)  # torch 2.6 and newer
    for owner, names in ((accelerator, _ACCELERATOR), (torch.cuda.nvtx, _NVTX), (torch.cuda.streams, _STREAMS), (torch, _GENERIC)):
        yield from (Patch(owner, name, _instead(value)) for name, value in names.items() if hasattr(owner, name))
    yield Patch(torch.cuda.memory, "memory_stats", _instead(_statistics))
    yield Patch(torch.Tensor, "record_stream", _instead(_record_stream))
    yield Patch(torch.UntypedStorage, "cuda", _instead(storage_to_device))
    yield from (Patch(torch.UntypedStorage, name, reading_storage) for name in ("cpu", "tolist"))
    yield from (Patch(torch.cuda, name, legacy_type) for name in LEGACY_TYPES)
    yield Patch(torch.backends.cuda, "is_built", _instead(_yes))
    yield Patch(torch.backends.cudnn, "is_acceptable", _instead(_no))
    yield Patch(torch._C, "_group_tensors_by_device_and_dtype", _group_by_place)


_PATCHES = tuple(_all())


@contextmanager
def cuda_is_there() -> Iterator[None]:
    """torch.cuda, torch.accelerator and torch.Generator answer for the device."""
    with ExitStack() as stack:
        for patch in _PATCHES:
            stack.enter_context(patch.applied())
        yield
