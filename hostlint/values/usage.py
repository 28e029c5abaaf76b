"""What a function does with a parameter: methods and calls that only tensors take say that it is one, where no annotation does."""
from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op
from hostlint.torch_ops import function as table_function
from hostlint.torch_ops import is_tensor_method

if TYPE_CHECKING:
    from hostlint.values.evaluator import Frame

# Called on what nothing else is known of, these speak for a tensor, too: arrays, lists and pictures have none of them, or cannot call them.
METHODS = frozenset({
    "size", "dim", "expand", "float", "long", "int", "bool", "type", "cpu", "gather", "scatter", "eq", "ne", "register_hook", "backward",
})
MODULES = frozenset({"torch", "F", "functional"})
ANYTHING = frozenset({"is_tensor", "is_nonzero", "pow", "float_power", "numel"})  # asked of numbers and objects as well


def tensors_by_use(frame: Frame) -> frozenset[int]:
    """The positions of the parameters that the function uses as only a tensor can be used."""
    nodes: Any = frame.graph.nodes
    given = {place: node[2] for place, node in enumerate(nodes) if node[0] == Op.PARAM}
    for place, node in enumerate(nodes):  # in order: what is refined comes before
        if node[0] == Op.REFINE and node[2] in given:
            given[place] = given[node[2]]
    calls = (node for node in nodes if node[0] == Op.CALL)
    return frozenset(given[part] for call in calls for part in _proved(frame, call) if part in given)


def _proved(frame: Frame, call: Any) -> tuple[int, ...]:
    """The nodes that a call shows to be tensors."""
    callee: Any = frame.graph.nodes[call[2]]
    if callee[0] != Op.ATTR:
        return ()
    if callee[3] in METHODS or is_tensor_method(callee[3]):
        return (callee[2],)
    of_torch = frame.node_name(callee[2]).rpartition(".")[2] in MODULES and _takes_tensor(callee[3])
    return tuple(call[3][:1]) if of_torch else ()


@cache
def _takes_tensor(name: str) -> bool:
    """Whether a function of torch of that name has a tensor for its first argument."""
    entry = table_function(f"torch.{name}") or table_function(f"torch.nn.functional.{name}")
    return entry is not None and entry.params[:1] in (("input",), ("condition",)) and name not in ANYTHING
