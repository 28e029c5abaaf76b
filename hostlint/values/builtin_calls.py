"""Calls whose result depends on containers or names rather than on the table of torch: zip, enumerate, dict.get, torch.device …"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hostlint.model import Confidence
from hostlint.values import detail as d
from hostlint.values.arguments import Argument
from hostlint.values.containers import one_of, subscript
from hostlint.values.lattice import INTEGER, PYTHON, UNKNOWN, combine, device_name, element, join_all, list_of
from hostlint.values.value import Place, Value

Keywords = Mapping[str, Argument]


def _rows(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    """list(x), tuple(x), reversed(x), sorted(x), iter(x), tqdm(x): the same elements."""
    given = arguments[0] if arguments else keywords.get("iterable")
    if given is None:
        return Value(Place.PYTHON, detail=d.Items("list", ()))
    value = given.value
    listed = isinstance(value.detail, (d.Items, d.ListOf)) and value.detail.kind != "dict"
    return value if listed else list_of(one_of(value))


def _tuple(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    """tuple(x): as an index, it names dimensions where a list holds positions."""
    value = _rows(arguments, keywords)
    if isinstance(value.detail, d.Items):
        return replace(value, detail=d.Items("tuple", value.detail.items))
    return replace(value, detail=d.ListOf(element(value.detail), "tuple"))


def _zip(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    return list_of(Value(Place.PYTHON, detail=d.Items("tuple", tuple(one_of(a.value) for a in arguments))))


def _enumerate(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    inner = one_of(arguments[0].value) if arguments else UNKNOWN
    return list_of(Value(Place.PYTHON, detail=d.Items("tuple", (INTEGER, inner))))


def _extreme(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    """max, min: one of the arguments, or of the only argument's elements."""
    values = [one_of(arguments[0].value)] if len(arguments) == 1 else [a.value for a in arguments]
    return join_all(values) if any(v.is_tensor for v in values) else combine(values)


def _sum(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    return one_of(arguments[0].value) if arguments else UNKNOWN


def _map(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    function = arguments[0].value.detail if arguments else None
    if isinstance(function, d.External) and function.name in {"builtins.int", "builtins.float", "builtins.str", "builtins.bool"}:
        return list_of(Value(Place.PYTHON, rank0=True))
    return UNKNOWN


def _filter(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    return list_of(one_of(arguments[1].value)) if len(arguments) > 1 else UNKNOWN


def _next(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    return one_of(arguments[0].value) if arguments else UNKNOWN


def _device(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    given = arguments[0] if arguments else keywords.get("type") or keywords.get("device")
    if given is None:
        return Value(Place.PYTHON, detail=d.Device("unknown"))
    found = given.value.detail
    on = device_name(found) if found is not None else "unknown"
    return Value(Place.PYTHON, confidence=given.value.confidence, detail=d.Device(on))


def _default_device(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    """Whatever the caller has set: the host, unless somebody did."""
    return Value(Place.PYTHON, confidence=Confidence.POSSIBLE, detail=d.Device("unknown"))


def _accelerator(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    return Value(Place.PYTHON, detail=d.Device("device"))


def _partial(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    return Value(Place.PYTHON, detail=d.Partial(arguments[0].value, tuple(a.value for a in arguments[1:]))) if arguments else UNKNOWN


def _parameter(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    inner = arguments[0].value if arguments else UNKNOWN
    return Value(Place.DEVICE, "it is a module's parameter", Confidence.LIKELY, rank0=inner.rank0, vector=inner.vector, bare=True)


def _same(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    return replace(arguments[0].value, fresh=False) if arguments else UNKNOWN


def _modules(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    return _rows(arguments, keywords) if arguments else Value(Place.PYTHON, detail=d.ListOf(UNKNOWN))


def _sequential(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    return Value(Place.PYTHON, detail=d.ExternalInstance(("torch.nn.Sequential",)))


def _number(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    return Value(Place.PYTHON, rank0=True)


def _python(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    return PYTHON


def _str(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    """The text of a device still names it."""
    value = arguments[0].value if arguments else PYTHON
    named = isinstance(value.detail, d.Device) or (isinstance(value.detail, d.Literal) and isinstance(value.detail.value, str))
    return value if named else PYTHON


def _loaded(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    """A file of weights: host tensors by name, unless it is loaded onto a device."""
    place = keywords.get("device") or (arguments[1] if len(arguments) > 1 else None)
    if place is not None:
        return UNKNOWN
    why = "it is loaded from a file into host memory"
    return Value(Place.PYTHON, why, Confidence.LIKELY, detail=d.ListOf(Value(Place.HOST, why, Confidence.LIKELY)))


def _opened(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    """An open file of weights, whose tensors come to the host unless it was opened for a device."""
    onto = keywords.get("device") or (arguments[2] if len(arguments) > 2 else None)
    found = onto.value.detail if onto is not None else None
    on_host = onto is None or (found is not None and device_name(found) == "host")
    return Value(Place.PYTHON, detail=d.ExternalInstance((WEIGHTS_ON_HOST if on_host else "safetensors.safe_open",)))


def _dict(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    if arguments:
        return replace(arguments[0].value, fresh=False) if isinstance(arguments[0].value.detail, (d.Mapping, d.ListOf)) else UNKNOWN
    return Value(Place.PYTHON, detail=d.Mapping(tuple((key, argument.value) for key, argument in keywords.items())))


def _product(arguments: Sequence[Argument], keywords: Keywords) -> Value:
    return list_of(Value(Place.PYTHON, detail=d.Items("tuple", tuple(one_of(a.value) for a in arguments))))


WEIGHTS_ON_HOST = "safetensors.safe_open on the host"
Special = Callable[[Sequence[Argument], Keywords], Value]
BUILTINS: dict[str, Special] = {
    **dict.fromkeys((
        "builtins.list", "builtins.set", "builtins.frozenset", "builtins.reversed", "builtins.sorted", "builtins.iter",
        "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.trange", "itertools.chain", "itertools.islice", "collections.deque",
    ), _rows),
    **dict.fromkeys(("builtins.max", "builtins.min"), _extreme),
    **dict.fromkeys((f"torch.nn.{part}{name}" for part in ("", "parameter.") for name in ("Parameter", "Buffer")), _parameter),
    **dict.fromkeys(("copy.copy", "copy.deepcopy", "typing.cast"), _same),
    **dict.fromkeys(("torch.nn.ModuleList", "torch.nn.ModuleDict"), _modules),
    **dict.fromkeys((
        "builtins.float", "builtins.int", "builtins.len", "builtins.round", "builtins.abs_", "builtins.hash", "builtins.ord", "math.prod",
    ), _number),
    **dict.fromkeys(("torch.cuda.current_device", "torch.cuda.device", "torch.accelerator.current_accelerator"), _accelerator),
    "builtins.zip": _zip, "builtins.enumerate": _enumerate, "builtins.sum": _sum, "builtins.map": _map, "builtins.filter": _filter,
    "builtins.next": _next, "builtins.dict": _dict, "torch.device": _device, "functools.partial": _partial,
    "torch.nn.Sequential": _sequential, "builtins.str": _str, "builtins.tuple": _tuple, "safetensors.safe_open": _opened,
    "safetensors.torch.load_file": _loaded, "builtins.range": lambda a, k: list_of(INTEGER), "itertools.product": _product,
    "torch.get_default_device": _default_device, "torch.no_grad": _python, "torch.Size": _python,
}  # fmt: skip


def _get(receiver: Value, arguments: Sequence[Argument]) -> Value:
    if not arguments:
        return UNKNOWN
    found = subscript(receiver, arguments[0].value)
    return join_all([found, arguments[1].value]) if len(arguments) > 1 else found


def _pop(receiver: Value, arguments: Sequence[Argument]) -> Value:
    if isinstance(receiver.detail, d.ListOf):
        return element(receiver.detail)
    return _get(receiver, arguments) if isinstance(receiver.detail, d.Mapping) else one_of(receiver)


def _elements(receiver: Value, arguments: Sequence[Argument]) -> Value:
    if isinstance(receiver.detail, d.Mapping):
        return list_of(join_all(value for _, value in receiver.detail.items))
    return list_of(element(receiver.detail)) if isinstance(receiver.detail, d.ListOf) else UNKNOWN


def _pairs(receiver: Value, arguments: Sequence[Argument]) -> Value:
    values = _elements(receiver, arguments)
    return list_of(Value(Place.PYTHON, detail=d.Items("tuple", (PYTHON, element(values.detail)))))


def _text(receiver: Value, arguments: Sequence[Argument]) -> Value:
    return PYTHON


METHODS: dict[str, Callable[[Value, Sequence[Argument]], Value]] = {
    "get": _get, "setdefault": _get, "pop": _pop, "popleft": _pop, "values": _elements, "items": _pairs, "copy": lambda r, a: r,
    "keys": lambda r, a: list_of(PYTHON), "join": _text, "format": _text, "split": _text, "strip": _text, "lower": _text,
    "index": lambda r, a: INTEGER, "count": lambda r, a: INTEGER,
}  # fmt: skip
