"""Uploads of what stays the same: before the loop, by the first pass that asks for it, or once for a table that an object holds."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.fix.hoist import STRUCTURE, expression, hoisted
from hostlint.fix.loops import bindings_of, chain, is_unconditional, may_be_none, may_change, own, shared_with_nested, written_in
from hostlint.fix.schedule import source_of
from hostlint.model import Applicability, Span

if TYPE_CHECKING:
    from hostlint.fix.loops import Function
    from hostlint.fix.outline import Loop
    from hostlint.fix.place import Place
    from hostlint.model import Fix

MOVER = '''
@{cache}(maxsize=16)
def moved_table(table, version, device, dtype):
    with torch.inference_mode(table.is_inference()):
        return table.to(device, dtype)


def on_device(table, device, dtype=None):
    """`table.to(device, dtype)`, moved once for each tensor and each state of it: nothing may write into it. A capture makes its own."""
    captures = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
    changes = captures or torch.compiler.is_compiling() or table.requires_grad or table.is_inference()
    move = moved_table.__wrapped__ if changes else moved_table
    return move(table, 0 if changes else table._version, torch.device(device), table.dtype if dtype is None else dtype)
'''
METADATA = frozenset({"shape", "ndim", "is_floating_point"})
SIZES = frozenset({"size", "dim", "numel", "ndimension"})
SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


def uploaded_once(place: Place) -> Fix | None:
    """`mask.to(d)` in a loop before it, or `mask = mask.to(d)` at its place; `self.table[i].to(d)` to `on_device(self.table, d)[i]`."""
    node = expression(place)
    match node:
        case ast.Call(func=ast.Attribute(value=moved, attr="to" | "cuda" as method)) if place.function is not None:
            by_loop = _not_waited_for(place, node, moved) or _before(place, moved) or _by_first_pass(place, node, moved)
            return by_loop or (_kept(place, node, moved) if method == "to" else None)
    return None


# Out of pinned memory


def _not_waited_for(place: Place, node: ast.Call, moved: ast.expr) -> Fix | None:
    """`pinned.to(d)` to `pinned.to(d, non_blocking=True)`: pinned memory is copied while the host goes on."""
    function, name = place.function, chain(moved)
    if function is None or not name or not place.known.receiver.pinned or not isinstance(node.func, ast.Attribute):
        return None
    given = {one.arg for one in node.keywords}
    if node.func.attr != "to" or len(node.args) != 1 or given or any(name == one for one in written_in(function)):
        return None
    end = place.outline.span(node.args[0])
    added = place.replace(", non_blocking=True", Span(end.end_line, end.end_column, end.end_line, end.end_column))
    return place.fix(Applicability.REVIEW, f"do not wait for the copy, where nobody writes to `{name}` before it is done", added)


# In a loop


def _before(place: Place, moved: ast.expr) -> Fix | None:
    """The whole move before the outermost loop that leaves its tensor alone, where the function does not ask if there is one."""
    function = place.function
    if function is None or not isinstance(moved, ast.Name) or may_be_none(function, moved):
        return None
    fixes = (hoisted(place, loop.lineno) for loop in reversed(place.loops))
    return next((fix for fix in fixes if fix is not None), None)


def _by_first_pass(place: Place, node: ast.Call, moved: ast.expr) -> Fix | None:
    """The name is bound to the moved tensor: the first pass moves it, and for the others it is there already."""
    function, statement = place.function, place.statement
    if function is None or not isinstance(moved, ast.Name) or not isinstance(statement, SIMPLE) or not _is_device_alone(node):
        return None
    loops = [one for one in place.loops if not may_change(function, one, frozenset({moved.id}))]
    if not loops or shared_with_nested(function, moved.id) or not is_unconditional(place.path, statement):
        return None
    if not _has_no_other_use(function, loops[-1], node, moved.id) or "\n" in source_of(place, node) or _writes(statement, node):
        return None
    added = place.before(statement, f"{moved.id} = {source_of(place, node)}")
    if added is None:
        return None
    assumed = f"no call writes into `{moved.id}`, or into the one copy that all passes share"
    return place.fix(Applicability.REVIEW, f"move it once: later passes find it there; where {assumed}", added, place.replace(moved.id))


def _is_device_alone(call: ast.Call) -> bool:
    """Whether a move says where to, and a dtype only by its name: a second one then changes nothing."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda":
        return not call.keywords and len(call.args) < 2
    named = {one.arg: one.value for one in call.keywords}
    dtypes = [*([named["dtype"]] if "dtype" in named else []), *call.args[1:]]
    plain = all(isinstance(one, ast.Attribute) and chain(one.value) == "torch" for one in dtypes)
    return named.keys() <= {"device", "dtype", "non_blocking"} and len(call.args) < 3 and plain and bool("device" in named or call.args)


def _has_no_other_use(function: Function, loop: Loop, call: ast.Call, name: str) -> bool:
    """Whether the function reads nothing else of the name from the loop on than its shape, and this very move."""
    same = ast.dump(call)
    above = {child: parent for parent in ast.walk(function) for child in ast.iter_child_nodes(parent)}
    for one in ast.walk(function):
        if not (isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)) or one.lineno < loop.lineno:
            continue
        outer = above.get(one)
        asked = isinstance(outer, ast.Compare) and all(isinstance(operator, ast.Is | ast.IsNot) for operator in outer.ops)
        sized = isinstance(outer, ast.Attribute) and outer.attr in METADATA | SIZES
        if not asked and not sized and ast.dump(above.get(outer, outer) if outer is not None else one) != same:
            return False
    return len([one for one in own(loop) if isinstance(one, ast.Call) and ast.dump(one) == same]) >= 1


def _writes(statement: ast.stmt, call: ast.Call) -> bool:
    """Whether the statement writes in place to what it makes of the move: `y = x.to(d)`, `y += 1` would write to the one copy."""
    return isinstance(statement, ast.AugAssign) or getattr(statement, "value", None) is call


# By an object


def _kept(place: Place, node: ast.Call, moved: ast.expr) -> Fix | None:
    """A table that an object holds, or a row of it: the whole table is moved once."""
    function = place.function
    table = moved.value if isinstance(moved, ast.Subscript) and not _is_key(moved.slice) else moved
    if function is None or not _is_held(function, table) or any(isinstance(one, STRUCTURE) for one in ast.walk(table)):
        return None
    told = _told(place, node)
    cache = place.spelled("functools.lru_cache")
    there = any(isinstance(one, ast.FunctionDef) and one.name == "on_device" for one in place.outline.tree.body)
    if told is None or cache is None or place.outline.meaning("torch", ()) != "torch":
        return None
    if "moved_table" in place.outline.names and not there:
        return None
    helper = place.helper("on_device", MOVER.format(cache=cache.text))
    source = source_of(place, table)
    row = source_of(place, moved)[len(source) :]
    text = f"{helper.text}({source}, {', '.join(told)}){row}"
    if "\n" in text:
        return None
    assumed = f"`{source}` is small enough to stay on the device, and nothing writes into the one copy that all calls share"
    edits = (place.replace(text), *helper.edits, *(cache.edits if helper.edits else ()))
    return place.fix(Applicability.REVIEW, f"move the whole table once, where {assumed}", edits)


def _told(place: Place, call: ast.Call) -> list[str] | None:
    """The device, and the dtype if any, that a move is given, in source."""
    named = {one.arg: one.value for one in call.keywords}
    if not named.keys() <= {"device", "dtype", "non_blocking"} or len(call.args) > 2:
        return None
    device = named.get("device") or (call.args[0] if call.args else None)
    dtype = named.get("dtype") or (call.args[1] if len(call.args) == 2 else None)
    if device is None or not (_is_device(device) and (dtype is None or isinstance(dtype, ast.Name | ast.Attribute))):
        return None
    return [source_of(place, one) for one in (device, dtype) if one is not None]


def _is_device(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str()):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.lower().endswith("device")
    return False


def _is_key(index: ast.expr) -> bool:
    """Whether an index names a part of a dictionary, rather than a row of a tensor."""
    return isinstance(index, ast.JoinedStr) or (isinstance(index, ast.Constant) and isinstance(index.value, str))


def _is_held(function: Function, table: ast.expr) -> bool:
    """Whether a tensor hangs on an object that outlives the call: an attribute, an element of one, a name that is bound to such."""
    match table:
        case ast.Attribute():
            root = chain(table).partition(".")[0]
            return bool(root) and not any(one.startswith(f"{root}.") and chain(table).startswith(one) for one in written_in(function))
        case ast.Subscript(value=inner, slice=index):
            return _is_key(index) and _is_held(function, inner)
        case ast.Name(id=name):
            parameters = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
            bound = bindings_of(function, name)
            if name in parameters or len(bound) != 1 or name in written_in(function):
                return False
            found = next((one for one in own(function) if isinstance(one, ast.Assign) and one.targets == bound), None)
            return found is not None and not isinstance(found.value, ast.Name) and _is_held(function, found.value)
    return False


# As an index


def kept_host_index(place: Place, index: str, base: str) -> Fix | None:
    """`x[rows] = 0.0` with a mask or positions that lie on the host to `x[on_device(rows, x.device)] = 0.0`."""
    function, node = place.function, expression(place)
    cache = place.spelled("functools.lru_cache")
    there = any(isinstance(one, ast.FunctionDef) and one.name == "on_device" for one in place.outline.tree.body)
    if function is None or cache is None or not isinstance(node, ast.Subscript) or place.outline.meaning("torch", ()) != "torch":
        return None
    if "moved_table" in place.outline.names and not there:
        return None
    tensor, given = ast.parse(index, mode="eval").body, {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
    parameter = isinstance(tensor, ast.Name) and tensor.id in given and not bindings_of(function, tensor.id)
    if index in written_in(function) or not (parameter or _is_held(function, tensor)):
        return None
    helper = place.helper("on_device", MOVER.format(cache=cache.text))
    span = place.outline.span(node.slice)
    assumed = f"`{index}` is the same tensor at every step, and nothing writes into the one copy that all calls share"
    edits = (place.replace(f"{helper.text}({index}, {base}.device)", span), *helper.edits, *(cache.edits if helper.edits else ()))
    return place.fix(Applicability.REVIEW, f"move the index once, where {assumed}", edits)
