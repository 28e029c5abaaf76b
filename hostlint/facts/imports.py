"""Imports: which absolute dotted name each imported local name stands for."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.facts.builder import FileBuilder


def import_names(file: FileBuilder, node: ast.Import | ast.ImportFrom) -> list[tuple[str, str]]:
    """(local name, absolute dotted target) pairs; star imports are noted on the file."""
    if isinstance(node, ast.Import):
        pairs = [(alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2 for alias in node.names]
    else:
        pairs = []
        source = absolute(file, node.level, node.module)
        for alias in node.names:
            if alias.name == "*":
                file.stars.append(source)
            else:
                pairs.append((alias.asname or alias.name, f"{source}.{alias.name}" if source else alias.name))
    for name, target in pairs:
        file.imported.add(name)
        last = target.rpartition(".")[2]
        if last != name:
            file.aliases[name] = last
    return pairs


def absolute(file: FileBuilder, level: int, module: str | None) -> str:
    """The module that `from ..x import` names, seen from the file's own module."""
    if not level:
        return module or ""
    parts = file.module.split(".") if file.module else []
    drop = level - 1 if file.is_package else level
    parts = parts[: max(0, len(parts) - drop)]
    return ".".join([*parts, *([module] if module else [])])
