"""Which tests ask for a kept value: the branch that fills a cache runs only while the cache is empty."""
from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import TypeGuard

from hostlint.facts.chains import chain
from hostlint.facts.trees import walk

ASKED = re.compile(r"(?:.*\.)?_*(?:is|has|was|already)_(\w+)")
MARKS = re.compile(r"_*(mark|set|note|remember|record|register|add|make)(_as)?_\w+")
SET_UPS = re.compile(r"(^|[._])(re)?(init|initiali[sz]e|build|capture|set_?up|create|alloc|allocate|compile)(_\w+)?$")
ASKING = ("get_", "is_", "has_", "check_", "apply_")  # they hand something out, or use it
CACHE_WORDS = re.compile(r"cache|memo(?!ry)|_cached|already|seen_|registry|buffers?_by", re.IGNORECASE)


def memo(test: ast.expr, negated: bool, node: ast.If, rest: Sequence[ast.stmt]) -> int:
    """1 where the true branch fills a kept value that the test did not find, -1 where the false branch (or the rest) does, else 0."""
    if isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.Or) and any(isinstance(part, ast.Mod) for part in walk(test)):
            return 0  # filled anew by the count: how often is for the count to say
        flipped = ((part, negated is not inner) for part, inner in map(unwrap, test.values))
        return next((sense for part, minus in flipped if (sense := memo(part, minus, node, rest))), 0)
    kept, present = _asks_for(test)
    if kept is None:
        return -1 if not negated and _ends(node.body) and _is_marked(test, rest) else _outgrown(test, negated, node)
    local = isinstance(test, ast.Name) or ("." not in kept and none_test(test) == kept)
    if present is negated:  # the true branch runs where the kept value is missing
        if local and _sets((*node.body, *rest), kept):
            return 1
        if local:
            return int(_keeps(node.body, kept) or _fills_items(node.body, kept))
        set_up = none_test(test) is not None and _sets_up(node.body)
        return int(set_up or _stores(node.body, kept) or _notes(node.body, test))
    if not _ends(node.body) or isinstance(node.body[-1], ast.Raise):
        return 0 if local else -int(_stores(node.orelse, kept))
    asks = not isinstance(test, (ast.Name, ast.Attribute)) and bool(CACHE_WORDS.search(kept))  # `if use_cache:` is a choice
    if local:
        return -int((asks and _mentions(node.body[-1], kept)) or (_returns(node.body[-1], kept) and _fills(rest)))
    return -int(_returns(node.body[-1], kept) or asks or _stores(rest, kept) or _stores(node.orelse, kept))


def _notes(body: Sequence[ast.stmt], test: ast.expr) -> bool:
    """Whether a branch notes what the test compares: `if self.module.height != height:` sets `self.module.height`."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.Eq, ast.NotEq)) or _is_blank(test.comparators[0]):
        return False
    sides = [chain(side) for side in (test.left, test.comparators[0]) if isinstance(side, ast.Attribute)]
    return any(text.startswith("self.") and _stores(body, text) for text in sides)


def _is_marked(test: ast.expr, rest: Sequence[ast.stmt]) -> bool:
    """`if self.is_verified(key): return` where what follows says `self.mark_verified(key)`."""
    asked = ASKED.fullmatch(chain(test.func)) if isinstance(test, ast.Call) else None
    if asked is None:
        return False
    calls = (chain(part.func) for statement in rest for part in walk(statement) if isinstance(part, ast.Call))
    return any(MARKS.fullmatch(called.rpartition(".")[2]) and called.endswith(f"_{asked[1]}") for called in calls)


def _outgrown(test: ast.expr, negated: bool, node: ast.If) -> int:
    """`if length > longest_cached:` where the branch notes the new length."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Gt, ast.GtE, ast.Lt, ast.LtE)):
        return 0
    names = (side.id for side in (test.left, test.comparators[0]) if isinstance(side, ast.Name))
    return int(not negated and any(CACHE_WORDS.search(name) and _sets(node.body, name) for name in names))


def _sets(statements: Sequence[ast.stmt], name: str) -> bool:
    """Whether the value is put away under its name: `setattr(self, f"{layer}_{name}", …)`."""
    calls = (part for statement in statements for part in walk(statement) if isinstance(part, ast.Call))
    named = (call.args[1] for call in calls if chain(call.func) == "setattr" and len(call.args) == 3)
    texts = (part.value for one in named for part in walk(one) if isinstance(part, ast.Constant) and isinstance(part.value, str))
    return any(text.endswith(name) for text in texts)


def unwrap(test: ast.expr) -> tuple[ast.expr, bool]:
    """The test without its `not`s, and whether they negate it."""
    negated = False
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, negated = test.operand, not negated
    return test, negated


def none_test(test: ast.expr) -> str | None:
    """The name that `x is None` or `x is not None` asks about."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        right = test.comparators[0]
        if isinstance(right, ast.Constant) and right.value is None:
            return chain(test.left)
    return None


def _asks_for(test: ast.expr) -> tuple[str | None, bool]:
    """The kept thing that a test asks about, and whether the test holds when it is there."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        op, left, right = test.ops[0], test.left, test.comparators[0]
        if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(right, ast.Constant) and right.value is None:
            return (_attribute(left) or chain(left).removesuffix("[]").removesuffix(".get()")), isinstance(op, ast.IsNot)
        if _is_length(left) and isinstance(op, (ast.Eq, ast.Gt, ast.NotEq)) and isinstance(right, ast.Constant) and right.value == 0:
            return chain(left.args[0]), not isinstance(op, ast.Eq)
        if isinstance(op, (ast.In, ast.NotIn)):
            return chain(right).removesuffix(".keys()"), isinstance(op, ast.In)
        attributes = (chain(part) for part in walk(test) if isinstance(part, ast.Attribute))
        kept = next((text for text in attributes if text.startswith("self.")), None)
        if kept is None:
            return None, False
        if isinstance(op, (ast.Eq, ast.NotEq)) and _is_blank(right):
            return _first_attribute(kept), isinstance(op, ast.NotEq)
        return _first_attribute(kept), isinstance(op, (ast.Eq, ast.GtE, ast.LtE))
    if isinstance(test, ast.Call) and chain(test.func) == "hasattr" and len(test.args) == 2 and isinstance(test.args[1], ast.Constant):
        return f"{chain(test.args[0])}.{test.args[1].value!s}", True
    if isinstance(test, (ast.Name, ast.Attribute)):
        return chain(test), True
    return None, False


def _is_blank(node: ast.expr) -> bool:
    """0 or -1: what stands in an attribute that nobody has filled, or counts what is not there; no key that is looked for."""
    below = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    number = node.operand if isinstance(node, ast.UnaryOp) and below else node
    return isinstance(number, ast.Constant) and type(number.value) in (int, float) and number.value == int(below)


def _is_length(node: ast.expr) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and chain(node.func) == "len" and len(node.args) == 1


def _fills_items(body: Sequence[ast.stmt], name: str) -> bool:
    """`state["step"] = 0` where the state was found to be empty."""
    parts = (part for statement in body for part in walk(statement) if isinstance(part, ast.Subscript))
    return any(isinstance(part.ctx, ast.Store) and isinstance(part.value, ast.Name) and part.value.id == name for part in parts)


def _attribute(node: ast.expr) -> str:
    """`module.table` for `getattr(module, "table", None)`, else ""."""
    if isinstance(node, ast.Call) and chain(node.func) == "getattr" and len(node.args) == 3 and isinstance(node.args[1], ast.Constant):
        return f"{chain(node.args[0])}.{node.args[1].value!s}"
    return ""


def _first_attribute(text: str) -> str:
    return ".".join(text.split(".")[:2])


def _sets_up(body: Sequence[ast.stmt]) -> bool:
    """Whether the branch is one call of the object's own that puts it in order: `self._reinitialize(x)`."""
    call = body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else None
    return isinstance(call, ast.Call) and chain(call.func).startswith("self.") and bool(SET_UPS.search(chain(call.func)))


def _stores(statements: Sequence[ast.stmt], kept: str) -> bool:
    return any(_is_stored(part, kept) for statement in statements for part in walk(statement))


def _is_stored(part: ast.AST, kept: str) -> bool:
    if isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Store):
        return _same(chain(part).removesuffix("[]"), kept)
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
        if part.func.attr in {"setdefault", "register_buffer"}:
            owner = chain(part.func.value)
            texts = (a.value for a in part.args if isinstance(a, ast.Constant) and isinstance(a.value, str))
            return owner == kept or any(kept == f"{owner}.{text}" for text in texts)
        if part.func.attr in {"copy_", "fill_"} and _same(chain(part.func.value).removesuffix(".data"), kept):
            return True  # a flag that is a buffer
        attribute = kept.rsplit(".", 1)[-1].strip("_")
        return kept.startswith("self.") and chain(part.func).startswith("self.") and _fills_by_name(part.func.attr.strip("_"), attribute)
    return False


def _fills_by_name(called: str, attribute: str) -> bool:
    """`build_table` and `build_tables` fill a table, `estimate_values` fills values."""
    if not attribute or called == attribute or called.startswith(ASKING):
        return False
    name = f"_{called}_"
    return f"_{attribute}_" in name or f"_{attribute}_" in name.replace("s_", "_")


def _same(text: str, kept: str) -> bool:
    """The same name or attribute; a property `self.index` stands for what `self._index` keeps."""
    owner, _, name = text.rpartition(".")
    other_owner, _, other = kept.rpartition(".")
    return text == kept or (bool(owner) and owner == other_owner and name.lstrip("_") == other.lstrip("_"))


def _mentions(statement: ast.stmt, kept: str) -> bool:
    return any(isinstance(part, ast.expr) and chain(part) == kept for part in walk(statement))


def _keeps(body: Sequence[ast.stmt], name: str) -> bool:
    """A local is put into a container or an attribute, or a module's own name is bound."""
    assignments = (part for statement in body for part in walk(statement) if isinstance(part, ast.Assign))
    return any(_puts_away(assignment, name) for assignment in assignments)


def _puts_away(assignment: ast.Assign, name: str) -> bool:
    if name.startswith("_") and any(isinstance(to, ast.Name) and to.id == name for to in assignment.targets):
        return True
    value = assignment.value
    away = any(isinstance(to, (ast.Attribute, ast.Subscript)) for to in assignment.targets)
    both = any(isinstance(to, ast.Name) and to.id == name for to in assignment.targets)  # `found = cache[key] = make()`
    return away and (both or (isinstance(value, ast.Name) and value.id == name))


def _fills(statements: Sequence[ast.stmt]) -> bool:
    """Something is put into a container or an attribute."""
    parts = (part for statement in statements for part in walk(statement))
    return any(isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Store) for part in parts)


def _returns(statement: ast.stmt, kept: str) -> bool:
    """The kept value itself, or an element of it, is returned."""
    if not isinstance(statement, ast.Return) or statement.value is None:
        return False
    values = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
    return any(_same(chain(value).removesuffix("[]"), kept) for value in values)


def _ends(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Continue, ast.Raise, ast.Break))
