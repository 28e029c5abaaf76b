"""From `ast` positions (UTF-8 bytes, 0-based) to the report's (characters, 1-based), and back to source words."""
from __future__ import annotations

import ast

WORDS = 60


class Positions:
    def __init__(self, text: str) -> None:
        self._ascii = text.isascii()
        # ast counts lines as the tokenizer does: only \n, \r and \r\n end one, not form feeds or Unicode separators
        self._lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self.count = len(self._lines) - (not self._lines[-1])

    def column(self, line: int, offset: int) -> int:
        if self._ascii:
            return offset + 1
        text = self._lines[line - 1]
        return (offset if text.isascii() else len(text.encode()[:offset].decode(errors="replace"))) + 1

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int, int, int]:
        end_line, end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return node.lineno, self.column(node.lineno, node.col_offset), end_line, self.column(end_line, end)

    def source(self, node: ast.expr | ast.stmt, limit: int = WORDS) -> str:
        """The node's source on one line, shortened."""
        line, column, end_line, end = self.span(node)
        if line == end_line:
            text = self._lines[line - 1][column - 1 : end - 1]
        else:
            parts = [self._lines[line - 1][column - 1 :], *self._lines[line : end_line - 1], self._lines[end_line - 1][: end - 1]]
            text = " ".join(part.strip() for part in parts)
        return text if len(text) <= limit else text[: limit - 1] + "…"
