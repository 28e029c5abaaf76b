"""Configurations that make what they configure: a class nested in another, whose method calls what `__init_subclass__` put into it."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hostlint.heat.kinds import Kind, Type, Types, distinct
from hostlint.scopes import SymbolKind

if TYPE_CHECKING:
    from hostlint.index import ClassId, FunctionId, ProjectIndex

SEVERAL = 8  # an outer class with more subclasses than this is a base of them all, and says nothing of which is made
_MAKES = re.compile(r"self\.(\w+)\(\)")


class Owners:
    def __init__(self, index: ProjectIndex) -> None:
        self._index = index
        self._making: dict[FunctionId, bool] = {}

    def made_by(self, types: Types, name: str) -> Types:
        """What `config.name()` makes, where each type is a configuration of the kind."""
        found = [self._owner(each, name) for each in types]
        return distinct([one for one in found if one is not None]) if all(found) else ()

    def _owner(self, receiver: Type, name: str) -> Type | None:
        if receiver.kind is not Kind.INSTANCE or receiver.depth:
            return None
        outer = self._around(receiver.target)
        method = self._index.find_method(receiver.target, name) if outer is not None else None
        if outer is None or method is None or not self._makes_owner(method) or len(self._index.subclasses(outer)) > SEVERAL:
            return None
        return Type(Kind.INSTANCE, outer)

    def _around(self, cid: ClassId) -> ClassId | None:
        """The class whose body holds this one."""
        outer = self._index.klass(cid).qualname.rpartition(".")[0]
        classes = self._index.files[cid[0]].classes
        return next(((cid[0], klass.index) for klass in classes if klass.qualname == outer), None) if outer else None

    def _makes_owner(self, method: FunctionId) -> bool:
        """Whether the method gives what a call of an attribute gives that no method of its class sets, where the class around it sets up
        its subclasses; or what a base's method of the kind gives."""
        if method not in self._making:
            self._making[method] = False
            function = self._index.function(method)
            bound = dict(function.assigns)
            given = (bound.get(chain, chain) for name, chain in function.assigns if name == "return")
            self._making[method] = any(self._is_owner(method, chain) for chain in given)
        return self._making[method]

    def _is_owner(self, method: FunctionId, chain: str) -> bool:
        made = _MAKES.fullmatch(chain)
        if made is None:
            base = self._base(method, chain.removesuffix("()")) if chain.endswith("()") else None
            return base is not None and self._makes_owner(base)
        own = (method[0], self._index.function(method).owner)
        outer = self._around(own) if own[1] >= 0 else None
        if outer is None or self._index.find_method(outer, "__init_subclass__") is None:
            return False
        return all(not stored and not fid[1] for fid, _, stored in self._index.attribute_stores(own, made[1]))  # a default at most

    def _base(self, method: FunctionId, called: str) -> FunctionId | None:
        """The method of that name that `Base.name(self)` or `super().name()` runs."""
        function = self._index.function(method)
        if called == f"super().{function.name}":
            bases = self._index.mro((method[0], function.owner))[1:]
            return next((found for base in bases if (found := self._index.find_method(base, function.name)) is not None), None)
        symbol = self._index.resolve(method[0], called, method[1]) if called.endswith(f".{function.name}") else None
        return symbol.id if symbol is not None and symbol.kind is SymbolKind.FUNCTION else None
