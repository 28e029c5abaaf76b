"""Which calls run a layer of a module: by the class that is seen, else by the name of the part."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hostlint.facts.graph import Op
from hostlint.values.detail import ExternalInstance, Instance, Method
from hostlint.values.hoisted import PROJECTIONS

if TYPE_CHECKING:
    from hostlint.values.evaluator import Frame

KEY_VALUE = re.compile(r"^(\w+_)?(to_)?(k|v|kv|key|value|wk|wv)(_proj|_linear|_img|_txt|_text)?$")
ACTIVATIONS = re.compile(r"^(act(_fn|ivation)?(_\d+)?|ff|mlp|gelu|silu)$")
ROPE = re.compile(r"(^|_)(rope|rotary\w*|pos_embed\w*)$")
# Parts of a library's module that are methods or cost next to nothing, where the base class is not seen.
NO_LAYER = re.compile(
    r"^_|^(get|set|prepare|compute|build|make|pack|unpack|patchify|unpatchify|gather|scatter|split|chunk|pad|unpad|encode|decode|check|apply|"
    r"run|log|is|has|to|update|reset|forward)(_|$)|drop(out|_?path)?\d*$|hook|callback|logger|scheduler|norm_out|proj_out|final_layer"
)


def is_projection(frame: Frame, item: Any) -> bool:
    """A call of a layer that maps tokens to tokens: a projection, a norm, an embedding, a rotary table; any module of the project's, any
    part of a library's module."""
    name = layer_name(frame, item)
    named = PROJECTIONS.search(name) or KEY_VALUE.match(name) or ROPE.search(name)
    module = isinstance(frame.value(item[2]).detail, Instance) and not NO_LAYER.search(name) and not ACTIVATIONS.search(name)
    return bool(named or module or is_unseen_layer(frame, item)) and is_layer(frame, item)


def is_layer(frame: Frame, item: Any) -> bool:
    """A call of a module, which gives the same for the same inputs while nothing trains."""
    detail = frame.value(item[2]).detail
    if isinstance(detail, Instance):
        return frame.evaluator.index.is_nn_module(detail.klass)
    if isinstance(detail, ExternalInstance):
        return detail.classes[0].startswith("torch.nn.")
    if is_unseen_layer(frame, item):
        return True
    name = layer_name(frame, item)
    unknown = detail is None or (isinstance(detail, Method) and not detail.receiver.is_tensor)
    return unknown and bool(PROJECTIONS.search(name) or KEY_VALUE.match(name) or ROPE.search(name) or ACTIVATIONS.search(name))


def is_unseen_layer(frame: Frame, item: Any) -> bool:
    """A call of a part that the module has from a base class of a library, by a noun for its name: `self.text_fusion(text)`."""
    nodes: Any = frame.graph.nodes
    part = layer_part(nodes, item[2])
    owner = frame.evaluator.index.owner(frame.fid)
    if part[0] != Op.ATTR or nodes[part[2]][0] != Op.PARAM or nodes[part[2]][2] or owner is None or NO_LAYER.search(part[3]):
        return False
    index = frame.evaluator.index
    detail = frame.value(item[2]).detail
    unknown = detail is None or (isinstance(detail, Method) and not detail.receiver.is_tensor)
    from_library = index.is_nn_module(owner) and any(not base.startswith("torch.") and "." in base for base in index.external_bases(owner))
    return unknown and from_library and not index.attribute_stores(owner, part[3]) and index.member(owner, part[3]) is None


def layer_part(nodes: Any, callee: int) -> Any:
    """The attribute that a callee is, or is an element of: `self.refiner` of `self.refiner[0]` and of `for layer in self.refiner`."""
    item = nodes[callee]
    while item[0] in (Op.INDEX, Op.ITER, Op.UNPACK, Op.CALL):
        if item[0] == Op.CALL:
            name = nodes[item[2]]
            if name[0] != Op.GLOBAL or name[2] not in ("enumerate", "reversed") or not item[3]:
                break
            item = nodes[item[3][0]]
        else:
            item = nodes[item[2]]
    return item


def layer_name(frame: Frame, item: Any) -> str:
    """The attribute that a call runs, `to_k` of `self.to_k(x)` and of `self.to_k[0](x)`; "" for other callees."""
    callee: Any = layer_part(frame.graph.nodes, item[2])
    return str(callee[3]) if callee[0] == Op.ATTR else ""
