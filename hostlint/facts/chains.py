"""Callees and values as text: `self.blocks[]`, `get_model().forward`, `torch.zeros`, `?`."""
from __future__ import annotations

import ast

from hostlint.facts.trees import walk

OPAQUE = "?"
LIST_MAKERS = frozenset({
    "ModuleList", "Sequential", "list", "tuple", "nn.ModuleList", "nn.Sequential", "torch.nn.ModuleList", "torch.nn.Sequential",
})
ELEMENT_WRAPPERS = frozenset({"enumerate", "zip", "tqdm", "reversed", "sorted", "iter", "list", "tuple", "trange", "progress_bar", "track"})

# Calls whose result stands for their first argument when it is called: the wrapped module, the function of a partial.
WRAPPERS = frozenset({
    "compile", "partial", "partialmethod", "DataParallel", "DistributedDataParallel", "DDP", "FSDP", "FullyShardedDataParallel",
    "checkpoint_wrapper", "deepcopy", "script", "fully_shard", "OptimizedModule", "unwrap_model", "prepare", "prepare_model", "cast",
    "make_graphed_callables", "MethodType",
})


def chain(node: ast.expr) -> str:
    """The expression with its calls' arguments and its subscripts left out."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{chain(node.value)}.{node.attr}"
    if isinstance(node, ast.Call):
        return f"{chain(node.func)}()"
    if isinstance(node, ast.Subscript):
        return f"{chain(node.value)}[]"
    if isinstance(node, ast.Await):
        return chain(node.value)
    if isinstance(node, ast.NamedExpr):
        return chain(node.value)
    return OPAQUE


def element_chains(target: ast.expr, iterated: ast.expr) -> list[tuple[str, str]]:
    """What a loop's target names stand for: `for i, (a, b) in enumerate(zip(x, y))` gives i range(), a x[], b y[]."""
    if isinstance(iterated, ast.Call):
        name = chain(iterated.func).rsplit(".", 1)[-1]
        if name == "enumerate" and iterated.args and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            return [*_named(target.elts[0], "range()"), *element_chains(target.elts[1], iterated.args[0])]
        if name == "zip" and isinstance(target, ast.Tuple) and len(target.elts) == len(iterated.args):
            pairs = zip(target.elts, iterated.args, strict=True)
            return [pair for part, source in pairs for pair in element_chains(part, source)]
        if name in ELEMENT_WRAPPERS and iterated.args:
            return element_chains(target, iterated.args[0])
        if name == "items" and isinstance(iterated.func, ast.Attribute) and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            return _named(target.elts[1], f"{chain(iterated.func.value)}[]")
        if name == "values" and isinstance(iterated.func, ast.Attribute):
            return _named(target, f"{chain(iterated.func.value)}[]")
    return _named(target, f"{chain(iterated)}[]")


def _named(target: ast.expr, text: str) -> list[tuple[str, str]]:
    return [(target.id, text)] if isinstance(target, ast.Name) else []


def iterated_chain(node: ast.expr) -> str:
    """What a loop walks over, without the wrappers that hand on elements."""
    while isinstance(node, ast.Call) and node.args and chain(node.func).rsplit(".", 1)[-1] in ELEMENT_WRAPPERS - {"zip"}:
        node = node.args[0]
    if isinstance(node, ast.Call) and chain(node.func) == "range" and node.args:
        return f"range({chain(node.args[-1] if len(node.args) < 3 else node.args[1])})"
    return chain(node)


def while_words(test: ast.expr) -> str:
    """A while loop as a region's text: the names in its test say what it waits for."""
    names = [part.id if isinstance(part, ast.Name) else part.attr for part in walk(test) if isinstance(part, (ast.Name, ast.Attribute))]
    return " ".join(["while", *dict.fromkeys(names)])
