"""Functions, lambdas and classes: their outlines, and their bodies, which are lowered after the scope that holds them."""
from __future__ import annotations

import ast

from hostlint.facts.builder import ClassBuilder, FunctionBuilder
from hostlint.facts.chains import chain
from hostlint.facts.dispatch import lower, lowers
from hostlint.facts.docstrings import stated_types
from hostlint.facts.graph import Op
from hostlint.facts.made import made_where
from hostlint.facts.schema import FunctionFlag, Param

Definition = ast.FunctionDef | ast.AsyncFunctionDef


def declare_function(b: FunctionBuilder, node: Definition) -> int:
    """Lower what runs where the `def` stands (decorators, defaults) and queue the body."""
    for decorator in node.decorator_list:
        lower(b, decorator)
    child = _child(b, node.name, node)
    child.decorators = tuple(chain(decorator) for decorator in node.decorator_list)
    child.returns_text = b.file.positions.source(node.returns, limit=200) if node.returns is not None else ""
    child.flags |= _flags(b, node, child.decorators)
    child.params = _told(_parameters(b, node.args), node.body)
    if child.owner >= 0:
        b.file.classes[child.owner].methods.append((node.name, child.index))
        if not child.flags & FunctionFlag.STATIC and child.params:
            child.self_name = child.params[0].name
    b.file.pending.append((child, node.args, node.body))
    return child.index


@lowers(ast.Lambda)
def _lambda(b: FunctionBuilder, node: ast.Lambda) -> int:
    child = _child(b, "<lambda>", node)
    child.owner = -1
    child.params = _parameters(b, node.args)
    if isinstance(node.body, ast.JoinedStr) and not child.params:  # the words of an error, made when it is raised
        child.flags |= FunctionFlag.COLD
    body = ast.Return(value=node.body, lineno=node.body.lineno, col_offset=0, end_lineno=node.end_lineno, end_col_offset=0)
    b.file.pending.append((child, node.args, [body]))
    return b.add(Op.FUNCTION, node.lineno, child.index)


def _child(b: FunctionBuilder, name: str, node: Definition | ast.Lambda) -> FunctionBuilder:
    file = b.file
    prefix = file.classes[b.inside].qualname if b.inside >= 0 else b.qualname if b.index else ""
    child = FunctionBuilder(
        file=file,
        index=len(file.functions),
        name=name,
        qualname=f"{prefix}.{name}" if prefix else name,
        line=node.lineno,
        end_line=node.end_lineno or node.lineno,
        owner=b.inside,
        parent=b.index,
        parent_region=b.region,
    )
    file.functions.append(child)
    return child


def _flags(b: FunctionBuilder, node: Definition, decorators: tuple[str, ...]) -> int:
    names = {decorator.removesuffix("()").rpartition(".")[2] for decorator in decorators}
    flags = FunctionFlag.ASYNC if isinstance(node, ast.AsyncFunctionDef) else 0
    if "staticmethod" in names:
        flags |= FunctionFlag.STATIC
    if "classmethod" in names or node.name == "__init_subclass__":
        flags |= FunctionFlag.CLASS
    if names & {"property", "cached_property", "setter"}:
        flags |= FunctionFlag.PROPERTY
    for line in range(node.lineno, max(node.lineno + 1, node.body[0].lineno)):
        flags |= b.file.header_flags.get(line, 0)
    return flags


def _parameters(b: FunctionBuilder, arguments: ast.arguments) -> tuple[Param, ...]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [*([None] * (len(positional) - len(arguments.defaults))), *arguments.defaults]
    params = [_parameter(b, arg, default, "positional") for arg, default in zip(positional, defaults, strict=True)]
    if arguments.vararg:
        params.append(_parameter(b, arguments.vararg, None, "*"))
    for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        params.append(_parameter(b, arg, default, "keyword"))
    if arguments.kwarg:
        params.append(_parameter(b, arguments.kwarg, None, "**"))
    return tuple(params)


def _told(params: tuple[Param, ...], body: list[ast.stmt]) -> tuple[Param, ...]:
    """The parameters with what the docstring says of those that have no annotation."""
    if all(param.annotation for param in params):
        return params
    stated = stated_types(body)
    if not stated:
        return params
    return tuple(param if param.annotation else param._replace(annotation=stated.get(param.name, "")) for param in params)


def _parameter(b: FunctionBuilder, argument: ast.arg, default: ast.expr | None, kind: str) -> Param:
    annotation = b.file.positions.source(argument.annotation, limit=200) if argument.annotation is not None else ""
    return Param(argument.arg, annotation, lower(b, default) if default is not None else -1, kind)


def enter(child: FunctionBuilder) -> None:
    """Bind the parameters at the start of the body; comments on the header say more of them."""
    for position, param in enumerate(child.params):
        child.bind(param.name, child.add(Op.PARAM, child.line, position))


def read_hints(child: FunctionBuilder, body: list[ast.stmt]) -> None:
    """What comments on a function's header say of its parameters."""
    for line in range(child.line, max(child.line + 1, body[0].lineno)):
        for name, what in child.file.hints.get(line, ()):
            child.refinements.append((name, what))
            if child.env is not None and name in child.env:
                child.env[name] = child.add(Op.REFINE, line, child.env[name], what)


def declare_class(b: FunctionBuilder, node: ast.ClassDef) -> int:
    """A class body runs in the scope that holds it; its names become the class's attributes, not the scope's."""
    from hostlint.facts.statements import lower_block

    for expression in [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]:
        lower(b, expression)
    file = b.file
    prefix = file.classes[b.inside].qualname if b.inside >= 0 else b.qualname if b.index else ""
    bases = tuple(chain(base) for base in node.bases)
    made = ClassBuilder(len(file.classes), node.name, f"{prefix}.{node.name}" if prefix else node.name, node.lineno, bases)
    made.made = made_where(node)
    file.classes.append(made)
    b.assigns.update(((f"@{chain(decorator)}", node.name), None) for decorator in node.decorator_list)
    saved = b.env, b.bindings, b.inside, b.self_name, b.assigns
    b.env, b.bindings, b.inside, b.self_name, b.assigns = dict(b.env or {}), {}, made.index, "", {}
    lower_block(b, node.body)
    made.annotations.extend((name, text[1:]) for name, text in b.assigns if text.startswith(":"))
    chains = dict(pair for pair in b.assigns if not pair[1].startswith(":"))
    for name, nodes in b.bindings.items():
        if "." not in name:
            made.attributes.extend((name, b.index, value, chains.get(name, "")) for value in nodes if b.nodes[value][0] != Op.FUNCTION)
    b.env, b.bindings, b.inside, b.self_name, b.assigns = saved
    return made.index
