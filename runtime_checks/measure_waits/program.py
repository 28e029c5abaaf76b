"""Builds the names of a form on a device and runs its statement."""
from __future__ import annotations

from importlib import import_module
from types import CodeType
from typing import Any  # what forms hold is of every kind

from hostlint.runtime_checks.measure_waits import makers
from hostlint.runtime_checks.measure_waits.catalogue import MODULES, Form, names


class Program:
    """One form with names of its own, built anew, so that what one form writes no other form sees."""

    def __init__(self, form: Form, device: str) -> None:
        self.scope: dict[str, Any] = {name: import_module(module) for name, module in MODULES.items()}
        self.scope["makers"] = makers
        for name in form.needs:
            self.scope[name] = device if name == "d" else eval(names()[name], self.scope)  # noqa: S307 - our own text files
        self._code: CodeType = compile(form.source, form.call, "exec")

    def run(self) -> None:
        """Raises whatever the form raises."""
        exec(self._code, self.scope)  # noqa: S102 - our own text files
