"""What a built name is: in words for people, and as the facts that the table of torch asks for."""
from __future__ import annotations

from typing import Any  # values of every kind come from the forms

import torch

LARGE_BYTES = (1 << 21) + 1  # the smallest pageable upload that was seen to wait (pageable_h200.json)
Facts = dict[str, object]
# Arguments of constructors that conditions ask for, and the value that is not the default.
CONSTRUCTED = {
    "momentum": None, "validate_args": False, "enable_nested_tensor": False, "capturable": True, "fused": True, "enabled": False,
}


def facts_of(value: Any) -> Facts:
    """The facts in the words of `hostlint.torch_ops.conditions.ArgumentFacts`, beside the classes of an object."""
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if type(value).__module__ == "numpy":
        return {"place": "NUMPY", "rank0": value.ndim == 0}
    if value is None or isinstance(value, bool):
        return {"place": "PYTHON", "literal": repr(value)}
    if isinstance(value, (int, float, complex, str, torch.device, torch.dtype)):
        return {"place": "PYTHON", "target": _target(value)} if _target(value) else {"place": "PYTHON"}
    if isinstance(value, (list, tuple, dict)):
        items = list(value.values()) if isinstance(value, dict) else value
        named = {"makes": [type(value).__name__]} if hasattr(value, "_fields") else {}
        return {"place": "PYTHON", "sequence": not isinstance(value, dict), **_items(items), **named}
    return _object(value)


def words_of(value: Any) -> str:
    """`float32 [16] on the device`."""
    if isinstance(value, torch.Tensor):
        return _tensor_words(value)
    if type(value).__module__ == "numpy":
        return f"NumPy {value.dtype} {list(value.shape)}"
    if isinstance(value, (list, tuple, dict)):
        items = list(value.values()) if isinstance(value, dict) else value
        kinds = sorted({words_of(item) if isinstance(item, torch.Tensor) else type(item).__name__ for item in items})
        return f"Python {type(value).__name__} of {len(value)}: {' and '.join(kinds)}"
    if isinstance(value, (bool, int, float, complex, str)) or value is None:
        return f"Python {type(value).__name__} {value!r}"
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _tensor(tensor: torch.Tensor) -> Facts:
    boolean = tensor.dtype in (torch.bool, torch.uint8)
    plain = tensor.layout is torch.strided and not tensor.is_nested
    facts: Facts = {
        "place": "DEVICE" if tensor.is_cuda else "HOST",
        "rank0": tensor.dim() == 0,
        "boolean": boolean,
        "integer": not (boolean or tensor.is_floating_point() or tensor.is_complex()),
        "pinned": plain and not tensor.is_cuda and torch.cuda.is_available() and tensor.is_pinned(),
        "large": plain and tensor.numel() * tensor.element_size() >= LARGE_BYTES,
        "target": "DEVICE" if tensor.is_cuda else "HOST",
        "rank": tensor.dim(),
        "strided": plain and not _dense(tensor),
        "sparse": tensor.layout is not torch.strided and not tensor.is_nested,
    }
    return {key: value for key, value in facts.items() if value is not False or key in ("rank0", "boolean", "integer")}


def _dense(tensor: torch.Tensor) -> bool:
    """Whether its elements fill one block of memory in its own order."""
    return tensor.is_contiguous()


def _tensor_words(tensor: torch.Tensor) -> str:
    kind = str(tensor.dtype).removeprefix("torch.")
    size = "of two sizes" if tensor.is_nested else "0-dim" if tensor.dim() == 0 else str(list(tensor.shape)).replace(" ", "")
    layout = "" if tensor.layout is torch.strided or tensor.is_nested else f"{str(tensor.layout).removeprefix('torch.')} "
    nested = "nested " if tensor.is_nested else ""
    place = "on the device" if tensor.is_cuda else "pinned" if _tensor(tensor).get("pinned") else "on the host"
    return f"{nested}{layout}{kind} {size} {place}{', requires grad' if tensor.requires_grad else ''}"


def _target(value: Any) -> str:
    text = str(value) if isinstance(value, (str, torch.device)) else ""
    return "DEVICE" if text.startswith("cuda") else "HOST" if text == "cpu" else ""


def _items(items: Any) -> Facts:
    facts = [facts_of(item) for item in items]
    held = [one for one in facts if one.get("place") == "DEVICE" or one.get("holds_device")]
    holds: Facts = {"holds_host": True} if any(one.get("place") == "HOST" for one in facts) else {}
    if held:
        holds["holds_device"] = True
        if all(one.get("boolean") for one in held):
            holds["boolean"] = True
    return holds


def _object(value: Any) -> Facts:
    """Classes nearest first, without the leading underscore of torch's private bases."""
    classes = [one.__name__.lstrip("_") for one in type(value).__mro__ if one is not object]
    facts: Facts = {"place": "UNKNOWN", "makes": classes}
    if isinstance(value, torch.nn.Module) and not value.training:
        facts["evaluating"] = True
    if isinstance(value, torch.distributions.Distribution):
        facts["holds_device"] = _made_on_device(value)
    if made_with := {option: str(found) for option, found in _options(value) if option in CONSTRUCTED and found is CONSTRUCTED[option]}:
        facts["made_with"] = made_with
    return facts


def _made_on_device(distribution: torch.distributions.Distribution) -> bool:
    """Whether its parameters, or those of the distribution that it is built on, live on the device."""
    held = vars(distribution).values()
    return any(facts_of(one).get("place") == "DEVICE" or facts_of(one).get("holds_device") for one in held if _is_part(one))


def _is_part(value: object) -> bool:
    return isinstance(value, (torch.Tensor, torch.distributions.Distribution))


def _options(value: Any) -> list[tuple[str, object]]:
    """What an object keeps of its constructor's arguments, under their names."""
    kept = {name.lstrip("_"): found for name, found in vars(value).items()} if hasattr(value, "__dict__") else {}
    return [*kept.items(), *(value.defaults.items() if isinstance(value, torch.optim.Optimizer) else ())]
